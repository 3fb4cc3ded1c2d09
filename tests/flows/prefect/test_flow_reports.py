"""A build beside its flow."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.prefect.flow_reports import FlowReports, run_beside_flow


async def _flow(work: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    return await work()


async def _no_server() -> None:
    await asyncio.sleep(0)
    raise PairwrightError("Prefect's server did not start")


def test_a_build_whose_server_does_not_start_is_cancelled() -> None:
    ended: list[str] = []

    async def build() -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return {}

    with pytest.raises(PairwrightError, match="did not start"):
        asyncio.run(run_beside_flow(build(), _flow, _no_server, FlowReports(expected=True)))
    assert ended == ["cancelled"]


def test_a_build_that_ends_before_its_server_starts_fails_in_its_flow() -> None:
    begun = asyncio.Event()

    async def build() -> dict[str, Any]:
        begun.set()
        raise PairwrightError("no such file")

    async def server() -> None:
        await begun.wait()

    with pytest.raises(PairwrightError, match="no such file"):
        asyncio.run(run_beside_flow(build(), _flow, server, FlowReports(expected=True)))
