"""A generator that asks a model, as somebody else wrote it: from the command's function and in a build."""

import contextlib
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import ConfigError, PairwrightError, UsageError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.flows.build import build
from pairwright.flows.commands import generate_with_model
from pairwright.flows.commands.generate import GenerateRequest
from pairwright.flows.commands.generate_with_model import plan_llm_generator, run_llm_generator
from pairwright.flows.commands.plan_requests import plan_build_requests
from pairwright.flows.config.build import parse_config
from pairwright.flows.config.llm_section import LLMSection
from pairwright.flows.llm import answer_checks
from pairwright.flows.llm.model_access import ModelAccess, build_cache_path
from pairwright.flows.state.layout import failed_files
from pairwright.generators.llm.grouping import split_items
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from tests.generators.conversations.test_llm_generator import DETAIL, GOOD

CAPTIONS = [
    f"A {colour} dog on a {what}." for colour in ("red", "blue", "grey") for what in ("bed", "sofa", "rug", "mat")
]
RULES = [
    {"contains": "red dog on a bed", "refusal": "I can't help with that."},
    {"contains": "sofa", "text": "A dog on a very long and rather old sofa"},
    {"contains": "grey dog on a mat", "fault": "400"},
    {"contains": "dog", "text": "A dog"},
]


@pytest.fixture(autouse=True)
def shorten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example generator, installed."""
    site = tmp_path / "site"
    info = site / "shorten-1.0.dist-info"
    info.mkdir(parents=True)
    source = Path(__file__).parents[2] / "plugins" / "shorten.py"
    (site / "shorten.py").write_text(source.read_text())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shorten\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pairwright.llm_generators]\nshorten = shorten:Shorten\n")
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    yield
    sys.modules.pop("shorten", None)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve_in_thread(ServerApp(ServerScript(rules=RULES))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    return path


def asking(folder: Path, *, retry_failed: bool = False, **settings: Any) -> ModelAccess:
    return ModelAccess(LLMSection(model="small", **settings), folder / "cache.sqlite", retry_failed)


def request(captions: Path) -> GenerateRequest:
    read = ReadOptions(input=str(captions), verify_images="off")
    return GenerateRequest("shorten", {}, 0, read, "", captions.parent / "short.jsonl")


def run(captions: Path, *, retry_failed: bool = False, **settings: Any) -> dict[str, Any]:
    how = asking(captions.parent, retry_failed=retry_failed, **settings)
    return run_llm_generator(request(captions), how, lambda _: None, lambda _: None)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_caption_ends_kept_or_rejected_with_its_reason_in_order(server: Server, captions: Path) -> None:
    result = run(captions)
    rows = rows_of(captions.parent / "short.jsonl")
    assert [row["caption"] for row in rows] == CAPTIONS
    assert [row["reason"] for row in rows] == [
        *("refused", "too_long", "", ""),
        *("", "too_long", "", ""),
        *("", "too_long", "", "bad_request"),
    ]
    assert result["types"]["brief"]["kept"] == 7
    assert result["failed"]["reasons"] == {"bad_request": 1, "refused": 1, "too_long": 3}
    assert result["llm"]["requests"] == 11


def negatives_of(request: ChatRequest) -> ServerAnswer:
    """Write negatives as a model does, good and bad ones, of one caption or of several."""
    items = split_items(request.user)
    entries = [{"id": own, **negatives_of_caption(text)} for own, text in items]
    return ServerAnswer(json.dumps({"answers": entries} if items else negatives_of_caption(request.user)))


def negatives_of_caption(text: str) -> dict[str, Any]:
    caption, _ = json.JSONDecoder().raw_decode(text.removeprefix("Caption: "))
    texts = {
        "replace-object": caption.replace("dog", "cat"),
        "replace-attribute": caption.replace("red", "green"),
        "add-object": caption.replace(".", " near a lamp."),
        "swap-object": caption,
    }
    return {"negatives": [{"type": kind, "caption": text} for kind, text in texts.items()]}


@pytest.mark.parametrize("max_requests", [None, 9])
def test_rows_do_not_depend_on_the_number_of_workers_that_check_them(
    captions: Path, monkeypatch: pytest.MonkeyPatch, max_requests: int | None
) -> None:
    """Nor when the budget stops the run: what had an answer is checked and written beside."""
    monkeypatch.setattr(generate_with_model, "FEW_CAPTIONS", 4)
    monkeypatch.setattr(answer_checks, "CHECKED_AT_ONCE", 5)
    written = []
    for workers in (1, 2):
        folder = captions.parent / str(workers)
        folder.mkdir()
        options = {} if max_requests is None else {"captions_per_request": 1}
        asked = replace(request(captions), generator="llm-negatives", options=options, out=folder / "out.jsonl")
        asked = replace(asked, workers=workers)
        how = asking(folder, max_requests=max_requests, max_concurrency=1)
        with serve_in_thread(ServerApp(answer=negatives_of)) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            with contextlib.nullcontext() if max_requests is None else pytest.raises(PairwrightError, match="budget"):
                result = run_llm_generator(asked, how, lambda _: None, lambda _: None)
                assert result["types"]["replace-object"]["kept"] == 12
        written.append((folder / ("out.jsonl" if max_requests is None else "out.partial.jsonl")).read_bytes())
    assert written[0] == written[1]
    rows = [json.loads(line) for line in written[0].splitlines()]
    assert len({row["caption"] for row in rows}) == (12 if max_requests is None else 9)
    assert {row["status"] for row in rows} == {"kept", "rejected"}


def test_a_pool_that_cannot_be_read_stops_before_anything_is_asked(server: Server, captions: Path) -> None:
    asked = replace(request(captions), generator="llm-negatives", pool=str(captions.parent / "none.jsonl"))
    with pytest.raises(PairwrightError, match="no such file"):
        run_llm_generator(asked, asking(captions.parent), lambda _: None, lambda _: None)
    assert server.stats()["requests"] == 0


def test_a_second_run_asks_nothing_that_was_answered_and_writes_the_same(server: Server, captions: Path) -> None:
    run(captions)
    out, before = captions.parent / "short.jsonl", server.stats()["requests"]
    first = out.read_bytes()
    result = run(captions)
    assert result["llm"]["requests"] == 0
    assert server.stats()["requests"] == before + 1  # the 400, which was no answer
    assert out.read_bytes() == first


def test_failed_rows_are_asked_anew_and_a_later_plain_run_keeps_what_came(server: Server, captions: Path) -> None:
    run(captions)
    server.change(rules=[{"contains": "dog", "text": "A dog"}])
    assert run(captions)["types"]["brief"]["kept"] == 8  # the one without an answer is asked in any case
    result = run(captions, retry_failed=True)
    assert (result["types"]["brief"]["kept"], result["llm"]["requests"]) == (12, 4)
    out = (captions.parent / "short.jsonl").read_bytes()
    assert run(captions)["llm"]["requests"] == 0
    assert (captions.parent / "short.jsonl").read_bytes() == out


def test_of_a_conversation_only_the_type_that_failed_is_asked_again(
    captions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    details: list[str] = []

    def answer(asked: ChatRequest) -> ServerAnswer:
        if "response_format" in asked.body:
            return ServerAnswer(json.dumps(GOOD))
        details.append(asked.user)
        return ServerAnswer("I can't help with that." if len(details) <= len(CAPTIONS) else DETAIL)

    options = {"types": ["conversation", "detail"]}
    made = replace(request(captions), generator="llm-conversations", options=options)
    with serve_in_thread(ServerApp(answer=answer)) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        first = run_llm_generator(made, asking(captions.parent), lambda _: None, lambda _: None)
        assert first["failed"]["reasons"] == {"refused": 12}
        assert first["types"]["conversation"]["kept"] == 12
        again = asking(captions.parent, retry_failed=True)
        plan = plan_llm_generator(made, again, lambda _: None)
        second = run_llm_generator(made, again, lambda _: None, lambda _: None)
    assert plan.requests.low == second["llm"]["requests"] == 12
    assert (second["failed"]["rows"], second["types"]["detail"]["kept"]) == (0, 12)


@pytest.mark.parametrize("seed", [{}, {"seed": 7}])
def test_rows_that_failed_at_temperature_0_are_asked_anew_at_another(
    captions: Path, monkeypatch: pytest.MonkeyPatch, seed: dict[str, int]
) -> None:
    """The server would only repeat itself; what did not fail is not asked again, and what came stays."""
    asked: list[float] = []

    def answer(request: ChatRequest) -> ServerAnswer:
        asked.append(request.body["temperature"])
        return ServerAnswer("A dog" if asked[-1] or "sofa" not in request.user else "A dog on a very long and old sofa")

    settings: dict[str, Any] = {"parameters": {"temperature": 0, **seed}}
    with serve_in_thread(ServerApp(ServerScript(), answer=answer)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert run(captions, **settings)["failed"]["reasons"] == {"too_long": 3}
        assert asked == [0] * 12
        result = run(captions, retry_failed=True, **settings)
        assert (result["failed"]["rows"], result["llm"]["requests"]) == (0, 3)
        assert asked[12:] == [0.7] * 3
        assert run(captions, **settings)["llm"]["requests"] == 0
        assert server.stats()["bodies"]["answered_again"] == 0


def test_a_budget_stops_the_run_and_what_is_done_is_written_beside(server: Server, captions: Path) -> None:
    notes: list[str] = []
    how = asking(captions.parent, max_requests=4, max_concurrency=1)
    with pytest.raises(PairwrightError, match="the budget allows no further request"):
        run_llm_generator(request(captions), how, notes.append, lambda _: None)
    assert not (captions.parent / "short.jsonl").exists()
    done = rows_of(captions.parent / "short.partial.jsonl")
    assert 3 <= len(done) <= 4
    assert f"{len(done)} of 12 captions are done" in notes[-1]
    assert run(captions)["llm"]["requests"] == 11 - 4
    assert not (captions.parent / "short.partial.jsonl").exists()
    assert server.stats()["bodies"]["answered_again"] == 0


def test_a_broken_row_of_the_input_stops_before_anything_is_asked(server: Server, captions: Path) -> None:
    with captions.open("a") as lines:
        lines.write("{not json\n")
    with pytest.raises(PairwrightError, match="broken_json"):
        run(captions)
    assert server.stats()["requests"] == 0


def test_a_plan_sends_nothing_and_counts_what_the_cache_holds(server: Server, captions: Path) -> None:
    plan = plan_llm_generator(request(captions), asking(captions.parent, price="1/2"), lambda _: None)
    assert (plan.rows, plan.requests.low, plan.cached.value) == (12, 12, 0)
    assert plan.cost is not None
    assert plan.cost.value > 0
    assert server.stats()["requests"] == 0
    run(captions)
    later = plan_llm_generator(request(captions), asking(captions.parent, price="1/2"), lambda _: None)
    assert (later.requests.low, later.cached.value) == (1, 11)


def test_a_plan_of_shared_requests_counts_what_the_cache_holds_of_many_captions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    texts = [f"A {colour} dog on mat {n}." for n in range(130) for colour in ("red", "blue")]  # more than are sampled
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps({"caption": text}) + "\n" for text in texts))
    options = {"types": ["replace-object"], "candidates": 1}
    made = replace(request(path), generator="llm-negatives", options=options)
    how = asking(tmp_path, price="1/2")
    with serve_in_thread(ServerApp(answer=negatives_of)) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        before = plan_llm_generator(made, how, lambda _: None)
        run_llm_generator(made, how, lambda _: None, lambda _: None)
        plan = plan_llm_generator(made, how, lambda _: None)
        sent = served.stats()["requests"]
    assert before.sampled < len(texts)
    assert before.requests.low <= sent <= before.requests.high
    assert (plan.rows, plan.requests.high) == (len(texts), 0)


def test_a_plan_of_a_retry_counts_the_failed_rows(server: Server, captions: Path) -> None:
    run(captions)
    again = asking(captions.parent, price="1/2", retry_failed=True)
    plan = plan_llm_generator(request(captions), again, lambda _: None)
    before = server.stats()["requests"]
    run(captions, retry_failed=True)
    # One row had no answer, and four had one that was rejected.
    assert plan.requests.low == server.stats()["requests"] - before == 5
    assert plan.rows == len(CAPTIONS)
    with pytest.raises(UsageError, match="nothing to retry"):
        plan_llm_generator(replace(request(captions), out=captions.parent / "o.jsonl"), again, lambda _: None)


def test_parameters_of_the_user_reach_the_server_and_the_plan(server: Server, captions: Path) -> None:
    settings: dict[str, Any] = {"parameters": {"max_tokens": None, "max_completion_tokens": 9}}
    run(captions, **settings)
    plan = plan_llm_generator(request(captions), asking(captions.parent, **settings), lambda _: None)
    assert plan.cached.value == 11
    assert plan_llm_generator(request(captions), asking(captions.parent), lambda _: None).cached.value == 0


def built(captions: Path, out: Path, *, retry_failed: bool = False, **sections: Any) -> dict[str, Any]:
    config = {
        "name": "short",
        "input": {"path": str(captions)},
        "llm": {"model": "small", "price": "1/2"},
        "generators": [{"name": "shorten"}],
        "part_size": 5,
        "workers": 1,
        **sections,
    }
    return build(parse_config(config, where="test"), out, prefect=False, retry_failed=retry_failed)


def test_a_build_asks_once_and_tells_what_it_paid(server: Server, captions: Path) -> None:
    out = captions.parent / "build"
    manifest = built(captions, out)
    stage = manifest["stages"]["shorten"]
    assert (stage["candidates"], stage["kept"]) == (12, 7)
    assert stage["rejected"] == {"bad_request": 1, "refused": 1, "too_long": 3}
    assert manifest["cost"]["requests"] == 11
    assert manifest["cost"]["usd"] > 0
    assert stage["facts"]["llm"]["model"] == "small"
    failed = [row for path in failed_files(out, "shorten") for row in rows_of(path)]
    assert [row["reason"] for row in failed].count("too_long") == 3
    before = server.stats()["requests"]
    again = built(captions, out)
    assert server.stats()["requests"] == before
    assert again["cost"] == manifest["cost"]


def test_the_answers_of_a_build_are_kept_where_its_config_says(server: Server, captions: Path) -> None:
    """So that a build directory can be on NFS, and several builds share their answers."""
    folder = captions.parent
    cache = folder / "local" / "answers.sqlite"
    llm = {"model": "small", "price": "1/2", "cache": str(cache)}
    built(captions, folder / "one", llm=llm)
    assert cache.is_file()
    assert not list((folder / "one").glob("*.sqlite*"))
    assert build_cache_path(folder / "one") == cache
    config = parse_config(
        {"name": "short", "input": {"path": str(captions)}, "llm": llm, "generators": [{"name": "shorten"}]},
        where="test",
    )
    (plan,) = plan_build_requests(config, folder / "two")
    before = server.stats()["requests"]
    manifest = built(captions, folder / "two", llm=llm)
    assert plan.cached.value == manifest["stages"]["shorten"]["facts"]["llm"]["in_all"]["answers"] == 11
    assert server.stats()["requests"] == before + 1, "only the one that failed is asked again"


def test_moving_the_cache_of_a_build_makes_no_text_again(server: Server, captions: Path) -> None:
    out = captions.parent / "build"
    built(captions, out)
    before = server.stats()["requests"]
    built(captions, out, llm={"model": "small", "price": "1/2", "cache": str(captions.parent / "moved.sqlite")})
    assert server.stats()["requests"] == before


def test_two_stages_that_ask_share_cache_and_bill_and_each_tells_its_own_part(server: Server, captions: Path) -> None:
    server.change(rules=[{"contains": "dog", "text": "A dog"}])
    out = captions.parent / "build"
    manifest = built(captions, out, positives={"method": "llm"})
    bills = [manifest["stages"][stage]["facts"]["llm"] for stage in ("positives", "shorten")]
    assert all(bill["requests"] for bill in bills)
    assert sum(bill["requests"] for bill in bills) == server.stats()["requests"] == manifest["cost"]["requests"]
    limited = {"model": "other", "price": "1/2", "max_requests": bills[0]["requests"] + 2}
    with pytest.raises(PairwrightError, match="the budget allows no further request"):
        built(captions, out, positives={"method": "llm"}, llm=limited)
    assert server.stats()["requests"] <= manifest["cost"]["requests"] + limited["max_requests"]


def test_what_a_killed_build_left_of_failed_rows_goes_and_the_attempts_stay(server: Server, captions: Path) -> None:
    out = captions.parent / "build"
    built(captions, out)
    built(captions, out, retry_failed=True)
    half = out / "failed" / "shorten" / ".00000.jsonl.tmp-1"
    half.write_text("half a li")
    built(captions, out)
    assert not half.exists()
    assert list((out / "failed" / "shorten").glob("*.attempts.json"))


def test_asking_anew_passes_over_stages_of_which_no_row_has_failed(server: Server, captions: Path) -> None:
    server.change(rules=[{"contains": "dog", "text": "A dog"}])
    out = captions.parent / "build"
    with pytest.raises(UsageError, match="nothing to retry"):
        built(captions, out, retry_failed=True)
    built(captions, out)
    with pytest.raises(UsageError, match="nothing to retry"):
        built(captions, out, retry_failed=True)
    built(captions, out, positives={"method": "llm"}, generators=[])  # every answer of which is of no use
    manifest = built(captions, out, positives={"method": "llm"}, retry_failed=True)
    assert manifest["stages"]["positives"]["facts"]["llm"]["requests"] > 0
    assert manifest["stages"]["shorten"]["kept"] == 12


def test_a_build_asks_anew_when_told_to_and_stays_so_afterwards(server: Server, captions: Path) -> None:
    out = captions.parent / "build"
    built(captions, out)
    server.change(rules=[{"contains": "dog", "text": "A dog"}])
    assert built(captions, out)["stages"]["shorten"]["kept"] == 7  # nothing has changed that a build depends on
    assert built(captions, out, retry_failed=True)["stages"]["shorten"]["kept"] == 12
    assert built(captions, out)["stages"]["shorten"]["kept"] == 12


def test_a_changed_model_asks_again_and_a_changed_pace_does_not(server: Server, captions: Path) -> None:
    out = captions.parent / "build"
    built(captions, out)
    before = server.stats()["requests"]
    built(captions, out, llm={"model": "small", "max_concurrency": 3, "price": "1/2"})
    assert server.stats()["requests"] == before
    built(captions, out, llm={"model": "large", "price": "1/2"})
    assert server.stats()["requests"] == 2 * before


def test_a_config_whose_generator_asks_a_model_has_to_name_one(captions: Path) -> None:
    with pytest.raises(ConfigError, match="llm"):
        built(captions, captions.parent / "build", llm=None)


@pytest.mark.parametrize(
    ("setting", "fix"),
    [({"base_url": "http://me:hunter22@host/v1"}, "OPENAI_BASE_URL"), ({"api_key": "hunter22"}, "OPENAI_API_KEY")],
)
def test_a_config_holds_no_secret_and_its_refusal_shows_none(setting: dict[str, str], fix: str) -> None:
    config = {"name": "x", "input": {"path": "x"}, "llm": {"model": "m", **setting}}
    with pytest.raises(ConfigError, match=fix) as refusal:
        parse_config(config, where="t")
    assert "hunter22" not in str(refusal.value)


def test_a_limit_in_money_needs_a_price(server: Server, captions: Path) -> None:
    with pytest.raises(UsageError, match="--max-cost requires the price"):
        run(captions, max_cost=1.0)
    assert server.stats()["requests"] == 0


def test_a_seed_is_sent_so_that_another_one_brings_other_answers(server: Server, captions: Path) -> None:
    run(captions)
    how = replace(asking(captions.parent), seed=7)
    result = run_llm_generator(replace(request(captions), seed=7), how, lambda _: None, lambda _: None)
    assert result["llm"]["requests"] == 11
    again = run_llm_generator(replace(request(captions), seed=7), how, lambda _: None, lambda _: None)
    assert again["llm"]["in_all"]["answers"] == 11


def test_the_manifest_tells_what_all_answers_cost_whoever_paid_them(server: Server, captions: Path) -> None:
    out = captions.parent / "build"
    with pytest.raises(PairwrightError, match="the budget allows no further request"):
        built(captions, out, llm={"model": "small", "price": "1/2", "max_requests": 4, "max_concurrency": 1})
    manifest = built(captions, out)
    # At the end of the budget up to four requests were sent; what was not sent then is sent now.
    assert 7 <= manifest["stages"]["shorten"]["facts"]["llm"]["requests"] < 11
    assert manifest["cost"]["requests"] == 11


def test_a_failed_row_says_what_the_server_said(server: Server, captions: Path) -> None:
    run(captions)
    failed = rows_of(captions.parent / "short.failed.jsonl")
    [detail] = [row["detail"] for row in failed if row["reason"] == "bad_request"]
    assert detail.startswith("400: ")


def test_a_run_that_the_server_refuses_at_once_leaves_nothing_behind(server: Server, captions: Path) -> None:
    server.change(rules=[{"contains": "dog", "fault": "401"}])
    notes: list[str] = []
    with pytest.raises(PairwrightError, match="does not accept the key"):
        run_llm_generator(request(captions), asking(captions.parent), notes.append, lambda _: None)
    assert notes[-1] == "No captions are done."
    assert not list(captions.parent.glob("short*"))


def test_conversations_of_a_model_go_into_a_build(server: Server, captions: Path) -> None:
    turns = [
        {"question": f"Where is the {thing}?", "answer": f"The {thing} is on a bed."} for thing in ("dog", "animal")
    ]
    rules = [
        {"matches": "(?s)^(?=.*bed)", "json": {"turns": turns}},
        {"contains": "dog", "refusal": "No."},
    ]
    server.change(rules=rules)
    asked = {"method": "llm", "types": ["conversation"]}
    manifest = built(captions, captions.parent / "build", generators=[], conversations=asked)
    stage = manifest["stages"]["conversations"]
    assert (stage["candidates"], stage["kept"]) == (12, 3)
    assert stage["rejected"] == {"refused": 9}
    assert manifest["contents"]["texts"]["turns"] == 6


def test_counts_of_conversations_are_asked_for_and_no_more(server: Server, captions: Path) -> None:
    turns = [{"question": f"Where is the {thing}?", "answer": "It is on a bed."} for thing in ("dog", "animal")]
    server.change(rules=[{"json": {"turns": turns}}])
    asked = {"method": "llm", "counts": {"conversation": 5}}
    manifest = built(captions, captions.parent / "build", generators=[], conversations=asked)
    stage = manifest["stages"]["conversations"]
    assert (stage["candidates"], stage["kept"], stage["rejected"]) == (12, 5, {"over_quota": 7})
    assert stage["facts"]["llm"]["in_all"]["answers"] == 5
    told = stage["facts"]["limits"]["conversation"]
    assert (told["asked"], told["available"], told["given"]) == (5, 5, 5)
    section = {"types": ("conversation",), "counts": {"conversation": 5}}
    by_verb = GenerateRequest("llm-conversations", section, 0, request(captions).read, "", captions.parent / "c.jsonl")
    done = run_llm_generator(by_verb, asking(captions.parent), lambda _: None, lambda _: None)
    assert done["limits"]["conversation"]["given"] == 5
    assert done["llm"]["in_all"]["answers"] == 5
    assert done["failed"]["rows"] == 0


def test_rejected_conversations_are_made_up_for_from_further_pairs(server: Server, captions: Path) -> None:
    turns = [{"question": f"Where is the {thing}?", "answer": "It is on a bed."} for thing in ("dog", "animal")]
    server.change(rules=[{"matches": "(?s)^(?=.*bed)", "refusal": "No."}, {"json": {"turns": turns}}])
    section = {"types": ("conversation",), "counts": {"conversation": 9}}
    by_verb = GenerateRequest("llm-conversations", section, 0, request(captions).read, "", captions.parent / "c.jsonl")
    notes: list[str] = []
    done = run_llm_generator(by_verb, asking(captions.parent), notes.append, lambda _: None)
    told = done["limits"]["conversation"]
    assert (told["asked"], told["available"], told["given"]) == (9, 12, 9)
    assert done["llm"]["in_all"]["answers"] == told["available"]
    assert any("further pairs" in note for note in notes)
    asked = {"method": "llm", "counts": {"conversation": 10}}
    manifest = built(captions, captions.parent / "build", generators=[], conversations=asked)
    stage = manifest["stages"]["conversations"]
    assert (stage["candidates"], stage["kept"], stage["rejected"]) == (12, 9, {"refused": 3})
    assert stage["facts"]["limits"]["conversation"]["given"] == 9


def test_counts_that_cannot_be_met_are_told(server: Server, captions: Path) -> None:
    server.change(rules=[{"refusal": "No."}])
    section = {"types": ("conversation",), "counts": {"conversation": 2}}
    by_verb = GenerateRequest("llm-conversations", section, 0, request(captions).read, "", captions.parent / "c.jsonl")
    notes: list[str] = []
    done = run_llm_generator(by_verb, asking(captions.parent), notes.append, lambda _: None)
    assert done["limits"]["conversation"]["available"] == 2, "nothing is asked on when nothing comes of it"
    assert any("2 conversation missing" in note for note in notes)


@pytest.mark.parametrize(
    "section",
    [
        {"types": ["detail"]},
        {"method": "llm", "types": ["short"]},
        {"see_image": True},
        {"ratios": {"detail": 1}},
        {"method": "llm", "short_prompt": "Be brief."},
        {"counts": {"detail": 1}},
        {"counts": {"brief": -1}},
        {"types": ["brief"], "counts": {"conversation": 1}},
        {"method": "llm", "ratios": {"detail": 1}, "counts": {"detail": 1}},
    ],
)
def test_conversations_that_a_method_does_not_make_are_refused(section: dict[str, Any]) -> None:
    config = {"name": "x", "input": {"path": "x"}, "llm": {"model": "m"}, "conversations": section}
    with pytest.raises(ConfigError, match="conversations"):
        parse_config(config, where="t")


def test_an_increment_asks_about_new_pairs_alone_and_the_bill_is_of_all(server: Server, captions: Path) -> None:
    out, rows = captions.parent / "build", captions.read_text().splitlines(keepends=True)
    captions.write_text("".join(rows[:7]))
    first = built(captions, out, incremental=True, shards={"images": False})
    asked = server.stats()["requests"]
    captions.write_text("".join(rows))
    second = built(captions, out, incremental=True, shards={"images": False})
    assert server.stats()["requests"] - asked == len(rows) - 7
    one, both = (manifest["stages"]["shorten"]["facts"]["llm"]["in_all"] for manifest in (first, second))
    assert both["answers"] == second["cost"]["requests"] > one["answers"]
    assert both["cost"] > one["cost"]
    failed = [line for path in (out / "increments" / "0002" / "failed" / "shorten").iterdir() for line in path.open()]
    assert any("injected" in line for line in failed)
    assert second["increments"][0]["stages"]["shorten"]["facts"]["llm"]["failed"] == len(failed) > 0
    assert second["contents"]["samples"] == len(rows)


def test_a_run_imports_neither_tables_nor_editors_nor_encoders_before_it_needs_them() -> None:
    code = "import sys, pairwright.flows.commands.generate_with_model; print(sorted({%s} & {*sys.modules}))"
    slow = ["polars", "pyarrow", "PIL", "spacy", "torch", "aiohttp", "pairwright.generators.edits.editors"]
    done = subprocess.run(
        [sys.executable, "-c", code % ", ".join(map(repr, slow))], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
