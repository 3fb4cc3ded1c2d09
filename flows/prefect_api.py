"""What pairwright uses of Prefect, imported once its environment is set: quiet, without telemetry, able to start."""

import subprocess
from functools import partial
from typing import Any

from pairwright.flows.preflight import prepare_prefect

prepare_prefect()

from prefect import flow, task  # noqa: E402 - Prefect reads its settings when it is imported
from prefect.artifacts import (  # noqa: E402 - likewise
    acreate_link_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.cache_policies import NO_CACHE  # noqa: E402 - likewise
from prefect.context import FlowRunContext  # noqa: E402 - likewise
from prefect.exceptions import TerminationSignal  # noqa: E402 - likewise
from prefect.server.api.server import SubprocessASGIServer  # noqa: E402 - likewise

__all__ = [
    "NO_CACHE",
    "SubprocessASGIServer",
    "TerminationSignal",
    "acreate_link_artifact",
    "acreate_markdown_artifact",
    "acreate_progress_artifact",
    "acreate_table_artifact",
    "aupdate_progress_artifact",
    "flow",
    "in_a_flow",
    "own_server",
    "task",
]


def in_a_flow() -> bool:
    """Say whether Prefect runs this: a flow's function can also be called as it is."""
    return FlowRunContext.get() is not None


def _start_apart(server: SubprocessASGIServer) -> "subprocess.Popen[Any]":
    """Start Prefect's ephemeral server in a session of its own.

    A terminal's Ctrl-C goes to all processes of its session, and a build whose server is gone would try for minutes to
    report its end. `watchdog.ends_with_us` sees to it that the server does not outlive the build.
    """
    popen = subprocess.Popen
    subprocess.Popen = partial(popen, start_new_session=True)  # type: ignore[assignment,misc]
    try:
        return _start(server)
    finally:
        subprocess.Popen = popen  # type: ignore[misc]


_start = SubprocessASGIServer._run_uvicorn_command  # noqa: SLF001 - Prefect has no setting for it
SubprocessASGIServer._run_uvicorn_command = _start_apart  # type: ignore[method-assign,assignment]  # noqa: SLF001 - as above


def own_server() -> int | None:
    """Return the process id of the ephemeral server that Prefect started for us, if it did."""
    process = SubprocessASGIServer().server_process if in_a_flow() else None
    return process.pid if process else None
