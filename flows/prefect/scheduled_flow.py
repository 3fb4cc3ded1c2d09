"""The flow that a schedule runs: a build config by its path, read anew each time.

`pairwright serve` runs it in processes of its own; a worker of a Prefect server runs it by the name
``pairwright.flows.prefect.scheduled_flow.scheduled_build`` (see ``prefect.yaml``, written by `pairwright init --prefect`).
"""

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairwright.datasets.errors import PairwrightError, StorageError
from pairwright.flows.build import build_in_flow
from pairwright.flows.config.build import load_config
from pairwright.flows.prefect.api import FlowRunContext, State, TerminationSignal, flow
from pairwright.flows.prefect.failure_command import run_failure_command
from pairwright.flows.prefect.run_log import log_path, log_to_file
from pairwright.flows.state.locks import claim_folder

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import FlowRun

    from pairwright.datasets.progress import ProgressReport
    from pairwright.generators.llm.session import Snapshot

SERVER_PROCESS_VARIABLE = "PAIRWRIGHT_SERVED_BY"  # process id of the `pairwright serve` that started this process
_EVERY = 1.0  # seconds between two looks whether it is still there


_log = logging.getLogger(__name__)


class LineProgress:
    """Progress as lines on stderr and in the log, one a stage."""

    def __init__(self) -> None:
        self._started: dict[str, float] = {}
        self._ran: dict[str, int] = {}

    def begin(self, stage: str, jobs: int) -> None:  # noqa: ARG002 - as the protocol says
        """A stage starts."""
        self._started[stage], self._ran[stage] = time.monotonic(), 0

    def advance(self, stage: str, *, reused: bool) -> None:
        """One job is done."""
        self._ran[stage] += not reused

    def inside(self, report: "ProgressReport") -> None:
        """Print nothing."""

    def far(self, stage: str, now: "Snapshot") -> None:
        """Say nothing: a log has no use for each second."""

    def end(self, stage: str, summary: str) -> None:
        """The stage is done."""
        seconds = time.monotonic() - self._started[stage]
        told = summary if self._ran[stage] else f"{summary} (from an earlier run)"
        self.note(f"  {stage:<18}{seconds:6.1f} s  {told}")

    def note(self, message: str) -> None:
        """Something worth a line of its own."""
        print(message, file=sys.stderr, flush=True)  # noqa: T201 - stderr is where progress goes
        _log.info("%s", message)


def exit_with_server() -> None:
    """End this process when the `pairwright serve` that started it is gone, which had no time to end it in order."""
    served_by = os.environ.get(SERVER_PROCESS_VARIABLE)
    if served_by is None or int(served_by) != os.getppid():
        return  # of a worker's, which may be started anew while its runs go on

    def watch() -> None:
        while os.getppid() == int(served_by):
            time.sleep(_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _print_ending(lines: LineProgress) -> Iterator[None]:
    """Print why a run ends early, which Prefect shows on its page only; log the traceback of an error."""
    try:
        yield
    except PairwrightError as error:
        lines.note("\n".join(f"pairwright: {line}" for line in str(error).splitlines()))
        _log.info("The run failed.", exc_info=True)
        raise
    except (asyncio.CancelledError, TerminationSignal):
        lines.note("Ended by a signal. What is done is kept: the next run goes on from there.")
        raise
    except Exception as error:
        lines.note(f"pairwright: {type(error).__name__}: {error}. Its traceback is in the run's log.")
        _log.exception("The run failed.")
        raise


class _TerminationFilter(logging.Filter):
    """Passes over the end by SIGTERM, for which Prefect raises an exception that asyncio prints as an unhandled one."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], TerminationSignal))


def _absolute(out: str) -> Path:
    return Path(out).absolute()


def run_on_failure(flow: "Flow[..., Any]", flow_run: "FlowRun", state: State[Any]) -> None:  # noqa: ARG001 - Prefect's hook
    """Run the command that the parameter ``on_failure`` of a failed run names, and report how it ended."""
    given = flow_run.parameters
    command = given.get("on_failure")
    if not command:
        return
    log = log_path(_absolute(given["out"]), str(flow_run.id))
    facts = {
        "name": flow_run.name,
        "id": str(flow_run.id),
        "state": state.name or "",
        "error": state.message or "",
        "config": given["config"],
        "out": given["out"],
        "log": str(log),
    }
    wrote, wrong = run_failure_command(command, facts)
    with _log_or_stderr(log):
        name = Path(command[0]).name
        if wrote:
            _log.info("--on-failure %s wrote: %s", name, wrote)
        if wrong:
            LineProgress().note(f"pairwright: --on-failure: {name} {wrong}. What it wrote is in {log}.")


@contextmanager
def _log_or_stderr(log: Path) -> Iterator[None]:
    """Log into a file where it can be written: what reports a failure must not fail."""
    with ExitStack() as stack:
        with suppress(StorageError):
            stack.enter_context(log_to_file(log))
        yield


@flow(
    name="pairwright-scheduled-build",
    flow_run_name="{out}",
    persist_result=False,
    on_failure=[run_on_failure],
    on_crashed=[run_on_failure],
)
async def scheduled_build(
    config: str,
    out: str,
    workers: int | None = None,
    *,
    incremental: bool | None = None,
    on_failure: list[str] | None = None,  # noqa: ARG001 - read by `run_on_failure`
) -> dict[str, Any]:
    """Build what a config file says when the run starts.

    Args:
        config: path of the YAML file.
        out: the build directory; what stands there and still fits is not made again.
        workers: processes; the config's when left out.
        incremental: append what is new since the last version; as the config says when left out.
        on_failure: words of a command that runs when the run fails, see `failure_command.py`.

    Returns:
        The counts of each stage, as the manifest has them.
    """
    exit_with_server()
    logging.getLogger("asyncio").addFilter(_TerminationFilter())
    lines, folder = LineProgress(), _absolute(out)
    with ExitStack() as stack:
        with _print_ending(lines):
            claim_folder(folder)
            stack.enter_context(log_to_file(log_path(folder, _run_id())))
        return await _run_build(Path(config), out, {"workers": workers or None, "incremental": incremental}, lines)


def _run_id() -> str:
    context = FlowRunContext.get()
    assert context
    assert context.flow_run
    return str(context.flow_run.id)


async def _run_build(config: Path, out: str, given: Mapping[str, Any], lines: LineProgress) -> dict[str, Any]:
    with _print_ending(lines):
        loaded = load_config(config)
        loaded = loaded.model_copy(update={name: value for name, value in given.items() if value is not None})
        lines.note(f"Building {loaded.name} in {out} ...")
        manifest = await build_in_flow(loaded, _absolute(out), lines)
    shards = manifest["shards"]
    lines.note(
        f"Built {loaded.name}: {manifest['stages']['sizes']['kept']:,} samples in {out}/shards/{shards['pattern']}"
    )
    return {name: {"candidates": told["candidates"], "kept": told["kept"]} for name, told in manifest["stages"].items()}
