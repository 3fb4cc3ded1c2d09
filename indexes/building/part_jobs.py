"""Jobs that build the parts of an index, sequentially or in worker processes.

A part depends only on its range of the stored pairs, so any number of workers gives the same bytes (except for models
whose library rounds differently with fewer threads). Each worker builds complete parts with its share of the cores;
memory is that of one part per worker.
"""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.progress import attribute_steps_to, open_step
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject
from pairwright.datasets.rng import make_numpy_rng
from pairwright.datasets.worker_processes import WorkerProcesses
from pairwright.indexes.building.pair_vectors import PairVectors
from pairwright.indexes.building.part_builder import PartBuilder, extend_part_builder, new_part_builder
from pairwright.indexes.building.stored_pairs import CaptionEntries, StoredPairs, one_entry_per_pair
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_files import choose_build_threads, limit_faiss_threads
from pairwright.indexes.hnsw.index_folder import remove_index_files
from pairwright.indexes.hnsw.metadata import FileDigests, Modality, PartInfo, VectorStorage, digest_files
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.storage import StorageChoice, training_row_count

IndexProgress = Callable[[str, int, int], None]

_POLL_SECONDS = 0.2  # interval of progress updates


class ProgressQueue(Protocol):
    """Progress reports of workers: numbers of completed pairs."""

    def put(self, item: int, /) -> None:
        """Report ``item`` more pairs."""
        ...

    def get_nowait(self) -> int:
        """Return a report, or raise `queue.Empty`."""
        ...


@dataclass(frozen=True)
class PartJob:
    """A part to build.

    Attributes:
        folder: folder of the part.
        modality: modality of its vectors.
        pairs: the stored pairs of the index.
        first: number of its first pair.
        end: number after its last pair.
        choice: storage of the vectors.
        options: options of the index.
        sample_queries: float32 (q, dim), or None.
        extends: folder and metadata of the part that this one extends, or None.
    """

    folder: Path
    modality: Modality
    pairs: StoredPairs
    first: int
    end: int
    choice: StorageChoice
    options: IndexOptions
    sample_queries: Vectors | None = None
    extends: tuple[Path, PartInfo] | None = None


@dataclass(frozen=True)
class PartResult:
    """Result of a job.

    Attributes:
        info: metadata of the part; None if no pair had a vector.
        files: size and digest of its files, by path in the index folder.
        rejects: pairs without a vector.
    """

    info: PartInfo | None
    files: FileDigests
    rejects: list[Reject]


def build_parts(jobs: Sequence[PartJob], vectors: PairVectors, workers: int, watch: IndexProgress) -> list[PartResult]:
    """Build all parts, in order of ``jobs``.

    Args:
        jobs: parts to build.
        vectors: vectors of the pairs; pickled if there are several workers.
        workers: number of processes; 1 builds in this process.
        watch: called with "vectors", the number of completed pairs, and the total.

    Raises:
        PairwrightError: if a build fails or a worker is killed.
    """
    total = sum(job.end - job.first for job in jobs)
    workers = min(workers, len(jobs))
    if workers <= 1:
        done = _ProgressCounter(watch, total)
        return [built for job in jobs for built in _build_jobs([job], vectors, done, 0)]
    context = multiprocessing.get_context("spawn")
    threads = max(1, choose_build_threads(0) // workers)
    with context.Manager() as manager, WorkerProcesses(workers) as pool:
        queue: Any = manager.Queue()
        shares = [list(jobs[worker::workers]) for worker in range(workers)]
        futures = [pool.submit(_build_jobs, share, vectors, queue, threads) for share in shares]
        _forward_progress(futures, queue, _ProgressCounter(watch, total))
        try:
            done_by = [future.result() for future in futures]
        except BrokenProcessPool:
            raise PairwrightError(
                "index: a worker process was killed, possibly out of memory. Use fewer workers or more shards."
            ) from None
    return [done_by[number % workers][number // workers] for number in range(len(jobs))]


class _ProgressCounter:
    """Sums up progress reports and passes the sum to ``watch``; a `ProgressQueue` that is always empty."""

    def __init__(self, watch: IndexProgress, total: int) -> None:
        self._watch, self._total, self._done = watch, total, 0

    def put(self, item: int, /) -> None:
        self._done += item
        self._watch("vectors", self._done, self._total)

    def get_nowait(self) -> int:
        raise Empty


def build_part(job: PartJob, vectors: PairVectors, threads: int, owner: tuple[str, str]) -> PartResult:
    """Build one part in this process.

    Args:
        job: part to build.
        vectors: vectors of the pairs.
        threads: threads of FAISS and of model libraries; 0 for the number in the options.
        owner: stage and part to which progress is attributed.
    """
    total = job.end - job.first
    with attribute_steps_to(*owner), open_step("vectors", total, "pairs") as step:
        (built,) = _build_jobs(
            [job], vectors, _ProgressCounter(lambda _, done, total: step.reach(done, total), total), threads
        )
    return built


def _forward_progress(
    futures: "Sequence[Future[list[PartResult]]]", queue: ProgressQueue, counter: _ProgressCounter
) -> None:
    """Forward the reports of the workers until all are done or one has failed."""
    running = set(futures)
    while running:
        finished, running = wait(running, timeout=_POLL_SECONDS)
        try:
            while True:
                counter.put(queue.get_nowait())
        except Empty:
            pass
        if any(future.exception() for future in finished):
            for future in running:
                future.cancel()
            return


def _build_jobs(jobs: list[PartJob], vectors: PairVectors, progress: ProgressQueue, threads: int) -> list[PartResult]:
    """Build parts in this process with ``threads``; 0 for the number in the options."""
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # for libraries loaded later, such as those of models
    found = []
    for job in jobs:
        with limit_faiss_threads(choose_build_threads(job.options.threads or threads)):
            found.append(_build_job(job, vectors, progress))
    return found


def _build_job(job: PartJob, vectors: PairVectors, progress: ProgressQueue) -> PartResult:
    builder = _start_builder(job, vectors)
    rejects: list[Reject] = []
    for pairs in job.pairs.batches(job.first, job.end):
        entries = _list_entries(job, vectors, pairs)
        rows = vectors.rows(entries.pairs, job.modality)
        rejects += rows.rejects
        if builder is not None:
            keys = [pair.key for pair, has in zip(entries.pairs, rows.has.tolist(), strict=True) if has]
            builder.add(keys, rows.vectors, entries.captions[rows.has])
        progress.put(len(pairs))
    info = builder.finish() if builder is not None else None
    if info is None:
        remove_index_files(job.folder)
        return PartResult(None, {}, rejects)
    names = [f"{job.folder.name}/{path.name}" for path in sorted(job.folder.iterdir())]
    return PartResult(info, digest_files(job.folder.parent, names), rejects)


def _start_builder(job: PartJob, vectors: PairVectors) -> PartBuilder | None:
    """Return the builder of the part; None if there are no training rows because no pair has a vector."""
    several = job.modality == "text" and vectors.every_caption
    count = job.pairs.captions_of(job.first, job.end) if several else job.end - job.first
    if job.extends is not None:
        old, info = job.extends
        becomes_graph = info.kind == "flat" and info.vectors + count >= job.options.flat_below
        sample = _sample_training_rows(job, vectors, info.storage, count) if becomes_graph else None
        return extend_part_builder(job.folder, old, info, job.options, count=count, sample=sample)
    sample = _sample_training_rows(job, vectors, job.choice.storage, count)
    if sample is not None and not len(sample):
        return None
    return new_part_builder(
        job.folder, job.choice, job.options, count=count, sample=sample, sample_queries=job.sample_queries
    )


def _list_entries(job: PartJob, vectors: PairVectors, pairs: Sequence[Pair]) -> CaptionEntries:
    """Return the entries of ``pairs``."""
    return job.pairs.entries(pairs) if job.modality == "text" and vectors.every_caption else one_entry_per_pair(pairs)


def _sample_training_rows(job: PartJob, vectors: PairVectors, storage: VectorStorage, count: int) -> Vectors | None:
    """Return training rows of random pairs of the part, which has ``count`` entries; None if none are needed."""
    wanted, pair_count = training_row_count(storage, count), job.end - job.first
    if not wanted:
        return None
    drawn = -(-wanted * pair_count // count)  # pairs with about as many entries
    rng = make_numpy_rng("training rows", job.modality, job.first)
    numbers: NDArray[np.int64] = job.first + np.sort(rng.choice(pair_count, drawn, replace=False))
    rows = np.concatenate([_encode_rows(job, vectors, pairs) for pairs in job.pairs.select(numbers)])
    if len(rows) or drawn == pair_count:
        return rows
    for pairs in job.pairs.batches(job.first, job.end):  # no drawn pair has a vector
        rows = _encode_rows(job, vectors, pairs)
        if len(rows):
            break
    return rows


def _encode_rows(job: PartJob, vectors: PairVectors, pairs: Sequence[Pair]) -> Vectors:
    return vectors.rows(_list_entries(job, vectors, pairs).pairs, job.modality).vectors
