"""Sample queries of a part with their true nearest neighbours, for tuning the search effort and measuring recall.

The ground truth is computed from the float32 vectors as they are added, before quantisation, so recall includes the
loss of the storage. 500 queries take about a hundredth of the time that the links of a graph take.
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

SAMPLE_QUERY_COUNT = 500
TRUE_NEIGHBOURS = 100  # per query
_TIE_TOLERANCE = 1e-6  # scores closer than this are equal: sums in another order
_CHUNK = 4096  # vectors compared at a time: 8 MB of scores


@dataclass(frozen=True)
class GroundTruth:
    """Queries with their true nearest stored vectors in one or several parts.

    Attributes:
        queries: unit rows, float32 (q, dim).
        scores: cosines, float32 (q, t), descending; minus infinity past the end of a small pool.
        numbers: numbers of the vectors, int64 (q, t); -1 past the end.
    """

    queries: Vectors
    scores: NDArray[np.float32]
    numbers: NDArray[np.int64]

    def recall(self, numbers: NDArray[np.int64]) -> float:
        """Return recall@k of the results ``numbers``, (q, k), ties counting as found.

        ``k`` must be at most t and the number of vectors.
        """
        k = numbers.shape[1]
        true = np.where(self.scores >= self.scores[:, k - 1 : k] - _TIE_TOLERANCE, self.numbers, -2)
        return float((numbers[:, :, None] == true[:, None, :]).any(axis=2).mean())


class GroundTruthSearch:
    """Computes the ground truth of a stream of vectors."""

    def __init__(self, queries: Vectors, found: GroundTruth | None = None) -> None:
        """Start without vectors, or with those of the ground truth ``found``."""
        self._queries = np.ascontiguousarray(queries, np.float32)
        self._best = TopK(len(queries), TRUE_NEIGHBOURS)
        if found is not None:
            self._best.add(found.scores, found.numbers)

    def add(self, rows: Vectors, first: int) -> None:
        """Add float32 rows (n, dim), numbered from ``first``."""
        for start in range(0, len(rows), _CHUNK):
            with limit_blas_to_one_thread():  # the scores are stored: they must not depend on the number of threads
                scores = self._queries @ rows[start : start + _CHUNK].T
            kept = np.flatnonzero((scores >= self._best.scores[:, -1:]).any(axis=0))
            if len(kept):
                self._best.add(scores[:, kept], first + start + kept)

    @property
    def truth(self) -> GroundTruth:
        """Ground truth of all vectors so far."""
        return GroundTruth(self._queries, self._best.scores, self._best.numbers)


def merge_ground_truths(truths: list[tuple[GroundTruth, int]]) -> GroundTruth:
    """Merge the ground truths of parts with the same queries; each comes with the number of its first vector."""
    queries = truths[0][0].queries
    best = TopK(len(queries), TRUE_NEIGHBOURS)
    for truth, first in truths:
        best.add(truth.scores, np.where(truth.numbers < 0, -1, truth.numbers + first))
    return GroundTruth(queries, best.scores, best.numbers)


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """Write a ground truth to an ``.npz`` file atomically.

    Raises:
        StorageError: if it cannot be written.
    """
    try:
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez(handle, queries=truth.queries, scores=truth.scores, numbers=truth.numbers)
    except OSError as error:
        raise StorageError(f"{path}: not written ({error.strerror}). Is the disk full?") from None


def read_ground_truth(path: Path) -> GroundTruth:
    """Read a file that `write_ground_truth` wrote.

    Raises:
        StorageError: if it is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return GroundTruth(stored["queries"], stored["scores"], stored["numbers"])
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise StorageError(f"{path}: damaged ({error}). Build the index again.") from None
