"""Task runs of Prefect for the jobs of a build.

A task run costs Prefect and its server some 60 ms of CPU, so a build has at most about `MAX_TASK_RUNS` of them: a stage
shows batches of consecutive parts (``negatives 00000-00015``). A task run whose jobs were all done by an
earlier run is `Cached`.

Prefect sends the states of task runs in the background, and its server records them later. A server that ends with the
build has to record them first: `wait_until_recorded`.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import chain, count
from typing import Any

from pairwright.datasets.errors import StorageError
from pairwright.datasets.progress import open_step
from pairwright.flows.prefect.flow_reports import FlowReports
from pairwright.flows.state.receipts import Job

MAX_TASK_RUNS = 200  # of a build, about
BATCH_JOBS = 16  # of a task run, at least
RETRIES, RETRY_SECONDS = 2, 10  # of a task run that failed because of a disk; its finished jobs are not repeated
_IDLE_SECONDS = 30.0  # without a newly recorded state until waiting ends
_POLL_SECONDS = 0.2


def runs_per_pass(stages: int, passes: int) -> int:
    """Return the maximal number of task runs of a pass of a stage over the parts.

    Args:
        stages: number of stages of the build; each has up to two jobs besides.
        passes: number of passes over the parts, of all stages.
    """
    return max(1, (MAX_TASK_RUNS - 2 * stages) // max(1, passes))


def job_batches(jobs: Sequence[Job], most: int) -> list[Sequence[Job]]:
    """Divide the jobs of a stage into at most ``most`` batches of consecutive jobs, about equal in size.

    A batch has at least as many jobs as the root of their number, and `BATCH_JOBS` unless they ask a model: the jobs of
    small builds take less time than their task runs would.
    """
    if not jobs:
        return []
    if all(job.shown_as_one for job in jobs):
        return [jobs]
    fewest = 1 if any(job.asks is not None for job in jobs) else BATCH_JOBS
    batches = max(1, min(len(jobs) // max(fewest, math.isqrt(len(jobs))), most))
    size = -(-len(jobs) // batches)
    return [jobs[start : start + size] for start in range(0, len(jobs), size)]


async def run_as_task(
    batch: Sequence[Job], work: Callable[[], Awaitable[None]], reports: FlowReports, *, reused: bool
) -> None:
    """Do the ``work`` of a batch of jobs, in a flow as a Prefect task run.

    Jobs that ask a model always wait for their task run, since users limit how many of these run at a time.

    Args:
        batch: jobs of one stage.
        work: runs them.
        reports: of the build.
        reused: whether an earlier run did all of them.
    """
    if not reports.expected:
        await work()
        return
    if not reports.early or any(job.asks is not None for job in batch):
        await reports.send(partial(_task_run, batch, work, reports, reused=reused))
        return
    first = asyncio.ensure_future(work())
    attempts = chain([first], (asyncio.ensure_future(work()) for _ in count()))

    async def next_attempt() -> None:
        await next(attempts)

    reported = reports.send(partial(_task_run, batch, next_attempt, reports, reused=reused))
    try:
        await first
    except (OSError, StorageError):
        await reported  # which repeats the work


async def _task_run(
    batch: Sequence[Job], work: Callable[[], Awaitable[None]], reports: FlowReports, *, reused: bool
) -> None:
    from pairwright.flows.prefect.api import NO_CACHE, Completed, FlowRunContext, State, task

    async def run() -> State[None] | None:
        await work()
        return Completed(name="Cached", message="Done by an earlier run.") if reused else None

    first, last = batch[0].part, batch[-1].part
    name = f"{batch[0].stage} {first}" if first == last else f"{batch[0].stage} {first}-{last}"
    context = FlowRunContext.get()
    reports.flow_run = str(context.flow_run.id) if context and context.flow_run else ""
    reports.started += 1
    tags = {"pairwright", batch[0].stage, *(["model"] if batch[0].asks is not None else [])}
    # Prefect copies and hashes the arguments of a task; this one has none.
    await task(
        name=batch[0].stage,
        task_run_name=name,
        tags=tags,
        cache_policy=NO_CACHE,
        retries=RETRIES,
        retry_delay_seconds=RETRY_SECONDS,
        retry_condition_fn=_is_of_storage,
    )(run)()


async def _is_of_storage(task: Any, run: Any, state: Any) -> bool:  # noqa: ARG001 - as Prefect calls it
    """Return whether a task run failed because of a disk, such as a shared one that is away for a moment."""
    return isinstance(await state.aresult(raise_on_failure=False), OSError | StorageError)


def wait_until_recorded(reports: FlowReports, note: Callable[[str], None]) -> None:
    """Wait until Prefect's server has recorded the final state of each task run.

    Args:
        reports: of the build.
        note: receives a message if the server stops before it has recorded all of them.
    """
    from httpx import HTTPError

    from pairwright.flows.prefect.api import EventsWorker, get_client

    if not reports.started:
        return
    EventsWorker.drain_all(timeout=_IDLE_SECONDS)
    wanted = {
        "flow_runs": {"id": {"any_": [reports.flow_run]}},
        "task_runs": {"state": {"type": {"any_": ["COMPLETED", "FAILED", "CRASHED", "CANCELLED"]}}},
    }
    recorded, since = 0, time.monotonic()
    try:
        with (
            get_client(sync_client=True) as client,
            open_step("recording in Prefect", reports.started, "task runs") as shown,
        ):
            while time.monotonic() - since < _IDLE_SECONDS:
                now = int(client.request("POST", "/task_runs/count", json=wanted).json())
                if now >= reports.started:
                    return
                if now > recorded:
                    recorded, since = now, time.monotonic()
                    shown.reach(now)
                time.sleep(_POLL_SECONDS)
    except HTTPError:
        pass  # the server is gone
    note(
        f"Prefect's server recorded the end of {recorded} of {reports.started} task runs, then stopped recording. "
        "This does not affect the build."
    )
