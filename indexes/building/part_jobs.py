"""Building the parts of an index, one after the other or side by side in processes.

A part is built of a range of the kept pairs and depends on that range alone, so any number of workers gives the same
bytes (a model's rows apart, where its library rounds otherwise with fewer threads). Each worker builds whole parts
with its share of the cores; memory is that of as many parts as there are workers.
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
from pairwright.indexes.building.caption_entries import CaptionEntries, one_entry_per_pair
from pairwright.indexes.building.pair_files import StoredPairs
from pairwright.indexes.building.pair_vectors import PairVectors
from pairwright.indexes.building.part_builder import PartBuilder, extend_part_builder, new_part_builder
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_threads import choose_build_threads, limit_faiss_threads
from pairwright.indexes.hnsw.index_folder import remove_index_files
from pairwright.indexes.hnsw.metadata import FileDigests, IndexOptions, Modality, PartInfo, VectorStorage, digest_files
from pairwright.indexes.hnsw.storage import StorageChoice, training_row_count

IndexProgress = Callable[[str, int, int], None]

_POLL_SECONDS = 0.2  # seconds between looks at how far the workers are


class ProgressQueue(Protocol):
    """Where a worker tells how many pairs it has done."""

    def put(self, item: int, /) -> None:
        """Tell of ``item`` more pairs."""
        ...

    def get_nowait(self) -> int:
        """Return what was told, or raise `queue.Empty`."""
        ...


@dataclass(frozen=True)
class PartJob:
    """A part to build.

    Attributes:
        folder: of the part.
        modality: of its vectors.
        pairs: files that the pairs are in.
        first: number of its first pair there.
        end: number of the pair after its last.
        choice: how vectors are stored.
        options: of the index.
        probes: sample queries, float32 (q, dim), or none.
        old: folder and description of the part that this one extends, if it does.
    """

    folder: Path
    modality: Modality
    pairs: StoredPairs
    first: int
    end: int
    choice: StorageChoice
    options: IndexOptions
    probes: Vectors | None = None
    old: tuple[Path, PartInfo] | None = None


@dataclass(frozen=True)
class PartResult:
    """What became of a job.

    Attributes:
        info: of the part; None when no pair had a vector.
        files: its files, by their path in the index folder.
        rejects: pairs that have no vector.
    """

    info: PartInfo | None
    files: FileDigests
    rejects: list[Reject]


BuildParts = Callable[[Sequence[PartJob], PairVectors, IndexProgress], list[PartResult]]


def build_parts(jobs: Sequence[PartJob], vectors: PairVectors, workers: int, watch: IndexProgress) -> list[PartResult]:
    """Build all parts, in order of ``jobs``.

    Args:
        jobs: what to build.
        vectors: of the pairs; pickled when there are several workers.
        workers: processes; 1 builds in this one.
        watch: hears "vectors", how many pairs are done, and of how many.

    Raises:
        PairwrightError: what building raises, or when a worker was killed.
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
                "index: a worker process was ended from outside, perhaps for want of memory. Use fewer workers, or more shards."
            ) from None
    return [done_by[number % workers][number // workers] for number in range(len(jobs))]


class _ProgressCounter:
    """Adds up what is told and passes the sum on; a `Queue` that is empty at once."""

    def __init__(self, watch: IndexProgress, total: int) -> None:
        self._watch, self._total, self._done = watch, total, 0

    def put(self, item: int, /) -> None:
        self._done += item
        self._watch("vectors", self._done, self._total)

    def get_nowait(self) -> int:
        raise Empty


def build_part(job: PartJob, vectors: PairVectors, threads: int, owner: tuple[str, str] | None = None) -> PartResult:
    """Build one part in this process.

    Args:
        job: what to build.
        vectors: of the pairs.
        threads: that FAISS and the libraries of a model use; 0: as many as the options say.
        owner: stage and part of the build's job whose progress this is; None: of nobody's.
    """
    if owner is None:
        (built,) = _build_jobs([job], vectors, _ProgressCounter(lambda *_: None, 0), threads)
        return built
    total = job.end - job.first
    with attribute_steps_to(*owner), open_step("vectors", total, "pairs") as this:
        (built,) = _build_jobs(
            [job], vectors, _ProgressCounter(lambda _, done, total: this.reach(done, total), total), threads
        )
    return built


def _forward_progress(
    futures: "Sequence[Future[list[PartResult]]]", queue: ProgressQueue, counter: _ProgressCounter
) -> None:
    """Pass on what the workers tell until all are done or one failed."""
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


def _build_jobs(jobs: list[PartJob], vectors: PairVectors, told: ProgressQueue, threads: int) -> list[PartResult]:
    """Build parts in this process, with so many threads; 0 for as many as the options say."""
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # for libraries that are loaded later, as models are
    found = []
    for job in jobs:
        with limit_faiss_threads(choose_build_threads(job.options.threads or threads)):
            found.append(_build_job(job, vectors, told))
    return found


def _build_job(job: PartJob, vectors: PairVectors, told: ProgressQueue) -> PartResult:
    builder = _start_builder(job, vectors)
    rejects: list[Reject] = []
    for pairs in job.pairs.batches(job.first, job.end):
        entries = _list_entries(job, vectors, pairs)
        rows = vectors.rows(entries.pairs, job.modality)
        rejects += rows.rejects
        if builder is not None:
            keys = [pair.key for pair, has in zip(entries.pairs, rows.has.tolist(), strict=True) if has]
            builder.add(keys, rows.vectors, entries.captions[rows.has])
        told.put(len(pairs))
    info = builder.finish() if builder is not None else None
    if info is None:
        remove_index_files(job.folder)
        return PartResult(None, {}, rejects)
    names = [f"{job.folder.name}/{path.name}" for path in sorted(job.folder.iterdir())]
    return PartResult(info, digest_files(job.folder.parent, names), rejects)


def _start_builder(job: PartJob, vectors: PairVectors) -> PartBuilder | None:
    """Return the builder of the part; None when there is nothing to train on, since no pair has a vector."""
    several = job.modality == "text" and vectors.every_caption
    count = job.pairs.captions_of(job.first, job.end) if several else job.end - job.first
    if job.old is not None:
        old, info = job.old
        becomes_graph = info.kind == "flat" and info.vectors + count >= job.options.flat_below
        sample = _sample_training_rows(job, vectors, info.storage, count) if becomes_graph else None
        return extend_part_builder(job.folder, old, info, job.options, count=count, sample=sample)
    sample = _sample_training_rows(job, vectors, job.choice.storage, count)
    if sample is not None and not len(sample):
        return None
    return new_part_builder(job.folder, job.choice, job.options, count=count, sample=sample, probes=job.probes)


def _list_entries(job: PartJob, vectors: PairVectors, pairs: Sequence[Pair]) -> CaptionEntries:
    """Return what of ``pairs`` gets a vector."""
    return job.pairs.entries(pairs) if job.modality == "text" and vectors.every_caption else one_entry_per_pair(pairs)


def _sample_training_rows(job: PartJob, vectors: PairVectors, storage: VectorStorage, count: int) -> Vectors | None:
    """Return rows of the part, of ``count`` entries, to train on: those of random pairs; None when nothing is trained."""
    wanted, pairs_there = training_row_count(storage, count), job.end - job.first
    if not wanted:
        return None
    drawn = -(-wanted * pairs_there // count)  # pairs that have about so many entries
    chance = make_numpy_rng("training rows", job.modality, job.first)
    numbers: NDArray[np.int64] = job.first + np.sort(chance.choice(pairs_there, drawn, replace=False))
    rows = np.concatenate([_encode_rows(job, vectors, pairs) for pairs in job.pairs.chosen(numbers)])
    if len(rows) or drawn == pairs_there:
        return rows
    for pairs in job.pairs.batches(job.first, job.end):  # no pair that was drawn has a vector
        rows = _encode_rows(job, vectors, pairs)
        if len(rows):
            break
    return rows


def _encode_rows(job: PartJob, vectors: PairVectors, pairs: Sequence[Pair]) -> Vectors:
    return vectors.rows(_list_entries(job, vectors, pairs).pairs, job.modality).vectors
