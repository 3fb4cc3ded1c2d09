"""``pairwright serve``: build by a schedule, in one process that stays."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.output.console import note
from pairwright.datasets.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def serve(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file; read anew at each run.")],
    *,
    cron: Annotated[str, typer.Option("--cron", help='When, as five fields: "0 2 * * *" is every night at two.')] = "",
    interval: Annotated[str, typer.Option("--interval", help="How often instead: 90s, 30m, 6h, 1d.")] = "",
    timezone: Annotated[str, typer.Option("--timezone", help="Of --cron, such as Europe/Berlin.")] = "UTC",
    late: Annotated[
        Literal["skip", "wait"],
        typer.Option(
            "--on-overlap", help="A run whose time comes while the one before still runs: left out, or waits."
        ),
    ] = "skip",
    now: Annotated[bool, typer.Option("--now", help="Start a first run at once, then by the schedule.")] = False,
    on_failure: Annotated[
        str | None,
        typer.Option(
            "--on-failure",
            metavar="COMMAND",
            help="Run this program when a run fails; PAIRWRIGHT_RUN_ERROR, _LOG and others in its environment describe the run.",
        ),
    ] = None,
    incremental: Annotated[
        bool | None,
        typer.Option("--incremental/--full", help="Each run appends what is new, or builds all; else as CONFIG says."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Build directory; build/NAME when left out.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; the output is the same.")] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Of the Prefect server that is started; 0: any free one.")
    ] = 4200,
) -> None:
    """Build by a schedule until Ctrl-C or SIGTERM, one run at a time.

    The Prefect server is that of PREFECT_API_URL; without it one is started on this machine.

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

    timetable = Timetable(
        cron=cron, interval=_parse_interval(interval) if interval else 0.0, timezone=timezone, late=late, now=now
    )
    command = parse_failure_command(on_failure) if on_failure is not None else ()
    resumable_on_interrupt()
    folder = out or Path("build") / load_config(config).name
    run(ScheduleRequest(config, folder, workers, incremental, command), timetable, port=port, note=note)


def _parse_interval(written: str) -> float:
    found = re.fullmatch(r"(\d+)([smhd])", written)
    if not found or not int(found[1]):
        raise UsageError(f"--interval {written}: write a number above 0 and s, m, h or d, such as 30m.")
    return float(int(found[1]) * _UNITS[found[2]])
