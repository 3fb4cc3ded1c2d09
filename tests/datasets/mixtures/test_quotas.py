"""Numbers of rows per source of a mixture."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.datasets.mixtures.quotas import SourceShare, allocate_rows, largest_remainder

NAMES = st.sampled_from(list("abcdefgh"))
RATIOS = st.dictionaries(NAMES, st.floats(0.001, 1000), min_size=1)


@given(st.integers(0, 10**7), RATIOS)
def test_ratios_are_met_to_the_row_and_add_up(total: int, ratios: dict[str, float]) -> None:
    parts = {name: Fraction(repr(ratio)) for name, ratio in ratios.items()}
    whole = sum(parts.values())
    given_rows = largest_remainder(total, parts)
    assert sum(given_rows.values()) == total
    assert all(abs(given_rows[name] - total * part / whole) < 1 for name, part in parts.items())


@given(st.integers(0, 1000), RATIOS)
def test_the_order_of_sources_does_not_matter(total: int, ratios: dict[str, float]) -> None:
    parts = {name: Fraction(repr(ratio)) for name, ratio in ratios.items()}
    assert largest_remainder(total, parts) == largest_remainder(total, dict(reversed(parts.items())))


@given(RATIOS, st.data())
def test_without_a_number_of_rows_no_source_gives_more_than_it_has(
    ratios: dict[str, float], data: st.DataObject
) -> None:
    there = {name: data.draw(st.integers(0, 10_000)) for name in ratios}
    taken = allocate_rows([SourceShare(name, ratio=ratio) for name, ratio in ratios.items()], there)
    whole = sum(map(Fraction, map(repr, ratios.values())))
    assert all(taken[name] <= there[name] for name in ratios)
    for name, ratio in ratios.items():
        assert abs(taken[name] - sum(taken.values()) * Fraction(repr(ratio)) / whole) < 1


@given(st.dictionaries(NAMES, st.integers(0, 10_000), min_size=1), st.floats(0.0001, 1))
def test_a_share_of_the_whole_is_kept_of_every_source_alike(there: dict[str, int], keep: float) -> None:
    taken = allocate_rows([SourceShare(name) for name in there], there, keep=keep)
    assert abs(sum(taken.values()) - keep * sum(there.values())) <= 0.5 + 1e-6
    assert all(taken[name] <= there[name] and abs(taken[name] - keep * there[name]) < 1.5 for name in there)


def test_counts_come_first_and_ratios_divide_the_rest() -> None:
    wanted = [SourceShare("a", count=100), SourceShare("b", ratio=1), SourceShare("c", ratio=2)]
    assert allocate_rows(wanted, {"a": 500, "b": 500, "c": 500}, rows=401) == {"a": 100, "b": 100, "c": 201}


def test_the_scarcest_source_decides_how_many_rows_the_ratios_give() -> None:
    wanted = [SourceShare("a", ratio=0.75), SourceShare("b", ratio=0.25)]
    assert allocate_rows(wanted, {"a": 30, "b": 1_000}) == {"a": 30, "b": 10}


def test_every_source_that_is_too_small_is_named_with_what_it_has() -> None:
    with pytest.raises(UsageError) as error:
        allocate_rows(
            [SourceShare("a", count=11), SourceShare("b", count=5), SourceShare("c", count=2_000)],
            {"a": 10, "b": 5, "c": 7},
        )
    assert [line.split(" (")[0] for line in str(error.value).splitlines()] == [
        "source a: 11 rows requested, 10 available",
        "source c: 2,000 rows requested, 7 available",
    ]


def test_fewer_rows_than_the_counts_ask_for_are_refused() -> None:
    with pytest.raises(UsageError, match="rows: 9 is less than the 10"):
        allocate_rows([SourceShare("a", count=10), SourceShare("b", ratio=1)], {"a": 10, "b": 10}, rows=9)
