"""What pairwright uses of Prefect, imported once its environment is set: quiet, without telemetry, able to start.

Importing Prefect takes seconds, and more again with its server. So who may run without it imports this where it is used.
"""

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
from prefect.exceptions import TerminationSignal  # noqa: E402 - likewise
from prefect.settings import PREFECT_API_URL  # noqa: E402 - likewise

__all__ = [
    "NO_CACHE",
    "TerminationSignal",
    "acreate_link_artifact",
    "acreate_markdown_artifact",
    "acreate_progress_artifact",
    "acreate_table_artifact",
    "aupdate_progress_artifact",
    "flow",
    "task",
]


def _start_servers_apart() -> None:
    """Have Prefect start its ephemeral server in a session of its own.

    A terminal's Ctrl-C goes to all processes of its session, and a build whose server is gone would try for minutes to
    report its end. `watchdog.ends_with_us` sees to it that the server does not outlive the build.
    """
    from prefect.server.api.server import SubprocessASGIServer

    start = SubprocessASGIServer._run_uvicorn_command  # noqa: SLF001 - Prefect has no setting for it

    def start_apart(server: SubprocessASGIServer) -> "subprocess.Popen[Any]":
        popen = subprocess.Popen
        subprocess.Popen = partial(popen, start_new_session=True)  # type: ignore[assignment,misc]
        try:
            return start(server)
        finally:
            subprocess.Popen = popen  # type: ignore[misc]

    SubprocessASGIServer._run_uvicorn_command = start_apart  # type: ignore[method-assign,assignment]  # noqa: SLF001 - as above


if not PREFECT_API_URL.value():  # who names a server needs none started, and is spared the import of one
    _start_servers_apart()
