"""Builds by a schedule, in one long-running process: `pairwright serve`.

Prefect's server creates the runs, and this process starts a child process for each. At most one run is active: the
deployment has a concurrency limit of 1 (`ConcurrencyLimitConfig`); a run that is due while another is active is
skipped, or waits. A limit of Prefect's `serve` would only hold within one process, and queue runs without end. The limit
is a lease: a run that dies with its machine loses it after five minutes, or when `serve` starts again.
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
_POLL_SECONDS = 5.0  # between queries for due runs


@dataclass(frozen=True)
class Timetable:
    """The times of builds.

    Attributes:
        cron: five fields; empty for an interval.
        interval: seconds between builds; 0 for ``cron``.
        timezone: of ``cron``.
        late: whether a run that is due while another is active is skipped or waits.
        now: whether a first run starts immediately.
    """

    cron: str = ""
    interval: float = 0.0
    timezone: str = "UTC"
    late: OverlapPolicy = "skip"
    now: bool = False

    def __post_init__(self) -> None:
        if bool(self.cron) == bool(self.interval):
            raise UsageError("Give either --cron or --interval.")
        if self.timezone not in zoneinfo.available_timezones():
            raise UsageError(f"--timezone {self.timezone}: unknown time zone. Give a name such as Europe/Berlin.")

    def __str__(self) -> str:
        return f"by cron {self.cron!r} ({self.timezone})" if self.cron else f"every {self.interval:g} s"

    @property
    def poll_seconds(self) -> float:
        """Seconds between queries for due runs."""
        return min(_POLL_SECONDS, self.interval / 2) if self.interval else _POLL_SECONDS


@dataclass(frozen=True)
class ScheduleRequest:
    """The build that a schedule runs.

    Attributes:
        config: the config file.
        out: the build directory.
        workers: processes of a build; None for the config's.
        incremental: whether each run is an incremental build; None for the config's setting.
        on_failure: words of the command to run when a run fails.
    """

    config: Path
    out: Path
    workers: int | None = None
    incremental: bool | None = None
    on_failure: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the flow."""
        overrides = {"workers": self.workers, "incremental": self.incremental}
        return {
            "config": str(self.config.resolve()),
            "out": str(self.out.resolve()),
            "overrides": {name: value for name, value in overrides.items() if value is not None},
            "on_failure": list(self.on_failure) or None,
        }


def serve(served: ScheduleRequest, timetable: Timetable, *, port: int, note: Callable[[str], None]) -> None:
    """Build by a schedule until SIGTERM or Ctrl-C.

    The server is that of PREFECT_API_URL or of the user's Prefect profile; without one, a server is started on localhost
    and ends with this call. At the end an active run is asked to end; its finished work is kept.

    Args:
        served: the build.
        timetable: its times.
        port: of the server, if one is started.
        note: receives messages.

    Raises:
        UsageError: when the config or the schedule is invalid, the port is in use, or a schedule of this name is served
            for another folder.
        StorageError: when the folder is served already, or belongs to another program.
        MissingResourceError: for a known problem of Prefect.
    """
    name = load_config(served.config).name
    refuse_broken_prefect()
    from pairwright.flows.prefect.runner import PREFECT_API_URL, temporary_settings

    schedule = _schedule(timetable)
    with schedule_lock(served.out), ExitStack() as stack:
        url = str(PREFECT_API_URL.value() or "")
        if not url:
            note("Starting a Prefect server takes 5 to 20 seconds ...")
            url = stack.enter_context(own_server(port))
            stack.enter_context(temporary_settings({PREFECT_API_URL: url}))
        stack.enter_context(_mark_child_processes())
        note(f"Serving {name} {timetable} into {served.out}" + (", and once now" if timetable.now else ""))
        note(f"Log of each run: {served.out / LOG_FOLDER}")
        note(f"Prefect: {url.removesuffix('/api')}. Press Ctrl-C to stop.")
        asyncio.run(_serve(name, served, timetable, schedule))
    note("Stopped. The schedule is paused until it is served again.")


def _schedule(timetable: Timetable) -> Any:
    from pairwright.flows.prefect.runner import Cron, Interval

    if timetable.interval:
        return Interval(timedelta(seconds=timetable.interval), timezone=timetable.timezone)
    try:
        schedule = Cron(timetable.cron, timezone=timetable.timezone)
    except ValueError:
        raise UsageError(
            f"--cron {timetable.cron!r}: not five fields in range: minute (0-59), hour (0-23), day (1-31), month (1-12), "
            'weekday (0-7), such as "0 2 * * *".'
        ) from None
    if not _check_next_run(timetable):
        raise UsageError(
            f"--cron {timetable.cron!r}: no such day exists, so no run would ever start. "
            "Correct day and month; the day l is the last of a month."
        )
    return schedule


def _check_next_run(timetable: Timetable) -> bool:
    """Return whether the schedule has a next date; Prefect's server silently ignores one without."""
    from pairwright.flows.prefect.runner import CronSchedule

    try:
        return bool(asyncio.run(CronSchedule(cron=timetable.cron, timezone=timetable.timezone).get_dates(1)))
    except ValueError:
        return False


@contextmanager
def _mark_child_processes() -> Iterator[None]:
    """Pass the id of this process to the processes of runs."""
    from pairwright.flows.prefect.build_flow import SERVER_PROCESS_VARIABLE

    os.environ[SERVER_PROCESS_VARIABLE] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[SERVER_PROCESS_VARIABLE]


async def _serve(name: str, served: ScheduleRequest, timetable: Timetable, schedule: Any) -> None:
    from pairwright.flows.prefect import runner as prefect
    from pairwright.flows.prefect.build_flow import build_flow

    strategies = prefect.ConcurrencyLimitStrategy
    collision = strategies.ENQUEUE if timetable.late == "wait" else strategies.CANCEL_NEW
    deployment = prefect.RunnerDeployment.from_flow(
        flow=build_flow,
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
        await _cancel_stale_runs(client, f"{build_flow.name}/{name}", served)
    runner = prefect.GracefulRunner(
        name=f"pairwright-{name}", limit=None, query_seconds=timetable.poll_seconds, prefetch_seconds=0
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, runner.handle_sigterm)
    added = await runner.aadd_deployment(deployment)
    if timetable.now:
        async with prefect.get_client() as client:
            await client.create_flow_run_from_deployment(added)
    await runner.start()


async def _cancel_stale_runs(client: Any, deployment_name: str, served: ScheduleRequest) -> None:
    """End the runs of an earlier process: active ones that ended with it, and due ones that never started.

    Raises:
        UsageError: when a schedule of this name is served for another folder.
    """
    from pairwright.flows.prefect import runner as prefect

    try:
        deployment = await client.read_deployment_by_name(deployment_name)
    except prefect.ObjectNotFound:
        return
    other = (deployment.parameters or {}).get("out")
    if not deployment.paused and other != served.parameters["out"]:
        raise UsageError(
            f"this Prefect server has a schedule named {deployment_name.partition('/')[2]} that builds into {other}. "
            "Change the `name` of this build, or end or pause that schedule."
        )
    types = prefect.StateType
    states: dict[Any, Any] = {
        types.SCHEDULED: prefect.Cancelled(message="Due while the schedule was not served."),
        **{
            each: prefect.Crashed(message="Its process is gone. The next run resumes the build.")
            for each in (types.RUNNING, types.PENDING, types.CANCELLING)
        },
    }
    state = prefect.FlowRunFilterState(type=prefect.FlowRunFilterStateType(any_=list(states)))
    runs = await client.read_flow_runs(
        flow_run_filter=prefect.FlowRunFilter(state=state),
        deployment_filter=prefect.DeploymentFilter(id=prefect.DeploymentFilterId(any_=[deployment.id])),
    )
    for run in runs:
        is_future = run.state_type is types.SCHEDULED and run.next_scheduled_start_time > datetime.now(UTC)
        if not is_future:
            await client.set_flow_run_state(run.id, states[run.state_type])
