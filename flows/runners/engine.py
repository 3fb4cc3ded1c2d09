"""Execution of jobs, as Prefect task runs (`prefect/task_runs.py`), in processes, on Ray or on Slurm.

Prefect shows the progress; receipts decide what has to run. Jobs run in processes, since tagging holds Python's lock
(`datasets.worker_processes`). The number of processes does not change the output.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.rejects import list_reasons
from pairwright.datasets.worker_processes import WorkerProcesses
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.llm.answer_service import LOOPBACK, AnswerService
from pairwright.flows.prefect.artifacts import FlowArtifacts
from pairwright.flows.prefect.flow_reports import FlowReports
from pairwright.flows.prefect.task_runs import job_batches, run_as_task
from pairwright.flows.progress import BuildProgress
from pairwright.flows.runners.ray_pool import RayPool
from pairwright.flows.runners.slurm_pool import SlurmPool, cancel_left_arrays
from pairwright.flows.runners.worker_start import PRELOADED, process_count
from pairwright.flows.stage_selection import Share, StageSelection
from pairwright.flows.state.receipts import Counts, Job, Receipt, run_job, total_counts, valid_receipt

StageJobs = Sequence[Job] | Generator[Sequence[Job], tuple[Receipt, ...], Sequence[Job]]
"""The jobs of a stage; or a generator of groups of jobs, each made from the receipts of the group before.

The generator yields a group, is sent its receipts, and returns the last group. A stage that works part by part and then
merges yields a job per part and returns the merging job.
"""

Item = TypeVar("Item")
Result = TypeVar("Result")

_ASKING_JOBS = 2  # at once in one process: while one waits for the server, the other checks answers
_LISTED = 3  # reasons of rejection in a line
_POLL_S = 1.0  # between two looks for the receipts of other shares


@dataclass(frozen=True)
class Engine:
    """Runs the jobs of one build.

    Attributes:
        root: the build directory.
        pool: runs the jobs.
        progress: receives the progress.
        done: receipts by stage, in the order of parts; filled as stages end.
        local_pool: runs the jobs that must run in this process.
        asking_pool: runs the jobs that ask a model.
        stop: set when the build ends early; jobs that run in this process check it.
        selection: which stages run.
        artifacts: the progress on Prefect's page.
        reports: of the build to Prefect.
        max_task_runs: of a pass of a stage over the parts.
        workers: processes of the pool, unless it is Ray's.
        answers: sends the requests of jobs that ask a model.
    """

    root: Path
    pool: Executor
    progress: BuildProgress
    done: dict[str, tuple[Receipt, ...]]
    local_pool: Executor
    asking_pool: Executor
    stop: threading.Event
    selection: StageSelection
    artifacts: FlowArtifacts
    reports: FlowReports
    max_task_runs: int
    workers: int
    answers: AnswerService

    async def run_stage(self, name: str, jobs: StageJobs) -> tuple[Receipt, ...]:
        """Run the jobs of a stage and return their receipts in the order of the jobs, those of its last group first.

        Raises:
            RequestedStageDone: after the stage that ``--only`` names.
            OtherPartsLeft: when jobs of other shares are not done.
        """
        earlier: list[Receipt] = []
        if isinstance(jobs, Generator):
            group = next(jobs)
            try:
                while True:
                    receipts = await self.run_group(name, group)
                    earlier += receipts
                    group = jobs.send(receipts)
            except StopIteration as end:
                last: Sequence[Job] = end.value
        else:
            last = jobs
        receipts = await self.run_group(name, last)
        # Counts and facts of a stage are those of its last group.
        receipts += tuple(replace(each, counts=Counts(each.counts.unit), facts={}) for each in earlier)
        self.done[name] = receipts
        self.progress.end(name, counts_line(total_counts(receipts)))
        self.selection.end_stage(name)
        return receipts

    async def _receipts_of_all(self, stage: str, jobs: Sequence[Job], share: Share) -> tuple[Receipt, ...]:
        """Return the receipts of all shares of a stage, when they are there."""
        until = time.monotonic() + share.wait
        found: list[Receipt | None] = [None] * len(jobs)
        while True:
            found = [known or valid_receipt(self.root, job) for known, job in zip(found, jobs, strict=True)]
            left = share.left(stage, [receipt is not None for receipt in found])
            if left is None:
                return tuple(receipt for receipt in found if receipt is not None)
            if time.monotonic() >= until:
                raise left
            await asyncio.sleep(_POLL_S)

    async def call_all(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return what a function returns for each item, found by the pool; nothing is recorded.

        Raises:
            PairwrightError: of the function, or when a worker died.
        """
        loop = asyncio.get_running_loop()
        calls = [loop.run_in_executor(self.pool, function, item) for item in items]
        for call in calls:
            call.add_done_callback(_retrieve_exception)
        try:
            return await asyncio.gather(*(asyncio.shield(call) for call in calls))
        except BrokenProcessPool:
            raise _worker_died("the plan of a stage") from None

    async def run_group(self, name: str, jobs: Sequence[Job]) -> tuple[Receipt, ...]:
        """Run independent jobs of a stage, in any order; return their receipts in the order of ``jobs``.

        Raises:
            OtherPartsLeft: when jobs of other shares are not done.
        """
        self.selection.begin_stage(self.root, name, jobs, list(self.done))
        self.progress.begin(name, len(jobs))
        self.artifacts.begin(name, len(jobs))
        share = self.selection.share
        own = [job for position, job in enumerate(jobs) if share is None or share.has(position)]
        done = await asyncio.gather(*(self._batch(batch) for batch in job_batches(own, self.max_task_runs)))
        if share is not None:
            return await self._receipts_of_all(name, jobs, share)
        return tuple(receipt for batch in done for receipt in batch)

    async def _batch(self, jobs: Sequence[Job]) -> list[Receipt]:
        """Run jobs as one task run."""
        known = [valid_receipt(self.root, job) for job in jobs]
        done: list[Receipt] = []

        async def work() -> None:
            done.extend(await asyncio.gather(*(self._job(*each) for each in zip(jobs, known, strict=True))))

        await run_as_task(jobs, work, self.reports, reused=all(known))
        return done

    async def _job(self, job: Job, known: Receipt | None) -> Receipt:
        receipt = known or await self._run(job)
        self.progress.advance(job.stage, reused=known is not None)
        self.artifacts.advance(job.stage)
        return receipt

    async def _run(self, job: Job) -> Receipt:
        submit: Callable[..., Future[Any]] = self.pool.submit
        if job.asks is not None:
            await asyncio.to_thread(self.answers.start, job.asks)
            job = replace(job, asks=None)  # it holds the address of the server
            submit = self.asking_pool.submit
        if job.in_build_process:
            submit = self.local_pool.submit
        elif job.multi_core and isinstance(self.pool, RayPool | SlurmPool):
            submit = self.pool.submit_alone
        try:
            # Shielded: the pool cancels its waiting jobs when it is shut down. If a job is cancelled here while its
            # process is killed, as by Ctrl-C, a thread of the pool ends with a traceback.
            running = asyncio.wrap_future(submit(run_job, self.root, job))
            running.add_done_callback(_retrieve_exception)
            return await asyncio.shield(running)
        except BrokenProcessPool:
            raise _worker_died(f"{job.stage} {job.part}") from None


def _worker_died(place: str) -> PairwrightError:
    return PairwrightError(
        f"a worker process died in {place} (killed, or out of memory). "
        "Start the build again to resume it, with fewer workers if memory is short."
    )


def _retrieve_exception(job: "asyncio.Future[Any]") -> None:
    """Retrieve the error of a cancelled job, which asyncio would print otherwise."""
    if not job.cancelled():
        job.exception()


def _pool(root: Path, config: BuildConfig, note: Callable[[str], None]) -> Executor:
    if config.runner == "ray":
        if config.workers:
            raise UsageError(
                "`workers` is for processes on this machine. Set the jobs per Ray node with `ray start --num-cpus`."
            )
        return RayPool(root, config.address)
    if config.runner == "slurm":
        if config.workers:
            raise UsageError("`workers` is for processes on this machine. Set `cpus` and `array` under `slurm`.")
        return SlurmPool(root, config.slurm, config.name, note)
    if config.address:
        raise UsageError("`address` requires `runner: ray` (--runner ray).")
    workers = process_count(config)
    if workers == 1:
        return ThreadPoolExecutor(1)  # in this process: nothing has to be imported again
    return WorkerProcesses(workers, PRELOADED)


@asynccontextmanager
async def open_engine(  # noqa: PLR0913, PLR0917 - what belongs to one run
    root: Path,
    config: BuildConfig,
    progress: BuildProgress,
    selection: StageSelection,
    artifacts: FlowArtifacts,
    reports: FlowReports,
    max_task_runs: int,
) -> AsyncIterator[Engine]:
    """Open an engine with ``workers`` processes (0 = one per core, 1 = this process) or Ray's; close it at the end.

    Raises:
        UsageError: for settings of another runner.
        MissingResourceError: when Ray is not installed.
    """
    cancel_left_arrays(root)  # whatever runs the jobs now
    pool, local_pool, stop = _pool(root, config, progress.note), ThreadPoolExecutor(1), threading.Event()
    asking_pool = ThreadPoolExecutor(_ASKING_JOBS) if isinstance(pool, ThreadPoolExecutor) else pool
    workers = process_count(config)
    # Other shares of the build may run on other machines.
    on_this_machine = config.runner == "processes" and selection.share is None
    host = LOOPBACK if on_this_machine else config.host
    answers = AnswerService(root, host, progress, others_go_on=selection.share is not None)
    try:
        yield Engine(
            *(root, pool, progress, {}, local_pool, asking_pool, stop, selection, artifacts, reports, max_task_runs),
            *(workers, answers),
        )
    except asyncio.CancelledError:
        if isinstance(pool, WorkerProcesses):
            pool.kill()
        raise
    finally:
        stop.set()
        answers.close()
        for each in (pool, local_pool, asking_pool):
            each.shutdown(wait=True, cancel_futures=True)
        answers.remove_address()


def counts_line(counts: Counts) -> str:
    """Return the counts as a line of text."""
    rejected = sum(counts.rejected.values())
    line = f"{counts.kept:,} of {count_phrase(counts.candidates, counts.unit)} kept"
    if rejected:
        line += f"; rejected: {list_reasons(counts.rejected, _LISTED)}"
        line += ", ..." if len(counts.rejected) > _LISTED else ""
    return line
