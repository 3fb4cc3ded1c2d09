"""A schedule in one long process: `pairwright serve`.

Prefect's server makes the runs, this process starts each in a process of its own. Two runs never meet: the deployment
holds one place (`ConcurrencyLimitConfig`), which a run takes before it starts; a run whose time comes while another
holds it is left out (or waits). A limit given to `serve` would only hold within one process, and queue runs without
end. The place is a lease: a run that dies with its machine loses it after five minutes, and at the start of `serve`,
the only one for its folder, at once.
"""

import asyncio
import os
import signal
import zoneinfo
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pairwright.datasets.errors import UsageError
from pairwright.flows.config.build import load_config
from pairwright.flows.prefect.preflight import refuse_broken_prefect
from pairwright.flows.prefect.run_log import LOG_FOLDER
from pairwright.flows.prefect.server import own_server
from pairwright.flows.state.locks import schedule_lock

OverlapPolicy = Literal["skip", "wait"]
_LOOK = 5.0  # seconds between two looks for runs whose time has come


@dataclass(frozen=True)
class Timetable:
    """When builds run: by ``cron`` (five fields) in ``timezone``, or every ``interval`` seconds.

    ``late`` says what becomes of a run whose time comes while the one before still runs; with ``now`` a first run starts at
    once.
    """

    cron: str = ""
    interval: float = 0.0
    timezone: str = "UTC"
    late: OverlapPolicy = "skip"
    now: bool = False

    def __post_init__(self) -> None:
        if bool(self.cron) == bool(self.interval):
            raise UsageError("a schedule is either --cron or --interval. Give one of them.")
        if self.timezone not in zoneinfo.available_timezones():
            raise UsageError(f"--timezone {self.timezone}: unknown. Give a name such as Europe/Berlin.")

    def __str__(self) -> str:
        return f"by cron {self.cron!r} ({self.timezone})" if self.cron else f"every {self.interval:g} s"

    @property
    def look(self) -> float:
        """Seconds between two looks for runs whose time has come."""
        return min(_LOOK, self.interval / 2) if self.interval else _LOOK


@dataclass(frozen=True)
class ScheduleRequest:
    """What is served.

    Attributes:
        config: the config file.
        out: the build directory.
        workers: processes of a build.
        incremental: whether each run appends what is new; None: as the config says.
        on_failure: words of the command that runs when a run fails.
    """

    config: Path
    out: Path
    workers: int | None = None
    incremental: bool | None = None
    on_failure: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the flow."""
        return {
            "config": str(self.config.resolve()),
            "out": str(self.out.resolve()),
            "workers": self.workers,
            "incremental": self.incremental,
            "on_failure": list(self.on_failure) or None,
        }


def serve(served: ScheduleRequest, timetable: Timetable, *, port: int, told: Callable[[str], None]) -> None:
    """Build by a schedule, until SIGTERM or Ctrl-C.

    The server is that of PREFECT_API_URL or of the user's Prefect profile; where neither names one, one is started on
    loopback, and ends with this call. What runs when the end comes is asked to end; what it did is kept.

    Args:
        served: what to build.
        timetable: when.
        port: of the server, if one is started.
        told: hears lines on what goes on.

    Raises:
        UsageError: when the config or the schedule is wrong, the port is taken, or another schedule of this name is
            served for another folder.
        StorageError: when the folder is served already, or is not ours.
        MissingResource: when Prefect is known not to start.
    """
    name = load_config(served.config).name
    refuse_broken_prefect()
    from pairwright.flows.prefect.runner import PREFECT_API_URL, temporary_settings

    schedule = _schedule(timetable)
    with schedule_lock(served.out), ExitStack() as stack:
        url = str(PREFECT_API_URL.value() or "")
        if not url:
            told("Starting a Prefect server takes 5 to 20 seconds ...")
            url = stack.enter_context(own_server(port))
            stack.enter_context(temporary_settings({PREFECT_API_URL: url}))
        stack.enter_context(_mark_child_processes())
        told(f"Serving {name} {timetable} into {served.out}" + (", and once now" if timetable.now else ""))
        told(f"Log of each run: {served.out / LOG_FOLDER}")
        told(f"Prefect: {url.removesuffix('/api')}. Ctrl-C ends this.")
        asyncio.run(_serve(name, served, timetable, schedule))
    told("Ended. The schedule is paused until it is served again.")


def _schedule(timetable: Timetable) -> Any:
    from pairwright.flows.prefect.runner import Cron, Interval

    if timetable.interval:
        return Interval(timedelta(seconds=timetable.interval), timezone=timetable.timezone)
    try:
        schedule = Cron(timetable.cron, timezone=timetable.timezone)
    except ValueError:
        raise UsageError(
            f'--cron {timetable.cron!r}: not five fields such as "0 2 * * *" (minute, hour, day, month, weekday).'
        ) from None
    if not _check_next_run(timetable):
        raise UsageError(
            f"--cron {timetable.cron!r}: Prefect finds no such day, so no run would ever come. "
            "Mend day and month; the day l is a month's last."
        )
    return schedule


def _check_next_run(timetable: Timetable) -> bool:
    """Ask what the server asks when it makes runs, which leaves out without a word a schedule that has no next date."""
    from pairwright.flows.prefect.runner import CronSchedule

    try:
        return bool(asyncio.run(CronSchedule(cron=timetable.cron, timezone=timetable.timezone).get_dates(1)))
    except ValueError:
        return False


@contextmanager
def _mark_child_processes() -> Iterator[None]:
    """Let the processes of runs know which process serves them."""
    from pairwright.flows.prefect.scheduled_flow import SERVER_PROCESS_VARIABLE

    os.environ[SERVER_PROCESS_VARIABLE] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[SERVER_PROCESS_VARIABLE]


async def _serve(name: str, served: ScheduleRequest, timetable: Timetable, schedule: Any) -> None:
    from pairwright.flows.prefect import runner as prefect
    from pairwright.flows.prefect.scheduled_flow import scheduled_build

    strategies = prefect.ConcurrencyLimitStrategy
    collision = strategies.ENQUEUE if timetable.late == "wait" else strategies.CANCEL_NEW
    deployment = prefect.RunnerDeployment.from_flow(
        flow=scheduled_build,
        name=name,
        schedule=schedule,
        paused=False,
        parameters=served.parameters,
        concurrency_limit=prefect.ConcurrencyLimitConfig(limit=1, collision_strategy=collision),
        entrypoint_type=prefect.EntrypointType.MODULE_PATH,
        description=f"`pairwright serve`: {name}, {timetable}",
        tags=["pairwright"],
    )
    async with prefect.get_client() as client:
        await _cancel_stale_runs(client, f"{scheduled_build.name}/{name}", served)
    runner = prefect.GracefulRunner(
        name=f"pairwright-{name}", limit=None, query_seconds=timetable.look, prefetch_seconds=0
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, runner.handle_sigterm)
    added = await runner.aadd_deployment(deployment)
    if timetable.now:
        async with prefect.get_client() as client:
            await client.create_flow_run_from_deployment(added)
    await runner.start()


async def _cancel_stale_runs(client: Any, deployment_name: str, served: ScheduleRequest) -> None:
    """End what an earlier process left: runs that it took along, and runs whose time came while nobody served.

    Raises:
        UsageError: when the schedule of this name is served for another folder.
    """
    from pairwright.flows.prefect import runner as prefect

    try:
        deployment = await client.read_deployment_by_name(deployment_name)
    except prefect.ObjectNotFound:
        return
    there = (deployment.parameters or {}).get("out")
    if not deployment.paused and there != served.parameters["out"]:
        raise UsageError(
            f"this Prefect server has a schedule named {deployment_name.partition('/')[2]} that builds into {there}. "
            "Give this build another `name`, or end or pause that schedule."
        )
    types = prefect.StateType
    states: dict[Any, Any] = {
        types.SCHEDULED: prefect.Cancelled(message="Its time came while nothing served the schedule."),
        **{
            each: prefect.Crashed(message="The process that ran it is gone. The next run goes on where it stood.")
            for each in (types.RUNNING, types.PENDING, types.CANCELLING)
        },
    }
    wanted = prefect.FlowRunFilterState(type=prefect.FlowRunFilterStateType(any_=list(states)))
    runs = await client.read_flow_runs(
        flow_run_filter=prefect.FlowRunFilter(state=wanted),
        deployment_filter=prefect.DeploymentFilter(id=prefect.DeploymentFilterId(any_=[deployment.id])),
    )
    for run in runs:
        waits = run.state_type is types.SCHEDULED and run.next_scheduled_start_time > datetime.now(UTC)
        if not waits:
            await client.set_flow_run_state(run.id, states[run.state_type])
