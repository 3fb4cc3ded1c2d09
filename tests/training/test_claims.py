"""The benchmark of the papers' claims: its data, its table, and a short run."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch", reason="the benchmark trains models")

from pairwright.datasets.colorshape.corpus import read_scene
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.shards.samples import Sample


@pytest.fixture(scope="module")
def claims() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        yield importlib.import_module("claims")


@pytest.fixture(scope="module")
def edited(claims: ModuleType) -> list[Sample]:
    made = claims.with_edits(claims.three_things(5, 40), 5)
    assert made.left_out == 0
    return list(made.samples)


def test_every_caption_and_text_is_as_true_as_its_kind_says(claims: ModuleType, edited: list[Sample]) -> None:
    right = {"hard_negative": OracleVerdict.FALSE, "hard_positive": OracleVerdict.TRUE}
    for sample in (*edited, *claims.also_there_is(edited), *claims.planted(edited, 0.5, 1)):
        scene = read_scene(sample.pair)
        assert judge(sample.pair.caption, scene) is OracleVerdict.TRUE
        for row in sample.annotations:
            assert judge(row.text, scene) is right[row.kind], row.text
    kinds = {f"{row.form}-{row.target}" for one in edited for row in one.annotations if row.kind == "hard_negative"}
    assert kinds == {"replace-object", "replace-attribute", "swap-attribute"}


def test_shown_one_way_no_two_captions_have_the_same_words(claims: ModuleType) -> None:
    captions = [one.pair.caption for one in claims.three_things(3, 1100, one_way=True)]
    assert len({tuple(sorted(one.replace(",", "").split())) for one in captions}) == 1100
    free = [one.pair.caption for one in claims.three_things(3, 1100)]
    assert len(set(free)) == 1100
    assert len({tuple(sorted(one.replace(",", "").split())) for one in free}) < 1000


def test_the_share_that_is_planted_gives_itself_away_and_nothing_else_changes(
    claims: ModuleType, edited: list[Sample]
) -> None:
    before = [row for one in edited for row in one.annotations]
    after = [row for one in claims.planted(edited, 0.9, 1) for row in one.annotations]
    changed = [row.kind for row, other in zip(before, after, strict=True) if row.text != other.text]
    assert set(changed) == {"hard_negative"}
    assert 0.8 < len(changed) / sum(row.kind == "hard_negative" for row in before) < 1
    for row, other in zip(before, after, strict=True):
        assert other.text in {row.text, f"there is {row.text}"}


def test_a_fact_is_answered_by_its_rationale(claims: ModuleType) -> None:
    found = claims.facts(2, 200, 50)
    assert [one.split for one in found] == ["train"] * 200 + ["validation"] * 50
    assert 0.4 < sum(one.label == "yes" for one in found) / 250 < 0.6
    for one in found:
        first, colour, _, second, other, _ = one.rationale.split()
        assert one.label == ("yes" if colour == other else "no")
        assert f"{first} {colour} ." in one.input
        assert f"{second} {other} ." in one.input
        assert one.input.endswith(f"{first} and {second} ?")


def test_a_claim_is_shown_when_the_interval_of_the_differences_leaves_out_zero(claims: ModuleType) -> None:
    middle, low, high, verdict = claims.judged([0.9, 0.8, 0.85], [0.7, 0.7, 0.7])
    half = 4.303 * 0.05 / 3**0.5  # Student's t of two degrees of freedom, and the spread of 0.2, 0.1 and 0.15
    assert (middle, low, high) == pytest.approx((0.15, 0.15 - half, 0.15 + half))
    assert verdict == "shown"
    assert claims.judged([0.7, 0.7, 0.7], [0.9, 0.8, 0.85])[3] == "refuted"
    assert claims.judged([0.9, 0.5, 0.7], [0.7, 0.6, 0.8])[3] == "open"
    assert claims.judged([0.9], [0.1])[3] == "open"


def test_the_table_has_the_claims_whose_groups_were_run(claims: ModuleType) -> None:
    run = {"multi-task": {"label accuracy": 0.9}, "single-task": {"label accuracy": 0.5}}
    run["label alone"] = {"label accuracy": 0.6}
    lines = claims.table({("rationales", seed): run for seed in (0, 1)}).splitlines()[2:]
    assert lines == [
        "| f | label accuracy | multi-task 90.0 | label alone 60.0 | +30.0 (+30.0 to +30.0) | 2 | shown |",
        "| f | label accuracy | multi-task 90.0 | single-task 50.0 | +40.0 (+40.0 to +40.0) | 2 | shown |",
    ]


@pytest.mark.slow
def test_refinement_keeps_few_of_the_negatives_that_give_themselves_away(claims: ModuleType) -> None:
    hacked = claims.planted(claims.with_edits(claims.three_things(5, 200), 5).samples, 0.9, 1)
    kept = claims.refine(hacked)
    rows = [row for one in hacked for row in one.annotations if row.kind == "hard_negative"]
    existential = {row.id for row in rows if row.text.startswith("there is")}
    assert kept
    assert len(kept & existential) / len(existential) < 0.1
    assert len(kept - existential) / (len(rows) - len(existential)) > 0.1


@pytest.mark.slow
def test_every_group_runs_and_finds_what_its_comparisons_ask(claims: ModuleType, tmp_path: Path) -> None:
    begun = claims.Begun(claims.Trials(tmp_path, 1, effort=0.1))
    found = {(group, 1): run(begun) for group, run in claims.GROUPS.items() if group != "refined"}
    lines = claims.table(found).splitlines()[2:]
    assert len(lines) == sum(one.group != "refined" for one in claims.COMPARISONS)
    assert all(line.endswith("| 1 | open |") for line in lines)
    assert all(0 <= value <= 1 for run in found.values() for arm in run.values() for value in arm.values())
