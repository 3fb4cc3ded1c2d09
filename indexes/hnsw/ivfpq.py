"""Past memory: product-quantised codes in inverted lists (Jegou et al. 2011), rescored from rows on disk.

In memory a vector is a code (a byte for eight dimensions) and its number; beside it on disk lies the row itself in half
precision. A search looks into the `effort` (nprobe) lists nearest to the query, takes the best `RESCORED_CANDIDATES` (at least 4 k)
by their codes, and orders them by their true cosines, read from disk: 200 rows of 1 KB a query at 512 dimensions.

FAISS's own trainer (k-means on the sphere, its fixed seed) gets one sample and gives the same bytes for any number of
threads, as adding does (measured with FAISS 1.15.1: 1 to 4 threads). The metric is the inner product throughout.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError, StorageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_files import read_faiss, write_faiss
from pairwright.indexes.hnsw.float16_rows import Float16Rows, extend_float16_rows, new_float16_rows, open_float16_rows
from pairwright.indexes.hnsw.graph import SearchResult
from pairwright.indexes.hnsw.metadata import FLOAT16_ROWS_FILE, VECTORS_FILE, IndexKind, VectorStorage
from pairwright.indexes.hnsw.top_k import TopK

RESCORED_CANDIDATES = 200
DEFAULT_NPROBE = 32
_MAX_LISTS = 8192
_TRAINING_ROWS_PER_LIST = 40  # to train on: FAISS asks for 39 or more
_DIMENSIONS_PER_CODE = 8  # dimensions that share a byte of the code
_CHUNK = 65_536  # rows that are read at a time to compare with all
_QUERIES = 64  # that are rescored at a time: 26 MB of rows at 512 dimensions


class RescoredStore:
    """Codes in lists and rows on disk; numbers count vectors from 0. See `storage.StoredIndex`."""

    kind: IndexKind = "ivfpq"
    storage: VectorStorage = "ivfpq"

    def __init__(self, faiss_index: Any, raw: Float16Rows, directory: Path) -> None:
        """Take a FAISS index, the rows, and the folder that they are written to."""
        self.faiss_index = faiss_index
        self._raw = raw
        self._directory = directory

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._raw.dim

    @property
    def vectors(self) -> int:
        """How many are stored."""
        return int(self.faiss_index.ntotal)

    @property
    def efforts(self) -> tuple[int, ...]:
        """Steps of nprobe to tune on: powers of two up to all lists."""
        return tuple(2**step for step in range(int(self.faiss_index.nlist).bit_length()))

    def add(self, rows: Vectors) -> None:
        """Store float32 rows (n, dim): codes in memory, the rows on disk."""
        self._raw.append(rows)
        self.faiss_index.add(_pad_dimensions(rows))

    def search(self, vectors: Vectors, k: int, effort: int = 0) -> SearchResult:
        """Return scores and numbers, (n, k) each; ``effort`` is nprobe, 0 for a middling one."""
        import faiss

        parameters = faiss.SearchParametersIVF()
        parameters.nprobe = effort or DEFAULT_NPROBE
        candidates = min(max(RESCORED_CANDIDATES, 4 * k), self.vectors)
        _, numbers = self.faiss_index.search(_pad_dimensions(vectors), candidates, params=parameters)
        best = TopK(len(vectors), k)
        for start in range(0, len(vectors), _QUERIES):
            part = slice(start, start + _QUERIES)
            numbers[part].sort(axis=1)  # reads the disk in order, and the lower number wins a tie
            rows = self._raw.rows(np.maximum(numbers[part], 0))
            scores = np.matmul(rows, vectors[part, :, None])[:, :, 0]
            scores[numbers[part] < 0] = -np.inf
            best.offer(scores, numbers[part], part)
        return np.clip(best.scores, -1, 1, where=best.numbers >= 0, out=best.scores), best.numbers

    def exact(self, vectors: Vectors, k: int) -> SearchResult:
        """Return the same by comparing with every row on disk."""
        best = TopK(len(vectors), k)
        for start in range(0, self._raw.count, _CHUNK):
            rows = self._raw.rows(slice(start, start + _CHUNK))
            best.offer(vectors @ rows.T, np.arange(start, start + len(rows)))
        return np.clip(best.scores, -1, 1, where=best.numbers >= 0, out=best.scores), best.numbers

    def stored(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return stored vectors as they are read back, float32 (n, dim)."""
        return self._raw.rows(numbers)

    def as_stored(self, rows: Vectors) -> Vectors:
        """Return ``rows`` as they would be read back once stored."""
        return np.asarray(rows, np.float16).astype(np.float32)

    def write(self) -> list[str]:
        """Write the files, and return their names."""
        write_faiss(self._directory / VECTORS_FILE, self.faiss_index)
        return [VECTORS_FILE, self._raw.finish()]


def new_rescored_store(dim: int, count: int, sample: Vectors, directory: Path) -> RescoredStore:
    """Return an index trained on ``sample``, float32 (s, dim), for about ``count`` vectors.

    Raises:
        InputError: when the sample is too small to train on.
    """
    import faiss

    lists = list_count(count)
    if len(sample) < max(lists, 256):
        raise InputError(
            f"{len(sample)} vectors to train {lists} lists and codes on",
            where="index",
            fix="ivfpq needs 256 vectors or more; choose another storage.",
        )
    width = -(-dim // _DIMENSIONS_PER_CODE) * _DIMENSIONS_PER_CODE
    quantiser = faiss.IndexFlatIP(width)
    index = faiss.IndexIVFPQ(quantiser, width, lists, width // _DIMENSIONS_PER_CODE, 8, faiss.METRIC_INNER_PRODUCT)
    for clustering in (index.cp, index.pq.cp):
        clustering.min_points_per_centroid = 1  # else FAISS prints a warning for small pools
    index.train(_pad_dimensions(sample))
    return RescoredStore(index, new_float16_rows(directory / FLOAT16_ROWS_FILE, dim), directory)


def open_rescored_store(directory: Path, *, into: Path | None = None) -> RescoredStore:
    """Open by memory map; or in memory, when it shall be added to and be written to the folder ``into``.

    Raises:
        StorageError: when a file is missing, torn, or does not fit the other.
    """
    import faiss

    index = read_faiss(directory / VECTORS_FILE, mapped=into is None)
    if not isinstance(index, faiss.IndexIVFPQ) or index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise StorageError(f"{directory / VECTORS_FILE}: not an inner-product index of kind ivfpq. Build it again.")
    if into is None:
        return RescoredStore(index, open_float16_rows(directory / FLOAT16_ROWS_FILE, index.ntotal), directory)
    return RescoredStore(
        index, extend_float16_rows(directory / FLOAT16_ROWS_FILE, into / FLOAT16_ROWS_FILE, index.ntotal), into
    )


def list_count(count: int) -> int:
    """Return how many lists: the power of two next below 4 times the root of ``count``, with 40 vectors a list or more."""
    wanted = min(4 * count**0.5, count / _TRAINING_ROWS_PER_LIST, _MAX_LISTS)
    return 1 << max(int(wanted).bit_length() - 1, 0)


def training_row_count(count: int) -> int:
    """Return how many rows to train on: 40 a list, 256 at least; 327,680 at most, 640 MiB at 512 dimensions."""
    return min(count, max(_TRAINING_ROWS_PER_LIST * list_count(count), 10_240))


def memory_bytes_per_vector(dim: int, count: int) -> float:
    """Return the bytes of a vector in memory: its code and number, and its share of the lists' centres."""
    return -(-dim // _DIMENSIONS_PER_CODE) + 8 + 4 * dim * list_count(count) / max(count, 1)


def _pad_dimensions(rows: Vectors) -> Vectors:
    """Fill up to a multiple of eight dimensions with zeros, which change no inner product."""
    missing = -rows.shape[1] % _DIMENSIONS_PER_CODE
    return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, missing))) if missing else rows, np.float32)
