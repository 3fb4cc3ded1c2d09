"""Vector store in memory: flat, fp16 or int8, searched exactly or with an HNSW graph (Malkov and Yashunin 2018).

form   bytes per vector of dim d   loss
flat   4 d                         none
fp16   2 d                         about 1e-4 of a cosine
int8   d                           about 1e-3 of a cosine: 256 steps per dimension between its extremes in the sample
graph  8 M + 16 more               neighbours that the graph search misses; fewer with more `effort` (ef_search)

The graph depends only on the order of the rows and on the blocks in which they are added: the bytes are the same
whether built in one run or extended later, with any number of threads (FAISS 1.15.1 and later; see `faiss_files`).
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_files import read_faiss, write_faiss
from pairwright.indexes.hnsw.metadata import VECTORS_FILE, IndexKind, VectorStorage
from pairwright.indexes.hnsw.options import IndexOptions

EF_SEARCH_STEPS = (16, 32, 64, 128, 256, 512, 1024)
DEFAULT_EF_SEARCH = 128

SearchResult = tuple[NDArray[np.float32], NDArray[np.int64]]


class GraphStore:
    """Vectors with or without an HNSW graph, numbered from 0. Implements `storage.VectorStore`."""

    def __init__(self, faiss_index: Any, storage: VectorStorage, directory: Path) -> None:
        """Wrap a FAISS index that `write` saves to ``directory``."""
        self.faiss_index = faiss_index
        self.storage: VectorStorage = storage
        self.kind: IndexKind = "hnsw" if hasattr(faiss_index, "hnsw") else "flat"
        self._directory = directory

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.faiss_index.d)

    @property
    def vectors(self) -> int:
        """Number of stored vectors."""
        return int(self.faiss_index.ntotal)

    @property
    def efforts(self) -> tuple[int, ...]:
        """Values of ef_search to tune over; empty for exact search."""
        return EF_SEARCH_STEPS if self.kind == "hnsw" else ()

    def train(self, sample: Vectors) -> None:
        """Fit the int8 quantiser to ``sample``, float32 (s, dim); a no-op for the other forms."""
        if not self.faiss_index.is_trained:
            self.faiss_index.train(np.ascontiguousarray(sample, np.float32))

    def reserve(self, count: int) -> None:
        """Reserve memory for ``count`` vectors in total.

        Arrays that grow row by row take up to three times their size at the peak; growing them to their final size once
        and shrinking them again keeps the capacity.
        """
        flat = self._flat_index()
        arrays = [(flat.codes, count * flat.code_size)]
        if self.kind == "hnsw":
            hnsw = self.faiss_index.hnsw
            arrays.append((hnsw.neighbors, count * (hnsw.nb_neighbors(0) + 2)))  # 2: upper levels, on average
        for array, capacity in arrays:
            size = array.size()
            array.resize(max(capacity, size))
            array.resize(size)

    def add(self, rows: Vectors) -> None:
        """Add float32 rows (n, dim)."""
        self.faiss_index.add(np.ascontiguousarray(rows, np.float32))

    def search(self, vectors: Vectors, k: int, effort: int = 0) -> SearchResult:
        """Return scores and numbers, (n, k) each; ``effort`` is ef_search, raised to at least k; 0 for the default."""
        parameters = None
        if self.kind == "hnsw":
            import faiss

            parameters = faiss.SearchParametersHNSW()  # type: ignore[attr-defined]  # FAISS adds it at run time
            parameters.efSearch = max(effort or DEFAULT_EF_SEARCH, k)
        return _clip_scores(*self.faiss_index.search(np.ascontiguousarray(vectors, np.float32), k, params=parameters))

    def exact(self, vectors: Vectors, k: int) -> SearchResult:
        """Return the exact result of `search` by comparing with every stored vector."""
        return _clip_scores(*self._flat_index().search(np.ascontiguousarray(vectors, np.float32), k))

    def stored(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return stored vectors after decoding, float32 (n, dim)."""
        rows: Vectors = self._flat_index().reconstruct_batch(np.ascontiguousarray(numbers, np.int64))
        return rows

    def as_stored(self, rows: Vectors) -> Vectors:
        """Return ``rows`` after encoding and decoding."""
        if self.storage == "flat":
            return rows
        flat = self._flat_index()
        decoded: Vectors = flat.sa_decode(flat.sa_encode(np.ascontiguousarray(rows, np.float32)))
        return decoded

    def write(self) -> list[str]:
        """Write the files and return their names."""
        write_faiss(self._directory / VECTORS_FILE, self.faiss_index)
        return [VECTORS_FILE]

    def _flat_index(self) -> Any:
        import faiss

        return faiss.downcast_index(self.faiss_index.storage) if self.kind == "hnsw" else self.faiss_index


def new_faiss_index(kind: IndexKind, storage: VectorStorage, dim: int, options: IndexOptions) -> Any:
    """Return an empty FAISS index; int8 must be trained before rows are added."""
    import faiss

    quantisers: dict[str, Any] = {"fp16": faiss.ScalarQuantizer.QT_fp16, "int8": faiss.ScalarQuantizer.QT_8bit}
    quantiser = quantisers.get(storage)
    if kind == "flat":
        if quantiser is None:
            return faiss.IndexFlatIP(dim)
        return faiss.IndexScalarQuantizer(dim, quantiser, faiss.METRIC_INNER_PRODUCT)
    index: Any
    if quantiser is None:
        index = faiss.IndexHNSWFlat(dim, options.m, faiss.METRIC_INNER_PRODUCT)
    else:
        index = faiss.IndexHNSWSQ(dim, quantiser, options.m, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = options.ef_construction
    return index


def open_graph(directory: Path, kind: IndexKind, storage: VectorStorage, *, into: Path | None = None) -> GraphStore:
    """Open a store memory-mapped, or in memory to be extended and written to the folder ``into``.

    Raises:
        StorageError: if the file is missing, truncated, or of another kind.
    """
    import faiss

    index = read_faiss(directory / VECTORS_FILE, mapped=into is None)
    graph = GraphStore(index, storage, directory if into is None else into)
    form = {"flat": faiss.IndexFlat, "fp16": faiss.IndexScalarQuantizer, "int8": faiss.IndexScalarQuantizer}[storage]
    if graph.kind != kind or index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise StorageError(f"{directory / VECTORS_FILE}: not an inner-product index of kind {kind}. Build it again.")
    flat = faiss.downcast_index(index.storage) if graph.kind == "hnsw" else index
    if not isinstance(flat, form):
        raise StorageError(f"{directory / VECTORS_FILE}: its vectors are not stored as {storage}. Build it again.")
    if into is not None and graph.kind == "hnsw":
        for _ in range(graph.vectors):  # FAISS reseeds its level generator on load: advance it to where it was
            index.hnsw.random_level()
    return graph


def link_bytes_per_vector(m: int) -> int:
    """Return the bytes of the links of a vector: 2 M at the lowest level, a few above, offset and level."""
    return 8 * m + 16


def _clip_scores(scores: NDArray[np.float32], numbers: NDArray[np.int64]) -> SearchResult:
    """Clip scores to [-1, 1]; empty places (number -1) get minus infinity."""
    return np.where(numbers < 0, np.float32(-np.inf), np.clip(scores, -1, 1)), numbers
