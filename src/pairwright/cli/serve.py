"""``pairwright serve``: builds on a schedule, in one process that keeps running."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.options.declarations import advanced_option
from pairwright.cli.output.console import note
from pairwright.cli.plan import BuildOutOption, ConfigArgument
from pairwright.datasets.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def serve(
    config: ConfigArgument,
    *,
    cron: Annotated[str, typer.Option(help='Schedule of five fields: "0 2 * * *" is every night at two.')] = "",
    interval: Annotated[str, typer.Option(help="Interval instead of --cron: 90s, 30m, 6h, 1d.")] = "",
    timezone: Annotated[str, typer.Option(help="Time zone for --cron, such as Europe/Berlin.")] = "UTC",
    on_overlap: Annotated[
        Literal["skip", "wait"], typer.Option(help="Skip or delay a run that is due during another.")
    ] = "skip",
    now: Annotated[bool, typer.Option("--now", help="Start the first run immediately.")] = False,
    on_failure: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Program to run after a failed run; see PAIRWRIGHT_RUN_* below."),
    ] = None,
    incremental: Annotated[
        bool | None,
        typer.Option("--incremental/--full", help="Append new pairs, or build everything; else as CONFIG says."),
    ] = None,
    out: BuildOutOption = None,
    workers: Annotated[int | None, advanced_option(min=1, help="Processes; the output is the same.")] = None,
    port: Annotated[
        int, advanced_option(min=0, max=65535, help="Port of a started Prefect server (0 = any free one).")
    ] = 4200,
) -> None:
    """Build on a schedule until Ctrl-C or SIGTERM, one run at a time.

    CONFIG is read for each run. The Prefect server is that of PREFECT_API_URL; without it one is started on this
    machine. PAIRWRIGHT_RUN_ERROR, PAIRWRIGHT_RUN_LOG and others in the environment of --on-failure describe the run.

    \b
    Examples:
      pairwright serve build.yaml --cron "0 2 * * *" --timezone Europe/Berlin
      pairwright serve build.yaml --interval 6h --on-overlap wait --now
      pairwright serve build.yaml --cron "0 2 * * *" --incremental
      pairwright serve build.yaml --cron "0 2 * * *" --on-failure ./notify.sh
    """
    from pairwright.flows.config.build import load_config
    from pairwright.flows.prefect.failure_command import parse_failure_command
    from pairwright.flows.prefect.schedule import ScheduleRequest, Timetable
    from pairwright.flows.prefect.schedule import serve as run

    seconds = _parse_interval(interval) if interval else 0.0
    timetable = Timetable(cron=cron, interval=seconds, timezone=timezone, late=on_overlap, now=now)
    command = parse_failure_command(on_failure) if on_failure is not None else ()
    resumable_on_interrupt()
    folder = out or Path("build") / load_config(config).name
    run(ScheduleRequest(config, folder, workers, incremental, command), timetable, port=port, note=note)


def _parse_interval(text: str) -> float:
    match = re.fullmatch(r"(\d+)([smhd])", text)
    if not match or not int(match[1]):
        raise UsageError(f"--interval {text}: write a number above 0 and s, m, h or d, such as 30m.")
    return float(int(match[1]) * _UNITS[match[2]])
