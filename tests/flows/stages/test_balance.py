"""Quotas, caps and both-sides pairs, in a build and from the command line."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.cli.output.build_summary import build_lines
from pairwright.datasets.errors import ConfigError
from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.datasets.records import Annotation
from pairwright.flows.build import build
from pairwright.flows.config.build import parse_config
from pairwright.generators.edits.inserted_words import inserted_words
from pairwright.generators.positives import RulePositives
from pairwright.generators.registry import BUILT_IN, BuiltInGenerator, Materials

THINGS = ("dog", "cat", "horse", "boy", "girl", "man", "woman", "cow")
PLACES = ("bed", "bench", "table", "chair", "boat")
CAPTIONS = [f"A {thing} sits on a {place} beside a small tree." for thing in THINGS for place in PLACES]


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    return path


def built(
    captions: Path, *, stage: str = "negatives", part_size: int = 7, **options: Any
) -> tuple[dict[str, Any], list[Annotation]]:
    """Build with one section, in parts of so many pairs; return the manifest and the kept rows."""
    config = {
        "name": "x",
        "input": {"path": str(captions)},
        stage: options,
        "workers": 1,
        "part_size": part_size,
    }
    out = captions.parent / f"build-{part_size}"
    manifest = build(parse_config(config, where="test"), out, prefect=False)
    parts = sorted((out / "annotations").glob(f"{stage}-*.parquet"))
    return manifest, [row for part in parts for row in ANNOTATIONS.read(part)]


def most_used(rows: list[Annotation]) -> int:
    return max(Counter(word for row in rows for word in inserted_words(row)).values())


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
    manifest, capped = built(captions, types=["replace-object"], max_word_share=0.08, quota=20)
    assert most_used(plain) > 0.08 * len(plain)
    assert 10 <= len(capped) <= 20
    assert most_used(capped) <= max(1, 0.08 * len(capped))
    told = manifest["stages"]["balance"]["facts"]["limits"]["replace-object"]
    assert (told["asked"], told["available"], told["given"]) == (20, len(plain), len(capped))


def test_a_build_tells_the_quotas_that_it_could_not_meet(captions: Path) -> None:
    manifest, rows = built(captions, types=["replace-object"], quota=1000)
    said = build_lines(captions.parent, manifest)
    line = f"negatives: replace-object: 1,000 requested, {len(rows)} available, {len(rows)} kept"
    assert line in said


def test_limits_leave_the_same_rows_for_any_number_of_parts(captions: Path) -> None:
    limits: dict[str, Any] = {"types": ["replace-object", "replace-relation"], "quota": 12, "max_word_share": 0.2}
    _, few = built(captions, **limits)
    _, many = built(captions, part_size=3, **limits)
    assert sorted(row.id for row in few) == sorted(row.id for row in many)


def test_without_limits_a_part_is_a_link_and_limits_set_later_cut_it_without_a_change_of_the_draft(
    captions: Path,
) -> None:
    _, plain = built(captions, types=["replace-object"])
    out = captions.parent / "build-7"
    draft, kept = out / "drafts" / "negatives-00000.parquet", out / "annotations" / "negatives-00000.parquet"
    assert kept.samefile(draft)
    before = draft.read_bytes()
    manifest, rows = built(captions, types=["replace-object"], quota=10)
    assert len(rows) == manifest["stages"]["balance"]["kept"] == 10 < len(plain)
    assert not kept.samefile(draft)
    assert draft.read_bytes() == before
    _, again = built(captions, types=["replace-object"])
    assert again == plain


def test_positives_are_balanced_and_accounted_for_as_negatives_are(captions: Path) -> None:
    manifest, rows = built(captions, stage="positives", quota={"replace-object": 6}, max_word_share=0.34)
    objects = [row for row in rows if row.target == "object" and row.form == "replace"]
    assert 0 < len(objects) <= 6
    assert most_used(objects) <= max(1, 0.34 * len(objects))
    stage = manifest["stages"]["balance-positives"]
    assert stage["unit"] == "positive"
    assert stage["candidates"] == stage["kept"] + sum(stage["rejected"].values())
    assert stage["kept"] == len(rows)
    account = stage["facts"]["account"]["replace-object"]
    assert account["kept"] == sum(account["positions"]) == len(objects)
    assert manifest["types"]["positives: replace-object"]["kept"] == len(objects)


def test_each_negative_of_a_both_sides_build_has_its_positive_and_refinement_compares_the_two(captions: Path) -> None:
    manifest, rows = built(captions, types=["replace-object", "add-object"], both_sides=True)
    positives = {row.id for row in rows if row.kind == "hard_positive"}
    negatives = [row for row in rows if row.kind == "hard_negative"]
    assert negatives
    assert {row.positive_id for row in negatives} == positives
    assert any(name.startswith("negatives: beside") for name in manifest["types"])


@pytest.mark.parametrize(
    "own",
    [{"floor": 0.2}, {"vocabulary": ["coco"]}, {"types": ["shuffle"]}, {"types": ["negation"]}],
)
def test_what_only_rules_make_is_refused_of_a_model(captions: Path, own: dict[str, object]) -> None:
    config = {
        "name": "x",
        "input": {"path": str(captions)},
        "llm": {"model": "m"},
        "negatives": {"method": "llm", **own},
    }
    with pytest.raises(ConfigError, match=r"requires? method: rules"):
        parse_config(config, where="test")


def test_a_quota_of_all_types_and_of_none_are_both_read(captions: Path) -> None:
    _, rows = built(captions, types=["replace-object", "replace-relation"], quota=4)
    assert set(Counter(f"{row.form}-{row.target}" for row in rows).values()) == {4}
    config = {"name": "x", "input": {"path": str(captions)}, "positives": {"quota": {"swap-attribute": 4}}}
    with pytest.raises(ConfigError, match="quota"):
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

        def annotate_batch(self, *given: Any) -> list[list[Annotation]]:
            return [[replace(row, kind="hard_negative") for row in rows] for rows in super().annotate_batch(*given)]

    def make(materials: Materials, **_: Any) -> Negatives:
        cloze = materials.edits.cloze if materials.edits else None
        return Negatives(materials.pool, model=cloze)

    monkeypatch.setitem(BUILT_IN, "rules-negatives", BuiltInGenerator(make, "wrong ones"))
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


def test_as_many_conversations_are_left_as_were_asked_for(captions: Path) -> None:
    config = {
        "name": "x",
        "input": {"path": str(captions)},
        "conversations": {"counts": {"brief": 9, "conversation": 100}},
        "workers": 1,
        "part_size": 7,
    }
    out = captions.parent / "build"
    manifest = build(parse_config(config, where="test"), out, prefect=False)
    rows = [row for part in sorted((out / "annotations").glob("conversations-*")) for row in ANNOTATIONS.read(part)]
    kinds = Counter(row.kind for row in rows)
    limits = manifest["stages"]["balance-conversations"]["facts"]["limits"]
    assert kinds["brief"] == 9
    assert (limits["brief"]["asked"], limits["brief"]["available"], limits["brief"]["given"]) == (9, 40, 9)
    assert limits["conversation"]["given"] == kinds["conversation"] == limits["conversation"]["available"]
    assert manifest["types"]["conversations: brief"]["rejected"] == {"balanced_away": 31}
    assert manifest["contents"]["texts"]["conversations"] == kinds.total()


def test_counts_of_conversations_hold_from_the_command_line(captions: Path) -> None:
    out = captions.with_name("talks.jsonl")
    options = ["--types", "brief", "--counts", "brief=7", "--json"]
    done = CliRunner().invoke(app, ["generate", "conversations", str(captions), "--out", str(out), *options])
    told = json.loads(done.stdout)
    assert told["types"]["brief"] == {"made": 40, "kept": 7, "rejected": {"over_quota": 33}}
    assert told["limits"]["brief"]["given"] == 7
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    kept = {row["key"] for row in rows if row["status"] == "kept"}
    assert kept == set(sorted(row["key"] for row in rows)[:7])


@pytest.mark.parametrize("counts", ["detail=3", "brief=-1", "brief", "brief=x"])
def test_counts_that_are_none_are_refused(captions: Path, counts: str) -> None:
    result = CliRunner().invoke(
        app, ["generate", "conversations", str(captions), "--out", "x.jsonl", "--counts", counts]
    )
    assert "--counts" in str(result.exception)
