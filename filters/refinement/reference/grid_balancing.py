"""Algorithm 1 of SugarCrepe: a subset of rows whose two score gaps are symmetric about the origin.

After Hsieh et al. (2023), section 4.4.1. Each row has two gaps in -1..1, a point in a square of K x K equal cells. Of
two cells that mirror each other through the origin the same number of rows is kept: all of the cell with fewer rows, a
random sample of the other. Then neither scorer, nor any rule that treats the two cells of a pair alike, is above chance
level.

The paper leaves these cases open. With the rules below, mirrored gaps always fall into mirrored cells, so the accuracy
of both scorers on the kept rows is exactly one half:

- Edges: cells are half-open away from zero, [a, b) for positive gaps and (-b, -a] for negative ones; gaps of 1
  and -1 belong to the outermost cells.
- K is given, or depends on the number of scored rows of a stratum: the even number nearest its square root, 10 to 100
  (`choose_grid_size`). On a finer grid most rows of a small set have no row in the mirrored cell.
- Odd K: the middle band of an axis is split at zero, as a cell that mirrors itself would balance nothing.
- One gap of exactly 0: the row is balanced on the other axis only, K cells in one dimension.
- Both gaps 0: kept; neither scorer has a preference.
- A gap that is NaN: rejected as ``unscored``. All other rejected rows are ``unbalanced_cell``.

Rows can be balanced within strata (edit types), as a set that is balanced in total can be unbalanced in each type.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import hash_to_int
from pairwright.filters.refinement.result import BalancingStep
from pairwright.filters.refinement.rows import Hashes
from pairwright.generators.language.vocabulary import FloatArray, IntArray, lookup_sorted

Bands = npt.NDArray[np.int32]

REASONS = ("", "unscored", "unbalanced_cell")
STEPS = ("unscored", "both_zero", "one_zero", "grid")
CELL_BITS = 40
_LAST_64_BITS = 2**64 - 1
_MIN_CELLS, _MAX_CELLS = 10, 100  # cells per axis of a grid whose size depends on the number of rows


class Balance(NamedTuple):
    """Result of `balance_strata`.

    Attributes:
        codes: uint8 (n,), the place of the reason of each row in ``REASONS``; 0 for kept rows.
        ledger: one step per rule and stratum with rows; its rows add up to n, its kept rows to all kept rows.
    """

    codes: npt.NDArray[np.uint8]
    ledger: tuple[BalancingStep, ...]


def balance_strata(  # noqa: PLR0913 - the rows, the grid and the sample
    gaps: tuple[FloatArray, FloatArray],
    hashes: Hashes,
    names: Sequence[str],
    stratum: npt.NDArray[np.integer[Any]],
    *,
    cells: int | None,
    seed: int,
) -> Balance:
    """Return the rows of each stratum whose two gaps are symmetric about the origin, one stratum after another.

    Beside its arguments it takes some 50 bytes for each row of the largest stratum.

    Args:
        gaps: two of float64 (n,), in -1..1 or NaN.
        hashes: of the ids of the rows (`hash_ids`), all different; the sample depends on them and not on the order.
        names: of the strata.
        stratum: int (n,), the place of each row's stratum among ``names``; rows of none, -1, get code 0.
        cells: K, cells along each axis, at least 2; None for `choose_grid_size` of each stratum.
        seed: of the sample; it changes which rows are kept, never how many.

    Raises:
        UsageError: K is below 2 or a gap is outside -1..1.
    """
    if cells is not None and cells < 2:
        raise UsageError(f"a grid needs at least 2 cells per axis, not {cells}")
    codes = np.zeros(len(hashes), np.uint8)
    ledger: list[BalancingStep] = []
    for number, name in enumerate(names):
        rows = np.flatnonzero(stratum == number)
        own = [gap[rows] for gap in gaps]
        if any((np.abs(gap) > 1).any() for gap in own):
            raise UsageError("a score gap is outside -1..1: a scorer returned scores outside 0..1")
        scored = np.logical_not(np.isnan(own[0]) | np.isnan(own[1]))
        placed = place_in_cells((own[0], own[1]), cells or choose_grid_size(int(scored.sum())))
        keep = scored & _balance_cells(placed.cells, draw_order(hashes[rows], seed))
        codes[rows] = np.where(keep, 0, np.where(scored, 2, 1))
        ledger += _build_ledger(placed.rule, keep, name)
    return Balance(codes, tuple(ledger))


class PlacedRows(NamedTuple):
    """Rows in the grid of their stratum.

    Attributes:
        rule: int64 (n,), the place of the rule of each row in ``STEPS``.
        cells: int64 (n,), the number of the cell of each row, below ``1 << CELL_BITS``. That of the mirrored cell differs
            in the last bit. 0: both gaps are 0, or one is NaN.
    """

    rule: IntArray
    cells: IntArray


def place_in_cells(gaps: tuple[FloatArray, FloatArray], along: int) -> PlacedRows:
    """Place rows with two gaps each, float64 (n,), in a grid of ``along`` cells per axis."""
    scored = np.logical_not(np.isnan(gaps[0]) | np.isnan(gaps[1]))
    first, second = (assign_signed_bands(np.where(scored, gap, 0.0), along).astype(np.int64) for gap in gaps)
    code = first * (2 * ((along + 1) // 2) + 1) + second
    return PlacedRows(np.where(scored, 1 + (first != 0) + (second != 0), 0), 2 * np.abs(code) + (code > 0))


def choose_grid_size(rows: int) -> int:
    """Return K for ``rows`` rows: the even number nearest the square root, at least 10 and at most 100.

    With 10 or more cells per axis, weighted sums of both scores stay within 1 to 5 points of chance level; the paper's
    100 is reached at 10,000 rows.
    """
    return min(max(2 * round(math.sqrt(rows) / 2), _MIN_CELLS), _MAX_CELLS)


def assign_signed_bands(gaps: FloatArray, cells: int) -> Bands:
    """Return the band of each gap on its axis: 1, 2, ... away from zero, negative for negative gaps, 0 for 0.

    Args:
        gaps: any shape, in -1..1, no NaN.
        cells: K, the number of equal bands between -1 and 1 (for odd K the middle one counts as two halves).

    Returns:
        int32, the same shape; ``assign_signed_bands(-gaps)`` is ``-assign_signed_bands(gaps)``.
    """
    half = cells / 2
    outermost = (cells + 1) // 2
    distance = np.floor(np.abs(gaps) * half + (cells % 2) / 2).astype(np.int32) + 1
    return np.sign(gaps).astype(np.int32) * np.minimum(distance, np.int32(outermost))


def draw_order(hashes: Hashes, seed: int) -> Hashes:
    """Return a random number for each row, uint64 (n,), a function of the hash of its id and of the seed (SplitMix64)."""
    mixed = hashes + np.uint64(hash_to_int(seed, "balance") & _LAST_64_BITS)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _balance_cells(cell: IntArray, drawn: Hashes) -> npt.NDArray[np.bool_]:
    order = np.lexsort((drawn, cell))
    distinct, start, size = np.unique(cell[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(start, size)
    keep = np.zeros(len(order), np.bool_)
    keep[order] = rank < np.repeat(limit_cells(distinct, size), size)
    return keep


def limit_cells(cells: IntArray, sizes: IntArray) -> IntArray:
    """Return how many rows of each cell are kept.

    Args:
        cells: int64 (k,), ascending numbers of all cells with rows, as of `PlacedRows`; higher bits name a stratum.
        sizes: int64 (k,), rows of each cell.
    """
    opposite = lookup_sorted(cells, sizes, cells ^ 1, 0)
    return np.where(cells & ((1 << CELL_BITS) - 1) == 0, sizes, np.minimum(sizes, opposite))


def _build_ledger(rule: npt.NDArray[np.integer[Any]], keep: npt.NDArray[np.bool_], stratum: str) -> list[BalancingStep]:
    rows, kept = np.bincount(rule, minlength=len(STEPS)), np.bincount(rule[keep], minlength=len(STEPS))
    return [
        BalancingStep(STEPS[number], stratum, int(rows[number]), int(kept[number]))
        for number in np.flatnonzero(rows).tolist()
    ]
