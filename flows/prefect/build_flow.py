"""The flow of a build, for schedules, deployments and other flows: it reads its config file each time.

    from pairwright.flows.prefect.build_flow import build_flow

    build_flow.deploy("birds", work_pool_name="pairwright", entrypoint_type=EntrypointType.MODULE_PATH,
                      parameters={"config": "/data/birds.yaml", "overrides": {"llm": {"max_cost": 5}}})

`pairwright serve` runs it in child processes; a worker of a Prefect server runs it by the name
``pairwright.flows.prefect.build_flow.build_flow`` (see ``prefect.yaml``, written by `pairwright init --prefect`).
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

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import PairwrightError, StorageError
from pairwright.flows.build import build_in_flow
from pairwright.flows.config.build import BuildConfig, load_config
from pairwright.flows.prefect.api import FlowRunContext, State, TerminationSignal, flow
from pairwright.flows.prefect.failure_command import run_failure_command
from pairwright.flows.prefect.run_log import log_path, log_to_file
from pairwright.flows.progress import BuildProgress
from pairwright.flows.state.locks import claim_folder

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import FlowRun


SERVER_PROCESS_VARIABLE = "PAIRWRIGHT_SERVED_BY"  # process id of the `pairwright serve` that started this process
_POLL_SECONDS = 1.0  # between checks whether it still runs

_log = logging.getLogger(__name__)


class LineProgress(BuildProgress):
    """Progress as lines on stderr and in the log, one per stage."""

    def __init__(self) -> None:
        self._started: dict[str, float] = {}
        self._ran: dict[str, int] = {}

    def begin(self, stage: str, jobs: int) -> None:  # noqa: ARG002 - as of `BuildProgress`
        """Begin a stage, or a further group of its jobs."""
        self._started.setdefault(stage, time.monotonic())
        self._ran.setdefault(stage, 0)

    def advance(self, stage: str, *, reused: bool) -> None:
        """Count a job as done."""
        self._ran[stage] += not reused

    def end(self, stage: str, summary: str) -> None:
        """Print the line of a stage."""
        seconds = time.monotonic() - self._started[stage]
        text = summary if self._ran[stage] else f"{summary} (from an earlier run)"
        self.note(f"  {stage:<18}{seconds:6.1f} s  {text}")

    def note(self, message: str) -> None:
        """Print a message."""
        print(message, file=sys.stderr, flush=True)  # noqa: T201 - stderr is where progress goes
        _log.info("%s", message)


def exit_with_server() -> None:
    """End this process when the `pairwright serve` that started it is gone, which may have been killed."""
    served_by = os.environ.get(SERVER_PROCESS_VARIABLE)
    if served_by is None or int(served_by) != os.getppid():
        return  # started by a worker of Prefect, which may restart during its runs

    def watch() -> None:
        while os.getppid() == int(served_by):
            time.sleep(_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _print_ending(lines: LineProgress) -> Iterator[None]:
    """Print why a run ends early, and log the traceback of an error; Prefect shows both on its page only."""
    try:
        yield
    except PairwrightError as error:
        lines.note("\n".join(f"pairwright: {line}" for line in str(error).splitlines()))
        _log.info("The run failed.", exc_info=True)
        raise
    except (asyncio.CancelledError, TerminationSignal):
        lines.note("Stopped by a signal. The next run resumes the build.")
        raise
    except Exception as error:
        lines.note(f"pairwright: {type(error).__name__}: {error}. See the log of the run for its traceback.")
        _log.exception("The run failed.")
        raise


class _TerminationFilter(logging.Filter):
    """Drops the records of Prefect's exception for SIGTERM, which asyncio prints as unhandled."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], TerminationSignal))


def _build_folder(out: str, name: str) -> Path:
    return (Path(out) if out else Path("build") / name).absolute()


def run_on_failure(flow: "Flow[..., Any]", flow_run: "FlowRun", state: State[Any]) -> None:  # noqa: ARG001 - Prefect's hook
    """Run the command of the parameter ``on_failure`` of a failed run, and log its output and errors."""
    parameters = flow_run.parameters
    command = parameters.get("on_failure")
    if not command:
        return
    out = _failed_folder(parameters)
    log = log_path(out, str(flow_run.id))
    facts = {
        "name": flow_run.name,
        "id": str(flow_run.id),
        "state": state.name or "",
        "error": state.message or "",
        "config": parameters["config"],
        "out": str(out),
        "log": str(log),
    }
    output, error = run_failure_command(command, facts)
    with _log_or_stderr(log):
        name = Path(command[0]).name
        if output:
            _log.info("--on-failure %s wrote: %s", name, output)
        if error:
            LineProgress().note(f"pairwright: --on-failure: {name} {error}. Its output is in {log}.")


def _failed_folder(parameters: Mapping[str, Any]) -> Path:
    """Return the build directory of a failed run, whose config may be what is wrong."""
    return _build_folder(parameters.get("out") or "", _dataset_name(parameters))


def _dataset_name(parameters: Mapping[str, Any]) -> str:
    """Return the name that a run's config gives; that of its file if it cannot be read."""
    with suppress(PairwrightError):
        return load_config(Path(parameters["config"])).name
    return Path(parameters["config"]).stem


def _run_name() -> str:
    context = FlowRunContext.get()
    assert context
    return _dataset_name(context.parameters or {})


@contextmanager
def _log_or_stderr(log: Path) -> Iterator[None]:
    """Log into a file if it is writable: the report of a failure must not fail."""
    with ExitStack() as stack:
        with suppress(StorageError):
            stack.enter_context(log_to_file(log))
        yield


@flow(
    name="pairwright-build",
    flow_run_name=_run_name,  # most configs are build.yaml
    persist_result=False,
    on_failure=[run_on_failure],
    on_crashed=[run_on_failure],
)
async def build_flow(
    config: str,
    out: str = "",
    overrides: dict[str, Any] | None = None,
    on_failure: list[str] | None = None,  # noqa: ARG001 - read by `run_on_failure`
) -> dict[str, Any]:
    """Build a dataset by a config file.

    Args:
        config: path of the YAML file.
        out: the build directory; empty: ``build/NAME`` in the working directory.
        overrides: settings in place of those of the file, as nested as there: ``{"llm": {"max_cost": 5}, "workers": 8}``.
        on_failure: words of the command to run when the run fails, see `failure_command.py`.

    Returns:
        The counts of each stage, as the manifest has them.
    """
    exit_with_server()
    logging.getLogger("asyncio").addFilter(_TerminationFilter())
    lines = LineProgress()
    try:
        with ExitStack() as stack:
            with _print_ending(lines):
                loaded = load_config(Path(config), overrides or {})
                folder = _build_folder(out, loaded.name)
                claim_folder(folder)
                stack.enter_context(log_to_file(log_path(folder, _run_id())))
            return await _run_build(loaded, folder, lines)
    except PairwrightError as error:
        # The frames of stages and task runs, which are in the log, say nothing about what is wrong with config or data.
        if not os.environ.get("PAIRWRIGHT_DEBUG"):
            error.__traceback__ = None
        raise


def _run_id() -> str:
    context = FlowRunContext.get()
    assert context
    assert context.flow_run
    return str(context.flow_run.id)


async def _run_build(config: BuildConfig, folder: Path, lines: LineProgress) -> dict[str, Any]:
    with _print_ending(lines):
        lines.note(f"Building {config.name} in {folder} ...")
        manifest = await build_in_flow(config, folder, lines)
    shards = manifest["shards"]
    place = shards.get("url") or f"{folder}/shards"
    lines.note(
        f"Built {config.name}: {count_phrase(manifest['stages']['sizes']['kept'], 'sample')} in {place}/{shards['pattern']}"
    )
    return {
        name: {"candidates": stage["candidates"], "kept": stage["kept"]} for name, stage in manifest["stages"].items()
    }
