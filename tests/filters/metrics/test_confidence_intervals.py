"""Wilson's interval: values of tables and of SciPy, and properties of any interval."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from pairwright.filters.metrics.confidence_intervals import wilson_interval
from tests.example_counts import examples


@pytest.mark.parametrize(
    ("found", "seen", "low", "high"),
    [(0, 100, 0.0, 0.03699), (5, 50, 0.04348, 0.21360), (10, 10, 0.72247, 1.0), (50, 100, 0.40383, 0.59617)],
)
def test_wilson_intervals_equal_tabulated_values(found: int, seen: int, low: float, high: float) -> None:
    assert list(wilson_interval(found, seen)) == pytest.approx([low, high], abs=2e-5)


def test_without_draws_the_interval_is_0_to_1() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


@given(st.integers(1, 400).flatmap(lambda seen: st.tuples(st.integers(0, seen), st.just(seen))))
def test_the_interval_holds_the_share_and_mirrors(case: tuple[int, int]) -> None:
    found, seen = case
    low, high = wilson_interval(found, seen)
    assert 0 <= low <= found / seen <= high <= 1
    assert list(wilson_interval(seen - found, seen)) == pytest.approx([1 - high, 1 - low])


@given(st.integers(1, 400).flatmap(lambda seen: st.tuples(st.integers(0, seen), st.just(seen))))
@settings(max_examples=examples(25), deadline=None)
def test_whole_hits_give_the_interval_of_scipy(case: tuple[int, int]) -> None:
    found, seen = case
    theirs = binomtest(found, seen).proportion_ci(method="wilson")
    assert wilson_interval(found, seen) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_more_rows_make_the_interval_narrower() -> None:
    assert wilson_interval(10, 100)[1] > wilson_interval(100, 1000)[1] > 0.1


def test_the_interval_is_the_published_one() -> None:
    # Newcombe 1998, table I: 81 of 263 and 15 of 148.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
