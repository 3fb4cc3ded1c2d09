"""Batch mode, over HTTP against the test server: what is asked in batches is answered as if asked directly."""

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.generators.llm.batch.ledger import BatchLedger
from pairwright.generators.llm.batch.model import (
    BatchLimits,
    BatchModel,
    batch_client,
    cancel_batches,
    ledger_path,
    open_batch_model,
)
from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.factory import open_model
from pairwright.generators.llm.client.messages import Image, Message, Reply, Request
from pairwright.generators.llm.client.request_adaptation import AdaptedModel, RefusedParts
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.llm.session import Session
from pairwright.generators.llm.testing import http_messages
from pairwright.generators.llm.testing.serving import Server
from tests.generators.llm.batch.batch_fixtures import (
    KEY,
    Bench,
    Meddle,
    ask_all,
    listed,
    request,
    requests,
    said,
    serving,
    settings_for,
    texts,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return ledger_path(tmp_path / "cache.sqlite")


def once(matches: Any, then: Any) -> Meddle:
    """Meddle with the first request that matches."""
    done: list[int] = []

    def meddle(asked: http_messages.HTTPRequest, handle: Any) -> http_messages.HTTPReply:
        if not done and matches(asked):
            done.append(1)
            reply: http_messages.HTTPReply = then(asked, handle)
            return reply
        found: http_messages.HTTPReply = handle(asked)
        return found

    return meddle


def error(status: int, code: str, message: str = "no") -> http_messages.HTTPReply:
    return http_messages.HTTPReply(status, orjson.dumps({"error": {"code": code, "message": message}}), tag=())


# --- what is asked is answered -------------------------------------------------------------------------------


def test_all_that_is_asked_at_once_is_one_batch_and_comes_back_in_the_order_asked(ledger: Path) -> None:
    with serving(batch_polls=3) as server:
        bench = Bench(server, ledger)
        found = bench.ask(requests(30))
        assert texts(found) == said(30)  # the server shuffles its lines
        assert [batch["request_counts"]["total"] for batch in listed(server, "batches")] == [30]
        assert isinstance(found[0], Reply)
        assert found[0].usage.prompt_tokens > 0
        assert orjson.loads(found[0].raw)["object"] == "chat.completion"


def test_the_cache_holds_what_direct_calls_would_have_put_there(ledger: Path, tmp_path: Path) -> None:
    asked = [
        *requests(3),
        request("with parameters", parameters={"temperature": 0.5, "max_tokens": 9}),
        request("again", sample=1),
        Request((Message("system", "be brief"), Message("user", "hello")), "m"),
    ]
    with serving() as server, Cache.open(tmp_path / "cache.sqlite") as cache:
        bench = Bench(server, ledger)
        endpoint = bench.settings.cache_endpoint

        async def batched(model: BatchModel) -> list[Reply | RequestError]:
            return await ask_all(CachedModel(model, cache, endpoint), asked)

        first = bench.run(batched, safe=cache.flush)

        async def direct() -> list[Reply | RequestError]:
            async with open_model(bench.settings) as model:
                return await ask_all(CachedModel(model, cache, endpoint), asked)

        again = asyncio.run(direct())
        assert texts(again) == texts(first)
        assert all(isinstance(reply, Reply) and reply.cached for reply in again)
        assert server.stats()["endpoints"].get("chat", 0) == 0


def test_what_a_model_refuses_in_a_batch_is_adapted_to_in_the_next_one_and_from_then_on(ledger: Path) -> None:
    said_: list[str] = []
    asked = [request(f"row {n}", parameters={"temperature": 0, "max_tokens": 9}) for n in range(3)]
    with serving(without=["temperature", "max_tokens"]) as server:
        refusals = RefusedParts(said_.append)
        for batches in (3, 4):
            bench = Bench(server, ledger)
            found = bench.run(lambda model: ask_all(AdaptedModel(model, refusals), asked))
            assert texts(found) == said(3)
            assert len(listed(server, "batches")) == batches
    assert [line.split(":")[0] for line in said_] == ["m refuses temperature", "m refuses max_tokens"]


def test_batches_are_closed_at_so_many_requests(ledger: Path) -> None:
    with serving() as server:
        assert texts(Bench(server, ledger, BatchLimits(lines=4)).ask(requests(10))) == said(10)
        assert [batch["request_counts"]["total"] for batch in listed(server, "batches")] == [4, 4, 2]


def test_batches_are_closed_at_so_many_bytes_and_a_line_that_is_larger_is_that_rows_failure(ledger: Path) -> None:
    sizes: list[int] = []

    def weigh(asked: http_messages.HTTPRequest, handle: Any) -> http_messages.HTTPReply:
        if asked.path == "/v1/files" and asked.method == "POST":
            data = asked.form["file"][1]
            sizes.append(data.count(b"custom_id"))
            assert len(data) <= 1000
        found: http_messages.HTTPReply = handle(asked)
        return found

    with serving(weigh) as server:
        found = Bench(server, ledger, BatchLimits(size=1000)).ask([*requests(12), request("x" * 1000)])
    assert texts(found) == [*said(12), "request_too_large"]
    assert len(sizes) > 1
    assert sum(sizes) == 12


def test_a_batch_holds_one_model_as_the_api_wants_it(ledger: Path) -> None:
    with serving() as server:
        found = Bench(server, ledger).ask([request(n, model=f"m{n % 2}") for n in range(6)])
        assert texts(found) == [f"You said: {n}" for n in range(6)]
        assert [batch["request_counts"]["total"] for batch in listed(server, "batches")] == [3, 3]


def test_equal_requests_share_a_line_and_are_paid_for_once(ledger: Path) -> None:
    with serving() as server:
        bench = Bench(server, ledger)
        found = bench.ask([request("same")] * 3)
        assert bench.lines == 1
    assert [reply.cached for reply in found if isinstance(reply, Reply)] == [False, True, True]


def test_a_second_round_is_a_second_batch(ledger: Path) -> None:
    async def rounds(model: BatchModel) -> str:
        reply = await model.ask(request("first"))
        return (await model.ask(request(f"then {reply.text}"))).text

    with serving() as server:
        assert Bench(server, ledger).run(rounds) == "You said: then You said: first"
        assert len(listed(server, "batches")) == 2


def test_images_are_sent_in_lines_and_one_that_cannot_be_read_is_its_rows_failure(ledger: Path) -> None:
    def broken() -> str:
        raise RequestError("bad_image", "no picture")

    good = Image("0" * 64, "as it is", lambda: "data:image/png;base64,AAAA")
    bad = Image("1" * 64, "as it is", broken)
    asked = [Request((Message("user", "what?", (image,)),), "m") for image in (good, bad)]
    with serving() as server:
        assert texts(Bench(server, ledger).ask(asked)) == ["You said: what?", "bad_image"]


def test_a_row_without_waiting_callers_is_not_sent(ledger: Path) -> None:
    async def work(model: BatchModel) -> str:
        tired = asyncio.ensure_future(model.ask(request("tired")))
        await asyncio.sleep(0)
        tired.cancel()
        return (await model.ask(request("patient"))).text

    with serving() as server:
        bench = Bench(server, ledger)
        assert bench.run(work) == "You said: patient"
        assert bench.lines == 1


# --- waiting -------------------------------------------------------------------------------------------------


def test_queued_requests_are_sent_when_idle_and_poll_intervals_grow_to_a_limit(ledger: Path) -> None:
    with serving(batch_polls=12) as server:
        bench = Bench(server, ledger, BatchLimits(idle=7.0, first_look=5.0, longest_look=40.0))
        bench.ask(requests(2))
    assert bench.waits[0] == 7.0
    looks = [wait for wait in bench.waits[1:] if wait != 7.0]
    assert looks[:4] == [5.0, 7.5, 11.25, 16.875]
    assert max(looks) == 40.0


# --- failures ------------------------------------------------------------------------------------------------


def test_a_permanent_error_of_a_line_is_that_of_a_direct_call(ledger: Path) -> None:
    rules = [
        {"contains": "long", "fault": "context_too_long"},
        {"contains": "bad", "fault": "400"},
        {"contains": "filtered", "fault": "content_filter"},
        {"contains": "odd", "fault": "refusal"},
    ]
    asked = [request(text) for text in ("long", "bad", "filtered", "odd", "fine")]
    with serving(rules=rules) as server:
        bench = Bench(server, ledger)

        async def direct() -> list[Reply | RequestError]:
            async with open_model(bench.settings) as model:
                return await ask_all(model, asked)

        batched, straight = bench.ask(asked), asyncio.run(direct())
        assert texts(batched) == texts(straight)
        assert [str(each) for each in batched[:3]] == [str(each) for each in straight[:3]]
        assert isinstance(batched[3], Reply)
        assert batched[3].refusal
        assert len(listed(server, "batches")) == 1


@pytest.mark.parametrize(
    "faults",
    [
        {"batch_expired": 0.4},
        {"500": 0.3, "429": 0.2},
        {"malformed": 0.2, "wrong_type": 0.2},
        {"batch_line_lost": 0.4},
        {"batch_line_garbled": 0.4},
        {"batch_expired": 0.2, "batch_line_lost": 0.2, "batch_line_garbled": 0.2, "500": 0.2, "batch_failed": 0.2},
    ],
)
def test_lines_that_expire_fail_transiently_or_are_broken_are_sent_again(
    ledger: Path, faults: dict[str, float]
) -> None:
    with serving(faults=faults, seed=3) as server:
        bench = Bench(server, ledger, more={"max_retries": 30})
        assert texts(bench.ask(requests(20))) == said(20)
        assert len(listed(server, "batches")) > 1
        assert sum(server.stats()["faults"].values()) > 0
        assert listed(server, "files") == []  # nothing of the user's is left there


def test_a_batch_that_fails_for_another_reason_than_its_input_is_created_again(ledger: Path) -> None:
    with serving(faults={"batch_failed": 1}) as server:
        bench = Bench(server, ledger)

        async def fix() -> None:
            if any(row["status"] == "failed" for row in listed(server, "batches")):
                server.change(faults={})

        bench.meanwhile = fix
        assert texts(bench.ask(requests(3))) == said(3)
        assert {row["status"] for row in listed(server, "batches")} == {"failed", "completed"}


def test_unreadable_lines_are_counted_and_reported(ledger: Path) -> None:
    with serving(faults={"batch_line_garbled": 0.3}) as server:
        bench = Bench(server, ledger, more={"max_retries": 30})
        bench.ask(requests(20))
        hurt = server.stats()["faults"]["batch_line_garbled"]
    found = [re.search(r"(\d+) unreadable lines, (\d+) lines of unknown requests", line) for line in bench.said]
    assert sum(int(each[1]) for each in found if each) == 2 * hurt
    assert sum(int(each[2]) for each in found if each) == hurt


def test_a_line_that_always_fails_ends_after_its_retries(ledger: Path) -> None:
    with serving(faults={"batch_expired": 1}) as server:
        assert texts(Bench(server, ledger, more={"max_retries": 2}).ask(requests(2))) == ["timeout"] * 2
        assert len(listed(server, "batches")) == 3


def test_the_first_fatal_line_stops_the_run_and_paid_answers_are_there_for_the_next_one(ledger: Path) -> None:
    rules = [{"contains": "row 3", "fault": "quota"}]
    with serving(rules=rules) as server:
        bench = Bench(server, ledger)
        assert "no_quota" in texts(bench.ask(requests(6)))
        server.change(rules=[])
        assert texts(bench.ask(requests(6))) == said(6)
        assert server.stats()["bodies"]["answered_again"] == 0


def test_a_batch_whose_input_is_refused_stops_the_run_with_one_line_that_names_it(ledger: Path) -> None:
    with serving(batch_lines_max=3) as server:
        bench = Bench(server, ledger)
        found = bench.ask(requests(4))
        assert texts(found) == ["bad_batch"] * 4
        assert "too_many_tasks" in str(found[0])
        assert "batch_000001" in str(found[0])
        assert "\n" not in str(found[0])
        server.change(batch_lines_max=4)
        assert texts(bench.ask(requests(4))) == said(4)


def test_lines_that_make_the_server_refuse_a_batch_are_those_rows_failures_and_the_others_go_on(ledger: Path) -> None:
    with serving(faults={"batch_line_refused": 0.1}) as server:
        found = Bench(server, ledger, more={"max_retries": 40}).ask(requests(12))
        refused = sum(row["status"] == "failed" for row in listed(server, "batches"))
    assert 0 < texts(found).count("bad_request") < 12
    assert refused > 0
    assert all(text in ("bad_request", want) for text, want in zip(texts(found), said(12), strict=True))


def test_a_batch_of_which_every_line_is_refused_stops_the_run(ledger: Path) -> None:
    with serving(faults={"batch_line_refused": 1}) as server:
        found = Bench(server, ledger).ask(requests(3))
        assert texts(found) == ["bad_batch"] * 3
        assert "3 problems" in str(found[0])


def test_an_unknown_model_and_a_wrong_key_stop_the_run(ledger: Path) -> None:
    with serving(models=["other"]) as server:
        assert texts(Bench(server, ledger).ask(requests(2))) == ["unknown_model"] * 2
    with serving(lambda *_: error(401, "invalid_api_key", f"{KEY} is wrong")) as server:
        found = Bench(server, ledger).ask(requests(2))
        assert texts(found) == ["bad_key"] * 2
        assert KEY not in f"{found[0]!s} {found[0]!r} {vars(found[0])}"


def test_a_server_without_the_batch_api_stops_the_run_and_says_so(ledger: Path) -> None:
    """It read as a wrong base URL at vLLM."""
    with serving(lambda *_: error(404, "not_found", "Not Found")) as server:
        found = Bench(server, ledger).ask(requests(2))
    assert texts(found) == ["no_batches"] * 2
    assert "Run without --batch" in str(found[0])


def test_requests_after_the_stop_fail_at_once(ledger: Path) -> None:
    async def work(model: BatchModel) -> list[str]:
        return texts([*await ask_all(model, requests(1)), *await ask_all(model, requests(3))])

    with serving(models=["other"]) as server:
        assert Bench(server, ledger).run(work) == ["unknown_model"] * 4
        assert len(listed(server, "batches")) == 1


# --- the server's queue --------------------------------------------------------------------------------------


def test_a_full_queue_makes_batches_smaller_and_one_at_a_time(ledger: Path) -> None:
    with serving(batch_tokens_max=120, batch_polls=2) as server:
        bench = Bench(server, ledger)
        assert texts(bench.ask(requests(40))) == said(40)
        rows = listed(server, "batches")
        assert rows[0]["errors"]["data"][0]["code"] == "token_limit_exceeded"
        worked = [row["request_counts"]["total"] for row in rows if row["status"] == "completed"]
        assert sum(worked) == 40
        assert max(worked) < 40
        assert server.stats()["bodies"]["answered_again"] == 0
    assert 30.0 in bench.waits


def test_batches_that_find_the_queue_full_of_our_own_wait_for_those(ledger: Path) -> None:
    with serving(batch_tokens_max=300, batch_polls=3) as server:
        bench = Bench(server, ledger, BatchLimits(lines=10))
        assert texts(bench.ask(requests(40))) == said(40)
        worked = [row["request_counts"]["total"] for row in listed(server, "batches") if row["status"] == "completed"]
    assert worked == [10, 10, 10, 10]  # none was made smaller
    assert 30.0 not in bench.waits


def test_an_immediate_refusal_for_a_full_queue_is_waited_for(ledger: Path) -> None:
    full = once(
        lambda asked: (asked.method, asked.path) == ("POST", "/v1/batches"),
        lambda *_: error(400, "token_limit_exceeded"),
    )
    with serving(full) as server:
        bench = Bench(server, ledger)
        assert texts(bench.ask(requests(6))) == said(6)
        assert listed(server, "files") == []
        assert [row["request_counts"]["total"] for row in listed(server, "batches")] == [3, 3]


def test_a_queue_that_stays_full_stops_the_run_in_the_end(ledger: Path) -> None:
    with serving(batch_tokens_max=1) as server:
        bench = Bench(server, ledger, BatchLimits(queue_patience=3600.0))
        assert texts(bench.ask(requests(2))) == ["no_quota"] * 2
    assert sum(wait for wait in bench.waits if wait >= 30) >= 3600
    assert max(bench.waits) == 600.0


def test_an_upload_that_is_too_large_for_the_server_is_halved(ledger: Path) -> None:
    def narrow(asked: http_messages.HTTPRequest, handle: Any) -> http_messages.HTTPReply:
        if (asked.method, asked.path) == ("POST", "/v1/files") and asked.form["file"][1].count(b"custom_id") > 3:
            return error(413, "too_large")
        found: http_messages.HTTPReply = handle(asked)
        return found

    with serving(narrow) as server:
        assert texts(Bench(server, ledger).ask(requests(8))) == said(8)
        assert max(row["request_counts"]["total"] for row in listed(server, "batches")) <= 3


# --- a server that fails -------------------------------------------------------------------------------------


def test_transient_errors_of_calls_are_retried_and_no_batch_is_created_twice(ledger: Path) -> None:
    faults = {f"{scope}/{kind}": 0.1 for scope in ("files", "batches") for kind in ("503", "reset", "half", "429")}
    with serving(faults=faults, retry_after_s=3, seed=1) as server:
        bench = Bench(server, ledger, BatchLimits(lines=5))
        assert texts(bench.ask(requests(40))) == said(40)
        assert sum(server.stats()["faults"].values()) > 8
        assert bench.lines == 40
        assert server.stats()["bodies"]["answered_again"] == 0


def test_a_batch_with_a_lost_confirmation_is_found_and_not_created_again(ledger: Path) -> None:
    def lost(asked: http_messages.HTTPRequest, handle: Any) -> http_messages.HTTPReply:
        handle(asked)
        return http_messages.HTTPReply(200, b"{}", manner="reset", tag=())

    with serving(once(lambda asked: (asked.method, asked.path) == ("POST", "/v1/batches"), lost)) as server:
        bench = Bench(server, ledger)
        assert texts(bench.ask(requests(5))) == said(5)
        assert len(listed(server, "batches")) == 1


def test_a_batch_unknown_to_the_server_is_sent_again(ledger: Path) -> None:
    gone = once(lambda asked: asked.path.endswith("batch_000001"), lambda *_: error(404, "not_found"))
    with serving(gone) as server:
        bench = Bench(server, ledger)
        assert texts(bench.ask(requests(3))) == said(3)
    assert any("unknown to the server" in line for line in bench.said)


def test_a_file_that_the_server_has_lost_costs_a_retry(ledger: Path) -> None:
    gone = once(lambda asked: asked.path.endswith("/content"), lambda *_: error(404, "not_found"))
    with serving(gone) as server:
        bench = Bench(server, ledger)
        assert texts(bench.ask(requests(3))) == said(3)
        assert len(listed(server, "batches")) == 2


def test_a_server_that_stays_unreachable_stops_the_run_which_can_be_resumed(ledger: Path) -> None:
    away = [False]

    def meddle(asked: http_messages.HTTPRequest, handle: Any) -> http_messages.HTTPReply:
        found: http_messages.HTTPReply = error(503, "away") if away[0] and asked.method == "GET" else handle(asked)
        return found

    with serving(meddle) as server:
        bench = Bench(server, ledger)
        away[0] = True
        assert texts(bench.ask(requests(3))) == ["server_down"] * 3
        assert sum("retrying" in line for line in bench.said) == 1
        assert sum(bench.waits) >= bench.settings.patience
        away[0] = False
        assert texts(bench.ask(requests(3))) == said(3)
        assert bench.lines == 3


def test_a_file_that_cannot_be_deleted_is_left_there(ledger: Path) -> None:
    def keep(asked: http_messages.HTTPRequest, handle: Any) -> http_messages.HTTPReply:
        found: http_messages.HTTPReply = error(403, "no") if asked.method == "DELETE" else handle(asked)
        return found

    with serving(keep) as server:
        assert texts(Bench(server, ledger).ask(requests(2))) == said(2)
        assert len(listed(server, "files")) == 2


# --- cancelling ----------------------------------------------------------------------------------------------


def test_a_batch_that_is_cancelled_while_a_run_waits_stops_it_with_what_was_done_kept(ledger: Path) -> None:
    with serving(batch_polls=4) as server:
        bench = Bench(server, ledger)
        cancelled: list[str] = []

        async def cancel() -> None:
            done = sum(row["request_counts"]["completed"] for row in listed(server, "batches"))
            if done and not cancelled:
                cancelled.extend(await cancel_batches(bench.settings, ledger, say=bench.said.append))

        bench.meanwhile = cancel
        found = bench.ask(requests(8))
        assert texts(found).count("batch_cancelled") > 0
        assert cancelled == ["batch_000001"]
        bench.meanwhile = None
        assert texts(bench.ask(requests(8))) == said(8)
        assert server.stats()["bodies"]["answered_again"] == 0
        assert bench.lines == 8


def test_an_interrupted_run_leaves_its_batch_at_the_server_and_says_how_to_resume(ledger: Path) -> None:
    with serving(batch_polls=1000) as server:
        bench = Bench(server, ledger)
        bench.break_off(requests(4))
        assert "batch_000001" in bench.said[-1]
        assert "Run the same command again" in bench.said[-1]
        assert "--batch-cancel" in bench.said[-1]
        assert listed(server, "batches")[0]["status"] == "in_progress"
        server.change(batch_polls=1)
        assert texts(bench.ask(requests(4))) == said(4)
        assert len(listed(server, "batches")) == 1


def test_batches_left_at_the_server_can_be_cancelled_and_sent_again(ledger: Path) -> None:
    with serving(batch_polls=1000) as server:
        bench = Bench(server, ledger)
        bench.break_off(requests(4))
        assert asyncio.run(cancel_batches(bench.settings, ledger, say=bench.said.append)) == ["batch_000001"]
        assert "cancelling" in bench.said[-1]
        server.change(batch_polls=1)
        assert texts(bench.ask(requests(4))) == said(4)
        assert [row["status"] for row in listed(server, "batches")] == ["cancelled", "completed"]
        assert asyncio.run(cancel_batches(bench.settings, ledger, say=bench.said.append)) == []


def test_cancelling_where_nothing_was_ever_sent_says_so(tmp_path: Path) -> None:
    with serving() as server, pytest.raises(StorageError, match="no batch was sent"):
        asyncio.run(cancel_batches(settings_for(server), tmp_path / "none"))


def test_a_session_asks_in_batches_round_by_round(tmp_path: Path) -> None:
    def step(name: str, attempt: int) -> LLMStep[str]:
        [first] = yield [request(name, sample=attempt)]
        assert isinstance(first, Reply)
        [second] = yield [request(f"then {first.text}")]
        assert isinstance(second, Reply)
        return second.text

    limits = BatchLimits(idle=0.05, first_look=0.01, longest_look=0.02)
    with serving() as server:
        opened = batch_client(limits, say=lambda _: None)
        rows = [LLMRow(f"{n}", partial(step, f"row {n}")) for n in range(20)]
        for _ in range(2):
            with Session(settings_for(server), cache=tmp_path / "c", opened=opened, in_flight=20) as session:
                results = [done.result for done in session.run(rows)]
                spent = session.totals().spent
            assert results == [f"You said: then You said: row {n}" for n in range(20)]
            assert (spent.requests, spent.cached) in ((40, 0), (0, 40))
        assert [row["request_counts"]["total"] for row in listed(server, "batches")] == [20, 20]
    with BatchLedger.open(ledger_path(tmp_path / "c")) as ledger:  # all is safe in the cache
        assert ledger.entries(settings_for(server).cache_endpoint, "ended") == []


def test_a_stopped_run_ends_at_once_and_reports_running_batches(ledger: Path) -> None:
    with serving(batch_polls=1000) as server:
        bench = Bench(server, ledger)

        async def work(model: BatchModel) -> list[Reply | RequestError]:
            async def look() -> None:
                if len(bench.waits) >= 5:
                    model.stop(RequestError("interrupted"))

            bench.meanwhile = look
            return await ask_all(model, requests(3))

        assert texts(bench.run(work)) == ["interrupted"] * 3
    assert "continues at the server" in bench.said[-1]


# --- who asks, and where -------------------------------------------------------------------------------------


def azure(server: Server) -> dict[str, str]:
    return {"base_url": server.root, "api_version": "2024-10-21", "api_key": KEY}


def test_azures_paths_are_asked_in_azures_way_and_its_files_are_waited_for(ledger: Path) -> None:
    asked_for: list[str] = []

    def slow(asked: http_messages.HTTPRequest, handle: Any) -> http_messages.HTTPReply:
        reply: http_messages.HTTPReply = handle(asked)
        asked_for.append(f"{asked.method} {asked.path}")
        assert asked.headers["api-key"] == KEY
        assert "authorization" not in asked.headers
        if asked.path.startswith("/openai/files") and b'"processed"' in reply.body and len(asked_for) < 4:
            body = reply.body.replace(b'"processed"', b'"pending"')
            return http_messages.HTTPReply(reply.status, body, tag=reply.tag)
        return reply

    with serving(slow) as server:
        bench = Bench(server, ledger, more=azure(server))
        assert texts(bench.ask(requests(3))) == said(3)
    assert asked_for[:5] == ["POST /openai/files", *["GET /openai/files/file-000001"] * 3, "POST /openai/batches"]


def test_without_a_key_none_is_sent(ledger: Path) -> None:
    seen: set[bool] = set()

    def look(asked: http_messages.HTTPRequest, handle: Any) -> http_messages.HTTPReply:
        seen.add("authorization" in asked.headers)
        found: http_messages.HTTPReply = handle(asked)
        return found

    with serving(look) as server:
        Bench(server, ledger, more={"api_key": ""}).ask(requests(2))
    assert seen == {False}


def test_openai_without_a_key_is_refused_before_anything_is_sent(ledger: Path) -> None:
    from pairwright.generators.llm.client.settings import LLMSettings

    async def main() -> None:
        async with open_batch_model(LLMSettings(), ledger):
            pass

    with pytest.raises(UsageError, match="no key"):
        asyncio.run(main())


def test_neither_keys_nor_prompts_are_in_the_ledger(ledger: Path) -> None:
    with serving(batch_polls=1000) as server:
        bench = Bench(server, ledger)
        bench.break_off([request("a very private caption")])
    for path in ledger.parent.iterdir():
        assert KEY.encode() not in path.read_bytes()
        assert b"private" not in path.read_bytes()


def test_a_file_that_is_not_a_ledger_is_refused(tmp_path: Path) -> None:
    with Cache.open(tmp_path / "cache.sqlite"):
        pass
    (tmp_path / "text").write_text("no database at all, but a text that is long enough to be looked at\n" * 20)
    with serving() as server:
        for name in ("cache.sqlite", "text"):
            with pytest.raises(StorageError):
                Bench(server, tmp_path / name).ask(requests(1))
