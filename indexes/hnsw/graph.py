"""Vectors in memory in one of three forms, alone (exact search) or under an HNSW graph (Malkov and Yashunin 2018).

form   bytes a vector of dim d   what it loses
flat   4 d                       nothing
fp16   2 d                       about 1e-4 of a cosine
int8   d                         about 1e-3 of a cosine: each dimension in 256 steps between its extremes in the sample
graph  8 M + 16 more             the few neighbours that a walk misses: more `effort` (ef_search), fewer missed

The graph depends on the order of the rows and on the blocks in which they are given, and on nothing else: the same bytes
at once or extended later, and for any number of threads (measured with FAISS 1.15.1: 1 to 4 threads, all three forms; see `threads.py` for before).
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_files import read_faiss, write_faiss
from pairwright.indexes.hnsw.metadata import VECTORS_FILE, IndexKind, IndexOptions, VectorStorage

EF_SEARCH_STEPS = (16, 32, 64, 128, 256, 512, 1024)
DEFAULT_EF_SEARCH = 128

SearchResult = tuple[NDArray[np.float32], NDArray[np.int64]]


class GraphStore:
    """Vectors under an HNSW graph, or alone; numbers count them from 0. See `storage.StoredIndex`."""

    def __init__(self, faiss_index: Any, storage: VectorStorage, directory: Path) -> None:
        """Take a FAISS index and the folder that it is written to."""
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
        """How many are stored."""
        return int(self.faiss_index.ntotal)

    @property
    def efforts(self) -> tuple[int, ...]:
        """Steps of ef_search to tune on; none when every search is exact."""
        return EF_SEARCH_STEPS if self.kind == "hnsw" else ()

    def learn(self, sample: Vectors) -> None:
        """Learn the steps of int8 from ``sample``, float32 (s, dim); the other forms learn nothing."""
        if not self.faiss_index.is_trained:
            self.faiss_index.train(np.ascontiguousarray(sample, np.float32))

    def set_aside(self, count: int) -> None:
        """Set memory aside for ``count`` vectors together.

        Arrays that grow as rows come would take up to three times their size at the peak, so they are grown to their
        end once, which leaves them room, and shrunk again.
        """
        alone = self._vectors_alone()
        arrays = [(alone.codes, count * alone.code_size)]
        if self.kind == "hnsw":
            hnsw = self.faiss_index.hnsw
            arrays.append((hnsw.neighbors, count * (hnsw.nb_neighbors(0) + 2)))  # 2: upper levels, on average
        for array, room in arrays:
            size = array.size()
            array.resize(max(room, size))
            array.resize(size)

    def add(self, rows: Vectors) -> None:
        """Store float32 rows (n, dim)."""
        self.faiss_index.add(np.ascontiguousarray(rows, np.float32))

    def search(self, vectors: Vectors, k: int, effort: int = 0) -> SearchResult:
        """Return scores and numbers, (n, k) each; ``effort`` is ef_search, raised to k, 0 for a middling one."""
        parameters = None
        if self.kind == "hnsw":
            import faiss

            parameters = faiss.SearchParametersHNSW()  # type: ignore[attr-defined]  # FAISS adds it at run time
            parameters.efSearch = max(effort or DEFAULT_EF_SEARCH, k)
        return _clip_scores(*self.faiss_index.search(np.ascontiguousarray(vectors, np.float32), k, params=parameters))

    def exact(self, vectors: Vectors, k: int) -> SearchResult:
        """Return the same by comparing with every stored vector."""
        return _clip_scores(*self._vectors_alone().search(np.ascontiguousarray(vectors, np.float32), k))

    def stored(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return stored vectors as they are read back, float32 (n, dim)."""
        rows: Vectors = self._vectors_alone().reconstruct_batch(np.ascontiguousarray(numbers, np.int64))
        return rows

    def as_stored(self, rows: Vectors) -> Vectors:
        """Return ``rows`` as they would be read back once stored."""
        if self.storage == "flat":
            return rows
        alone = self._vectors_alone()
        decoded: Vectors = alone.sa_decode(alone.sa_encode(np.ascontiguousarray(rows, np.float32)))
        return decoded

    def write(self) -> list[str]:
        """Write the files, and return their names."""
        write_faiss(self._directory / VECTORS_FILE, self.faiss_index)
        return [VECTORS_FILE]

    def _vectors_alone(self) -> Any:
        import faiss

        return faiss.downcast_index(self.faiss_index.storage) if self.kind == "hnsw" else self.faiss_index


def new_faiss_index(kind: IndexKind, storage: VectorStorage, dim: int, options: IndexOptions) -> Any:
    """Return an empty FAISS index; int8 has to learn before it takes rows."""
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
    """Open by memory map; or in memory, when it shall be added to and be written to the folder ``into``.

    Raises:
        StorageError: when the file is missing, torn or of another kind.
    """
    import faiss

    index = read_faiss(directory / VECTORS_FILE, mapped=into is None)
    graph = GraphStore(index, storage, directory if into is None else into)
    form = {"flat": faiss.IndexFlat, "fp16": faiss.IndexScalarQuantizer, "int8": faiss.IndexScalarQuantizer}[storage]
    if graph.kind != kind or index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise StorageError(f"{directory / VECTORS_FILE}: not an inner-product index of kind {kind}. Build it again.")
    alone = faiss.downcast_index(index.storage) if graph.kind == "hnsw" else index
    if not isinstance(alone, form):
        raise StorageError(f"{directory / VECTORS_FILE}: its vectors are not stored as {storage}. Build it again.")
    if into is not None and graph.kind == "hnsw":
        for _ in range(graph.vectors):  # FAISS begins its chance for levels anew; so go on where it stopped
            index.hnsw.random_level()
    return graph


def link_bytes_per_vector(m: int) -> int:
    """Return the bytes of a vector's links: 2 M at the lowest level, a few above, their offset and level."""
    return 8 * m + 16


def _clip_scores(scores: NDArray[np.float32], numbers: NDArray[np.int64]) -> SearchResult:
    """Cut rounding beyond 1 and -1; a place that stayed empty (number -1) has minus infinity."""
    return np.where(numbers < 0, np.float32(-np.inf), np.clip(scores, -1, 1)), numbers
