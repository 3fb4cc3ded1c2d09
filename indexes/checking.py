"""Checking an index folder: its bytes against their checksums, its answers against exact search.

Recall is the share of the true k nearest that a search finds, ties counting whichever is named. It is measured on
queries of the kind that will be asked, since vectors of the pool itself are easier to find than new ones: the queries
given, else the sample that was put aside when the index was built, else stored vectors. When recall falls short,
ef_search is raised step by step until it does not. Speeds are of one thread, the queries being asked in one batch; a
batch flatters exact search, which is slower than the graph only from some ten thousand vectors on.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.encoders import Vectors
from pairwright.indexes.search import EF_SEARCH_LADDER, Index, open_index, recall, search_graph, stored_vectors
from pairwright.indexes.sidecar import PROBES, sha256
from pairwright.indexes.threads import omp_threads

_SAMPLE = 500


@dataclass(frozen=True)
class IndexCheck:
    """What `check_index` measured.

    Attributes:
        recall: recall@k at ``ef_search``, 0 to 1.
        ef_search: the index's own, or the higher one that was needed; 0 for a flat index.
        qps: queries a second through the index, one thread.
        exact_qps: queries a second by comparing with every vector, one thread.
        checksum_ok: whether every file has the bytes it was written with.
        k: that recall was measured at.
        queries: how many were asked.
        queries_from: given, probes or stored.
    """

    recall: float
    ef_search: int
    qps: float
    exact_qps: float
    checksum_ok: bool
    k: int
    queries: int
    queries_from: str

    def summary(self) -> dict[str, Any]:
        """Return what ``pairwright index check --json`` prints."""
        return asdict(self)


def check_index(directory: Path, k: int = 10, *, queries: Vectors | None = None, wanted: float = 0.95) -> IndexCheck:
    """Measure the index in ``directory``.

    Args:
        directory: an index folder.
        k: neighbours that recall looks at.
        queries: unit rows of the encoder that the index was built with, float32 (n, dim).
        wanted: recall that ef_search is raised for.

    Raises:
        StorageError: when the index cannot be opened.
        UsageError: when ``k`` is below 1, or the queries do not fit.
    """
    if k < 1:
        raise UsageError(f"k {k}: has to be at least 1.")
    index = open_index(directory)
    vectors, source = _queries(index, directory, queries)
    k = min(k, index.info.vectors)
    ladder = [index.info.ef_search, *(step for step in EF_SEARCH_LADDER if step > index.info.ef_search > 0)]
    with omp_threads(1):
        (exact, _), exact_seconds = _timed(stored_vectors(index.faiss_index).search, vectors, k)
        for ef_search in ladder:
            (found, _), seconds = _timed(search_graph, index.faiss_index, vectors, k, ef_search)
            reached = recall(found, exact)
            if reached >= wanted:
                break
    return IndexCheck(
        recall=round(reached, 4),
        ef_search=ef_search,
        qps=round(len(vectors) / seconds, 1),
        exact_qps=round(len(vectors) / exact_seconds, 1),
        checksum_ok=all(sha256(directory / name) == file["sha256"] for name, file in index.info.files.items()),
        k=k,
        queries=len(vectors),
        queries_from=source,
    )


def _queries(index: Index, directory: Path, given: Vectors | None) -> tuple[Vectors, str]:
    if given is not None:
        if given.ndim != 2 or given.shape[1] != index.info.dim or not len(given):
            raise UsageError(f"queries of shape {given.shape}: give rows of length {index.info.dim}.")
        return given, "given"
    if PROBES in index.info.files:
        try:
            return np.load(directory / PROBES, allow_pickle=False), "probes"
        except (OSError, ValueError) as error:
            raise StorageError(f"{directory / PROBES}: damaged ({error}). Build the index again.") from None
    numbers = np.unique(np.linspace(0, index.info.vectors - 1, _SAMPLE).astype(np.int64))
    return stored_vectors(index.faiss_index).reconstruct_batch(numbers), "stored"


def _timed(search: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    result = search(*arguments)
    return result, max(time.perf_counter() - started, 1e-9)
