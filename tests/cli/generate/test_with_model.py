"""``pairwright generate --method llm``: messages about servers that misbehave."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import PairwrightError
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import AnswerRule, ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from pairwright.generators.prompts.book import BUILT_IN
from tests.cli.generate.test_annotations import call

NEGATIVES = {"negatives": [{"type": "replace-object", "from": "bed", "to": "bench", "caption": "A dog on a bench."}]}


@pytest.fixture
def uncounting() -> Iterator[Server]:
    """A server that counts no tokens, except for the caption about a cat."""

    def answer(request: ChatRequest) -> ServerAnswer:
        return ServerAnswer(json.dumps(NEGATIVES), usage=(2000, 30) if "cat" in request.user else (0, 0))

    with serve_in_thread(ServerApp(ServerScript(), answer=answer)) as server:
        yield server


def test_tokens_that_the_server_does_not_count_are_estimated_in_every_bill(
    uncounting: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bill says so; a later run shows the same cost for cached answers."""
    monkeypatch.chdir(tmp_path)
    Path("captions.csv").write_text("caption\nA dog on a bed.\nA cow on a bed.\nA cat on a bed.\n")
    asked = (
        "--method",
        "llm",
        "--model",
        "m",
        "--base-url",
        uncounting.url,
        "--price",
        "1/2",
        "--out",
        "n.jsonl",
        "--captions-per-request",
        "1",
    )
    message = call("generate", "negatives", "captions.csv", *asked)
    assert "3 answers billed" in message
    assert "The server did not count the tokens of 2 of these answers: they are estimated." in message
    Path("llm-cache.sqlite").unlink()
    first = json.loads(call("generate", "negatives", "captions.csv", *asked, "--json"))["llm"]
    again = json.loads(call("generate", "negatives", "captions.csv", *asked, "--json"))["llm"]
    assert (first["requests"], first["estimated"], again["requests"]) == (3, 2, 0)
    assert first["prompt_tokens"] > 2000 + 2 * 800
    for printed in (first["in_all"], again["in_all"]):
        assert {name: printed[name] for name in ("prompt_tokens", "completion_tokens")} == {
            name: first[name] for name in ("prompt_tokens", "completion_tokens")
        }
        assert printed["cost"] == pytest.approx(first["cost"])


def test_additions_that_refine_rejects_are_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are longer than their captions: a model was paid for texts of which none is kept."""
    monkeypatch.chdir(tmp_path)
    Path("captions.csv").write_text("caption\nA dog on a bed.\n")
    added = {"type": "add-object", "from": "", "to": "and a cat", "caption": "A dog and a cat on a bed."}
    answer = json.dumps({"negatives": [added, *NEGATIVES["negatives"]]})
    with serve_in_thread(ServerApp(ServerScript(), answer=lambda _: ServerAnswer(answer))) as server:
        model = ("--method", "llm", "--model", "m", "--base-url", server.url, "--price", "0/0")
        shown = call("generate", "negatives", "captions.csv", *model, "--out", "n.jsonl")
        alone = call("generate", "negatives", "captions.csv", *model, "--types", "replace-object", "--out", "r.jsonl")
    assert "refine rejects 1 addition, as all are longer. Make them with --both-sides." in shown
    assert "--both-sides" not in alone


@pytest.mark.parametrize("variant", ["workflow", "one-call"])
def test_what_rows_with_equal_captions_share_is_paid_and_counted_once(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the rows of a run cost in all is what was paid for them, and so it stays when the run is done again."""
    monkeypatch.chdir(tmp_path)
    captions = ["A red dog and a cat on a bed."] * 5 + ["A cow on a rug."]
    Path("captions.csv").write_text("id,caption\n" + "".join(f"{n},{text}\n" for n, text in enumerate(captions)))
    with serve_in_thread(
        ServerApp(ServerScript(rules=[{"contains": "dog", "text": "A red cow and a cat on a bed."}]))
    ) as server:
        asked = (
            "--method",
            "llm",
            "--model",
            "m",
            "--base-url",
            server.url,
            "--price",
            "1/2",
            "--variant",
            variant,
            "--captions-per-request",
            "1",
        )
        command = ("generate", "negatives", "captions.csv", *asked, "--out", "n.jsonl", "--json")
        first, again = (json.loads(call(*command))["llm"] for _ in range(2))
        shown = call(*command[:-1])
        assert first["requests"] == server.stats()["requests"]
    printed = first["in_all"]
    assert (printed["answers"], printed["shared"]) == (first["requests"], again["in_all"]["shared"])
    assert printed["shared"] > first["requests"]
    for name in ("prompt_tokens", "completion_tokens"):
        assert printed[name] == first[name] == again["in_all"][name]
    assert printed["cost"] == pytest.approx(first["cost"]) == pytest.approx(again["in_all"]["cost"])
    assert (
        f"{count_phrase(printed['shared'], 'request')} had the texts of another row and its answer: billed once"
        in shown
    )


def test_a_prompt_named_almost_like_a_built_in_one_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It replaces nothing, and the run would be billed with the built-in prompt. Other prompts in the folder do not matter."""
    monkeypatch.chdir(tmp_path)
    Path("captions.csv").write_text("caption\nA dog on a bed.\n")
    Path("mine").mkdir()
    ours = (BUILT_IN / "negatives-at-once.yaml").read_text()
    for name in ("negative-at-once", "negatives-at-once", "zzz"):
        Path("mine", f"{name}.yaml").write_text(ours)
    asked = ("--method", "llm", "--model", "m", "--price", "0/0", "--prompts", "mine", "--dry-run", "--out", "n.jsonl")
    said = CliRunner().invoke(app, ["generate", "negatives", "captions.csv", *asked], catch_exceptions=False).stderr
    told = [line for line in said.splitlines() if "replaces no built-in prompt" in line]
    assert told == ["mine/negative-at-once.yaml replaces no built-in prompt. Did you mean 'negatives-at-once'?"]


def test_a_run_without_one_answer_fails_and_leaves_an_earlier_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("captions.csv").write_text("caption\nA dog on a bed.\nA cow on a bed.\n")
    Path("n.jsonl").write_text("what was there\n")
    asked = ("--method", "llm", "--model", "m", "--price", "0/0", "--max-retries", "0", "--out", "n.jsonl")
    with (
        serve_in_thread(ServerApp(ServerScript(rules=(AnswerRule(fault="500"),)))) as server,
        pytest.raises(PairwrightError, match="none of 2 rows got an answer"),
    ):
        call("generate", "negatives", "captions.csv", *asked, "--base-url", server.url)
    assert Path("n.jsonl").read_text() == "what was there\n"
    assert not Path("n.partial.jsonl").exists()
    assert len(Path("n.failed.jsonl").read_text().splitlines()) == 2
