"""Searching an index folder, which is opened by memory map: at once, whatever its size, and shared by processes.

Every part of a modality is searched and the answers are merged exactly: what the parts give is put in order of score
(ties: the earlier part, then the earlier vector) and cut. K counts pairs. A hit's aliases (pairs that share its vector)
follow it at the same score, in the order of the input, and the list is cut at K; a query gets fewer only when the pool
is smaller, or a search of little effort reached fewer.

Effort is ``ef_search``, how many candidates a graph's search keeps, or for ivfpq ``nprobe``, how many lists are looked
into: more find more of the true nearest and take longer. A part's default was chosen on sample queries when it was
built; `Index.tune` chooses on any others.
"""

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.arrays import map_array
from pairwright.indexes.best import Best
from pairwright.indexes.encoders import Vectors
from pairwright.indexes.graph import Found
from pairwright.indexes.sidecar import ALIASES, KEYS, IndexInfo, Modality, PartInfo, read_sidecar
from pairwright.indexes.storage import StoredIndex, open_stored

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
class Tuning:
    """What an effort gains and costs on sample queries.

    Attributes:
        ef_search: the smallest effort that reaches the recall that was wanted, or the greatest; nprobe for ivfpq, 0 when
            every search is exact.
        recall: at that effort, 0 to 1.
        ladder: (effort, recall, queries a second) of each step that was tried, ascending.
    """

    ef_search: int
    recall: float
    ladder: list[tuple[int, float, float]]


@dataclass(frozen=True)
class Part:
    """An open part."""

    info: PartInfo
    folder: Path
    stored: StoredIndex
    keys: NDArray[np.uint8]
    alias_of: NDArray[np.uint32]


@dataclass(frozen=True)
class Pool:
    """Open parts of one modality, searched as one; their vectors are numbered through."""

    parts: tuple[Part, ...]

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """Number of the first vector of each part, and of the end."""
        return np.cumsum([0, *(part.info.vectors for part in self.parts)])

    @property
    def vectors(self) -> int:
        """Stored vectors together."""
        return int(self.firsts[-1])

    @property
    def efforts(self) -> tuple[int, ...]:
        """Steps to tune on, ascending; empty when every search is exact."""
        return tuple(sorted({effort for part in self.parts for effort in part.stored.efforts}))

    def search(self, vectors: Vectors, k: int, effort: int = 0) -> Found:
        """Return scores and numbers (n, k), -1 for none; effort 0 stands for each part's own."""
        best = Best(len(vectors), k)
        for part, first in zip(self.parts, self.firsts[:-1], strict=True):
            found = part.stored.search(vectors, min(k, part.info.vectors), effort or part.info.effort)
            _offer(best, found, int(first))
        return best.scores, best.numbers

    def exact(self, vectors: Vectors, k: int) -> Found:
        """Return the same by comparing with every stored vector."""
        best = Best(len(vectors), k)
        for part, first in zip(self.parts, self.firsts[:-1], strict=True):
            _offer(best, part.stored.exact(vectors, min(k, part.info.vectors)), int(first))
        return best.scores, best.numbers

    def hits(self, found: Found, k: int) -> Hits:
        """Return the pairs of what was found, aliases included, cut at ``k`` a query."""
        scores, numbers = found
        rows, columns = np.nonzero(numbers >= 0)
        numbers, scores = numbers[rows, columns], scores[rows, columns]
        owners = np.searchsorted(self.firsts, numbers, side="right") - 1
        local = numbers - self.firsts[owners]
        starts, ends = np.zeros_like(local), np.zeros_like(local)  # of each hit's aliases, within its part
        for owner in np.unique(owners):
            mine, alias_of = owners == owner, self.parts[owner].alias_of
            starts[mine] = np.searchsorted(alias_of, local[mine].astype(np.uint32), side="left")
            ends[mine] = np.searchsorted(alias_of, local[mine].astype(np.uint32), side="right")
        # Each hit becomes itself and its aliases; `offset` counts within that group, `rank` within the query.
        sizes = 1 + ends - starts
        first = np.cumsum(sizes) - sizes
        source = np.repeat(np.arange(len(rows)), sizes)
        offset = np.arange(len(source)) - first[source]
        rank = np.arange(1, len(source) + 1) - np.searchsorted(rows[source], rows[source])
        kept = rank <= k
        source, offset, rank = source[kept], offset[kept], rank[kept]
        vectors = np.array([part.info.vectors for part in self.parts])
        places = np.where(offset == 0, local[source], vectors[owners[source]] + starts[source] + offset - 1)
        keys = np.empty((len(source), 16), np.uint8)
        for owner in np.unique(owners):
            mine = owners[source] == owner
            keys[mine] = self.parts[owner].keys[places[mine]]
        return Hits(rows[source], rank.astype(np.int32), keys, scores[source])


@dataclass(frozen=True)
class Index:
    """An open index; see `open_index`."""

    directory: Path
    info: IndexInfo
    parts: tuple[Part, ...]

    def search(self, vectors: Vectors, k: int, *, modality: Modality = "text", ef_search: int | None = None) -> Hits:
        """Return the ``k`` best pairs of each vector.

        Args:
            vectors: unit rows, float32 (n, dim).
            k: pairs a vector, at least 1.
            modality: search captions (T2T) or images (T2I).
            ef_search: effort (nprobe for ivfpq); None or 0 for what each part was tuned to.

        Raises:
            UsageError: when ``k``, the shape of the vectors or the modality is not possible.
        """
        pool = self.pool(modality)
        self._check(vectors, k)
        return pool.hits(pool.search(vectors, min(k, pool.vectors), ef_search or 0), k)

    def exact(self, vectors: Vectors, k: int, *, modality: Modality = "text") -> Hits:
        """Return the same as `search` by comparing with every stored vector."""
        pool = self.pool(modality)
        self._check(vectors, k)
        return pool.hits(pool.exact(vectors, min(k, pool.vectors)), k)

    def tune(self, vectors: Vectors, k: int, wanted: float, *, modality: Modality = "text") -> Tuning:
        """Find the least effort that reaches recall@``k`` of ``wanted`` against exact search on ``vectors``.

        ``k`` counts stored vectors here, aliases left out. Exact search reads the whole index: give a sample.

        Args:
            vectors: of the kind that will be asked, unit rows, float32 (n, dim), at least one.
            k: neighbours that recall looks at.
            wanted: above 0 to 1.
            modality: as in `search`.
        """
        pool = self.pool(modality)
        self._check(vectors, k)
        if not len(vectors) or not 0 < wanted <= 1:
            raise UsageError(f"{len(vectors)} queries, recall {wanted}: give one or more, and above 0 to 1.")
        k = min(k, pool.vectors)
        exact, _ = pool.exact(vectors, k)
        ladder: list[tuple[int, float, float]] = []
        graph = any(part.info.kind == "hnsw" for part in pool.parts)
        # A graph keeps K candidates at least: the steps below would all be that one, and be told as less than it costs.
        steps = sorted({max(effort, k) if graph else effort for effort in pool.efforts}) or [0]
        for effort in steps:
            started = time.perf_counter()
            found, _ = pool.search(vectors, k, effort)
            rate = len(vectors) / max(time.perf_counter() - started, 1e-9)
            ladder.append((effort, recall(found, exact), round(rate, 1)))
            if ladder[-1][1] >= wanted:
                break
        return Tuning(ladder[-1][0], ladder[-1][1], ladder)

    def pool(self, modality: Modality) -> Pool:
        """Return the parts of a modality.

        Raises:
            UsageError: when there are none.
        """
        parts = tuple(part for part in self.parts if part.info.modality == modality)
        if not parts:
            there = " and ".join(self.info.modalities)
            raise UsageError(
                f"{self.directory}: no {modality} vectors in this index, only {there}. Build it with them."
            )
        return Pool(parts)

    def _check(self, vectors: Vectors, k: int) -> None:
        if k < 1:
            raise UsageError(f"k {k}: has to be at least 1.")
        if vectors.ndim != 2 or vectors.shape[1] != self.info.dim:
            raise UsageError(f"vectors of shape {vectors.shape}: the index holds vectors of length {self.info.dim}.")


def open_index(directory: Path) -> Index:
    """Open the index in ``directory`` by memory map.

    Raises:
        StorageError: when a file is missing, truncated, or does not fit the sidecar.
    """
    info = read_sidecar(directory)
    return Index(directory, info, tuple(_open_part(directory / part.name, part) for part in info.parts))


def recall(found: NDArray[np.float32], exact: NDArray[np.float32]) -> float:
    """Return the share of found scores (n, k) that reach the k-th exact one: ties count, whichever was named."""
    return float((found >= exact[:, -1:] - _TIE).mean())


def _open_part(folder: Path, info: PartInfo) -> Part:
    stored = open_stored(folder, info.kind, info.storage)
    keys, alias_of = map_array(folder / KEYS), map_array(folder / ALIASES)
    found = (stored.vectors, stored.dim, keys.shape, alias_of.shape)
    if found != (info.vectors, info.dim, (info.pairs, 16), (info.aliases,)):
        raise StorageError(f"{folder}: its files do not fit the sidecar or each other. Build the index again.")
    return Part(info, folder, stored, keys, alias_of)


def _offer(best: Best, found: Found, first: int) -> None:
    scores, numbers = found
    best.offer(scores, np.where(numbers < 0, -1, numbers + first))
