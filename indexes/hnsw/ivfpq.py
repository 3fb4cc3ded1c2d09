"""Vector store for pools larger than memory: IVF-PQ (Jegou et al. 2011), rescored from half-precision rows on disk.

In memory a vector is a code (one byte per eight dimensions) and its number. A search scans the `effort` (nprobe) lists
nearest to the query, takes the best `RESCORED_CANDIDATES` (at least 4 k) by their codes, and orders them by their
cosines with the rows on disk: 200 rows of 1 KB per query at 512 dimensions.

FAISS trains with spherical k-means and a fixed seed; training and adding give the same bytes for any number of threads
(measured with FAISS 1.15.1: 1 to 4 threads). The metric is the inner product.
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
_TRAINING_ROWS_PER_LIST = 40  # FAISS requires 39 or more
_DIMENSIONS_PER_CODE = 8  # dimensions per byte of the code
_CHUNK = 65_536  # rows read at a time for exact search
_QUERIES = 64  # queries rescored at a time: 26 MB of rows at 512 dimensions


class RescoredStore:
    """Codes in inverted lists and rows on disk, numbered from 0. Implements `storage.VectorStore`."""

    kind: IndexKind = "ivfpq"
    storage: VectorStorage = "ivfpq"

    def __init__(self, faiss_index: Any, raw: Float16Rows, directory: Path) -> None:
        """Wrap a FAISS index and its rows, which `write` saves to ``directory``."""
        self.faiss_index = faiss_index
        self._raw = raw
        self._directory = directory

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._raw.dim

    @property
    def vectors(self) -> int:
        """Number of stored vectors."""
        return int(self.faiss_index.ntotal)

    @property
    def efforts(self) -> tuple[int, ...]:
        """Values of nprobe to tune over: powers of two up to the number of lists."""
        return tuple(2**step for step in range(int(self.faiss_index.nlist).bit_length()))

    def add(self, rows: Vectors) -> None:
        """Add float32 rows (n, dim): codes in memory, rows on disk."""
        self._raw.append(rows)
        self.faiss_index.add(_pad_dimensions(rows))

    def search(self, vectors: Vectors, k: int, effort: int = 0) -> SearchResult:
        """Return scores and numbers, (n, k) each; ``effort`` is nprobe, 0 for the default."""
        import faiss

        parameters = faiss.SearchParametersIVF()
        parameters.nprobe = effort or DEFAULT_NPROBE
        candidates = min(max(RESCORED_CANDIDATES, 4 * k), self.vectors)
        _, numbers = self.faiss_index.search(_pad_dimensions(vectors), candidates, params=parameters)
        best = TopK(len(vectors), k)
        for start in range(0, len(vectors), _QUERIES):
            part = slice(start, start + _QUERIES)
            numbers[part].sort(axis=1)  # sequential disk reads; the lower number wins a tie
            rows = self._raw.rows(np.maximum(numbers[part], 0))
            scores = np.matmul(rows, vectors[part, :, None])[:, :, 0]
            scores[numbers[part] < 0] = -np.inf
            best.add(scores, numbers[part], part)
        return np.clip(best.scores, -1, 1, where=best.numbers >= 0, out=best.scores), best.numbers

    def exact(self, vectors: Vectors, k: int) -> SearchResult:
        """Return the exact result of `search` by comparing with every row on disk."""
        best = TopK(len(vectors), k)
        for start in range(0, self._raw.count, _CHUNK):
            rows = self._raw.rows(slice(start, start + _CHUNK))
            best.add(vectors @ rows.T, np.arange(start, start + len(rows)))
        return np.clip(best.scores, -1, 1, where=best.numbers >= 0, out=best.scores), best.numbers

    def stored(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return stored vectors after decoding, float32 (n, dim)."""
        return self._raw.rows(numbers)

    def as_stored(self, rows: Vectors) -> Vectors:
        """Return ``rows`` after encoding and decoding."""
        return np.asarray(rows, np.float16).astype(np.float32)

    def write(self) -> list[str]:
        """Write the files and return their names."""
        write_faiss(self._directory / VECTORS_FILE, self.faiss_index)
        return [VECTORS_FILE, self._raw.finish()]


def new_rescored_store(dim: int, count: int, sample: Vectors, directory: Path) -> RescoredStore:
    """Return a store trained on ``sample``, float32 (s, dim), for about ``count`` vectors.

    Raises:
        InputError: if the sample is too small to train on.
    """
    import faiss

    lists = list_count(count)
    if len(sample) < max(lists, 256):
        raise InputError(
            f"{len(sample)} vectors are too few to train {lists} lists and the codes",
            where="index",
            fix="ivfpq needs at least 256 vectors; choose another storage.",
        )
    width = -(-dim // _DIMENSIONS_PER_CODE) * _DIMENSIONS_PER_CODE
    quantiser = faiss.IndexFlatIP(width)
    index = faiss.IndexIVFPQ(quantiser, width, lists, width // _DIMENSIONS_PER_CODE, 8, faiss.METRIC_INNER_PRODUCT)
    for clustering in (index.cp, index.pq.cp):
        clustering.min_points_per_centroid = 1  # avoids a FAISS warning for small pools
    index.train(_pad_dimensions(sample))
    return RescoredStore(index, new_float16_rows(directory / FLOAT16_ROWS_FILE, dim), directory)


def open_rescored_store(directory: Path, *, into: Path | None = None) -> RescoredStore:
    """Open a store memory-mapped, or in memory to be extended and written to the folder ``into``.

    Raises:
        StorageError: if a file is missing, truncated, or does not match the other.
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
    """Return the number of lists: the largest power of two up to 4 sqrt(count) that leaves 40 vectors per list."""
    wanted = min(4 * count**0.5, count / _TRAINING_ROWS_PER_LIST, _MAX_LISTS)
    return 1 << max(int(wanted).bit_length() - 1, 0)


def training_row_count(count: int) -> int:
    """Return the number of training rows: 40 per list, at least 10,240 where there are as many, at most 327,680."""
    return min(count, max(_TRAINING_ROWS_PER_LIST * list_count(count), 10_240))


def memory_bytes_per_vector(dim: int, count: int) -> float:
    """Return the bytes of a vector in memory: its code, its number, and its share of the list centroids."""
    return -(-dim // _DIMENSIONS_PER_CODE) + 8 + 4 * dim * list_count(count) / max(count, 1)


def _pad_dimensions(rows: Vectors) -> Vectors:
    """Pad rows with zeros to a multiple of eight dimensions, which changes no inner product."""
    missing = -rows.shape[1] % _DIMENSIONS_PER_CODE
    return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, missing))) if missing else rows, np.float32)
