"""What an attack accuracy says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.filters.attacks.accuracy import (
    AttackChange,
    compute_attack_accuracy,
    summarize_attacks,
    summarize_attacks_by_type,
)


@pytest.mark.parametrize(
    ("gaps", "accuracy"),
    [
        ([0.1, 0.2, 0.3, -0.1], 0.75),
        ([-0.1, -0.2, -0.3, 0.1], 0.75),
        ([0.1, 0.0], 0.75),
        ([0.0, 0.0], 0.5),
        ([0.1, float("nan")], 0.75),
        ([], 0.5),
    ],
)
def test_accuracy_is_folded_and_a_tie_or_a_missing_score_counts_half(gaps: list[float], accuracy: float) -> None:
    assert compute_attack_accuracy(np.array(gaps, dtype=np.float64)) == accuracy


@given(st.lists(st.floats(-1, 1)))
def test_an_inverted_scorer_has_the_same_accuracy(gaps: list[float]) -> None:
    assert compute_attack_accuracy(np.array(gaps)) == compute_attack_accuracy(-np.array(gaps))


def test_a_set_that_is_balanced_in_total_can_be_unbalanced_in_each_type() -> None:
    gaps = {"grammar": np.array([0.1, 0.2, -0.1, -0.2])}
    kept = np.ones(4, dtype=np.bool_)
    assert summarize_attacks(gaps, kept).attacks["grammar"] == AttackChange(0.5, 0.5)
    by_type = summarize_attacks_by_type(["add", "swap"], np.array([1, 1, 0, 0]), gaps, kept)
    assert {name: each.attacks["grammar"].after for name, each in by_type.items()} == {"add": 1.0, "swap": 1.0}
