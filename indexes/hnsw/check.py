"""Checking an index folder: its bytes against their checksums, its answers against the truth.

Recall is the share of the true k nearest that a search finds, ties counting whichever is named. It is measured on
queries of the kind that will be asked, since vectors of the pool itself are easier to find than new ones:

- the queries given, against exact search among the vectors as they are stored;
- else the sample that was put aside when the index was built, against the true nearest that were found before anything
  was rounded. Parts that were built together share their sample and are measured together, others by themselves;
- else stored vectors, against exact search.

When recall falls short, the effort is raised step by step until it does not. Speeds are of one thread, the queries being
asked in one batch; a batch flatters exact search, which is slower than the graph only from some ten thousand vectors on.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairwright.datasets.errors import UsageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_threads import limit_faiss_threads
from pairwright.indexes.hnsw.graph import SearchResult
from pairwright.indexes.hnsw.ground_truth import TRUE_NEIGHBOURS, GroundTruth, merge_ground_truths, read_ground_truth
from pairwright.indexes.hnsw.metadata import GROUND_TRUTH_FILE, Modality, hash_file
from pairwright.indexes.hnsw.search import Index, OpenPart, PartPool, open_index, score_recall

_STORED_SAMPLE_SIZE = 500
_TIMED_QUERIES = 100  # queries that exact search is timed on when the truth is known: it reads the whole index


@dataclass(frozen=True)
class PoolCheck:
    """What was measured on parts that are searched together.

    Attributes:
        modality: of the parts.
        parts: their names.
        recall: recall@k at ``ef_search``, 0 to 1.
        ef_search: the highest of the parts' own, or the higher one that was needed; nprobe for ivfpq, 0 for exact search.
        qps: queries a second through the index, one thread.
        exact_qps: queries a second by comparing with every vector, one thread.
        k: that recall was measured at.
        queries: how many were asked.
        queries_from: given, probes or stored.
    """

    modality: Modality
    parts: tuple[str, ...]
    recall: float
    ef_search: int
    qps: float
    exact_qps: float
    k: int
    queries: int
    queries_from: str


@dataclass(frozen=True)
class IndexCheck:
    """What `check_index` measured: the pool of the worst recall, and all of them.

    Attributes:
        recall: as in `PoolCheck`, of the pool where it is lowest; so are the others that are named there.
        ef_search: of that pool.
        qps: of that pool.
        exact_qps: of that pool.
        checksum_ok: whether every file has the bytes it was written with.
        k: of that pool.
        queries: of that pool.
        queries_from: of that pool.
        damaged: files that have not the bytes they were written with.
        pools: every one.
    """

    recall: float
    ef_search: int
    qps: float
    exact_qps: float
    checksum_ok: bool
    k: int
    queries: int
    queries_from: str
    damaged: tuple[str, ...]
    pools: tuple[PoolCheck, ...]

    def summary(self) -> dict[str, Any]:
        """Return what ``pairwright index check --json`` prints."""
        return asdict(self)


def check_index(
    directory: Path,
    k: int = 10,
    *,
    queries: Vectors | None = None,
    modality: Modality | None = None,
    wanted: float = 0.95,
) -> IndexCheck:
    """Measure the index in ``directory``.

    Args:
        directory: an index folder.
        k: neighbours that recall looks at, at least 1; stored vectors count, aliases do not.
        queries: unit rows of the encoder that the index was built with, float32 (n, dim).
        modality: to measure; all when not given.
        wanted: recall that the effort is raised for.

    Raises:
        StorageError: when the index cannot be opened.
        UsageError: when ``k`` is below 1, or the queries do not fit, or there is no such modality.
    """
    if k < 1:
        raise UsageError(f"k {k}: has to be at least 1.")
    index = open_index(directory)
    if queries is not None and (queries.ndim != 2 or queries.shape[1] != index.info.dim or not len(queries)):
        raise UsageError(f"queries of shape {queries.shape}: give rows of length {index.info.dim}.")
    with limit_faiss_threads(1):
        pools = []
        for name in [modality] if modality else index.info.modalities:
            for pool, truth in _group_pools(index, name, k, queries):
                most = min(k, pool.vectors)
                asked = (
                    _queries_with_ground_truth(pool, truth, most)
                    if truth
                    else _queries_with_exact_search(pool, queries, most)
                )
                pools.append(_measure_pool(pool, asked, most, wanted))
    worst = min(pools, key=lambda pool: pool.recall)
    damaged = tuple(name for name, file in index.info.files.items() if hash_file(directory / name) != file["sha256"])
    return IndexCheck(
        recall=worst.recall,
        ef_search=worst.ef_search,
        qps=worst.qps,
        exact_qps=worst.exact_qps,
        checksum_ok=not damaged,
        k=worst.k,
        queries=worst.queries,
        queries_from=worst.queries_from,
        damaged=damaged,
        pools=tuple(pools),
    )


def _group_pools(
    index: Index, modality: Modality, k: int, queries: Vectors | None
) -> list[tuple[PartPool, GroundTruth | None]]:
    """Return what is measured together, with its truth if that is to be used."""
    whole = index.pool(modality)
    probed = [part for part in whole.parts if (part.folder / GROUND_TRUTH_FILE).exists()]
    if queries is not None or k > TRUE_NEIGHBOURS or not probed:
        return [(whole, None)]
    groups: dict[bytes, list[tuple[OpenPart, GroundTruth]]] = {}
    for part in probed:
        truth = read_ground_truth(part.folder / GROUND_TRUTH_FILE)
        groups.setdefault(truth.queries.tobytes(), []).append((part, truth))
    pools: list[tuple[PartPool, GroundTruth | None]] = []
    for group in groups.values():
        pool = PartPool(tuple(part for part, _ in group))
        firsts = pool.firsts[:-1].tolist()
        pools.append(
            (pool, merge_ground_truths([(truth, first) for (_, truth), first in zip(group, firsts, strict=True)]))
        )
    return pools


@dataclass(frozen=True)
class _CheckQueries:
    """Queries, and how to judge what was found for them."""

    queries: Vectors
    recall: Callable[[SearchResult], float]
    exact_seconds: float  # a query
    source: str


def _queries_with_ground_truth(pool: PartPool, truth: GroundTruth, k: int) -> _CheckQueries:
    some = truth.queries[:_TIMED_QUERIES]
    _, seconds = _time_call(pool.exact, some, k)
    return _CheckQueries(truth.queries, lambda found: truth.recall(found[1]), seconds / len(some), "sample")


def _queries_with_exact_search(pool: PartPool, given: Vectors | None, k: int) -> _CheckQueries:
    queries = _sample_stored_vectors(pool) if given is None else given
    (exact, _), seconds = _time_call(pool.exact, queries, k)
    source = "stored" if given is None else "given"
    return _CheckQueries(queries, lambda found: score_recall(found[0], exact), seconds / len(queries), source)


def _measure_pool(pool: PartPool, asked: _CheckQueries, k: int, wanted: float) -> PoolCheck:
    """Search with the parts' own efforts, and then with greater ones until recall is reached."""
    own = max(part.info.effort for part in pool.parts)
    for effort in (0, *(step for step in pool.efforts if step > own)):
        found, seconds = _time_call(pool.search, asked.queries, k, effort)
        reached = asked.recall(found)
        if reached >= wanted:
            break
    return PoolCheck(
        modality=pool.parts[0].info.modality,
        parts=tuple(part.info.name for part in pool.parts),
        recall=round(reached, 4),
        ef_search=effort or own,
        qps=round(len(asked.queries) / seconds, 1),
        exact_qps=round(1 / asked.exact_seconds, 1),
        k=k,
        queries=len(asked.queries),
        queries_from=asked.source,
    )


def _sample_stored_vectors(pool: PartPool) -> Vectors:
    """Return some hundred stored vectors, spread over the parts."""
    numbers = np.unique(np.linspace(0, pool.vectors - 1, _STORED_SAMPLE_SIZE).astype(np.int64))
    rows = []
    for part, first in zip(pool.parts, pool.firsts.tolist(), strict=False):
        mine = numbers[(numbers >= first) & (numbers < first + part.info.vectors)] - first
        if len(mine):
            rows.append(part.stored.stored(mine))
    return np.concatenate(rows)


def _time_call(search: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    result = search(*arguments)
    return result, max(time.perf_counter() - started, 1e-9)
