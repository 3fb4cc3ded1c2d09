"""Last lines of a run with a model: failed rows, apart from rows whose answers were rejected."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

ELSEWHERE = json.dumps({"negatives": [{"type": "replace-object", "caption": "A cow on a bench."}]})
GOOD = json.dumps({"negatives": [{"type": "replace-object", "caption": "A horse on a sofa."}]})
RULES = (
    {"contains": "dog", "text": ELSEWHERE},
    {"contains": "cow", "fault": "400"},
    {"contains": "cat", "refusal": "I can't help with that."},
    {"contains": "horse", "text": GOOD},
    {"contains": "", "text": json.dumps({"negatives": []})},
)
DOGS = "A dog on a bed.\nA dog on a mat.\nA dog on a rug.\n"
OTHERS = "A cow on a bed.\nA cat on a rug.\nA horse on a bed.\nA sheep on a hill.\n"
REJECTED = "3 of 7 rows: all answers were rejected by validation: 3 several_edits. See n.failed.jsonl; --retry-failed"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve_in_thread(ServerApp(ServerScript(rules=RULES))) as server:
        yield server


def lines(server: Server, *more: str) -> list[str]:
    """Return the lines of a run over ``c.csv`` about its rows."""
    asked = ("--method", "llm", "--model", "m", "--base-url", server.url, "--price", "1/2", "--out", "n.jsonl")
    alone = ("--captions-per-request", "1")
    done = CliRunner().invoke(app, ["generate", "negatives", "c.csv", *asked, *alone, *more], catch_exceptions=False)
    return [line for line in done.stderr.splitlines() if " rows" in line]


def test_rows_rejected_by_checks_are_counted_apart_from_rows_without_an_answer(server: Server) -> None:
    """Each line names what retries the rows, and whether that is billed."""
    Path("c.csv").write_text("caption\n" + DOGS + OTHERS)
    printed = lines(server)
    failed, rejected = printed
    assert failed.startswith("2 of 7 rows failed: 1 bad_request, 1 refused. See n.failed.jsonl; --retry-failed")
    assert rejected.startswith(REJECTED)
    assert "billed again" in rejected
    first = server.stats()["requests"]
    assert lines(server) == printed
    second = server.stats()["requests"]
    assert second - first == 1  # the one without an answer
    assert lines(server, "--retry-failed") == printed
    assert server.stats()["requests"] - second == 5  # that one, the refused one, and the three that did not pass


def test_a_run_of_which_every_row_was_answered_says_of_none_that_it_failed(server: Server) -> None:
    Path("c.csv").write_text("caption\n" + DOGS + "A horse on a bed.\n")
    [rejected] = lines(server)
    assert rejected.startswith(REJECTED.replace("7", "4"))


def test_of_rows_without_an_answer_it_says_that_the_same_command_requests_them_again(server: Server) -> None:
    """Before, it named --retry-failed, which they do not need: nothing of them was billed."""
    Path("c.csv").write_text("caption\nA cow on a bed.\nA horse on a bed.\n")
    [failed] = lines(server)
    assert failed.startswith(
        "1 of 2 rows failed: 1 bad_request. See n.failed.jsonl; the same command requests them again. bad_request: "
    )
    first = server.stats()["requests"]
    assert lines(server) == [failed]
    assert server.stats()["requests"] - first == 1


def test_a_row_of_which_a_request_got_no_answer_failed_for_that_whatever_its_other_texts_are() -> None:
    def answer(request: ChatRequest) -> ServerAnswer:
        if "Propose an attribute" in str(request.body["messages"][0]):
            return ServerAnswer("", fault="400")
        return ServerAnswer(
            json.dumps({"concepts": ["dog", "red"], "concept": "cow", "caption": "Two cows by the bench."})
        )

    Path("c.csv").write_text("caption\nA red dog on a bed.\nA red dog sits near a tree.\n")
    with serve_in_thread(ServerApp(ServerScript(), answer=answer)) as server:
        [message] = lines(server, "--variant", "workflow")
    assert message.startswith("2 of 2 rows failed: 2 bad_request. See n.failed.jsonl; the same command")


def test_a_build_counts_rejected_rows_apart_from_failed_rows(server: Server) -> None:
    Path("c.csv").write_text("caption\n" + DOGS + OTHERS)
    Path("build.yaml").write_text(
        "name: b\ninput: {path: c.csv}\nworkers: 1\nnegatives: {method: llm, captions_per_request: 1}\n"
        f"llm: {{model: m, price: 1/2, base_url: '{server.url}'}}\n"
    )
    done = CliRunner().invoke(app, ["build", "build.yaml", "--out", "out", "--no-prefect"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    where = Path("out", "failed", "negatives", "00000.jsonl")
    told = [line for line in done.stdout.splitlines() if line.startswith("negatives: ") and " rows" in line]
    failed, rejected = told
    assert failed.startswith(f"negatives: 2 rows failed: 1 bad_request, 1 refused. See {where}; --retry-failed")
    assert rejected.startswith("negatives: 3 rows: all answers were rejected by validation: 3 several_edits.")


def test_a_cache_of_another_server_is_noted_with_the_option_that_uses_it(server: Server) -> None:
    Path("c.csv").write_text("caption\n" + OTHERS)
    lines(server)
    common = ["generate", "negatives", "c.csv", "--method", "llm", "--model", "m", "--price", "1/2", "--out", "n.jsonl"]
    moved = [*common, "--base-url", "http://127.0.0.1:9/v1", "--dry-run", "--captions-per-request", "1", "--json"]
    done = CliRunner().invoke(app, moved, catch_exceptions=False)
    [plan] = json.loads(done.stdout)["plan"]
    endpoint = server.url.removesuffix("/v1")
    assert (plan["cached"]["value"], plan["requests"]["low"]) == (0, 4)
    assert f"llm-cache.sqlite has 3 answers of m from {endpoint}, and none from http://127.0.0.1:9." in done.stderr
    done = CliRunner().invoke(app, [*moved, "--endpoint", endpoint], catch_exceptions=False)
    [plan] = json.loads(done.stdout)["plan"]
    assert plan["cached"]["value"] >= 3
    assert "none from" not in done.stderr
