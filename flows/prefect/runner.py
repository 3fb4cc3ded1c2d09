"""The parts of Prefect that schedules use, imported after its environment is set, and a runner that ends cleanly.

On SIGTERM Prefect's runner does not await its own stop, so that runs are killed instead of cancelled. `GracefulRunner`
awaits `Runner.astop`: runs are asked to end (and killed after 30 seconds), their state becomes Cancelled, and the
schedule is paused.
"""

import asyncio
from typing import Any

from pairwright.flows.prefect.preflight import prepare_prefect

prepare_prefect()

from prefect import get_client  # noqa: E402 - Prefect reads its settings when it is imported
from prefect.client.orchestration import PrefectClient  # noqa: E402 - likewise
from prefect.client.schemas.filters import (  # noqa: E402 - likewise
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import (  # noqa: E402 - likewise
    ConcurrencyLimitConfig,
    ConcurrencyLimitStrategy,
    FlowRun,
    StateType,
)
from prefect.deployments.runner import RunnerDeployment  # noqa: E402 - likewise
from prefect.exceptions import ObjectNotFound  # noqa: E402 - likewise
from prefect.runner import Runner  # noqa: E402 - likewise
from prefect.schedules import Cron, Interval, Schedule  # noqa: E402 - likewise
from prefect.server.schemas.schedules import CronSchedule  # noqa: E402 - likewise
from prefect.settings import PREFECT_API_URL, temporary_settings  # noqa: E402 - likewise
from prefect.states import Cancelled, Crashed  # noqa: E402 - likewise
from prefect.types.entrypoint import EntrypointType  # noqa: E402 - likewise

__all__ = [
    "PREFECT_API_URL",
    "Cancelled",
    "ConcurrencyLimitConfig",
    "ConcurrencyLimitStrategy",
    "Crashed",
    "Cron",
    "CronSchedule",
    "DeploymentFilter",
    "DeploymentFilterId",
    "EntrypointType",
    "FlowRun",
    "FlowRunFilter",
    "FlowRunFilterState",
    "FlowRunFilterStateType",
    "GracefulRunner",
    "Interval",
    "ObjectNotFound",
    "PrefectClient",
    "RunnerDeployment",
    "Schedule",
    "StateType",
    "get_client",
    "temporary_settings",
]


_RETRY_SECONDS = 0.5  # between requests to end


class GracefulRunner(Runner):
    """A runner that cancels its runs and ends on SIGTERM or SIGINT."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._ending: asyncio.Task[None] | None = None
        self._main_loop = asyncio.get_running_loop()

    def handle_sigterm(self, *_: object, **__: object) -> None:
        """Begin to end; called from a signal handler."""
        self._main_loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._ending is None and self.started:
            self._ending = asyncio.ensure_future(self._stop())

    async def _stop(self) -> None:
        await self.astop()
        while True:  # until the loop ends: a run that is just starting has no process to end yet
            await asyncio.sleep(_RETRY_SECONDS)
            await self.cancel_all()
