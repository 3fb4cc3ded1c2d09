"""Selection in rounds: rows within a loose target, goals of auxiliary evidence, and trimming."""

from collections.abc import Sequence

import numpy as np
import pytest

from pairwright.filters.attacks.accuracy import EvaluatedSubset, SubsetEvaluator, tighten_limit
from pairwright.filters.attacks.evidence import build_auxiliary_evidence, build_scorer_evidence
from pairwright.filters.refinement.rounds import (
    SelectedSubset,
    SubsetRequirements,
    compute_scorer_goal,
    select_subset,
    trim_subset,
)
from pairwright.generators.language.vocabulary import FloatArray

ROWS = 600
TARGET = 0.7
TYPES = ["add", "swap"] * (ROWS // 2)
GROUPS = [str(row // 3) for row in range(ROWS)]


def chosen(share: float, requirements: SubsetRequirements, goal: float) -> SelectedSubset:
    """Return the subset selected against a scorer that prefers this share of the positives in each type."""
    place = np.arange(ROWS) // 2  # of the row within its type
    gaps = np.where(place < share * ROWS / 2, 0.2, -0.2) + place / ROWS / 10
    return select_subset({"seer": build_auxiliary_evidence("seer", gaps, TYPES, goal)}, GROUPS, TYPES, requirements, 0)


def test_rows_within_a_loose_target_are_kept_without_a_round() -> None:
    whole = chosen(compute_scorer_goal(TARGET) - 0.02, SubsetRequirements(TARGET), compute_scorer_goal(TARGET))
    assert whole.kept.all()
    assert whole.holds
    assert [(each.kept, each.holds) for each in whole.rounds] == [(ROWS, True)]


@pytest.mark.parametrize(("share", "goal"), [(0.66, compute_scorer_goal(TARGET)), (0.45, 0.49)])
def test_rows_within_the_target_are_balanced_where_held_out_scorers_would_detect_more(
    share: float, goal: float
) -> None:
    found = chosen(share, SubsetRequirements(TARGET), goal)
    assert not found.kept.all()
    assert found.holds


def test_goals_are_checked_in_every_type() -> None:
    one, other = np.array([0.1, -0.1] * 50), np.array([0.1] * 50 + [-0.1] * 50)
    types = ["add"] * 50 + ["swap"] * 50
    assert build_auxiliary_evidence("seer", one, types, 0.6).within_goals
    assert not build_auxiliary_evidence("seer", other, types, 0.6).within_goals
    silent = np.where(np.arange(100) < 50, one, np.nan)
    assert build_auxiliary_evidence("seer", silent, types, 0.6).within_goals


def test_at_most_one_row_per_slot_is_kept_however_loose_the_target() -> None:
    slots = [str(row // 4 * 2 + row % 2) for row in range(ROWS)]
    found = chosen(0.5, SubsetRequirements(TARGET, slots=slots), compute_scorer_goal(TARGET))
    taken = np.array(slots)[found.kept].tolist()
    assert len(taken) == len(set(taken)) > ROWS / 4


def test_too_few_rows_give_no_conclusive_result() -> None:
    gaps = np.array([0.1, -0.1] * 20)
    evidence = {"seer": build_auxiliary_evidence("seer", gaps, ["add"] * 40, 0.6)}
    found = select_subset(
        evidence, [str(row) for row in range(40)], ["add"] * 40, SubsetRequirements(TARGET, rounds=1), 0
    )
    assert not found.holds
    assert not found.conclusive


TRIM_ROWS = 400


def evaluator(gaps: FloatArray, types: Sequence[int]) -> SubsetEvaluator:
    """Return an evaluator of rows of two types and 100 images, with a scorer of these gaps."""
    evidence = {"seer": build_scorer_evidence("seer", gaps)}
    return SubsetEvaluator(evidence, [str(row // 4) for row in range(len(gaps))], np.array(types), ["add", "swap"])


def start(rows: int) -> EvaluatedSubset:
    return EvaluatedSubset(np.ones(rows, np.bool_), np.full(rows, 1, np.int64), {})


def telling(share: float) -> FloatArray:
    """Return gaps that add up to 0, of which this share prefers the positive."""
    wins = round(share * TRIM_ROWS)
    gaps = np.concatenate(
        [np.linspace(0.1, 0.2, wins), -np.linspace(0.1, 0.2, TRIM_ROWS - wins) * wins / (TRIM_ROWS - wins)]
    )
    assert abs(gaps.sum()) < 1e-9
    return gaps


@pytest.mark.parametrize("share", [0.6, 0.4])
def test_trimming_brings_an_attack_with_balanced_sums_but_uneven_counts_within_its_limit(
    share: float,
) -> None:
    gaps = telling(share)
    best, rounds = trim_subset(evaluator(gaps, [0] * TRIM_ROWS), start(TRIM_ROWS), 0.52, 100, 0)
    left = gaps[best.kept]
    assert not rounds[0].holds
    assert rounds[-1].holds
    assert abs(np.mean(left > 0) - 0.5) <= tighten_limit(0.52, len(left), "")
    assert len(left) > 0.8 * TRIM_ROWS
    gone = np.flatnonzero(~best.kept)
    side = np.sign(share - 0.5)
    assert (np.sign(gaps[gone]) == side).all()
    assert np.abs(gaps[gone]).min() >= np.abs(left[np.sign(left) == side]).max()
    assert (best.detected_by[gone] == 0).all()
    assert (best.detected_by[best.kept] == 1).all()


def test_only_the_type_that_exceeds_its_limit_is_trimmed() -> None:
    gaps = np.tile([0.1, -0.1], TRIM_ROWS)
    gaps[:40] = 0.3
    types = [0] * 80 + [1] * (2 * TRIM_ROWS - 80)
    best, rounds = trim_subset(evaluator(gaps, types), start(len(gaps)), 0.54, 100, 0)
    assert rounds[-1].holds
    assert np.flatnonzero(~best.kept).max() < 40


def test_trimming_stops_at_the_minimum_number_of_rows_and_reports_that_the_set_does_not_hold() -> None:
    best, rounds = trim_subset(evaluator(telling(0.6), [0] * TRIM_ROWS), start(TRIM_ROWS), 0.52, TRIM_ROWS - 10, 0)
    assert best.kept.all()
    assert not rounds[-1].holds


def test_a_set_within_its_limits_is_not_trimmed() -> None:
    best, rounds = trim_subset(evaluator(telling(0.5), [0] * TRIM_ROWS), start(TRIM_ROWS), 0.52, 100, 0)
    assert best.kept.all()
    assert [each.holds for each in rounds] == [True]


def test_a_tight_target_drops_no_more_rows_than_necessary() -> None:
    best, rounds = trim_subset(evaluator(telling(0.6), [0] * TRIM_ROWS), start(TRIM_ROWS), 0.505, 100, 0)
    assert rounds[-1].holds
    assert 0.78 * TRIM_ROWS < best.kept.sum() < 0.82 * TRIM_ROWS
