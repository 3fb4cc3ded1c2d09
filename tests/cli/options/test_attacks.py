"""``--add-attacks llm``: a language model as a blind attack of ``refine`` and ``audit``."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

ROWS = 40


def written(folder: Path, rows: int = ROWS, every: int = 2) -> Path:
    """Rows about a dog and a cat; in one of ``every`` it is the caption that begins with the cat."""
    path = folder / "rows.jsonl"
    with path.open("w") as file:
        for at in range(rows):
            one, other = ("dog", "cat") if at % every else ("cat", "dog")
            texts = {"caption": f"a {one} by a {other} {at}", "negative": f"a {other} by a {one} {at}"}
            file.write(json.dumps({"image": f"{at}.jpg", **texts}) + "\n")
    return path


@pytest.fixture(autouse=True)
def of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept in the working folder is kept in the test's."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[Server]:
    """A model that holds that dogs come first."""

    def answer(request: ChatRequest) -> ServerAnswer:
        shown = [json.loads(line.partition(" ")[2]) for line in request.user.strip().splitlines()]
        first, second = (9 if text.startswith("a dog") else 2 for text in shown)
        return ServerAnswer(json.dumps({"first": first, "second": second}))

    with serve_in_thread(ServerApp(answer=answer)) as running:
        yield running


def called(*arguments: object, exits: tuple[int, ...] = (0, 3)) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert done.exit_code in exits, done.output
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def model(server: Server, folder: Path) -> list[str]:
    cache = str(folder / "cache.sqlite")
    return ["--add-attacks", "llm", "--model", "m", "--base-url", server.url, "--price", "1/1", "--cache", cache]


def test_audit_measures_the_model_as_an_attack_and_asks_each_text_pair_twice(server: Server, tmp_path: Path) -> None:
    rows = written(tmp_path)
    printed = called("audit", rows, *model(server, tmp_path), "--report", tmp_path / "page.html")
    assert printed["attacks"]["llm"]["accuracy"] == 0.5  # half of the captions begin with a dog
    assert printed["llm"]["requests"] == 2 * ROWS
    assert "language model" in (tmp_path / "page.html").read_text()
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines if line["caption"].startswith("a dog")))
    printed = called("audit", rows, *model(server, tmp_path), exits=(3,))
    assert printed["attacks"]["llm"]["accuracy"] == 1.0
    assert printed["llm"]["requests"] == 0  # from the cache
    assert any(each["attack"] == "llm" for each in printed["breaks"])


def test_refine_brings_the_model_to_a_coins_toss(server: Server, tmp_path: Path) -> None:
    rows, out = written(tmp_path, rows=160, every=4), tmp_path / "refined.jsonl"
    printed = called("refine", rows, "--out", out, *model(server, tmp_path))
    assert printed["attacks"]["llm"]["before"] == 0.75
    assert printed["attacks"]["llm"]["after"] <= 0.52
    assert printed["llm"]["rows"] == printed["llm"]["scored"] == 160
    assert all("llm_gap" in json.loads(line)["scores"] for line in out.read_text().splitlines())


def test_a_plan_asks_nothing_and_writes_nothing(server: Server, tmp_path: Path) -> None:
    rows, out = written(tmp_path), tmp_path / "refined.jsonl"
    for call in (("refine", rows, "--out", out), ("audit", rows)):
        plan = called(*call, *model(server, tmp_path), "--dry-run", exits=(0,))["plan"][0]
        assert round(plan["requests"]["low"]) == 2 * ROWS
    assert server.stats()["requests"] == 0
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "m"], "without --add-attacks llm"),
        (["--add-attacks", "llm"], "--model"),
        (["--add-attacks", "llm=m"], "--model m"),
        (["--add-attacks", "gpt"], "There are"),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path: Path, options: list[str], message: str) -> None:
    rows = written(tmp_path)
    for call in (["refine", str(rows), "--out", str(tmp_path / "o.jsonl")], ["audit", str(rows)]):
        done = CliRunner().invoke(app, [*call, *options])
        assert done.exit_code != 0
        assert message in f"{done.output} {done.exception}"
