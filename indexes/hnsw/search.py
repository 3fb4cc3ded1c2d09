"""Search of an index folder, memory-mapped and shared by processes.

Every part of a modality is searched and the results are merged by score (ties: the earlier part, then the earlier
vector). K counts pairs. The aliases of an entry (captions or images that share its vector) follow it at the same score,
in input order. A pair with several captions counts once, at its best caption; the search deepens until K distinct pairs
are found. A query gets fewer only if the pool is smaller or a search with low effort reaches fewer.

Effort is ``ef_search``, the number of candidates of a graph search, or for ivfpq ``nprobe``, the number of scanned
lists: more effort finds more of the true nearest and takes longer. The default of a part was tuned on sample queries
when it was built; `Index.tune` tunes on other queries.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_files import map_array
from pairwright.indexes.hnsw.graph import SearchResult
from pairwright.indexes.hnsw.metadata import (
    ALIASES_FILE,
    CAPTIONS_FILE,
    KEYS_FILE,
    IndexInfo,
    Modality,
    PartInfo,
    read_metadata,
)
from pairwright.indexes.hnsw.storage import VectorStore, open_store
from pairwright.indexes.hnsw.top_k import TopK

_DEPTH_FACTOR = 2  # growth of the search depth while several captions of a pair take places
_UNIT_TOLERANCE = 1e-3  # of a vector's length, above what float16 rounds off
_TIE_TOLERANCE = 1e-6  # scores closer than this are equal: sums in another order

NearestFunction = Callable[[Vectors, int], SearchResult]
"""Returns scores and numbers of at most k nearest stored vectors per query: (vectors, k) -> result."""


@dataclass(frozen=True)
class Hits:
    """Search results ordered by query and rank; a pair occurs once per query.

    Attributes:
        queries: row of the query, int64 (h,).
        ranks: from 1, int32 (h,).
        keys: keys of the pairs, uint8 (h, 16).
        captions: index of the found caption, uint16 (h,): 0 the pair's own, n the n-th other one; 0 for images.
        numbers: numbers of the stored vectors in their pool, int64 (h,).
        scores: cosine in [-1, 1], float32 (h,), descending within a query.
    """

    queries: NDArray[np.int64]
    ranks: NDArray[np.int32]
    keys: NDArray[np.uint8]
    captions: NDArray[np.uint16]
    numbers: NDArray[np.int64]
    scores: NDArray[np.float32]

    def frame(self) -> pl.DataFrame:
        """Return columns query, rank, key (32 hex digits), caption_index and score."""
        raw = self.keys.tobytes()
        keys = pl.Series([raw[i : i + 16] for i in range(0, len(raw), 16)], dtype=pl.Binary).bin.encode("hex")
        columns = {"query": self.queries, "rank": self.ranks, "key": keys, "caption_index": self.captions}
        return pl.DataFrame({**columns, "score": self.scores})


@dataclass(frozen=True)
class Tuning:
    """Recall and speed of search efforts on sample queries.

    Attributes:
        ef_search: smallest effort that reaches the wanted recall, or the largest; nprobe for ivfpq, 0 for exact search.
        recall: recall at that effort, 0 to 1.
        ladder: (effort, recall, queries per second) of each tried effort, ascending.
    """

    ef_search: int
    recall: float
    ladder: list[tuple[int, float, float]]


@dataclass(frozen=True)
class OpenPart:
    """An open part; ``captions`` is None if every pair has one entry."""

    info: PartInfo
    folder: Path
    stored: VectorStore
    keys: NDArray[np.uint8]
    alias_of: NDArray[np.uint32]
    captions: NDArray[np.uint16] | None


@dataclass(frozen=True)
class PartPool:
    """Open parts of one modality, searched as one, with consecutive vector numbers."""

    parts: tuple[OpenPart, ...]

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """Number of the first vector of each part, followed by the total."""
        return np.cumsum([0, *(part.info.vectors for part in self.parts)])

    @property
    def vectors(self) -> int:
        """Number of stored vectors."""
        return int(self.firsts[-1])

    @property
    def efforts(self) -> tuple[int, ...]:
        """Efforts to tune over, ascending; empty for exact search."""
        return tuple(sorted({effort for part in self.parts for effort in part.stored.efforts}))

    def stored(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return stored vectors after decoding, float32 (n, dim)."""
        owners = np.searchsorted(self.firsts, numbers, side="right") - 1
        rows = np.empty((len(numbers), self.parts[0].info.dim), np.float32)
        for owner in np.unique(owners):
            mine = owners == owner
            rows[mine] = self.parts[owner].stored.stored(numbers[mine] - self.firsts[owner])
        return rows

    def search(self, vectors: Vectors, k: int, effort: int = 0) -> SearchResult:
        """Return scores and numbers (n, k), -1 for none; effort 0 is the default of each part."""
        best = TopK(len(vectors), k)
        for part, first in zip(self.parts, self.firsts[:-1], strict=True):
            found = part.stored.search(vectors, min(k, part.info.vectors), effort or part.info.effort)
            _add_candidates(best, found, int(first))
        return best.scores, best.numbers

    def exact(self, vectors: Vectors, k: int) -> SearchResult:
        """Return the exact result of `search` by comparing with every stored vector."""
        best = TopK(len(vectors), k)
        for part, first in zip(self.parts, self.firsts[:-1], strict=True):
            _add_candidates(best, part.stored.exact(vectors, min(k, part.info.vectors)), int(first))
        return best.scores, best.numbers

    def nearest(self, vectors: Vectors, k: int, find: NearestFunction) -> Hits:
        """Return the ``k`` best pairs of each vector, calling ``find`` with growing depth until there are enough."""
        several = any(part.captions is not None for part in self.parts)
        depth = min(_DEPTH_FACTOR * k if several else k, self.vectors)
        found = [self.hits(find(vectors, depth), k)]
        pending = np.arange(len(vectors))
        while several and depth < self.vectors:
            counts = np.bincount(found[-1].queries, minlength=len(pending))
            short = counts < k
            found[-1] = _select_hits(found[-1], pending, ~short[found[-1].queries])
            pending = pending[short]
            if not len(pending):
                return _concatenate_hits(found)
            depth = min(_DEPTH_FACTOR * depth, self.vectors)
            found.append(self.hits(find(vectors[pending], depth), k))
        found[-1] = _select_hits(found[-1], pending, np.ones(len(found[-1].queries), np.bool_))
        return _concatenate_hits(found)

    def hits(self, found: SearchResult, k: int) -> Hits:
        """Return the pairs of the found vectors, aliases included, each at its best score, at most ``k`` per query."""
        scores, numbers = found
        rows, columns = np.nonzero(numbers >= 0)
        numbers, scores = numbers[rows, columns], scores[rows, columns]
        owners = np.searchsorted(self.firsts, numbers, side="right") - 1
        local = numbers - self.firsts[owners]
        starts, ends = np.zeros_like(local), np.zeros_like(local)  # range of the aliases of each vector in its part
        for owner in np.unique(owners):
            mine, alias_of = owners == owner, self.parts[owner].alias_of
            starts[mine] = np.searchsorted(alias_of, local[mine].astype(np.uint32), side="left")
            ends[mine] = np.searchsorted(alias_of, local[mine].astype(np.uint32), side="right")
        # Each vector expands to its entry and its aliases; `offset` counts within that group.
        sizes = 1 + ends - starts
        first = np.cumsum(sizes) - sizes
        source = np.repeat(np.arange(len(rows)), sizes)
        offset = np.arange(len(source)) - first[source]
        vectors = np.array([part.info.vectors for part in self.parts])
        places = np.where(offset == 0, local[source], vectors[owners[source]] + starts[source] + offset - 1)
        keys, captions = np.empty((len(source), 16), np.uint8), np.zeros(len(source), np.uint16)
        for owner in np.unique(owners):
            mine, part = owners[source] == owner, self.parts[owner]
            keys[mine] = part.keys[places[mine]]
            if part.captions is not None:
                captions[mine] = part.captions[places[mine]]
        first = _first_of_each_key(rows[source], keys)
        source, keys, captions = source[first], keys[first], captions[first]
        rank = np.arange(1, len(source) + 1) - np.searchsorted(rows[source], rows[source])
        kept = rank <= k
        source, rank = source[kept], rank[kept].astype(np.int32)
        return Hits(rows[source], rank, keys[kept], captions[kept], numbers[source], scores[source])


@dataclass(frozen=True)
class Index:
    """An open index, see `open_index`."""

    directory: Path
    info: IndexInfo
    parts: tuple[OpenPart, ...]

    def search(self, vectors: Vectors, k: int, *, modality: Modality = "text", ef_search: int | None = None) -> Hits:
        """Return the ``k`` best pairs of each vector.

        Args:
            vectors: unit rows, float32 (n, dim).
            k: pairs per vector, at least 1.
            modality: search captions (T2T) or images (T2I).
            ef_search: effort (nprobe for ivfpq); None or 0 for the tuned default of each part.

        Raises:
            UsageError: if ``k``, the shape or length of the vectors, or the modality is invalid.
        """
        pool = self.pool(modality)
        self._check(vectors, k)
        return pool.nearest(vectors, k, lambda rows, depth: pool.search(rows, depth, ef_search or 0))

    def exact(self, vectors: Vectors, k: int, *, modality: Modality = "text") -> Hits:
        """Return the exact result of `search` by comparing with every stored vector."""
        pool = self.pool(modality)
        self._check(vectors, k)
        return pool.nearest(vectors, k, pool.exact)

    def tune(self, vectors: Vectors, k: int, wanted: float, *, modality: Modality = "text") -> Tuning:
        """Return the smallest effort that reaches recall@``k`` of ``wanted`` against exact search on ``vectors``.

        Exact search reads the whole index: pass a sample.

        Args:
            vectors: unit rows of the kind of the later queries, float32 (n, dim), at least one.
            k: neighbours per query; stored vectors without aliases.
            wanted: recall in (0, 1].
            modality: as in `search`.
        """
        pool = self.pool(modality)
        self._check(vectors, k)
        if not len(vectors) or not 0 < wanted <= 1:
            raise UsageError(
                f"{len(vectors)} queries, recall {wanted}: pass at least one query and a recall in (0, 1]."
            )
        k = min(k, pool.vectors)
        exact, _ = pool.exact(vectors, k)
        ladder: list[tuple[int, float, float]] = []
        graph = any(part.info.kind == "hnsw" for part in pool.parts)
        # A graph search keeps at least K candidates, so smaller efforts would repeat that step with a wrong label.
        steps = sorted({max(effort, k) if graph else effort for effort in pool.efforts}) or [0]
        for effort in steps:
            started = time.perf_counter()
            found, _ = pool.search(vectors, k, effort)
            rate = len(vectors) / max(time.perf_counter() - started, 1e-9)
            ladder.append((effort, score_recall(found, exact), round(rate, 1)))
            if ladder[-1][1] >= wanted:
                break
        return Tuning(ladder[-1][0], ladder[-1][1], ladder)

    def pool(self, modality: Modality) -> PartPool:
        """Return the parts of a modality.

        Raises:
            UsageError: if there are none.
        """
        parts = tuple(part for part in self.parts if part.info.modality == modality)
        if not parts:
            available = " and ".join(self.info.modalities)
            raise UsageError(
                f"{self.directory}: no {modality} vectors in this index, only {available}. Build it with them."
            )
        return PartPool(parts)

    def _check(self, vectors: Vectors, k: int) -> None:
        if k < 1:
            raise UsageError(f"k {k}: must be at least 1.")
        if vectors.ndim != 2 or vectors.shape[1] != self.info.dim:
            raise UsageError(f"vectors of shape {vectors.shape}: the index holds vectors of length {self.info.dim}.")
        if len(wrong := find_not_unit(vectors)):
            raise UsageError(
                f"vector {wrong[0]} does not have length 1, so scores would be no cosines. Normalise the vectors."
            )


def find_not_unit(vectors: Vectors) -> NDArray[np.int64]:
    """Return the numbers of the rows that do not have length 1, those with NaN included."""
    return np.flatnonzero(
        ~(np.abs(np.linalg.norm(vectors.astype(np.float32, copy=False), axis=1) - 1) < _UNIT_TOLERANCE)
    )


def open_index(directory: Path) -> Index:
    """Open the index in ``directory`` memory-mapped.

    Raises:
        StorageError: if a file is missing, truncated, or does not match index.json.
    """
    info = read_metadata(directory)
    return Index(directory, info, tuple(_open_part(directory / part.name, part) for part in info.parts))


def score_recall(found: NDArray[np.float32], exact: NDArray[np.float32]) -> float:
    """Return recall@k of the scores ``found`` (n, k) against ``exact`` (n, k), ties counting as found."""
    return float((found >= exact[:, -1:] - _TIE_TOLERANCE).mean())


def _open_part(folder: Path, info: PartInfo) -> OpenPart:
    stored = open_store(folder, info.kind, info.storage)
    keys, alias_of = map_array(folder / KEYS_FILE), map_array(folder / ALIASES_FILE)
    captions = map_array(folder / CAPTIONS_FILE) if (folder / CAPTIONS_FILE).exists() else None
    found = (
        stored.vectors,
        stored.dim,
        keys.shape,
        alias_of.shape,
        keys.shape[:1] if captions is None else captions.shape,
    )
    if found != (info.vectors, info.dim, (info.entries, 16), (info.aliases,), (info.entries,)):
        raise StorageError(f"{folder}: its files do not match index.json or each other. Build the index again.")
    return OpenPart(info, folder, stored, keys, alias_of, captions)


def _first_of_each_key(queries: NDArray[np.int64], keys: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the positions of the first entry of each key of each query, in order."""
    words = np.ascontiguousarray(keys).view(np.uint64)
    order = np.lexsort((words[:, 1], words[:, 0], queries))  # stable: keeps the first of equal keys first
    repeated = np.zeros(len(order), np.bool_)
    same = (words[order[1:]] == words[order[:-1]]).all(axis=1) & (queries[order[1:]] == queries[order[:-1]])
    repeated[order[1:][same]] = True
    return np.flatnonzero(~repeated)


def _select_hits(hits: Hits, queries: NDArray[np.int64], kept: NDArray[np.bool_]) -> Hits:
    """Return the ``kept`` hits, with query n renumbered to ``queries[n]``."""
    return Hits(
        queries[hits.queries[kept]],
        hits.ranks[kept],
        hits.keys[kept],
        hits.captions[kept],
        hits.numbers[kept],
        hits.scores[kept],
    )


def _concatenate_hits(found: list[Hits]) -> Hits:
    """Concatenate hits of distinct queries, ordered by query."""
    if len(found) == 1:
        return found[0]
    queries = np.concatenate([hits.queries for hits in found])
    order = np.argsort(queries, kind="stable")
    names = ("ranks", "keys", "captions", "numbers", "scores")
    return Hits(queries[order], *(np.concatenate([getattr(hits, name) for hits in found])[order] for name in names))


def _add_candidates(best: TopK, found: SearchResult, first: int) -> None:
    scores, numbers = found
    best.add(scores, np.where(numbers < 0, -1, numbers + first))
