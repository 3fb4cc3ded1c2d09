"""Algorithm 1, held against short restatements of it."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.filters.attacks.accuracy import compute_attack_accuracy
from pairwright.filters.refinement.reference.grid_balancing import assign_signed_bands, choose_grid_size
from pairwright.filters.refinement.reference.refine import RefineOptions, refine_scored_rows
from pairwright.filters.refinement.result import Refinement
from pairwright.generators.language.vocabulary import FloatArray

# Multiples of 1/16 fall on edges of cells, on zero and on both ends; they are exact, so edges are decided alike.
gap = st.one_of(st.integers(-16, 16).map(lambda number: number / 16), st.just(float("nan")))
rows = st.lists(st.tuples(gap, gap, st.sampled_from(["swap", "replace"])), max_size=80)


def balance_grid(
    gaps: FloatArray,
    ids: Sequence[str],
    *,
    cells: int | None = None,
    seed: int = 0,
    strata: Sequence[str] | None = None,
) -> Refinement:
    """Refine rows with two gaps each, float64 (n, 2), none of which has equal texts."""
    return refine_scored_rows(
        pl.Series(ids, dtype=pl.String),
        strata or [""] * len(ids),
        {"first": gaps[:, 0], "second": gaps[:, 1]},
        np.zeros(len(ids), np.bool_),
        RefineOptions(cells, by_type=strata is not None, seed=seed),
    )


def balanced(gaps: object, cells: int = 100, seed: int = 0, strata: list[str] | None = None) -> Refinement:
    array = np.asarray(gaps, dtype=np.float64).reshape(-1, 2)
    return balance_grid(array, [f"row-{number}" for number in range(len(array))], cells=cells, seed=seed, strata=strata)


def restated(points: list[tuple[float, float]], cells: int) -> int:
    """Return the number of rows that Algorithm 1 keeps, in exact arithmetic with dictionaries."""

    def band(value: float) -> int:
        first = Fraction(2, cells) if cells % 2 == 0 else Fraction(1, cells)
        edges = [first + Fraction(2 * number, cells) for number in range((cells - 1) // 2)]
        return int(np.sign(value)) * (1 + sum(abs(Fraction(value)) >= edge for edge in edges))

    size = Counter((band(a), band(b)) for a, b in points if not np.isnan([a, b]).any())
    return sum(count if cell == (0, 0) else min(count, size[-cell[0], -cell[1]]) for cell, count in size.items())


@settings(deadline=None)
@given(rows, st.sampled_from([2, 3, 4, 5, 7, 8, 16, 32, 33, 100, 101]), st.integers(0, 3))
def test_as_many_rows_are_kept_as_in_a_plain_implementation(
    given_rows: list[tuple[float, float, str]], cells: int, seed: int
) -> None:
    points = [(a, b) for a, b, _ in given_rows]
    assert balanced(points, cells, seed).kept.sum() == restated(points, cells)


@pytest.mark.parametrize("cells", [2, 10, 100])
def test_away_from_edges_the_cells_are_those_of_a_plain_grid(cells: int) -> None:
    """With no gap on an edge the rule is the paper's: K x K cells counted from the corner at -1, -1."""
    points = np.random.default_rng(7).normal(0.1, 0.3, (3000, 2)).clip(-0.999, 0.999)
    size = Counter(map(tuple, np.floor((points + 1) * cells / 2).astype(int).tolist()))
    expected = sum(min(count, size[cells - 1 - i, cells - 1 - j]) for (i, j), count in size.items())
    assert balanced(points, cells).kept.sum() == expected


@settings(deadline=None)
@given(rows, st.integers(2, 101))
def test_both_scorers_have_an_accuracy_of_exactly_one_half_on_the_kept_rows(
    given_rows: list[tuple[float, float, str]], cells: int
) -> None:
    points = np.array([(a, b) for a, b, _ in given_rows], dtype=np.float64).reshape(-1, 2)
    kept = points[balanced(points, cells).kept]
    assert [compute_attack_accuracy(kept[:, 0]), compute_attack_accuracy(kept[:, 1])] == [0.5, 0.5]


def test_without_a_number_of_cells_the_grid_follows_the_number_of_rows() -> None:
    assert [choose_grid_size(rows) for rows in (0, 1, 90, 300, 900, 2_305, 10_000, 1_000_000)] == [
        10,
        10,
        10,
        18,
        30,
        48,
        100,
        100,
    ]
    points = np.random.default_rng(3).normal(0.05, 0.1, (400, 2)).clip(-1, 1)
    default, finest = (balance_grid(points, [str(row) for row in range(400)], cells=cells) for cells in (None, 100))
    assert np.array_equal(default.kept, balance_grid(points, [str(row) for row in range(400)], cells=20).kept)
    assert default.kept.sum() > 1.4 * finest.kept.sum()


def test_each_stratum_has_the_grid_of_its_own_number_of_rows() -> None:
    points = np.random.default_rng(4).normal(0.05, 0.1, (1000, 2)).clip(-1, 1)
    names = np.array(["few"] * 100 + ["many"] * 900)
    ids = [str(row) for row in range(1000)]
    kept = balance_grid(points, ids, strata=names.tolist()).kept
    for name, cells in (("few", 10), ("many", 30)):
        alone = balance_grid(points[names == name], [ids[row] for row in np.flatnonzero(names == name)], cells=cells)
        assert kept[names == name].sum() == alone.kept.sum()


def test_on_the_grid_of_a_small_set_no_weighting_of_both_scores_detects_much() -> None:
    """Cells are coarse, so a weighted sum of both scores might detect something: the best of one half is tested on the other."""
    points = np.random.default_rng(5).normal((0.08, 0.05), (0.15, 0.12), (600, 2)).clip(-1, 1)
    angles = np.linspace(0, 2 * np.pi, 73)
    weights = np.array([np.cos(angles), np.sin(angles)])

    def found(gaps: FloatArray) -> float:
        shares = []
        for half in range(20):
            first = np.random.default_rng(half).random(len(gaps)) < 0.5
            best = int(np.argmax((gaps[first] @ weights > 0).mean(axis=0)))
            shares.append((gaps[~first] @ weights[:, best] > 0).mean())
        return float(np.mean(shares))

    assert found(points) > 0.65
    assert found(points[balance_grid(points, [str(row) for row in range(600)]).kept]) < 0.53


@settings(deadline=None)
@given(rows, st.integers(2, 9))
def test_within_strata_each_stratum_is_balanced_as_if_alone(
    given_rows: list[tuple[float, float, str]], cells: int
) -> None:
    points, types = [(a, b) for a, b, _ in given_rows], [name for _, _, name in given_rows]
    kept = balanced(points, cells, strata=types).kept
    for name in set(types):
        member = np.array(types) == name
        assert kept[member].sum() == restated([points[row] for row in np.flatnonzero(member)], cells)


@settings(deadline=None)
@given(rows, st.permutations(range(80)), st.integers(2, 9))
def test_the_same_rows_are_kept_in_whatever_order_they_come(
    given_rows: list[tuple[float, float, str]], shuffle: list[int], cells: int
) -> None:
    order = [number for number in shuffle if number < len(given_rows)]
    points = np.array([(a, b) for a, b, _ in given_rows], dtype=np.float64).reshape(-1, 2)
    ids = [f"row-{number}" for number in range(len(points))]
    straight = balance_grid(points, ids, cells=cells)
    shuffled = balance_grid(points[order], [ids[number] for number in order], cells=cells)
    assert [straight.kept[number] for number in order] == shuffled.kept.tolist()
    assert straight.ledger == shuffled.ledger


def test_another_seed_keeps_other_rows_but_as_many() -> None:
    points = np.random.default_rng(1).normal(0.1, 0.2, (2000, 2)).clip(-1, 1)
    one, other = balanced(points, 10, seed=1), balanced(points, 10, seed=2)
    assert one.kept.sum() == other.kept.sum()
    assert (one.kept != other.kept).any()
    assert (one.kept == balanced(points, 10, seed=1).kept).all()


@given(st.lists(st.floats(-1, 1), min_size=1), st.integers(2, 101))
def test_opposite_gaps_fall_into_mirrored_bands_and_none_outside(gaps: list[float], cells: int) -> None:
    bands = assign_signed_bands(np.array(gaps), cells)
    assert (assign_signed_bands(-np.array(gaps), cells) == -bands).all()
    assert (np.abs(bands) <= (cells + 1) // 2).all()
    assert ((bands == 0) == (np.array(gaps) == 0)).all()


def test_gaps_of_exactly_one_belong_to_the_outermost_cells() -> None:
    assert balanced([(1, 1), (-1, -1), (0.999, -1), (-0.995, 1)]).kept.all()


def test_of_two_mirrored_cells_the_smaller_is_kept_and_the_larger_sampled() -> None:
    kept = balanced([(0.5, 0.5)] * 7 + [(-0.5, -0.5)] * 3).kept
    assert kept[7:].all()
    assert kept[:7].sum() == 3


def test_a_row_with_one_zero_gap_is_balanced_on_the_other_axis_only() -> None:
    result = balanced([(0, 0.3), (0, -0.3), (0, 0.3), (0.3, 0), (0.1, -0.3)])
    assert result.kept.tolist()[1] is True
    assert result.kept.sum() == 2
    assert {step.rule: (step.rows, step.kept) for step in result.ledger} == {"one_zero": (4, 2), "grid": (1, 0)}


def test_a_row_with_two_zero_gaps_is_kept_and_one_without_a_score_is_not() -> None:
    result = balanced([(0, 0), (float("nan"), 0), (0.2, float("nan")), (-0.2, 0.1)])
    assert result.reasons == ("", "unscored", "unscored", "unbalanced_cell")


def test_the_middle_band_of_an_odd_grid_is_balanced_by_sign() -> None:
    """In a grid of three all rows are in the middle cell, which mirrors itself; it is split by sign."""
    assert balanced([(0.1, 0.1)] * 5 + [(-0.1, -0.1)] * 2 + [(0.1, -0.1)], cells=3).kept.sum() == 4


@settings(deadline=None)
@given(rows, st.integers(2, 9))
def test_the_ledger_adds_up_and_every_rejected_row_has_a_reason(
    given_rows: list[tuple[float, float, str]], cells: int
) -> None:
    points, types = [(a, b) for a, b, _ in given_rows], [name for _, _, name in given_rows]
    result = balanced(points, cells, strata=types)
    assert sum(step.rows for step in result.ledger) == len(points)
    assert sum(step.kept for step in result.ledger) == result.kept.sum()
    assert [not reason for reason in result.reasons] == result.kept.tolist()


@pytest.mark.parametrize(
    ("gaps", "ids", "cells", "complaint"),
    [
        ([[0.1, 1.5]], ["a"], 100, "outside"),
        ([[0.1, float("-inf")]], ["a"], 100, "outside"),
        ([[0.1, 0.1]] * 2, ["a", "a"], 100, "'a' occurs twice"),
        ([[0.1, 0.1]], ["a"], 1, "at least 2 cells"),
    ],
)
def test_invalid_gaps_ids_and_cells_are_errors(
    gaps: list[list[float]], ids: list[str], cells: int, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        balance_grid(np.array(gaps), ids, cells=cells)


def test_a_grid_of_far_more_cells_than_rows_balances_too() -> None:
    points = np.array([[0.3, 0.2], [-0.3, -0.2], [0.3, -0.2], [0.1, 0.2]])
    assert balance_grid(points, list("abcd"), cells=1_000_000).kept.tolist() == [True, True, False, False]
