"""A flow with three task runs, for `test_task_runs.py`: prints as JSON how Prefect's server has recorded them.

One does its work, one was done by an earlier run, one fails. In a process of its own, as in `story_told.py`.
"""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

from pairwright.flows.prefect.task_runs import ReportedRuns, run_as_task, wait_until_recorded
from pairwright.flows.state.receipts import Counts, Job, JobResult

REPORTED, NOTES = ReportedRuns(), list[str]()


def nothing(_: Path) -> JobResult:
    return JobResult([], Counts("pair"))


def jobs(stage: str, *parts: str) -> list[Job]:
    return [Job(stage, part, nothing, (), "") for part in parts]


async def done() -> None:
    """Do nothing, and succeed."""


async def failing() -> None:
    raise ZeroDivisionError


async def three() -> None:
    await run_as_task(jobs("tag", "00000", "00001"), done, REPORTED, reused=False)
    await run_as_task(jobs("tag", "00002"), done, REPORTED, reused=True)
    await run_as_task(jobs("words", "all"), failing, REPORTED, reused=False)


if __name__ == "__main__":
    from pairwright.flows.prefect.api import flow, get_client

    with suppress(ZeroDivisionError):
        asyncio.run(flow(name="three")(three)())
    wait_until_recorded(REPORTED, NOTES.append)
    with get_client(sync_client=True) as client:
        wanted = {"flow_runs": {"id": {"any_": [REPORTED.flow_run]}}}
        runs = client.request("POST", "/task_runs/filter", json=wanted).json()
    print(json.dumps({"notes": NOTES, "states": {run["name"]: run["state_name"] for run in runs}}))  # noqa: T201 - what the test reads
