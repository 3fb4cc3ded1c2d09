"""The largest balanced subset: as many rows as possible while their features add up to about zero; and its upper bound.

Each row has a vector f of odd features (`evidence.py`). A share a in 0-1 of each row is chosen to

    maximise  sum(a worth) - strength / 2 * |sum(a f)|^2

which is the dual of a support vector machine without intercept: the classifier that it fits, w = strength * sum(a f),
is wrong or uncertain about every row that is kept (w.f < 1) and right with confidence about every row that is dropped
(w.f > 1). So rows are dropped exactly when the remaining imbalance favours them. The strength is the penalty on
imbalance. Of several candidates for one place (*slots*) at most one is kept: their shares add up to at most one. Solved
by projected gradient ascent with momentum and restarts (Nesterov, 1983; O'Donoghue and Candes, 2015), with sparse
products on one thread: same input, same bytes. The sum of what a row is to be balanced with leaves the row itself out,
so there are many local maxima, and a share that starts at 0 or 1 tends to stay there: all start from one half.

Upper bound: a fixed scorer prefers the same text of a row whatever else is kept. So rows fall into classes by what all
scorers prefer (positive, negative, neither), and the maximum number of rows on which no scorer prefers the positive in
more than ``target`` or fewer than 1 - ``target`` is a linear programme over the classes. Its value bounds every subset;
classifiers, which are trained on the kept rows, can only lower it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pairwright.filters.attacks.text_classifier import estimate_largest_eigenvalue
from pairwright.generators.language.vocabulary import FloatArray, IntArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

STEPS = 300
TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class SubsetBalancer:
    """Chooses a share of each row.

    Attributes:
        features: (n, d) odd features.
        slots: int64 (n,), equal for candidates for one place, from 0 up; None: each row has its own.
    """

    features: "Differences"
    slots: IntArray | None = None

    @cached_property
    def _transposed(self) -> "Differences":
        return self.features.T  # a view

    @cached_property
    def squares(self) -> "Differences":
        """The squared features, (n, d)."""
        from scipy.sparse import csr_matrix

        of = self.features
        return csr_matrix((of.data**2, of.indices, of.indptr), shape=of.shape)

    def shares(self, weights: FloatArray, worth: FloatArray) -> FloatArray:
        """Return the share of each row, float64 (n,) in 0-1; a row with more than 0.5 is kept.

        Args:
            weights: float64 (d,), penalty on the imbalance of each feature.
            worth: float64 (n,), about 1, value of keeping each row: decides between rows of equal evidence.
        """
        rows = self.features.shape[0]
        step = 1.0 / (estimate_largest_eigenvalue(self.features, self._transposed, weights) + 1e-12)
        own = self.squares @ weights
        shares = np.full(rows, 0.5)
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
        """Return which rows are kept, bool (n,): those above 0.5; of a slot above 0.5, the largest."""
        if self.slots is None:
            return np.asarray(shares > 0.5)
        order = np.lexsort((-shares, self.slots))
        first = order[np.diff(self.slots[order], prepend=-1) > 0]
        kept = np.zeros(len(shares), np.bool_)
        kept[first] = np.bincount(self.slots, weights=shares)[self.slots[first]] > 0.5
        return kept

    def margins(self, shares: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the margin of each row under the classifier that these shares define, float64 (n,)."""
        found: FloatArray = self.features @ (weights * (self._transposed @ shares))
        return found


def _limit_slots(shares: FloatArray, slots: IntArray | None) -> FloatArray:
    # The nearest shares in 0-1 that add up to at most one in each slot (Duchi and others, 2008).
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


def bound_balanced_rows(gaps: Mapping[str, FloatArray], target: float) -> int:
    """Return the upper bound on the number of kept rows.

    Args:
        gaps: of each fixed scorer, float64 (n,), NaN without a score; all of one length, at least one scorer.
        target: folded accuracy that no scorer may exceed, 0.5-1.
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
    solved = linprog(-np.ones(len(size)), limits, np.zeros(len(limits)), bounds=[(0, rows) for rows in size.tolist()])
    return int(np.floor(-solved.fun + 1e-6))
