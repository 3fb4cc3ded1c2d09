"""The largest balanced subset: as many rows as can be kept while their features add up to about nothing.

Each row has a vector f of odd features (`evidence.py`). A share a in 0-1 of each row is chosen to

    maximise  sum(a worth) - strength / 2 * |sum(a f)|^2

which is the dual of a support vector machine without intercept: the classifier that it fits, w = strength * sum(a f),
is wrong or unsure about every row that stays whole (w.f < 1) and sure and right about every row that goes (w.f > 1).
So rows go exactly when the evidence that remains unbalanced speaks for them, and a row and its mirror image never
do. The strength sets the price of imbalance. Of rows that offer one place several candidates (*slots*), one at most is
kept: their shares add up to one at most. Solved by projected gradient ascent with momentum and restarts
(Nesterov, 1983; O'Donoghue and Candes, 2015), sparse products of one thread only: same input, same bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pairwright.filters.attacks.text_classifier import largest_eigenvalue
from pairwright.generators.language.vocabulary import FloatArray, IntArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

STEPS = 300
TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class SubsetBalancer:
    """Chooses shares of rows.

    Attributes:
        features: (n, d) odd features.
        slots: int64 (n,), equal for candidates for one place, from 0 up; None: each row has its own.
    """

    features: "Differences"
    slots: IntArray | None = None

    @cached_property
    def _turned(self) -> "Differences":
        return self.features.T  # another view of the same numbers

    @cached_property
    def _squares(self) -> "Differences":
        from scipy.sparse import csr_matrix

        of = self.features
        return csr_matrix((of.data**2, of.indices, of.indptr), shape=of.shape)

    def shares(self, weights: FloatArray, worth: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Return the share of each row, float64 (n,) in 0-1; a row is kept when it is above a half.

        Args:
            weights: float64 (d,), the strength with which imbalance of each feature counts.
            worth: float64 (n,), about 1, what keeping each row is worth: it decides between rows of equal evidence.
            start: shares to begin from.
        """
        rows = self.features.shape[0]
        step = 1.0 / (largest_eigenvalue(self.features, self._turned, weights) + 1e-12)
        own = self._squares @ weights
        shares = np.full(rows, 0.5) if start is None else start
        ahead, pace = shares, 1.0
        for number in range(STEPS):
            climbed = _limit_slots(ahead + step * (worth - self.margins(ahead, weights) + own * ahead), self.slots)
            moved = climbed - shares
            faster = (1.0 + np.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
            momentum = (pace - 1.0) / faster
            if np.sum((ahead - climbed) * moved) > 0:
                faster, momentum = 1.0, 0.0
            shares, ahead, pace = climbed, climbed + momentum * moved, faster
            if number > 20 and np.mean(np.abs(moved)) < TOLERANCE:
                break
        return shares

    def whole(self, shares: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which rows are kept, bool (n,): those of more than a half; of a slot whose shares are more, the largest."""
        if self.slots is None:
            return np.asarray(shares > 0.5)
        order = np.lexsort((-shares, self.slots))
        first = order[np.diff(self.slots[order], prepend=-1) > 0]
        kept = np.zeros(len(shares), np.bool_)
        kept[first] = np.bincount(self.slots, weights=shares)[self.slots[first]] > 0.5
        return kept

    def margins(self, shares: FloatArray, weights: FloatArray) -> FloatArray:
        """Return how clearly the classifier that these shares stand for is right about each row, float64 (n,)."""
        found: FloatArray = self.features @ (weights * (self._turned @ shares))
        return found


def _limit_slots(shares: FloatArray, slots: IntArray | None) -> FloatArray:
    # The nearest shares in 0-1 of which those of a slot add up to one at most (Duchi and others, 2008).
    nearest: FloatArray = np.clip(shares, 0.0, 1.0)
    if slots is None:
        return nearest
    rows = np.flatnonzero((np.bincount(slots, weights=nearest) > 1.0)[slots])
    if not len(rows):
        return nearest
    order = rows[np.lexsort((-shares[rows], slots[rows]))]
    values = shares[order]
    starts = np.flatnonzero(np.diff(slots[order], prepend=-1))
    size = np.diff(starts, append=len(order))
    summed = np.cumsum(values)
    summed -= np.repeat(summed[starts] - values[starts], size)
    lower = (summed - 1.0) / (1.0 + np.arange(len(order)) - np.repeat(starts, size))
    last = starts + np.add.reduceat((values > lower).astype(np.int64), starts) - 1
    nearest[order] = np.clip(values - np.repeat(lower[last], size), 0.0, 1.0)
    return nearest


def max_balanced_rows(gaps: Mapping[str, FloatArray], target: float) -> int:
    """Return the upper bound on rows kept.

    Args:
        gaps: of each fixed scorer, float64 (n,), NaN for no score; all of one length.
        target: folded accuracy that none may exceed, 0.5-1.
    """
    if not gaps:
        raise ValueError("a bound needs at least one scorer")
    signs = np.stack([np.sign(np.nan_to_num(gap)) for gap in gaps.values()], axis=1)
    if not len(signs):
        return 0
    from scipy.optimize import linprog

    classes, size = np.unique(signs, axis=0, return_counts=True)
    slack = 2.0 * target - 1.0
    limits = np.concatenate([classes.T - slack, -classes.T - slack])
    solved = linprog(-np.ones(len(size)), limits, np.zeros(len(limits)), bounds=[(0, most) for most in size.tolist()])
    return int(np.floor(-solved.fun + 1e-6))
