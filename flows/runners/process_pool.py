"""Work shared out to processes, in the order in which it came.

How many processes there are changes nothing in what comes out.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing.reduction import ForkingPickler
from types import TracebackType
from typing import Final, Self, TypeVar

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.worker_processes import WorkerProcesses

MAX_JOBS_ALONE: Final = 8  # jobs that take less time than other processes take to start
_AHEAD: Final = 3  # jobs a process, of which one is worked on: what waits is held in memory

Job = TypeVar("Job")
Result = TypeVar("Result")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class OrderedPool:
    """Does jobs in several processes, which start when there is enough to do; a context manager.

    Args:
        workers: processes; 0: one a core; 1: this one.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers or cores()
        self._pool: WorkerProcesses | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def map_jobs(self, work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield each job with what ``work`` gives for it, in order; few jobs are read ahead.

        Args:
            work: a function, or an object to be called, that pickles.
            jobs: that pickle; `MAX_JOBS_ALONE` of them or fewer are done in this process.

        Raises:
            PairwrightError: what ``work`` raises, or when a process was killed.
        """
        coming = iter(jobs)
        first = list(islice(coming, MAX_JOBS_ALONE + 1))
        every = chain(first, coming)
        if self._workers == 1 or len(first) <= MAX_JOBS_ALONE:
            for job in every:
                yield job, work(job)
            return
        try:
            yield from self._shared_out(work, every)
        except BrokenProcessPool:
            raise PairwrightError(
                "a worker process died (killed, or out of memory). Start again, with fewer --workers when memory is short."
            ) from None

    def _shared_out(self, work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        if self._pool is None:
            self._pool = WorkerProcesses(self._workers)
        ForkingPickler.dumps(work)  # raises here what does not pickle: in the pool's own thread it may never end
        waiting: deque[tuple[Job, Future[Result]]] = deque()
        for job in jobs:
            waiting.append((job, self._pool.submit(work, job)))
            if len(waiting) >= _AHEAD * self._workers:
                done, found = waiting.popleft()
                yield done, found.result()
        for done, found in waiting:
            yield done, found.result()
