"""Refinement inside a build: what it is asked of, and what it lets pass."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pairwright.cli.output.build_summary import build_lines
from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.datasets.records import Annotation
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.filters.refinement.general import refine as general_refine
from pairwright.filters.refinement.general import rounds
from pairwright.filters.refinement.reference import fold_assignment, fold_sums, plan
from pairwright.flows.build import build
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.graph import stage_names
from pairwright.flows.stage_selection import StageSelection
from tests.flows.conftest import checked, settings

Refined = Callable[..., dict[str, Any]]
TYPES = ["replace-attribute", "replace-object", "swap-object", "shuffle"]


def rows_of(out: Path, folder: str, files: str = "*.parquet") -> list[Annotation]:
    return [row for path in sorted((out / folder).glob(files)) for row in ANNOTATIONS.read(path)]


def config_of(corpus: Path, **changes: Any) -> BuildConfig:
    texts = {"path": str(corpus / "large" / "captions.jsonl")}  # of few texts a type has too few negatives to choose of
    plan = settings(corpus, input=texts, negatives={"types": TYPES}, **changes)
    del plan["retrieve"]
    return checked(plan)


@pytest.fixture(scope="module")
def drafted(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build up to what is refined, which is the same whatever the options of the refinement are; to go on, copy it."""
    config, out = config_of(corpus), tmp_path_factory.mktemp("drafted") / "out"
    stages = stage_names(config)
    for stage in stages[: stages.index("refine")]:
        build(config, out, prefect=False, selection=StageSelection(only=stage))
    return out


@pytest.fixture(scope="module")
def refined(corpus: Path, drafted: Path) -> Refined:
    """Finish a build in a folder with some options of the refinement; return what its manifest says of the stage."""

    def finish(out: Path, **options: Any) -> dict[str, Any]:
        if not out.exists():
            shutil.copytree(drafted, out)
        build(config_of(corpus, refine=options), out, prefect=False)
        stage: dict[str, Any] = json.loads((out / "manifest.json").read_text())["stages"]["refine"]
        return stage

    return finish


@pytest.fixture(scope="module")
def generally(refined: Refined, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A build that is refined by the general method, and what its manifest says of the stage."""
    out = tmp_path_factory.mktemp("generally") / "out"
    return out, refined(out, method="general", target=0.6)


@pytest.fixture(scope="module")
def by_reference(refined: Refined, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The same, refined by the reference method."""
    out = tmp_path_factory.mktemp("by_reference") / "out"
    return out, refined(out, cells=6)


@pytest.mark.parametrize("method", ["by_reference", "generally"])
def test_shuffled_captions_pass_refinement_untouched(request: pytest.FixtureRequest, method: str) -> None:
    out, stage = request.getfixturevalue(method)
    made = Counter(row.form for row in rows_of(out, "candidates") if row.kind == "hard_negative")
    kept = Counter(row.form for row in rows_of(out, "annotations") if row.kind == "hard_negative")
    assert made["shuffle"] == kept["shuffle"] == stage["facts"]["for_training"] > 0
    assert stage["candidates"] == made.total()
    assert stage["kept"] == kept.total() < made.total()
    assert stage["facts"]["in"] == made.total() - made["shuffle"]
    assert "shuffle" not in stage["facts"]["by_type"]


def test_the_reference_method_reads_texts_in_jobs_of_one_part_each(by_reference: tuple[Path, dict[str, Any]]) -> None:
    out, _ = by_reference
    parts = [path.stem for path in (out / "pairs").iterdir()]
    jobs = {path.stem for path in (out / "receipts" / "refine").iterdir()}
    steps = {f"{step}-{part}" for step in ("texts", "counts", "gaps") for part in parts}
    assert len(parts) > 1
    assert jobs == {*steps, *parts, "folds", *(f"fold-{fold}" for fold in range(5)), "balance", "all"}


def test_a_build_in_several_batches_and_broken_off_between_them_has_the_same_bytes(
    by_reference: tuple[Path, dict[str, Any]], refined: Refined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_assignment, "BATCH_TEXTS", 150)
    monkeypatch.setattr(fold_assignment, "BUCKET_FORMS", 100)
    with monkeypatch.context() as killing:
        killing.setattr(plan, "assign_batch", broken)
        with pytest.raises(RuntimeError):
            refined(tmp_path / "out", cells=6)
    before = {path.stem for path in (tmp_path / "out" / "receipts" / "refine").iterdir()}
    assert {"names-00000", "names-00001", "numbers", "hashes-00001", "answers-1"} < before
    refined(tmp_path / "out", cells=6)
    same_bytes(by_reference[0], tmp_path / "out")


def test_a_build_whose_counts_are_several_ranges_and_broken_off_behind_them_has_the_same_bytes(
    by_reference: tuple[Path, dict[str, Any]], refined: Refined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_sums, "RANGE_ENTRIES", 2_000)
    monkeypatch.setattr(fold_sums, "CHUNK_ENTRIES", 300)
    with monkeypatch.context() as killing:
        killing.setattr(plan, "finish_fold", broken)
        with pytest.raises(RuntimeError):
            refined(tmp_path / "out", cells=6)
    before = {path.stem for path in (tmp_path / "out" / "receipts" / "refine").iterdir()}
    assert {"sums-0-0", "sums-0-1", "sums-4-1"} < before
    refined(tmp_path / "out", cells=6)
    same_bytes(by_reference[0], tmp_path / "out")


def broken(*_: object) -> None:
    raise RuntimeError  # several jobs of a group do so, which asyncio bears of no SystemExit


def test_the_general_method_has_jobs_for_parts_and_folds_and_one_for_all_rounds(
    generally: tuple[Path, dict[str, Any]],
) -> None:
    out, _ = generally
    parts = [path.stem for path in (out / "pairs").iterdir()]
    jobs = {path.stem for path in (out / "receipts" / "refine").iterdir()}
    classifiers = ("length", "format", "words", "letters", "word_clusters")
    assert len(parts) > 1
    assert jobs == {
        *(*parts, "order", "scorers", "rounds", "all"),
        *(f"texts-{part}" for part in parts),
        *(f"gaps-{captions}-{fold}" for captions in ("all", "half0", "half1") for fold in range(5)),
        *(f"evidence-{name}" for name in classifiers),
    }


def test_a_large_general_build_has_jobs_for_types_and_attacks_and_the_same_bytes(
    generally: tuple[Path, dict[str, Any]], refined: Refined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(general_refine, "MAX_ROWS_TOGETHER", 0)
    stage = refined(tmp_path / "out", method="general", target=0.6)
    jobs = {path.stem for path in (tmp_path / "out" / "receipts" / "refine").iterdir()}
    assert "rounds" not in jobs
    assert {f"chosen-0-{number}" for number in range(len(stage["facts"]["by_type"]))} < jobs
    assert {f"round-0-{name}" for name in ("words", "letters", "combined", "scorers")} < jobs
    assert stage["facts"] == generally[1]["facts"]
    same_bytes(generally[0], tmp_path / "out")


@pytest.mark.parametrize("place", ["stack_features", pytest.param("measure_classifier", marks=pytest.mark.slow)])
def test_a_general_build_that_ends_between_its_steps_has_the_same_bytes(
    generally: tuple[Path, dict[str, Any]],
    refined: Refined,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    with monkeypatch.context() as killing:
        killing.setattr(rounds, place, broken)
        with pytest.raises(RuntimeError):
            refined(tmp_path / "out", method="general", target=0.6)
    receipts = tmp_path / "out" / "receipts" / "refine"
    before = {path.name: path.stat().st_mtime_ns for path in receipts.iterdir()}
    assert "order.json" in before
    assert refined(tmp_path / "out", method="general", target=0.6)["facts"] == generally[1]["facts"]
    assert before == {name: (receipts / name).stat().st_mtime_ns for name in before}
    same_bytes(generally[0], tmp_path / "out")


def test_a_general_build_has_the_same_bytes_for_any_number_of_workers(
    generally: tuple[Path, dict[str, Any]], corpus: Path, tmp_path: Path
) -> None:
    config = config_of(corpus, refine={"method": "general", "target": 0.6}, workers=2)
    build(config, tmp_path / "out", prefect=False)
    same_bytes(generally[0], tmp_path / "out")


def same_bytes(one: Path, other: Path) -> None:
    for folder in ("annotations", "rejected", "shards"):
        expected = {path.name: path.read_bytes() for path in (one / folder).iterdir()}
        assert expected == {path.name: path.read_bytes() for path in (other / folder).iterdir()}


def told(out: Path, **facts: Any) -> list[str]:
    """Return what a build says of its refinement, had it kept other numbers."""
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["stages"]["refine"]["facts"] |= facts
    return [line for line in build_lines(out, manifest) if line.startswith("refine: ")]


def test_a_build_says_that_refinement_left_few_and_what_keeps_more(
    by_reference: tuple[Path, dict[str, Any]], generally: tuple[Path, dict[str, Any]]
) -> None:
    """Whoever made a small set would else look for its negatives in vain."""
    out, stage = by_reference
    (line,) = told(out, kept=1)
    assert line.startswith(f"refine: 1 of {stage['facts']['in']:,} negatives kept: the set is too small")
    assert "fewer `cells` under refine" in line
    assert not told(out, kept=stage["facts"]["in"])
    (line,) = told(generally[0], kept=1, advice="")
    assert "upper bound for any balanced subset" in line


def test_a_build_says_how_many_samples_have_at_least_one_text_of_each_kind(
    by_reference: tuple[Path, dict[str, Any]],
) -> None:
    out, _ = by_reference
    manifest = json.loads((out / "manifest.json").read_text())
    samples = [sample for tar in find_shards(out / "shards") for sample in read_shard(tar)]
    kinds = {"hard_negatives": "hard_negative", "hard_positives": "hard_positive"}
    counts = {
        name: sum(any(each.kind == kind for each in sample.annotations) for sample in samples)
        for name, kind in kinds.items()
    }
    having = counts["hard_negatives"]
    assert 0 < counts["hard_positives"] < having <= len(samples)
    assert counts.items() <= manifest["contents"]["samples_with"].items()
    lines = build_lines(out, manifest)
    assert f"{having:,} ({having / len(samples):.1%}) hard negative" in "".join(lines)
    details = " ".join(" ".join(build_lines(out, manifest, details=True)).split())
    for told in manifest["types"].values():
        assert all(f"{reason} {count:,}" in details for reason, count in told["rejected"].items() if count)


def test_a_build_that_kept_no_negative_says_that_no_sample_has_one(by_reference: tuple[Path, dict[str, Any]]) -> None:
    out, _ = by_reference
    manifest = json.loads((out / "manifest.json").read_text())
    none = {"hard_negatives": 0, "hard_positives": 1, "conversations": 0, "rationales": 0}
    manifest["contents"] |= {"samples": 1, "samples_with": none}
    manifest["stages"].pop("conversations", None)
    lines = build_lines(out, manifest)
    assert lines[1].startswith("1 sample, ") or lines[1] == "1 sample"
    assert lines[2] == "with at least one: 0 (0.0%) hard negative, 1 (100.0%) hard positive"


def test_a_build_says_that_its_refined_set_does_not_hold(refined: Refined, tmp_path: Path) -> None:
    """In the words of its config, which knows no options."""
    stage = refined(tmp_path / "out", method="general", target=0.505, min_keep=1.0)
    assert not stage["facts"]["holds"]
    (line,) = told(tmp_path / "out")
    assert line.endswith(f"negatives kept. {stage['facts']['advice']}")
    assert re.search("`[a-z_]+(: true)?` under (refine|negatives)", line)
    assert "--" not in line


def test_the_general_method_says_whether_what_was_asked_holds(generally: tuple[Path, dict[str, Any]]) -> None:
    out, stage = generally
    facts = stage["facts"]
    assert {"length", "likelihood", "words", "letters", "combined"} <= set(facts["attacks"])
    if facts["holds"]:
        assert all(attack["after"] <= 0.6 for attack in facts["attacks"].values())
    else:
        assert facts["advice"]
    gone = {row.reason.partition("_by_")[0] for row in rows_of(out, "rejected", "refine-*.parquet")}
    assert "detected" in gone
