"""The largest balanced subset: as many rows as can be kept while their features add up to about nothing.

Each row has a vector f of odd features (`evidence.py`). A share a in 0-1 of each row is chosen to

    maximise  sum(a worth) - strength / 2 * |sum(a f)|^2

which is the dual of a support vector machine without intercept: the classifier that it fits, w = strength * sum(a f),
is wrong or unsure about every row that stays whole (w.f < 1) and sure and right about every row that goes (w.f > 1).
So rows go exactly when the evidence that remains unbalanced speaks for them, and a row and its mirror image never
do. The strength sets the price of imbalance. Solved by projected gradient ascent with momentum and restarts
(Nesterov, 1983; O'Donoghue and Candes, 2015), sparse products of one thread only: same input, same bytes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pairwright.filters.blind_classifier import largest_eigenvalue
from pairwright.generators.language.vocabulary import FloatArray

if TYPE_CHECKING:
    from pairwright.filters.text_features import Differences

STEPS = 300
STILL = 1e-4


@dataclass(frozen=True, eq=False)
class Balancer:
    """Chooses shares of rows.

    Attributes:
        features: (n, d) odd features.
    """

    features: "Differences"

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
            climbed = np.clip(ahead + step * (worth - self.margins(ahead, weights) + own * ahead), 0.0, 1.0)
            moved = climbed - shares
            faster = (1.0 + np.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
            momentum = (pace - 1.0) / faster
            if np.sum((ahead - climbed) * moved) > 0:
                faster, momentum = 1.0, 0.0
            shares, ahead, pace = climbed, climbed + momentum * moved, faster
            if number > 20 and np.mean(np.abs(moved)) < STILL:
                break
        return shares

    def margins(self, shares: FloatArray, weights: FloatArray) -> FloatArray:
        """Return how clearly the classifier that these shares stand for is right about each row, float64 (n,)."""
        found: FloatArray = self.features @ (weights * (self._turned @ shares))
        return found
