"""A build beside its flow, for `test_task_runs.py`: prints as JSON how Prefect's server has recorded its task runs.

Two are done before the server is ready: the work of one, and what an earlier run did. One fails once because of a disk,
and one asks a model, so that it runs inside of its task run; the last one fails. In a process of its own, as in
`artifacts_flow.py`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pairwright.datasets.errors import StorageError
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.prefect import task_runs
from pairwright.flows.prefect.flow_reports import FlowReports, run_beside_flow
from pairwright.flows.prefect.task_runs import run_as_task, wait_until_recorded
from pairwright.flows.state.receipts import Counts, Job, JobResult

NOTES: list[str] = []
EVENTS: list[str] = []


def nothing(_: Path) -> JobResult:
    return JobResult([], Counts("pair"))


def jobs(stage: str, *parts: str) -> list[Job]:
    return [Job(stage, part, nothing, (), "") for part in parts]


async def done() -> None:
    EVENTS.append("done")


async def failing_once() -> None:
    EVENTS.append("disk")
    if EVENTS.count("disk") == 1:
        raise StorageError("the disk is away")


async def asking() -> None:
    EVENTS.append("asked in a task run" if TaskRunContext.get() else "asked outside")


async def failing() -> None:
    raise ZeroDivisionError


async def build(reports: FlowReports, begun: asyncio.Event) -> dict[str, Any]:
    await run_as_task(jobs("tag", "00000", "00001"), done, reports, reused=False)
    await run_as_task(jobs("tag", "00002"), done, reports, reused=True)
    begun.set()
    await run_as_task(jobs("words", "counts"), failing_once, reports, reused=False)
    model = replace(jobs("negatives", "00000")[0], asks=ModelAccess.__new__(ModelAccess))
    await run_as_task([model], asking, reports, reused=False)
    await run_as_task(jobs("words", "all"), failing, reports, reused=False)
    return {}


async def build_beside_flow(reports: FlowReports) -> None:
    begun = asyncio.Event()

    async def in_flow(work: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        EVENTS.append("flow")
        return await flow(name="five")(work)()

    await run_beside_flow(build(reports, begun), in_flow, begun.wait, reports)


if __name__ == "__main__":
    from prefect.context import TaskRunContext

    from pairwright.flows.prefect.api import flow, get_client

    reported = FlowReports(expected=True)
    reported.early = True
    with suppress(ZeroDivisionError), patch.object(task_runs, "RETRY_SECONDS", 0):
        asyncio.run(build_beside_flow(reported))
    wait_until_recorded(reported, NOTES.append)
    with get_client(sync_client=True) as client:
        wanted = {"flow_runs": {"id": {"any_": [reported.flow_run]}}}
        runs = client.request("POST", "/task_runs/filter", json=wanted).json()
    states = {run["name"]: run["state_name"] for run in runs}
    print(json.dumps({"notes": NOTES, "events": EVENTS, "states": states}))  # noqa: T201 - what the test reads
