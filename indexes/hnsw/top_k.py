"""The k best of many scores that come in parts: exact, and the same in whatever parts they come.

Equal scores are ordered by their numbers, the lower first; so a merge of parts gives what one look at all would give.
"""

import numpy as np
from numpy.typing import NDArray


class TopK:
    """Keeps the ``k`` best of what is offered to each of ``n`` queries.

    Attributes:
        scores: float32 (n, k), descending; minus infinity where nothing was offered.
        numbers: int64 (n, k); -1 where nothing was offered.
    """

    def __init__(self, n: int, k: int) -> None:
        """Begin with nothing."""
        self.scores = np.full((n, k), -np.inf, np.float32)
        self.numbers = np.full((n, k), -1, np.int64)

    def offer(self, scores: NDArray[np.float32], numbers: NDArray[np.int64], queries: slice = slice(None)) -> None:
        """Take candidates of ``queries``.

        Args:
            scores: (q, c); minus infinity for none.
            numbers: (q, c), or (c,) when they are the same for every query; each number is offered once.
            queries: which queries; all when not given.
        """
        k = self.scores.shape[1]
        numbers = np.broadcast_to(numbers, scores.shape)
        if scores.shape[1] > 2 * k:  # sort only what is not worse than the k-th, ties included
            kept = _top_k_columns(scores, k)
            scores = np.take_along_axis(scores, kept, 1)
            numbers = np.take_along_axis(numbers, kept, 1)
        scores = np.concatenate([self.scores[queries], scores], axis=1)
        numbers = np.concatenate([self.numbers[queries], numbers], axis=1)
        order = np.lexsort((numbers, -scores), axis=1)[:, :k]
        self.scores[queries] = np.take_along_axis(scores, order, 1)
        self.numbers[queries] = np.where(np.isneginf(self.scores[queries]), -1, np.take_along_axis(numbers, order, 1))


def _top_k_columns(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return columns (q, c') in their order that hold every score that ties with the k-th best or beats it."""
    bar = -np.partition(-scores, k - 1, axis=1)[:, k - 1 : k]
    within = scores >= bar
    most = int(within.sum(axis=1).max())
    return np.sort(np.argsort(~within, axis=1, kind="stable")[:, :most], axis=1)
