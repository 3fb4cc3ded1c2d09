"""A pool of processes that returns results in the order of the jobs; their number does not change the results."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing.reduction import ForkingPickler
from types import TracebackType
from typing import Final, Self, TypeVar

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.worker_processes import WorkerProcesses, available_cores

MAX_JOBS_ALONE: Final = 8  # fewer jobs take less time than processes take to start
_AHEAD: Final = 3  # jobs per process in memory, running and waiting

Job = TypeVar("Job")
Result = TypeVar("Result")


class OrderedPool:
    """Runs jobs in several processes, which start when there are enough jobs; a context manager.

    Args:
        workers: processes (0 = one per core, 1 = this process).
        alone: up to so many jobs run in this process.
        preload, deaf: as of `WorkerProcesses`.

    Attributes:
        workers: processes.
    """

    def __init__(self, workers: int, alone: int = MAX_JOBS_ALONE, *, preload: str = "", deaf: bool = False) -> None:
        self.workers, self._alone, self._preload, self._deaf = workers or available_cores(), alone, preload, deaf
        self._pool: WorkerProcesses | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def executor(self) -> Executor:
        """Return the processes, as an executor; they start with the first job."""
        if self._pool is None:
            self._pool = WorkerProcesses(self.workers, self._preload, deaf=self._deaf)
        return self._pool

    def map_jobs(self, work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield each job with its result, in order; few jobs are read ahead.

        Args:
            work: a callable that can be pickled.
            jobs: that can be pickled.

        Raises:
            PairwrightError: of ``work``, or when a process was killed.
        """
        remaining = iter(jobs)
        first = list(islice(remaining, self._alone + 1))
        every = chain(first, remaining)
        if self.workers == 1 or len(first) <= self._alone:
            for job in every:
                yield job, work(job)
            return
        try:
            yield from self._map_in_pool(work, every)
        except BrokenProcessPool:
            raise PairwrightError(
                "a worker process died (killed, or out of memory). Start again, with fewer --workers if memory is short."
            ) from None

    def _map_in_pool(self, work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        pool = self.executor()
        ForkingPickler.dumps(work)  # an error of pickling in the thread of the pool may block forever
        waiting: deque[tuple[Job, Future[Result]]] = deque()
        for job in jobs:
            waiting.append((job, pool.submit(work, job)))
            if len(waiting) >= _AHEAD * self.workers:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()
