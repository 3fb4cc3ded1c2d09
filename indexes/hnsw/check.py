"""Check of an index folder: checksums, recall and speed.

Recall@k is the share of the true k nearest that a search finds, ties counting as found. It is measured on, in this order:

- the given queries, against exact search among the stored vectors;
- the sample queries stored by the build, against true neighbours computed before quantisation. Parts that were built
  together share their sample and are measured together, other parts separately;
- stored vectors, against exact search; they are easier to find than new queries.

If recall is below the wanted one, the effort is raised step by step. Speeds are measured with one thread and all queries
in one batch, which favours exact search: the graph is faster only from some ten thousand vectors on.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairwright.datasets.checksums import hash_file
from pairwright.datasets.errors import UsageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_files import limit_faiss_threads
from pairwright.indexes.hnsw.graph import SearchResult
from pairwright.indexes.hnsw.ground_truth import TRUE_NEIGHBOURS, GroundTruth, merge_ground_truths, read_ground_truth
from pairwright.indexes.hnsw.metadata import GROUND_TRUTH_FILE, Modality
from pairwright.indexes.hnsw.search import Index, OpenPart, PartPool, open_index, score_recall

_STORED_SAMPLE_SIZE = 500
_TIMED_QUERIES = 100  # queries that time exact search, which reads the whole index


@dataclass(frozen=True)
class PoolCheck:
    """Measurements of parts that are searched together.

    Attributes:
        modality: modality of the parts.
        parts: names of the parts.
        recall: recall@k at ``ef_search``, 0 to 1.
        ef_search: highest default of the parts, or the higher one that was needed; nprobe for ivfpq, 0 for exact search.
        qps: queries per second of the index, one thread.
        exact_qps: queries per second of exact search, one thread.
        k: neighbours per query.
        queries: number of queries.
        queries_from: given, sample or stored.
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
    """Result of `check_index`.

    Attributes:
        recall: lowest recall of the pools; ``ef_search``, ``qps``, ``exact_qps``, ``k``, ``queries`` and
            ``queries_from`` are of that pool, see `PoolCheck`.
        checksum_ok: whether every file matches its checksum.
        damaged: files that do not match their checksum.
        pools: measurements of all pools.
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
        k: neighbours per query, at least 1; stored vectors without aliases.
        queries: unit rows from the encoder of the index, float32 (n, dim).
        modality: modality to measure; all by default.
        wanted: recall to reach by raising the effort.

    Raises:
        StorageError: if the index cannot be opened.
        UsageError: if ``k`` is below 1, the queries have another length, or the modality is not indexed.
    """
    if k < 1:
        raise UsageError(f"k {k}: must be at least 1.")
    index = open_index(directory)
    if queries is not None and (queries.ndim != 2 or queries.shape[1] != index.info.dim or not len(queries)):
        raise UsageError(f"queries of shape {queries.shape}: pass rows of length {index.info.dim}.")
    with limit_faiss_threads(1):
        pools = []
        for name in [modality] if modality else index.info.modalities:
            for pool, truth in _group_pools(index, name, k, queries):
                pool_k = min(k, pool.vectors)
                if truth:
                    sample = _queries_with_ground_truth(pool, truth, pool_k)
                else:
                    sample = _queries_with_exact_search(pool, queries, pool_k)
                pools.append(_measure_pool(pool, sample, pool_k, wanted))
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
    """Return the pools to measure, each with its stored ground truth if that is used."""
    whole = index.pool(modality)
    sampled = [part for part in whole.parts if (part.folder / GROUND_TRUTH_FILE).exists()]
    if queries is not None or k > TRUE_NEIGHBOURS or not sampled:
        return [(whole, None)]
    groups: dict[bytes, list[tuple[OpenPart, GroundTruth]]] = {}
    for part in sampled:
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
    """Queries and the recall of their results."""

    queries: Vectors
    recall: Callable[[SearchResult], float]
    exact_seconds: float  # per query
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


def _measure_pool(pool: PartPool, sample: _CheckQueries, k: int, wanted: float) -> PoolCheck:
    """Search with the default efforts, then with higher ones until the wanted recall is reached."""
    own = max(part.info.effort for part in pool.parts)
    for effort in (0, *(step for step in pool.efforts if step > own)):
        found, seconds = _time_call(pool.search, sample.queries, k, effort)
        reached = sample.recall(found)
        if reached >= wanted:
            break
    return PoolCheck(
        modality=pool.parts[0].info.modality,
        parts=tuple(part.info.name for part in pool.parts),
        recall=round(reached, 4),
        ef_search=effort or own,
        qps=round(len(sample.queries) / seconds, 1),
        exact_qps=round(1 / sample.exact_seconds, 1),
        k=k,
        queries=len(sample.queries),
        queries_from=sample.source,
    )


def _sample_stored_vectors(pool: PartPool) -> Vectors:
    """Return about 500 stored vectors, spread over the parts."""
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
