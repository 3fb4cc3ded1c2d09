"""Reports of a build to Prefect: task runs and artifacts, created in the context of its flow.

A build does not wait for a temporary server to start: it begins *early*, and what it has done until then is reported
when the flow begins. Later reports are sent beside the work as well. With a server of the user, whose limits on
concurrent task runs have to hold, a job runs inside of its task run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any

from pairwright.flows.prefect.preflight import in_flow_run


class FlowReports:
    """Reports of one build.

    Args:
        expected: whether the build has a flow, or will have one.

    Attributes:
        early: whether jobs run before their task runs begin.
        flow_run: id of the flow run; empty until a task run has started.
        started: number of task runs.
    """

    def __init__(self, *, expected: bool = False) -> None:
        self.expected, self.early = expected, False
        self.flow_run, self.started = "", 0
        self._context = Context()
        self._open = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Begin to report; called in the flow, if there is one."""
        if in_flow_run():
            self.expected, self._context = True, copy_context()
            self._open.set()

    def send(self, report: Callable[[], Coroutine[Any, Any, None]]) -> "asyncio.Task[None]":
        """Make a report in the context of the flow, as soon as there is one; its errors are those of the returned task."""

        async def make() -> None:
            await self._open.wait()
            await asyncio.create_task(report(), context=self._context.copy())

        running = asyncio.create_task(make())
        self._running.add(running)
        running.add_done_callback(self._end)
        return running

    def _end(self, report: "asyncio.Task[None]") -> None:
        self._running.discard(report)
        if not report.cancelled():
            report.exception()  # retrieved: the build does not fail because a report did

    async def close(self) -> None:
        """Wait for all reports."""
        await asyncio.gather(*self._running, return_exceptions=True)


async def run_beside_flow(
    build: Coroutine[Any, Any, dict[str, Any]],
    flow: Callable[[Callable[[], Awaitable[dict[str, Any]]]], Awaitable[dict[str, Any]]],
    server: Callable[[], Awaitable[object]],
    reports: FlowReports,
) -> dict[str, Any]:
    """Run a build while the server of its flow starts, then within the flow.

    Args:
        build: the build.
        flow: runs a function as the flow.
        server: returns when the server has started.
        reports: of the build.

    Returns:
        What the build returns.
    """
    building = asyncio.create_task(build)

    async def follow() -> dict[str, Any]:
        reports.open()
        try:
            return await building
        finally:
            await reports.close()

    try:
        await server()
        return await flow(follow)
    finally:
        building.cancel()  # if the server or the flow failed
        await asyncio.gather(building, return_exceptions=True)
