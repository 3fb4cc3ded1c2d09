"""How jobs run: as Prefect task runs (`task_runs.py`), the work itself in a pool of processes or on a Ray cluster.

Prefect shows the progress (states, artifacts); receipts decide what has to run. Work runs in spawned
processes, since tagging holds Python's lock and a forked process would inherit polars' and FAISS's threads.
The number of processes changes nothing in the output.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.worker_processes import WorkerProcesses
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.generating_stages import generating_stages
from pairwright.flows.prefect.artifacts import FlowArtifacts
from pairwright.flows.prefect.task_runs import ReportedRuns, job_batches, run_as_task, runs_per_stage
from pairwright.flows.progress import BuildProgress
from pairwright.flows.runners.process_pool import cores
from pairwright.flows.runners.ray_pool import RayPool
from pairwright.flows.stage_selection import StageSelection, stage_names
from pairwright.flows.state.receipts import Counts, Job, Receipt, run_job, valid_receipt
from pairwright.generators.registry import needs_model


@dataclass(frozen=True)
class Engine:
    """Runs the jobs of one build.

    Attributes:
        root: the build directory.
        pool: where the work runs.
        progress: who is told.
        done: receipts by stage, in the order of parts; filled as stages end.
        here: where jobs run that must run in this process.
        stop: set when the build is ending before its end; jobs that run here heed it.
        scope: which stages are made.
        story: what Prefect's page is told.
        reported: counts the task runs.
        most: task runs of a stage, at most.
        workers: processes of the pool, if it is one of this machine.
    """

    root: Path
    pool: Executor
    progress: BuildProgress
    done: dict[str, tuple[Receipt, ...]]
    here: Executor
    stop: threading.Event
    scope: StageSelection
    story: FlowArtifacts
    reported: ReportedRuns
    most: int
    workers: int

    async def stage(self, jobs: Sequence[Job]) -> tuple[Receipt, ...]:
        """Run the jobs of one stage, in any order, and return their receipts in the order of ``jobs``.

        Raises:
            EndedAsAsked: after the one stage that the scope asks for.
        """
        name = jobs[0].stage
        self.scope.enter(self.root, jobs, list(self.done))
        self.progress.begin(name, len(jobs))
        await self.story.begin(name, len(jobs))
        done = await asyncio.gather(*(self._batch(batch) for batch in job_batches(jobs, self.most)))
        receipts = tuple(receipt for batch in done for receipt in batch)
        self.done[name] = receipts
        self.progress.end(name, counts_line(total_counts(receipts)))
        self.scope.leave(name)
        return receipts

    def side_by_side(self, jobs: int) -> tuple[Executor, int]:
        """Return a pool for so many jobs, while no others run, and the cores that each may use; 0: as it likes."""
        if isinstance(self.pool, RayPool):
            cores_each = self.pool.cores_each(jobs)
            return self.pool.with_cores(cores_each), cores_each
        at_once = min(self.workers, jobs)
        return self.pool, max(1, cores() // at_once) if at_once > 1 else 0

    async def _batch(self, jobs: Sequence[Job]) -> list[Receipt]:
        """Run jobs as one task run."""
        known = [valid_receipt(self.root, job) for job in jobs]
        done: list[Receipt] = []

        async def work() -> None:
            done.extend(await asyncio.gather(*(self._job(*each) for each in zip(jobs, known, strict=True))))

        await run_as_task(jobs, work, self.reported, reused=all(known))
        return done

    async def _job(self, job: Job, known: Receipt | None) -> Receipt:
        receipt = known or await self._run(job)
        self.progress.advance(job.stage, reused=known is not None)
        await self.story.advance(job.stage)
        return receipt

    async def _run(self, job: Job) -> Receipt:
        loop = asyncio.get_running_loop()
        pool = self.here if job.here else self.side_by_side(1)[0] if job.wide else self.pool
        try:
            # The pool cancels what waits in it when it is shut down. A job that is cancelled here and whose process is
            # killed at the same time, as Ctrl-C does, makes a thread of the pool end with a traceback.
            running = loop.run_in_executor(pool, run_job, self.root, job)
            running.add_done_callback(_retrieve_exception)
            return await asyncio.shield(running)
        except BrokenProcessPool:
            raise PairwrightError(
                f"a worker process died in {job.stage} {job.part} (killed, or out of memory). "
                "Start the build again: it goes on where it stood; use fewer workers when memory is short."
            ) from None


def _retrieve_exception(job: "asyncio.Future[Receipt]") -> None:
    """Retrieve the error of a job that nobody awaits any more, as after Ctrl-C: asyncio prints those that are not."""
    if not job.cancelled():
        job.exception()


def _pool(root: Path, config: BuildConfig) -> Executor:
    if config.runner == "ray":
        if config.workers:
            raise UsageError("workers are processes of this machine; how many jobs a node of Ray runs says --num-cpus.")
        return RayPool(root, config.address)
    if config.address:
        raise UsageError("an address is that of a Ray cluster. Add `runner: ray` (--runner ray), or leave it out.")
    workers = _workers(config)
    if workers == 1:
        return ThreadPoolExecutor(1)  # in this process: nothing has to be imported again
    return WorkerProcesses(workers)


def _workers(config: BuildConfig) -> int:
    return config.workers or cores()


@asynccontextmanager
async def open_engine(  # noqa: PLR0913, PLR0917 - what belongs to one run
    root: Path,
    config: BuildConfig,
    progress: BuildProgress,
    scope: StageSelection,
    story: FlowArtifacts,
    reported: ReportedRuns,
) -> AsyncIterator[Engine]:
    """Give an engine with ``workers`` processes (0: one a core; 1: this one), or Ray's; none outlives the block.

    Raises:
        UsageError: for a runner that is not there, or settings of another one.
        MissingResource: Ray is asked for and not installed.
    """
    pool, here = _pool(root, config), ThreadPoolExecutor(1)
    stop = threading.Event()
    try:
        yield Engine(
            root, pool, progress, {}, here, stop, scope, story, reported, _runs_per_stage(config), _workers(config)
        )
    finally:
        stop.set()
        for each in (pool, here):
            each.shutdown(wait=True, cancel_futures=True)


def _runs_per_stage(config: BuildConfig) -> int:
    of_parts = 2 + sum(not needs_model(this.generator) for this in generating_stages(config))  # with tag and shards
    return runs_per_stage(len(stage_names(config)), of_parts)


def total_counts(receipts: Sequence[Receipt]) -> Counts:
    """Return the counts of a stage: the sum over its jobs."""
    counts = receipts[0].counts
    for receipt in receipts[1:]:
        counts += receipt.counts
    return counts


def counts_line(counts: Counts) -> str:
    """Return the counts as a short line."""
    rejected = sum(counts.rejected.values())
    line = f"{counts.kept:,} of {counts.candidates:,} {counts.unit}s kept"
    if rejected:
        reasons = sorted(counts.rejected.items(), key=lambda item: (-item[1], item[0]))[:3]
        line += "; rejected: " + ", ".join(f"{reason} {n:,}" for reason, n in reasons)
        line += ", ..." if len(counts.rejected) > len(reasons) else ""
    return line
