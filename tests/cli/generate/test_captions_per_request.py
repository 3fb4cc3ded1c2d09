"""Several captions in one request: failed captions, retries, kills, and rows that do not depend on groups."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.generators.llm.grouping import split_items
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from tests.generators.recorded_negatives import caption_of

COLOURS = ("red", "green", "blue", "white", "black")
THINGS = ("car", "bus", "chair", "cup", "hat", "kite", "boat", "lamp")
CAPTIONS = [f"A {colour} {thing} on a street." for colour in COLOURS for thing in THINGS]
BLOCKED = "A blue cup on a street."
CONCURRENT = 4


def answer_to(text: str) -> dict[str, Any]:
    caption = caption_of(text)
    changed = caption.replace("street", "beach")
    return {"negatives": [{"type": "replace-object", "from": "street", "to": "beach", "caption": changed}]}


def answering(request: ChatRequest) -> ServerAnswer:
    """Answer every caption, except that a filter stops requests with `BLOCKED`."""
    if BLOCKED in request.user:
        return ServerAnswer("", finish_reason="content_filter")
    items = split_items(request.user)
    entries = [{"id": own, **answer_to(text)} for own, text in items]
    return ServerAnswer(json.dumps({"answers": entries} if items else answer_to(request.user)))


def command(server: Server, *more: object) -> list[str]:
    given = [
        *("generate", "negatives", "c.csv", "--method", "llm", "--model", "m", "--base-url", server.url),
        *("--types", "replace-object", "--json", "-q", "--max-concurrency", CONCURRENT, *more),
    ]
    return [*map(str, given)]


def run(server: Server, out: str, *more: object) -> dict[str, Any]:
    done = CliRunner().invoke(app, command(server, "--out", out, "--cache", f"{out}.sqlite", *more))
    assert done.exit_code == 0, done.output
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def lines(out: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in Path(out).read_text().splitlines()]
    return [{name: value for name, value in row.items() if name not in {"id", "meta", "origin"}} for row in rows]


@pytest.fixture(autouse=True)
def captions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.csv").write_text("caption\n" + "\n".join(CAPTIONS) + "\n")


def test_one_caption_that_is_blocked_fails_alone_and_is_retried_alone() -> None:
    with serve_in_thread(ServerApp(ServerScript(), answer=answering)) as server:
        first = run(server, "o.jsonl")
        groups = server.stats()["requests"]
        assert (first["types"]["replace-object"]["kept"], first["failed"]["rows"]) == (len(CAPTIONS) - 1, 1)
        again = run(server, "o.jsonl", "--retry-failed")
        assert again["types"] == first["types"]
        assert server.stats()["requests"] == groups + 1
        once_more = run(server, "o.jsonl")
    assert (
        first["llm"]["in_all"]["alone"] == once_more["llm"]["in_all"]["alone"] == 4
    )  # the blocked one and those beside it
    assert once_more["llm"]["requests"] == 0
    assert (first["llm"]["alone"], again["llm"]["alone"], once_more["llm"]["alone"]) == (4, 0, 0)
    assert len(CAPTIONS) / 4 < groups < len(CAPTIONS) / 2


def test_the_summary_names_the_captions_that_this_run_requested_alone() -> None:
    """A run that found all answers in the cache repeated the line of the run that sent them."""

    def shown() -> str:
        arguments = [each for each in command(server, "--out", "o.jsonl", "--cache", "o.sqlite") if each != "--json"]
        return CliRunner().invoke(app, arguments).output

    with serve_in_thread(ServerApp(ServerScript(), answer=answering)) as server:
        assert "4 captions were requested again alone" in shown()
        shown()
        requests = server.stats()["requests"]
        assert "requested again alone" not in shown()
        assert server.stats()["requests"] == requests


def test_a_failed_caption_of_a_shared_request_has_its_own_answer_in_the_file_of_failed_rows() -> None:
    """Captions that no check accepts, next to others in the same request and to one that is blocked."""
    bad = CAPTIONS[2:20:4]

    def some_wrong(request: ChatRequest) -> ServerAnswer:
        given = answering(request)
        wrong = given.text
        for caption in bad:
            wrong = wrong.replace(caption.replace("street", "beach"), "Something else.")
        return ServerAnswer(wrong, finish_reason=given.finish_reason)

    with serve_in_thread(ServerApp(ServerScript(), answer=some_wrong)) as server:
        run(server, "o.jsonl")
    failed = [json.loads(line) for line in Path("o.failed.jsonl").read_text().splitlines()]
    *rejected, blocked = sorted(failed, key=lambda row: not row["said"])
    assert [(row["said"].count("Something else."), row["said"].count('"caption"')) for row in rejected] == [(1, 1)] * 5
    assert [(len(row["keys"]), row["unanswered"]) for row in rejected] == [(1, 0)] * 5
    assert (len(blocked["keys"]), blocked["unanswered"]) == (1, 0)
    assert blocked["keys"][0] not in {key for row in rejected for key in row["keys"]}  # it was asked alone


def test_the_rows_are_the_same_for_any_number_of_captions_per_request() -> None:
    with serve_in_thread(ServerApp(ServerScript(), answer=answering)) as server:
        tokens = {}
        for count in (1, 3, 8):
            done = run(server, f"{count}.jsonl", "--captions-per-request", count)
            tokens[count] = done["llm"]["prompt_tokens"]
    assert lines("1.jsonl") == lines("3.jsonl") == lines("8.jsonl")
    assert tokens[8] < tokens[3] < tokens[1] / 2


def test_added_captions_change_the_requests_near_them_alone() -> None:
    with serve_in_thread(ServerApp(ServerScript(), answer=answering)) as server:
        Path("c.csv").write_text("caption\n" + "\n".join(f"{n} dogs on a street." for n in range(2, 400)) + "\n")
        first = run(server, "o.jsonl")["llm"]["requests"]
        Path("c.csv").write_text(
            "caption\nA hen on a street.\n" + "\n".join(Path("c.csv").read_text().splitlines()[1:])
        )
        assert run(server, "o.jsonl")["llm"]["requests"] < first / 4


def test_the_same_captions_in_a_file_of_another_name_are_not_billed_again() -> None:
    with serve_in_thread(ServerApp(ServerScript(), answer=answering)) as server:
        first = run(server, "o.jsonl")["llm"]["requests"]
        Path("c.csv").rename("renamed.csv")
        renamed = ["renamed.csv" if word == "c.csv" else word for word in command(server, "--out", "o.jsonl")]
        done = CliRunner().invoke(app, [*renamed, "--cache", "o.jsonl.sqlite"])
        bill = json.loads(done.stdout)["llm"]
    assert first > 0
    assert bill["requests"] == 0


@pytest.mark.slow
def test_a_killed_run_pays_again_for_the_requests_under_way_at_most() -> None:
    with serve_in_thread(ServerApp(ServerScript(latency_ms=60), answer=answering)) as server:
        arguments = command(server, "--out", "o.jsonl", "--cache", "o.jsonl.sqlite")
        process = subprocess.Popen([sys.executable, "-m", "pairwright", *arguments], stdout=subprocess.PIPE)
        while process.poll() is None and server.stats()["requests"] < 8:
            time.sleep(0.01)  # another process asks; there is nothing to wait on
        process.kill()
        process.communicate()
        paid = server.stats()["requests"]
        assert paid < len(CAPTIONS) / 4
        run(server, "o.jsonl")
        billed = server.stats()["requests"]
        run(server, "fresh.jsonl")
        undisturbed = server.stats()["requests"] - billed
    assert lines("o.jsonl") == lines("fresh.jsonl")
    assert billed <= undisturbed + CONCURRENT
