"""Sample queries and their true nearest in a part: what a search's effort is tuned on, and recall is measured with.

The truth is found while the float32 vectors stream by into the index, before anything is rounded; so recall tells of the
storage's losses, too. 500 queries cost a vector about a hundredth of what its links cost.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.errors import StorageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.top_k import TopK

SAMPLE_QUERY_COUNT = 500  # queries
TRUE_NEIGHBOURS = 100  # true neighbours that are kept of each
_TIE_TOLERANCE = 1e-6  # scores nearer than this are the same: a sum in another order
_CHUNK = 4096  # vectors that are compared at a time: 8 MB of scores


@dataclass(frozen=True)
class GroundTruth:
    """Queries with their true nearest among the stored vectors of a part, or of several.

    Attributes:
        queries: unit rows, float32 (q, dim).
        scores: cosines, float32 (q, t), descending; minus infinity past the end of a small pool.
        numbers: of the vectors, int64 (q, t); -1 past the end.
    """

    queries: Vectors
    scores: NDArray[np.float32]
    numbers: NDArray[np.int64]

    def recall(self, numbers: NDArray[np.int64]) -> float:
        """Return the share of found ``numbers`` (q, k) that are among the true k nearest; of equal scores any will do.

        ``k`` is at most t and the number of vectors.
        """
        k = numbers.shape[1]
        right = np.where(self.scores >= self.scores[:, k - 1 : k] - _TIE_TOLERANCE, self.numbers, -2)
        return float((numbers[:, :, None] == right[:, None, :]).any(axis=2).mean())


class GroundTruthSearch:
    """Finds the truth about vectors that stream by."""

    def __init__(self, queries: Vectors, found: GroundTruth | None = None) -> None:
        """Begin with no vectors, or with those that ``found`` is the truth about."""
        self._queries = np.ascontiguousarray(queries, np.float32)
        self._best = TopK(len(queries), TRUE_NEIGHBOURS)
        if found is not None:
            self._best.offer(found.scores, found.numbers)

    def see(self, rows: Vectors, first: int) -> None:
        """Take float32 rows (n, dim), whose numbers begin with ``first``."""
        for start in range(0, len(rows), _CHUNK):
            with limit_blas_to_one_thread():  # these scores are written down
                scores = self._queries @ rows[start : start + _CHUNK].T
            kept = np.flatnonzero((scores >= self._best.scores[:, -1:]).any(axis=0))
            if len(kept):
                self._best.offer(scores[:, kept], first + start + kept)

    @property
    def truth(self) -> GroundTruth:
        """About all vectors so far."""
        return GroundTruth(self._queries, self._best.scores, self._best.numbers)


def merge_ground_truths(truths: list[tuple[GroundTruth, int]]) -> GroundTruth:
    """Return the truth about several parts, whose numbers begin with the given ones; their queries are the same."""
    queries = truths[0][0].queries
    best = TopK(len(queries), TRUE_NEIGHBOURS)
    for truth, first in truths:
        best.offer(truth.scores, np.where(truth.numbers < 0, -1, truth.numbers + first))
    return GroundTruth(queries, best.scores, best.numbers)


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """Write a truth to an ``.npz``, whole or not at all.

    Raises:
        StorageError: when the disk does not take it.
    """
    try:
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez(handle, queries=truth.queries, scores=truth.scores, numbers=truth.numbers)
    except OSError as error:
        raise StorageError(f"{path}: not written ({error.strerror}). Is the disk full?") from None


def read_ground_truth(path: Path) -> GroundTruth:
    """Read what `write_ground_truth` wrote.

    Raises:
        StorageError: when it is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return GroundTruth(stored["queries"], stored["scores"], stored["numbers"])
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise StorageError(f"{path}: damaged ({error}). Build the index again.") from None
