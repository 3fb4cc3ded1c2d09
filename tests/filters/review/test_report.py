"""Agreement of two reviewers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.filters.review.report import measure_agreement


def pairs(table: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return [words for words, count in table.items() for _ in range(count)]


def test_kappa_of_the_textbook_example() -> None:
    """50 proposals, 20 yes-yes, 15 no-no, 5 and 10 unequal: observed 0.7, expected 0.5, kappa 0.4."""
    found = measure_agreement(
        pairs({("keep", "keep"): 20, ("keep", "reject"): 5, ("reject", "keep"): 10, ("reject", "reject"): 15})
    )
    assert (found.rows, found.agreed) == (50, 0.7)
    assert found.kappa == pytest.approx(0.4)


def test_kappa_is_1_for_full_agreement_and_0_at_chance_level() -> None:
    assert measure_agreement(pairs({("keep", "keep"): 3, ("reject", "reject"): 4})).kappa == 1
    assert measure_agreement(pairs({(a, b): 5 for a in "kr" for b in "kr"})).kappa == 0


def test_kappa_is_undefined_without_rows_and_for_one_decision_throughout() -> None:
    assert math.isnan(measure_agreement([]).kappa)
    assert math.isnan(measure_agreement([("keep", "keep")] * 9).kappa)


words = st.sampled_from(["keep", "reject", "unsure", "fix"])


@given(st.lists(st.tuples(words, words), min_size=1))
def test_kappa_is_bounded_and_symmetric(both: list[tuple[str, str]]) -> None:
    found = measure_agreement(both).kappa
    turned = measure_agreement([(other, one) for one, other in both]).kappa
    assert math.isnan(found) == math.isnan(turned)
    if not math.isnan(found):
        assert found == pytest.approx(turned)
        assert -1 <= found <= 1


@given(st.lists(st.integers(0, 30), min_size=16, max_size=16).filter(any))
def test_kappa_equals_its_definition_over_a_table(counts: list[int]) -> None:
    names = ["keep", "reject", "unsure", "fix"]
    cells = dict(zip([(one, other) for one in names for other in names], counts, strict=True))
    table = np.array(counts, float).reshape(4, 4) / sum(counts)
    by_chance = float((table.sum(1) * table.sum(0)).sum())
    found = measure_agreement(pairs(cells)).kappa
    if by_chance > 1 - 1e-12:
        assert math.isnan(found)
    else:
        assert found == pytest.approx((np.trace(table) - by_chance) / (1 - by_chance), abs=1e-9)
