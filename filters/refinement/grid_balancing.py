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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_numpy_rng
from pairwright.generators.language.vocabulary import FloatArray, IntArray, encode_names

Reason = Literal["", "unscored", "unbalanced_cell"]
REASONS: tuple[Reason, ...] = ("", "unscored", "unbalanced_cell")
STEPS = ("unscored", "both_zero", "one_zero", "grid")
_MIN_CELLS, _MAX_CELLS = 10, 100  # cells per axis of a grid whose size depends on the number of rows


@dataclass(frozen=True, slots=True)
class BalancingStep:
    """Numbers of rows under one rule in one stratum, and of those kept."""

    rule: str
    stratum: str
    rows: int
    kept: int


@dataclass(frozen=True, eq=False)
class Balance:
    """Result of `balance_grid`, in the order of the rows.

    Attributes:
        kept: bool (n,).
        reasons: reason of each row, empty for kept rows.
        ledger: one step per rule and stratum with rows; its rows add up to n, its kept rows to all kept rows.
    """

    kept: npt.NDArray[np.bool_]
    reasons: tuple[Reason, ...]
    ledger: tuple[BalancingStep, ...]


def balance_grid(
    gaps: FloatArray,
    ids: Sequence[str] | pl.Series,
    *,
    strata: Sequence[str] | None = None,
    cells: int | None = None,
    seed: int = 0,
) -> Balance:
    """Return the subset of rows whose two gaps are symmetric about the origin.

    Args:
        gaps: float64 (n, 2), in -1..1 or NaN.
        ids: unique id of each row; the sample depends on them and not on the order of the rows.
        strata: rows with equal values are balanced together; without, all rows (the paper's rule).
        cells: K, cells along each axis, at least 2; None for `choose_grid_size` of each stratum.
        seed: of the sample; it changes which rows are kept, never how many.

    Raises:
        UsageError: sizes differ, ids repeat, K is below 2 or a gap is outside -1..1.
    """
    order = _check_and_sort(gaps, ids, strata, cells)
    names, stratum = encode_names(strata if strata is not None else [""] * len(ids))
    ordered, stratum_of = gaps[order], stratum[order]
    scored: npt.NDArray[np.bool_] = np.logical_not(np.isnan(ordered).any(axis=1))
    sizes = np.bincount(stratum_of, weights=scored, minlength=len(names))
    along = np.array([cells or choose_grid_size(int(size)) for size in sizes], np.int64)[stratum_of][:, None]
    bands = assign_signed_bands(np.where(scored[:, None], ordered, 0.0), along)
    rank_of = make_numpy_rng(seed, "balance").permutation(len(order))
    keep = scored & _balance_cells(bands, stratum_of, rank_of)
    rule = np.where(scored, 1 + np.count_nonzero(bands, axis=1), 0)
    kept = np.zeros(len(order), np.bool_)
    kept[order] = keep
    code = np.zeros(len(order), np.int64)
    code[order] = np.where(keep, 0, np.where(scored, 2, 1))
    return Balance(
        kept, tuple(REASONS[number] for number in code.tolist()), _build_ledger(rule, stratum_of, keep, names)
    )


def choose_grid_size(rows: int) -> int:
    """Return K for ``rows`` rows: the even number nearest the square root, at least 10 and at most 100.

    With 10 or more cells per axis, weighted sums of both scores stay within 1 to 5 points of chance level; the paper's
    100 is reached at 10,000 rows.
    """
    return min(max(2 * round(math.sqrt(rows) / 2), _MIN_CELLS), _MAX_CELLS)


def assign_signed_bands(gaps: FloatArray, cells: int | IntArray) -> IntArray:
    """Return the band of each gap on its axis: 1, 2, ... away from zero, negative for negative gaps, 0 for 0.

    Args:
        gaps: any shape, in -1..1, no NaN.
        cells: K, the number of equal bands between -1 and 1 (for odd K the middle one counts as two halves); one for
            all gaps, or an array that broadcasts against them.

    Returns:
        int64, the same shape; ``assign_signed_bands(-gaps)`` is ``-signed_band(gaps)``.
    """
    half = cells / 2
    outermost = (cells + 1) // 2
    distance = np.floor(np.abs(gaps) * half + (cells % 2) / 2).astype(np.int64) + 1
    return np.sign(gaps).astype(np.int64) * np.minimum(distance, outermost)


def _check_and_sort(
    gaps: FloatArray, ids: Sequence[str] | pl.Series, strata: Sequence[str] | None, cells: int | None
) -> IntArray:
    if gaps.shape != (len(ids), 2) or (strata is not None and len(strata) != len(ids)):
        raise UsageError(f"{len(ids)} rows need as many pairs of gaps and strata; got gaps of shape {gaps.shape}")
    if cells is not None and cells < 2:
        raise UsageError(f"a grid needs at least 2 cells per axis, not {cells}")
    if (np.abs(gaps) > 1).any():
        raise UsageError("a score gap is outside -1..1: a scorer returned scores outside 0..1")
    names = pl.Series("id", ids, pl.String)
    order = names.arg_sort().to_numpy().astype(np.int64)
    ordered = names.gather(order)
    twice = ordered.filter(ordered == ordered.shift(1))
    if len(twice):
        raise UsageError(f"row id {twice[0]!r} occurs twice; ids must be unique")
    return order


def _balance_cells(bands: IntArray, stratum: IntArray, rank_of: IntArray) -> npt.NDArray[np.bool_]:
    # Mirrored cells have codes c and -c, as the bands are signed; a pair of them is (stratum, |c|).
    width = 2 * int(np.abs(bands).max(initial=0)) + 1
    code = bands[:, 0] * width + bands[:, 1]
    pair = stratum * width * width + np.abs(code)
    side = code > 0
    order = np.lexsort((rank_of, side, pair))
    cell = 2 * pair[order] + side[order]
    distinct, start, size = np.unique(cell, return_index=True, return_counts=True)
    mirror = np.searchsorted(distinct, distinct ^ 1)
    mirror = np.minimum(mirror, max(len(distinct) - 1, 0))
    opposite = np.where(distinct[mirror] == distinct ^ 1, size[mirror], 0)
    rank = np.arange(len(order)) - np.repeat(start, size)
    keep = np.zeros(len(order), np.bool_)
    keep[order] = rank < np.repeat(np.minimum(size, opposite), size)
    keep[code == 0] = True
    return keep


def _build_ledger(
    rule: IntArray, stratum: IntArray, keep: npt.NDArray[np.bool_], names: Sequence[str]
) -> tuple[BalancingStep, ...]:
    cell = stratum * len(STEPS) + rule
    size = len(names) * len(STEPS)
    rows, kept = np.bincount(cell, minlength=size), np.bincount(cell[keep], minlength=size)
    return tuple(
        BalancingStep(STEPS[number % len(STEPS)], names[number // len(STEPS)], int(rows[number]), int(kept[number]))
        for number in np.flatnonzero(rows).tolist()
    )


def build_reason_ledger(reasons: Sequence[str], types: Sequence[str]) -> tuple[BalancingStep, ...]:
    """Return one step per type and reason, with ``kept`` as the rule of kept rows."""
    counts = Counter(zip(types, reasons, strict=True))
    return tuple(
        BalancingStep(reason or "kept", kind, number, 0 if reason else number)
        for (kind, reason), number in sorted(counts.items())
    )
