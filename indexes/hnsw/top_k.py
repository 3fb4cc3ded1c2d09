"""Streaming top-k of scores.

Equal scores are ordered by their numbers, the lower first, so the result does not depend on how candidates are batched.
"""

import numpy as np
from numpy.typing import NDArray


class TopK:
    """The ``k`` best candidates of each of ``n`` queries.

    Attributes:
        scores: float32 (n, k), descending; minus infinity in empty places.
        numbers: int64 (n, k); -1 in empty places.
    """

    def __init__(self, n: int, k: int) -> None:
        """Start without candidates."""
        self.scores = np.full((n, k), -np.inf, np.float32)
        self.numbers = np.full((n, k), -1, np.int64)

    def add(self, scores: NDArray[np.float32], numbers: NDArray[np.int64], queries: slice = slice(None)) -> None:
        """Add candidates.

        Args:
            scores: (q, c); minus infinity for none.
            numbers: (q, c), or (c,) if they are the same for every query; each number must be added once.
            queries: rows of the queries; all by default.
        """
        k = self.scores.shape[1]
        numbers = np.broadcast_to(numbers, scores.shape)
        if scores.shape[1] > 2 * k:  # sort only the k best and their ties
            kept = _top_k_columns(scores, k)
            scores = np.take_along_axis(scores, kept, 1)
            numbers = np.take_along_axis(numbers, kept, 1)
        scores = np.concatenate([self.scores[queries], scores], axis=1)
        numbers = np.concatenate([self.numbers[queries], numbers], axis=1)
        order = np.lexsort((numbers, -scores), axis=1)[:, :k]
        self.scores[queries] = np.take_along_axis(scores, order, 1)
        self.numbers[queries] = np.where(np.isneginf(self.scores[queries]), -1, np.take_along_axis(numbers, order, 1))


def _top_k_columns(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return ascending columns (q, c') that include every score of at least the k-th best."""
    kth = -np.partition(-scores, k - 1, axis=1)[:, k - 1 : k]
    within = scores >= kth
    most = int(within.sum(axis=1).max())
    return np.sort(np.argsort(~within, axis=1, kind="stable")[:, :most], axis=1)
