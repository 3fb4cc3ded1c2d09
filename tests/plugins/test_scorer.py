"""The third-party scorer of docs/extending.md: listed, and used by `audit`, `refine` and builds."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.filters.attacks.registry import ExternalScorer, fingerprint_scorers, list_optional_attacks, load_scorer
from pairwright.flows.build import build
from pairwright.flows.config.build import parse_config

ADD = "--add-attacks"
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that puts a distribution with the example in it on the path, and returns its module."""
    site = tmp_path / "site"
    site.mkdir()
    module = site / "word_count.py"
    module.write_text(Path(__file__).with_name("word_count.py").read_text())
    monkeypatch.syspath_prepend(str(site))

    def put(distribution: str = "word-count-plugin", *, name: str = "word-count", target: str = "score") -> Path:
        info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pairwright.scorers]\n{name} = word_count:{target}\n")
        importlib.invalidate_caches()
        return module

    yield put
    sys.modules.pop("word_count", None)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Return a file of rows whose negatives are a word longer, of many images."""
    path = tmp_path / "rows.jsonl"
    things = ("dog", "cat", "boat", "train", "yak")
    lines = [
        {
            "image": f"{number}.jpg",
            "caption": f"a {things[number % 5]} near thing {number}",
            "negative": f"a {things[(number + 1) % 5]} near {'a ' * (number % 4 > 0)}thing {number}",
        }
        for number in range(120)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code in {0, 3}, done.output
    return json.loads(done.stdout)


def test_an_installed_scorer_is_listed_without_being_imported(install: Install) -> None:
    install()
    found = [row for row in run("plugins")["plugins"] if row["name"] == "word-count"]
    assert found == [
        {"kind": "attack", "name": "word-count", "from": "word-count-plugin", "about": "word_count:score"}
    ]  # fmt: skip
    assert "word_count" not in sys.modules
    assert list_optional_attacks() == ["cloze", "meaning", "llm", "cola", "vera", "word-count"]


def test_the_audit_attacks_with_the_scorer(install: Install, rows: Path) -> None:
    install()
    attack = run("audit", str(rows), ADD, "word-count")["attacks"]["word-count"]
    assert attack["accuracy"] == pytest.approx(0.75 + 0.25 / 2)


def test_refinement_balances_the_scorer(install: Install, rows: Path, tmp_path: Path) -> None:
    install()
    out = tmp_path / "refined.jsonl"
    result = run("refine", str(rows), "--out", str(out), ADD, "word-count", "--target", "0.6")
    attack = result["attacks"]["word-count"]
    assert attack["after"] <= attack["before"]
    first = json.loads(out.read_text().splitlines()[0])
    assert "word-count_gap" in first["scores"]


def test_a_build_refines_against_the_scorer_and_runs_the_stage_again_when_its_source_changes(
    install: Install, tmp_path: Path
) -> None:
    module = install()
    captions = [f"{count} {what} on a bed" for count in ("two", "three") for what in ("dogs", "cats")]
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in captions))
    config = {
        "name": "scored",
        "input": {"path": str(tmp_path / "captions.jsonl")},
        "negatives": {"types": ["replace-object"]},
        "refine": {"method": "general", "add_attacks": ["word-count"]},
        "workers": 1,
    }
    manifest = build(parse_config(config, where="test"), tmp_path / "out", prefect=False)
    assert "word-count" in manifest["stages"]["refine"]["facts"]["attacks"]
    before = fingerprint_scorers(["word-count"])
    module.write_text(module.read_text() + "\n# changed\n")
    assert fingerprint_scorers(["word-count"]) != before


def test_a_build_takes_no_added_attack_with_algorithm_1() -> None:
    config = {"name": "x", "input": {"path": "x"}, "negatives": {}, "refine": {"add_attacks": ["cola"]}}
    with pytest.raises(ConfigError, match="add_attacks"):
        parse_config(config, where="test")


@pytest.mark.parametrize("second", ["word-count", "cola"], ids=["two packages", "a built-in one"])
def test_a_name_that_is_used_twice_is_an_error_that_names_the_owners(install: Install, second: str) -> None:
    install("plugin-one", name=second)
    if second == "word-count":
        install("plugin-two", name=second)
    with pytest.raises(UsageError, match=rf"'{second}'.*plugin-one"):
        load_scorer(second)


def test_a_scorer_that_cannot_be_loaded_is_one_clear_error(install: Install) -> None:
    install(target="nothing")
    with pytest.raises(UsageError, match=r"word-count .* cannot be loaded"):
        load_scorer("word-count")


@pytest.mark.parametrize("scores", [[0.5], [0.5, 2.0], [0.5, np.nan]], ids=["too few", "above 1", "not a number"])
def test_scores_that_are_not_one_number_in_0_to_1_for_each_text_are_an_error(scores: list[float]) -> None:
    with pytest.raises(UsageError, match="word-count"):
        ExternalScorer("word-count", lambda _: scores).gaps(["a"], ["b"], ["1"], 0)
