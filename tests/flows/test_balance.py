"""Quotas, caps and both-sides pairs, in a build and from the command line."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import ConfigError
from pairwright.datasets.records import Annotation
from pairwright.datasets.tables import ANNOTATIONS
from pairwright.flows.build import build
from pairwright.flows.config import parse_config
from pairwright.generators.positives import RulePositives
from pairwright.generators.registry import BUILT_IN, BuiltIn, Materials

THINGS = ("dog", "cat", "horse", "boy", "girl", "man", "woman", "cow")
PLACES = ("bed", "bench", "table", "chair", "boat")
CAPTIONS = [f"A {thing} sits on a {place} beside a small tree." for thing in THINGS for place in PLACES]


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    return path


def built(captions: Path, **negatives: Any) -> tuple[dict[str, Any], list[Annotation]]:
    config = {
        "name": "x",
        "input": {"path": str(captions)},
        "negatives": negatives,
        "workers": 1,
        "part_size": 7,
    }
    out = captions.parent / "build"
    manifest = build(parse_config(config, where="test"), out, prefect=False)
    parts = sorted((out / "annotations").glob("negatives-*.parquet"))
    return manifest, [row for part in parts for row in ANNOTATIONS.read(part)]


def test_a_quota_holds_over_all_parts_and_the_counts_add_up(captions: Path) -> None:
    manifest, rows = built(captions, types=["replace-object", "replace-relation"], quota={"replace-object": 9})
    kinds = Counter(f"{row.form}-{row.target}" for row in rows)
    assert kinds["replace-object"] == 9
    stage = manifest["stages"]["balance"]
    assert stage["candidates"] == stage["kept"] + sum(stage["rejected"].values())
    assert stage["rejected"]["over_quota"] == manifest["stages"]["negatives"]["kept"] - len(rows)
    assert manifest["types"]["negatives: replace-object"]["kept"] == 9
    assert sum(stage["facts"]["account"]["replace-object"]["positions"]) == 9


def test_no_word_is_put_in_more_often_than_the_cap_says(captions: Path) -> None:
    _, plain = built(captions, types=["replace-object"])
    _, capped = built(captions, types=["replace-object"], max_word_share=0.25)

    def most(rows: list[Annotation]) -> int:
        return max(Counter(row.edits[0].after for row in rows).values())

    assert len(capped) <= len(plain)
    assert most(capped) <= max(5, 0.25 * len(capped))


def test_each_negative_of_a_both_sides_build_has_its_positive_and_refinement_compares_the_two(captions: Path) -> None:
    manifest, rows = built(captions, types=["replace-object", "add-object"], both_sides=True)
    positives = {row.id for row in rows if row.kind == "hard_positive"}
    negatives = [row for row in rows if row.kind == "hard_negative"]
    assert negatives
    assert {row.positive_id for row in negatives} == positives
    assert any(name.startswith("negatives: beside") for name in manifest["types"])


def test_what_only_rules_make_is_refused_of_a_model(captions: Path) -> None:
    config = {
        "name": "x",
        "input": {"path": str(captions)},
        "llm": {"model": "m"},
        "negatives": {"method": "llm", "both_sides": True},
    }
    with pytest.raises(ConfigError, match="made by rules"):
        parse_config(config, where="test")


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_the_command_line_balances_whatever_is_written(captions: Path, ending: str) -> None:
    out = captions.with_name(f"negatives.{ending}")
    options = ["--types", "replace-object", "--quota", "7", "--json"]
    result = CliRunner().invoke(app, ["generate", "negatives", str(captions), "--out", str(out), *options])
    told = json.loads(result.stdout)
    assert told["types"]["replace-object"]["kept"] == 7
    assert told["types"]["replace-object"]["made"] == len(CAPTIONS)
    if ending == "json":
        assert len(json.loads(out.read_text())) == 7
    else:
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert Counter(row["status"] for row in rows)["kept"] == 7


def test_a_quota_of_no_type_is_refused(captions: Path) -> None:
    options = ["--quota", "replace-thing=3"]
    result = CliRunner().invoke(app, ["generate", "negatives", str(captions), "--out", "x.jsonl", *options])
    assert "replace-object" in str(result.exception)


def test_a_positive_that_says_what_a_negative_says_is_no_positive(
    captions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Negatives(RulePositives):
        """Says of every rewording that it is false."""

        def annotate(self, *given: Any) -> list[Annotation]:
            return [replace(row, kind="hard_negative") for row in super().annotate(*given)]

    def make(materials: Materials, **_: Any) -> Negatives:
        return Negatives(materials.wordnet, materials.pool)

    monkeypatch.setitem(BUILT_IN, "rules-negatives", BuiltIn(make, "wrong ones"))
    config = {"name": "x", "input": {"path": str(captions)}, "negatives": {}, "positives": {}, "workers": 1}
    manifest = build(parse_config(config, where="test"), captions.parent / "build", prefect=False)
    stage = manifest["stages"]["positives"]
    assert stage["kept"] == 0
    assert stage["rejected"]["on_both_sides"] == manifest["stages"]["negatives"]["kept"] > 0


def test_a_json_line_of_a_both_sides_negative_holds_its_positive_and_can_be_refined(captions: Path) -> None:
    out = captions.with_name("both.jsonl")
    options = ["--types", "replace-object", "--both-sides"]
    assert CliRunner().invoke(app, ["generate", "negatives", str(captions), "--out", str(out), *options]).exit_code == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == len(CAPTIONS)
    kept = [row for row in rows if row["status"] == "kept"]
    assert kept
    assert all(row["positive"] not in {"", row["caption"], row["negative"]} for row in kept)
    refined = CliRunner().invoke(app, ["refine", str(out), "--out", str(out.with_name("refined.jsonl")), "--json"])
    assert json.loads(refined.stdout)["in"] == len(kept)
