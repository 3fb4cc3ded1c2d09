"""What a schedule uses of Prefect, imported once its environment is set (`prefect_api.py`), and its runner ended in order.

Prefect's runner hears SIGTERM in a way that leaves its stop un-awaited: runs are killed, not cancelled. Ours does what
`Runner.astop` says: what runs is asked to end (and killed after 30 seconds), its state becomes Cancelled, the schedule
is paused.
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


_AGAIN = 0.5  # seconds until what still runs is asked to end again


class GracefulRunner(Runner):
    """A runner that ends in order when it is told to."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._ending: asyncio.Task[None] | None = None
        self._ours = asyncio.get_running_loop()

    def handle_sigterm(self, *_: object, **__: object) -> None:
        """Begin to end, once; called from a signal handler."""
        self._ours.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._ending is None and self.started:
            self._ending = asyncio.ensure_future(self._stop())

    async def _stop(self) -> None:
        await self.astop()
        while True:  # until the loop ends: a run that was being started just then has no process yet that could end
            await asyncio.sleep(_AGAIN)
            await self.cancel_all()
