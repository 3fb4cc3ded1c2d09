"""The last step of refinement: rows that still tell leave one by one."""

from collections.abc import Sequence

import numpy as np
import pytest

from pairwright.filters.attacks.evidence import scorer_evidence
from pairwright.filters.attacks.subset_evaluation import EvaluatedSubset, SubsetEvaluator, tightened_limit
from pairwright.filters.refinement.trimming import trim_subset
from pairwright.generators.language.vocabulary import FloatArray

ROWS = 400


def arena(gaps: FloatArray, types: Sequence[int]) -> SubsetEvaluator:
    """Rows of two types and 100 images before a scorer of these gaps."""
    evidence = {"seer": scorer_evidence("seer", gaps)}
    return SubsetEvaluator(evidence, [str(row // 4) for row in range(len(gaps))], np.array(types), ["add", "swap"])


def start(rows: int) -> EvaluatedSubset:
    return EvaluatedSubset(np.ones(rows, np.bool_), np.full(rows, 1, np.int64), {})


def telling(share: float) -> FloatArray:
    """Gaps of which this share prefers the positive, and is the smaller the surer the others are: they add up to 0."""
    wins = round(share * ROWS)
    gaps = np.concatenate([np.linspace(0.1, 0.2, wins), -np.linspace(0.1, 0.2, ROWS - wins) * wins / (ROWS - wins)])
    assert abs(gaps.sum()) < 1e-9
    return gaps


@pytest.mark.parametrize("share", [0.6, 0.4])
def test_an_attack_that_is_often_right_though_its_gaps_add_up_to_nothing_is_brought_within_its_limit(
    share: float,
) -> None:
    gaps = telling(share)
    best, rounds = trim_subset(arena(gaps, [0] * ROWS), start(ROWS), 0.52, 100, 0)
    left = gaps[best.kept]
    assert not rounds[0].holds
    assert rounds[-1].holds
    assert abs(np.mean(left > 0) - 0.5) <= tightened_limit(0.52, len(left), "")
    assert len(left) > 0.8 * ROWS
    gone = np.flatnonzero(~best.kept)
    side = np.sign(share - 0.5)
    assert (np.sign(gaps[gone]) == side).all()
    assert np.abs(gaps[gone]).min() >= np.abs(left[np.sign(left) == side]).max()
    assert (best.told_by[gone] == 0).all()
    assert (best.told_by[best.kept] == 1).all()


def test_a_type_is_trimmed_for_itself_and_the_others_are_left_alone() -> None:
    gaps = np.tile([0.1, -0.1], ROWS)
    gaps[:40] = 0.3
    types = [0] * 80 + [1] * (2 * ROWS - 80)
    best, rounds = trim_subset(arena(gaps, types), start(len(gaps)), 0.54, 100, 0)
    assert rounds[-1].holds
    assert np.flatnonzero(~best.kept).max() < 40


def test_a_set_is_trimmed_no_further_than_it_may_fall_and_then_is_said_not_to_hold() -> None:
    best, rounds = trim_subset(arena(telling(0.6), [0] * ROWS), start(ROWS), 0.52, ROWS - 10, 0)
    assert best.kept.all()
    assert not rounds[-1].holds


def test_a_set_within_its_limits_stays_whole() -> None:
    best, rounds = trim_subset(arena(telling(0.5), [0] * ROWS), start(ROWS), 0.52, 100, 0)
    assert best.kept.all()
    assert [each.holds for each in rounds] == [True]


def test_a_tight_target_takes_no_more_rows_than_it_must() -> None:
    best, rounds = trim_subset(arena(telling(0.6), [0] * ROWS), start(ROWS), 0.505, 100, 0)
    assert rounds[-1].holds
    assert 0.78 * ROWS < best.kept.sum() < 0.82 * ROWS
