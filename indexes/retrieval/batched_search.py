"""Batched search of many query vectors for K pairs each, without excluded pairs.

If some of the K hits of a query are excluded, it is searched again with twice the depth until it has K hits, up to
`MAX_DEPTH_FACTOR` times K or `MIN_DEPTH_LIMIT`, whichever is larger; a query with fewer hits is counted as ``short``.
Queries are searched in batches, which are encoded once for captions and images.

Scores of the two modes are never compared: each hit has its mode and a rank within it.

Memory: 35 bytes per hit, a batch, and the judged pairs of `ExclusionFilter`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.progress import track
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.graph import SearchResult
from pairwright.indexes.hnsw.metadata import Modality
from pairwright.indexes.hnsw.search import Hits, Index, PartPool
from pairwright.indexes.retrieval.exclusion import ExclusionFilter

Mode = Literal["t2t", "t2i"]
MODALITY_OF: Mapping[Mode, Modality] = {"t2t": "text", "t2i": "image"}
MODE_ENUM = pl.Enum(list(MODALITY_OF))
MAX_DEPTH_FACTOR = 16
MIN_DEPTH_LIMIT = 1024

_QUERIES_PER_BATCH = 1024
_EXACT_MARGIN = 8  # candidates beyond K in exact search, for scores that differ by rounding only
_RESCORED_QUERIES = 256  # queries whose hits are rescored at a time
_MAX_HITS_PER_BATCH = 2**20  # deep searches use smaller batches


@dataclass(frozen=True)
class LazyVectors:
    """Vectors computed on demand.

    Attributes:
        count: number of vectors.
        rows: returns the vectors of the given numbers, float32 unit rows.
    """

    count: int
    rows: Callable[[NDArray[np.int64]], Vectors]


def wrap_vectors(vectors: Vectors) -> LazyVectors:
    """Wrap vectors that are in memory."""
    return LazyVectors(len(vectors), lambda numbers: vectors[numbers])


@dataclass(frozen=True)
class SearchEffort:
    """Search settings of a mode.

    Attributes:
        ef_search: effort; 0 for the default of the index.
        exact: compare with every vector.
        min_score: minimum cosine of a hit.
    """

    ef_search: int = 0
    exact: bool = False
    min_score: float = -1.0


def search_mode(index: Index, vectors: Vectors, k: int, mode: Mode, effort: SearchEffort) -> Hits:
    """Return the hits of ``vectors`` in ``mode`` with the given effort."""
    if not effort.exact:
        return index.search(vectors, k, modality=MODALITY_OF[mode], ef_search=effort.ef_search)
    pool = index.pool(MODALITY_OF[mode])
    return pool.nearest(vectors, k, lambda rows, depth: search_exact(pool, rows, depth))


def search_exact(pool: PartPool, vectors: Vectors, k: int) -> SearchResult:
    """Compare with every vector of ``pool``; return scores and numbers (n, k), the same for any number of threads.

    The rounding of a matrix product depends on how it is split, so a few more than K candidates are selected by it and
    rescored one by one.
    """
    found = pool.exact(vectors, min(k + _EXACT_MARGIN, pool.vectors))[1]
    scores = np.full(found.shape, -np.inf, np.float32)
    for start in range(0, len(vectors), _RESCORED_QUERIES):
        numbers, queries = found[start : start + _RESCORED_QUERIES], vectors[start : start + _RESCORED_QUERIES]
        rows, places = np.nonzero(numbers >= 0)
        stored = pool.stored(numbers[rows, places])
        scores[start + rows, places] = np.clip(np.einsum("nd,nd->n", stored, queries[rows]), -1, 1)
    order = np.lexsort((found, -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(found, order, axis=1)


@dataclass(frozen=True)
class FilteredHits:
    """Results of `search_with_exclusion`. An *ask* is the number of a distinct query vector.

    Attributes:
        hits: columns ask, mode, rank (from 1, without excluded pairs), high and low (halves of the key), caption_index
            and number (of the found vector), score; by mode, ask and rank.
        excluded: excluded pairs ranked before the last hit of an ask: columns ask, mode, high, low.
        below: number of hits below the minimum score, by mode.
        short: number of asks with fewer than K hits although the pool may have more, by mode.
    """

    hits: pl.DataFrame
    excluded: pl.DataFrame
    below: dict[Mode, int]
    short: dict[Mode, int]


def search_some(
    index: Index, asks: LazyVectors, k: int, efforts: Mapping[Mode, SearchEffort], numbers: NDArray[np.int64]
) -> dict[Mode, pl.DataFrame]:
    """Search ``index`` with some of the query vectors, for ``first`` of `search_with_exclusion`.

    Args:
        index: an open index.
        asks: query vectors.
        k: pairs per vector and mode.
        efforts: search settings of the requested modes.
        numbers: ascending numbers of the vectors to search with, at least one.
    """
    return _DeepeningSearch(index, asks, k, efforts, None).search_to_depth(dict.fromkeys(efforts, numbers), k)


def search_with_exclusion(  # noqa: PLR0913, PLR0917 - of a search
    index: Index,
    asks: LazyVectors,
    k: int,
    efforts: Mapping[Mode, SearchEffort],
    guard: ExclusionFilter | None = None,
    first: Mapping[Mode, pl.DataFrame] | None = None,
) -> FilteredHits:
    """Search ``index`` with every query vector in every mode.

    Args:
        index: an open index.
        asks: query vectors, at least one.
        k: pairs per vector and mode.
        efforts: search settings of the requested modes.
        guard: filter of excluded pairs.
        first: results of `search_some` for all vectors, in their order; without, they are searched here.
    """
    search = _DeepeningSearch(index, asks, k, efforts, guard)
    pending = {mode: np.arange(asks.count) for mode in efforts}
    done: dict[Mode, list[pl.DataFrame]] = {mode: [] for mode in efforts}
    short: dict[Mode, int] = dict.fromkeys(efforts, 0)
    depth, deepest = k, max(MAX_DEPTH_FACTOR * k, MIN_DEPTH_LIMIT)
    while pending:
        searched = dict(first) if first is not None and depth == k else search.search_to_depth(pending, depth)
        found, pending = search.remove_excluded(searched), {}
        for mode, frame in found.items():
            incomplete = _queries_short_of_hits(frame, k, efforts[mode].min_score)
            if depth >= deepest:
                short[mode] = len(incomplete)
            elif len(incomplete):
                pending[mode] = incomplete
            again = np.isin(frame["ask"].to_numpy(), pending.get(mode, []))
            done[mode].append(frame.filter(~again))
        depth = min(2 * depth, deepest)
    return _collect_answers({mode: pl.concat(frames) for mode, frames in done.items()}, efforts, short)


@dataclass(frozen=True)
class _DeepeningSearch:
    """Search with growing depth. Frames are ordered by ask and descending score."""

    index: Index
    asks: LazyVectors
    k: int
    efforts: Mapping[Mode, SearchEffort]
    guard: ExclusionFilter | None

    def search_to_depth(self, pending: Mapping[Mode, NDArray[np.int64]], depth: int) -> dict[Mode, pl.DataFrame]:
        """Search for ``depth`` pairs and keep K per ask that are not known to be excluded."""
        frames: dict[Mode, list[pl.DataFrame]] = {mode: [] for mode in pending}
        numbers = np.unique(np.concatenate(list(pending.values())))
        size = max(1, min(_QUERIES_PER_BATCH, _MAX_HITS_PER_BATCH // depth))
        for start in track(range(0, len(numbers), size), "searching", unit="batches of queries"):
            batch = numbers[start : start + size]
            vectors = self.asks.rows(batch)
            for mode, wanted in pending.items():
                chosen = np.isin(batch, wanted, assume_unique=True)
                hits = search_mode(self.index, vectors[chosen], depth, mode, self.efforts[mode])
                frames[mode].append(self._keep_k(_hits_frame(hits, batch[chosen], depth)))
        return {mode: pl.concat(parts) for mode, parts in frames.items()}

    def remove_excluded(self, found: dict[Mode, pl.DataFrame]) -> dict[Mode, pl.DataFrame]:
        """Judge new pairs and remove those that are excluded."""
        if self.guard is None:
            return found
        self.guard.judge_new(decode_keys(pl.concat([frame.select("high", "low") for frame in found.values()]).unique()))
        return {mode: self._keep_k(frame) for mode, frame in found.items()}

    def _keep_k(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Mark excluded hits as bad; keep the first K other hits of each ask, and bad ones ranked before the last."""
        if self.guard is None:
            return frame
        bad = _split_keys(self.guard.excluded["key"]).with_columns(found=pl.lit(value=True))
        marked = frame.join(bad, on=["high", "low"], how="left", maintain_order="left")
        marked = marked.with_columns(bad=pl.col("found").fill_null(value=False)).drop("found")
        asks, marks = marked["ask"].to_numpy(), marked["bad"].to_numpy()
        good_so_far = _running_count(asks, ~marks)
        kept = np.where(marks, good_so_far < self.k, good_so_far <= self.k)
        more = marked["more"].to_numpy() | np.isin(asks, asks[~kept])  # dropped hits can be found again
        return marked.with_columns(more=more).filter(kept)


def decode_keys(halves: pl.DataFrame) -> pl.Series:
    """Return keys as 32 hexadecimal digits from their halves, columns high and low."""
    import pyarrow as pa

    raw = np.stack([halves["high"].to_numpy(), halves["low"].to_numpy()], axis=1).astype(">u8").tobytes()
    keys = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), halves.height, [None, pa.py_buffer(raw)])
    return pl.Series("key", pl.from_arrow(keys.cast(pa.binary()))).bin.encode("hex")


def _split_keys(keys: pl.Series) -> pl.DataFrame:
    pairs = np.frombuffer(bytes.fromhex("".join(keys.to_list())), ">u8").astype(np.uint64).reshape(-1, 2)
    return pl.DataFrame({"high": pairs[:, 0], "low": pairs[:, 1]})


def _hits_frame(hits: Hits, numbers: NDArray[np.int64], depth: int) -> pl.DataFrame:
    halves = np.ascontiguousarray(hits.keys).view(">u8").astype(np.uint64).reshape(-1, 2)
    full = np.bincount(hits.queries, minlength=len(numbers)) >= depth
    return pl.DataFrame(
        {
            "ask": numbers[hits.queries].astype(np.uint32),
            "high": halves[:, 0],
            "low": halves[:, 1],
            "caption_index": hits.captions,
            "number": hits.numbers.astype(np.uint32),
            "score": hits.scores,
            "bad": np.zeros(len(hits.scores), np.bool_),
            "more": full[hits.queries],  # the pool may hold further hits
        }
    )


def _queries_short_of_hits(frame: pl.DataFrame, k: int, min_score: float) -> NDArray[np.int64]:
    """Return the asks that lost hits to the exclusion and may find more above ``min_score``."""
    counts = frame.group_by("ask").agg(
        good=(~pl.col("bad")).sum(), bad=pl.col("bad").any(), more=pl.col("more").any(), last=pl.col("score").min()
    )
    wanted = (pl.col("good") < k) & pl.col("bad") & pl.col("more") & (pl.col("last") >= min_score)
    return counts.filter(wanted)["ask"].sort().to_numpy().astype(np.int64)


def _running_count(asks: NDArray[np.uint32], flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the running count of flags within each ask, whose rows are consecutive."""
    total = np.cumsum(flags)
    first = np.flatnonzero(np.concatenate([[True], asks[1:] != asks[:-1]])) if len(asks) else np.empty(0, np.int64)
    sizes = np.diff(np.append(first, len(asks)))
    return total - np.repeat(total[first] - flags[first], sizes)


def _collect_answers(
    found: Mapping[Mode, pl.DataFrame], efforts: Mapping[Mode, SearchEffort], short: dict[Mode, int]
) -> FilteredHits:
    hits, excluded = list[pl.DataFrame](), list[pl.DataFrame]()
    below: dict[Mode, int] = {}
    for mode, frame in found.items():
        named = frame.sort("ask", maintain_order=True).with_columns(mode=pl.lit(mode, MODE_ENUM))
        good = named.filter(~pl.col("bad"))
        rank = _running_count(good["ask"].to_numpy(), np.ones(good.height, np.bool_)).astype(np.uint32)
        good = good.with_columns(rank=rank)
        good = good.select("ask", "mode", "rank", "high", "low", "caption_index", "number", "score")
        reached = pl.col("score") >= efforts[mode].min_score
        hits.append(good.filter(reached))
        below[mode] = good.height - hits[-1].height
        excluded.append(named.filter(pl.col("bad") & reached).select("ask", "mode", "high", "low"))
    return FilteredHits(pl.concat(hits), pl.concat(excluded), below, short)
