"""The upper bound on kept rows."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.filters.attacks.accuracy import compute_attack_accuracy
from pairwright.filters.refinement.general.balanced_subset import bound_balanced_rows
from tests.example_counts import examples


@settings(max_examples=examples(30))
@given(
    st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.sampled_from([-1, 1])), max_size=8),
    st.sampled_from([0.5, 0.6, 0.8]),
)
def test_no_subset_within_the_target_has_more_rows_than_the_bound(rows: list[tuple[int, int]], target: float) -> None:
    gaps = np.array(rows, np.float64).reshape(-1, 2)
    best = 0
    for chosen in product([False, True], repeat=len(rows)):
        kept = gaps[np.array(chosen, np.bool_)]
        if all(compute_attack_accuracy(kept[:, axis]) <= target + 1e-9 for axis in (0, 1)):
            best = max(best, len(kept))
    assert best <= bound_balanced_rows({"one": gaps[:, 0], "other": gaps[:, 1]}, target)


def test_rows_that_all_favour_one_side_have_a_bound_of_zero() -> None:
    assert bound_balanced_rows({"length": np.ones(10)}, 0.52) == 0
    assert bound_balanced_rows({"length": np.array([1.0, 1.0, -1.0])}, 0.5) == 2
