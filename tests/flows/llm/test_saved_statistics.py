"""Word statistics that a run saves next to its response cache."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.flows.commands import generate
from pairwright.flows.llm import saved_statistics
from pairwright.flows.llm.saved_statistics import load_or_count
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_in_thread
from pairwright.generators.plausible_model.model import PlausibleModel

CAPTIONS = [f"A {thing} on a {place}." for thing in ("dog", "cat", "cup") for place in ("bed", "chair", "table")]


@pytest.fixture(autouse=True)
def _few_captions_are_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_statistics, "MIN_CAPTIONS", 2)


def test_statistics_are_counted_once_for_the_same_captions_and_tagger(tmp_path: Path) -> None:
    counted: list[int] = []

    def get(captions: list[str], tagger: str = "t 1") -> PoolStatistics:
        def count() -> PoolStatistics:
            counted.append(len(captions))
            return count_captions(load_tagger().tag(captions)).frozen()

        return load_or_count(captions, tagger, tmp_path / "cache.sqlite", count)

    first = get(CAPTIONS)
    assert get(CAPTIONS) == first
    assert counted == [9]
    get(CAPTIONS[:-1])
    get(CAPTIONS, "t 2")
    get(CAPTIONS[:1])  # too few to save
    assert counted == [9, 8, 9, 1]
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    for path in files:
        path.write_bytes(b"damaged")
    assert get(CAPTIONS) == first
    assert counted[-1] == 9


def test_a_second_run_over_the_same_captions_counts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.csv").write_text("caption\n" + "\n".join(CAPTIONS) + "\n")

    def run(out: str) -> bytes:
        given = [tmp_path / "c.csv", "--out", tmp_path / out, "--cache", tmp_path / "cache.sqlite", "--json", "-q"]
        asked = ["--method", "llm", "--model", "m", "--base-url", server.url]
        done = CliRunner().invoke(app, ["generate", "negatives", *map(str, given), *asked], catch_exceptions=False)
        assert json.loads(done.stdout)["captions"] == len(CAPTIONS)
        return (tmp_path / out).read_bytes()

    with serve_in_thread(ServerApp(ServerScript(), answer=PlausibleModel())) as server:
        first = run("one.jsonl")
        monkeypatch.delattr(generate, "tag_and_count_words")
        assert run("two.jsonl") == first
