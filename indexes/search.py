"""Searching an index folder, which is opened by memory map: at once, whatever its size, and shared by processes.

K counts pairs. A hit's aliases (pairs with the very same vector) follow it at the same score, in the order of the
input, and the list is cut at K; a query gets fewer only when the pool is smaller.

``ef_search`` is how many candidates a search keeps: more find more of the true nearest and take longer. Its default was
chosen on sample queries when the index was built (`tuned_ef_search`).
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.encoders import Vectors
from pairwright.indexes.sidecar import ALIASES, KEYS, VECTORS, IndexInfo, read_sidecar

EF_SEARCH_LADDER = (16, 32, 64, 128, 256, 512, 1024)
_TIE = 1e-6  # scores nearer than this are the same: a sum in another order


@dataclass(frozen=True)
class Hits:
    """What searches found, by query and then by rank.

    Attributes:
        queries: row of the query, int64 (h,).
        ranks: from 1, int32 (h,).
        keys: of the pairs, 16 bytes each, uint8 (h, 16).
        scores: cosine in [-1, 1], float32 (h,), descending within a query.
    """

    queries: NDArray[np.int64]
    ranks: NDArray[np.int32]
    keys: NDArray[np.uint8]
    scores: NDArray[np.float32]

    def frame(self) -> pl.DataFrame:
        """Return columns query, rank, key (32 hex digits) and score."""
        raw = self.keys.tobytes()
        keys = pl.Series([raw[i : i + 16] for i in range(0, len(raw), 16)], dtype=pl.Binary).bin.encode("hex")
        return pl.DataFrame({"query": self.queries, "rank": self.ranks, "key": keys, "score": self.scores})


@dataclass(frozen=True)
class Index:
    """An open index; see `open_index`."""

    info: IndexInfo
    faiss_index: Any
    keys: NDArray[np.uint8]
    alias_of: NDArray[np.uint32]

    def search(self, vectors: Vectors, k: int) -> Hits:
        """Return the ``k`` best pairs of each vector.

        Args:
            vectors: unit rows, float32 (n, dim).
            k: pairs a vector, at least 1.

        Raises:
            UsageError: when ``k`` or the shape of the vectors is not possible.
        """
        self._check(vectors, k)
        scores, numbers = search_graph(self.faiss_index, vectors, min(k, self.info.vectors), self.info.ef_search)
        return self._with_aliases(numbers, scores, k)

    def exact(self, vectors: Vectors, k: int) -> Hits:
        """Return the same as `search` by comparing with every stored vector."""
        self._check(vectors, k)
        scores, numbers = stored_vectors(self.faiss_index).search(vectors, min(k, self.info.vectors))
        return self._with_aliases(numbers, scores, k)

    def _check(self, vectors: Vectors, k: int) -> None:
        if k < 1:
            raise UsageError(f"k {k}: has to be at least 1.")
        if vectors.ndim != 2 or vectors.shape[1] != self.info.dim:
            raise UsageError(f"vectors of shape {vectors.shape}: the index holds vectors of length {self.info.dim}.")

    @cached_property
    def _alias_starts(self) -> NDArray[np.int64]:
        return np.searchsorted(self.alias_of, np.arange(self.info.vectors + 1))

    def _with_aliases(self, numbers: NDArray[np.int64], scores: NDArray[np.float32], k: int) -> Hits:
        rows, columns = np.nonzero(numbers >= 0)  # HNSW fills up with -1 when it reached fewer than k
        numbers, scores = numbers[rows, columns], scores[rows, columns]
        # Each hit becomes itself and its aliases; `offset` counts within that group, `rank` within the query.
        sizes = 1 + self._alias_starts[numbers + 1] - self._alias_starts[numbers]
        ends = np.cumsum(sizes)
        offset = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        rows, numbers, scores = np.repeat(rows, sizes), np.repeat(numbers, sizes), np.repeat(scores, sizes)
        rank = np.arange(1, len(rows) + 1) - np.searchsorted(rows, rows)
        kept = rank <= k
        alias = self.info.vectors + self._alias_starts[numbers] + offset - 1
        places = np.where(offset == 0, numbers, alias)[kept]
        return Hits(rows[kept], rank[kept].astype(np.int32), np.asarray(self.keys[places]), scores[kept])


def open_index(directory: Path) -> Index:
    """Open the index in ``directory`` by memory map.

    Raises:
        StorageError: when a file is missing, truncated, or does not fit the sidecar.
    """
    import faiss

    info = read_sidecar(directory)
    try:
        faiss_index = faiss.read_index(str(directory / VECTORS), faiss.IO_FLAG_MMAP_IFC)
        keys = np.load(directory / KEYS, mmap_mode="r", allow_pickle=False)
        alias_of = np.load(directory / ALIASES, allow_pickle=False)
    except (RuntimeError, MemoryError, OSError, ValueError, EOFError) as error:  # a torn header may ask for any size
        message = str(error).strip().rpartition("\n")[2]
        raise StorageError(f"{directory}: a file of the index is damaged ({message}). Build it again.") from None
    found = (faiss_index.ntotal, faiss_index.d, faiss_index.metric_type, keys.shape, alias_of.shape)
    if found != (info.vectors, info.dim, faiss.METRIC_INNER_PRODUCT, (info.pairs, 16), (info.duplicates,)):
        raise StorageError(f"{directory}: the files do not fit the sidecar or each other. Build the index again.")
    return Index(info, faiss_index, keys, alias_of)


def search_graph(
    faiss_index: Any, vectors: Vectors, k: int, ef_search: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return scores and numbers, each (n, k), of an HNSW index (or of a flat one, which ignores ef_search)."""
    import faiss

    parameters = None
    if hasattr(faiss_index, "hnsw"):
        parameters = faiss.SearchParametersHNSW()  # type: ignore[attr-defined]  # FAISS adds it at run time
        parameters.efSearch = max(ef_search, k)
    scores, numbers = faiss_index.search(vectors, k, params=parameters)
    return scores, numbers


def stored_vectors(faiss_index: Any) -> Any:
    """Return the flat index that holds the vectors, for exact search."""
    import faiss

    return faiss.downcast_index(faiss_index.storage) if hasattr(faiss_index, "hnsw") else faiss_index


def recall(found: NDArray[np.float32], exact: NDArray[np.float32]) -> float:
    """Return the share of found scores (n, k) that reach the k-th exact one: ties count, whichever was named."""
    return float((found >= exact[:, -1:] - _TIE).mean())


def tuned_ef_search(faiss_index: Any, probes: Vectors, wanted: float, k: int = 10) -> int:
    """Return the smallest step of `EF_SEARCH_LADDER` that reaches recall@k ``wanted`` on ``probes``, or the last."""
    k = min(k, faiss_index.ntotal)
    exact, _ = stored_vectors(faiss_index).search(probes, k)
    for ef_search in EF_SEARCH_LADDER:
        found, _ = search_graph(faiss_index, probes, k, ef_search)
        if recall(found, exact) >= wanted:
            break
    return ef_search
