"""Prefect servers of builds and schedules: the user's, or one that ends with this process.

Both servers keep their database in PREFECT_HOME, so that a later one knows the runs of earlier ones.

- A build gets a temporary server without services and web page, with the options of Prefect's own ephemeral server.
  Prefect itself would also import the whole server into the build, which doubles the time to start.
- A schedule is kept by a service, so `serve` starts a complete server with its web page.

Each runs in a new session: Ctrl-C in a terminal goes to all processes of a session, and a build without its server
would try for minutes to report its end. If this process is killed, a watchdog ends the server.
"""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO

from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.progress import open_step
from pairwright.flows.prefect.flow_reports import FlowReports
from pairwright.flows.prefect.preflight import prefect_home, prepare_prefect
from pairwright.flows.prefect.task_runs import wait_until_recorded

HOST = "127.0.0.1"
_START_SECONDS = 180.0  # on a busy machine; 3 to 20 are usual
_POLL_SECONDS = 0.1  # between two questions whether it answers
_RETRY_SECONDS, _RETRIES = 0.1, 50  # of what SQLite was too busy for
_END_SECONDS = 15.0  # until a server that does not end is killed
_NEWER_DATABASE = "Can't locate revision identified by"  # alembic, about a database that a later release has migrated
_LEASES = "prefect.server.concurrency.lease_storage.filesystem"


@contextmanager
def own_server(port: int) -> Iterator[str]:
    """Run a Prefect server on localhost for the block, and yield the URL of its API.

    Args:
        port: to listen on; 0 for any free port.

    Raises:
        UsageError: when the port is in use.
        PairwrightError: when the server does not start.
    """
    # The lease of a running build is stored on disk: in memory it would be lost with the server, its place would not.
    with _server_process(
        ["prefect", "server", "start"], port, {"PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": _LEASES}
    ) as server:
        asyncio.run(server.wait_until_ready())
        yield server.url


@contextmanager
def build_server(reports: FlowReports, note: Callable[[str], None]) -> Iterator[Callable[[], Awaitable[None]]]:
    """Make Prefect use the server of its settings, or a temporary one for the block, which begins while it starts.

    The temporary server ends when it has recorded the states of all task runs.

    Args:
        reports: of the build; they are early with the temporary server.
        note: receives a message if some states could not be recorded.

    Returns:
        A function that returns when the server has started, and raises `PairwrightError` when it does not.
    """
    from pairwright.flows.prefect.api import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    if PREFECT_API_URL.value():
        yield _ready
        return
    reports.early = True
    settings = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
    app_dir = str(prefect_home())  # by default the working directory is first on the server's path
    server = ["uvicorn", "--factory", "prefect.server.api.server:create_app", "--app-dir", app_dir]
    # A transaction that another one overtook is a 503, after which clients wait for two seconds: at most stages of a build.
    server += ["--header", f"Retry-After:{_RETRY_SECONDS}"]
    with (
        _server_process([*server, "--log-level", "error", "--lifespan", "on"], 0, settings) as starting,
        temporary_settings({PREFECT_API_URL: starting.url, PREFECT_CLIENT_MAX_RETRIES: _RETRIES}),
    ):
        try:
            yield starting.wait_until_ready
        finally:
            wait_until_recorded(reports, note)


async def _ready() -> None:
    """Return at once: a server of the user runs already."""


@contextmanager
def _server_process(module: Sequence[str], port: int, settings: Mapping[str, str]) -> Iterator["_StartingServer"]:
    """Start a Python module that is a Prefect server, and end it; the user's settings override ``settings``."""
    port = _free_port(port)
    url = f"http://{HOST}:{port}/api"
    prepare_prefect()
    process = subprocess.Popen(  # noqa: S603 - our own Python and a number
        [sys.executable, "-P", "-m", *module, "--host", HOST, "--port", str(port)],
        # The default of Prefect's web page is port 4200.
        env={**settings, "PREFECT_UI_API_URL": url, **os.environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        with terminated_with_this_process(process.pid):
            assert process.stderr
            yield _StartingServer(url, process, ChildErrors(process.stderr))
    finally:
        _terminate(process)


def _free_port(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise UsageError(
                f"port {port} is in use. If a Prefect server listens there, set "
                f"PREFECT_API_URL=http://{HOST}:{port}/api. Otherwise choose another --port."
            ) from None
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class _StartingServer:
    """A server that may not answer yet: the URL of its API, its process, and what that prints."""

    url: str
    process: "subprocess.Popen[bytes]"
    errors: "ChildErrors"

    async def wait_until_ready(self) -> None:
        """Return when the server answers.

        Raises:
            PairwrightError: when it does not start.
        """
        until = time.monotonic() + _START_SECONDS
        with open_step("starting the Prefect server", unit=""):
            while time.monotonic() < until:
                if self.process.poll() is not None:
                    raise PairwrightError(_exit_message(self.process.returncode, self.errors.error_line()))
                if await asyncio.to_thread(self._answers):
                    return
                await asyncio.sleep(_POLL_SECONDS)
        raise PairwrightError(
            f"Prefect's server did not answer at {self.url} within {_START_SECONDS:.0f} s. Start the command again."
        )

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as reply:  # noqa: S310 - loopback
                return bool(reply.status == HTTPStatus.OK)
        except OSError:
            return False


def _exit_message(code: int, error: str) -> str:
    """Return the message for a server that did not start, with the last error that it printed."""
    message = f"Prefect's server did not start (exit {code})" + (f": {error.rstrip('.')}" if error else "")
    if _NEWER_DATABASE in error:
        return (
            f"{message}. Its database was changed by a newer Prefect. Set PREFECT_HOME (now {prefect_home()}) to another "
            "folder, delete all recorded runs with `prefect server database reset`, or build with --no-prefect."
        )
    return f"{message}. Run `prefect server start` to see its output, or build with --no-prefect."


def _terminate(process: "subprocess.Popen[bytes]") -> None:
    """End the server and its child processes."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_END_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return
    process.wait()


_WATCHDOGS: list[subprocess.Popen[bytes]] = []


@contextmanager
def terminated_with_this_process(pid: int) -> Iterator[None]:
    """End the process ``pid`` if this process dies inside the block, even by SIGKILL.

    A shell waits on a pipe that only this process holds open, and ends the other one when the pipe closes.
    """
    command = ["/bin/sh", "-c", 'read _; kill "$1"', "watchdog", str(pid)]
    quiet = subprocess.DEVNULL
    watchdog = subprocess.Popen(  # noqa: S603 - a fixed command and a number
        command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
    )
    _WATCHDOGS.append(watchdog)  # keeps its pipe open until this process ends
    yield
    # After an error the watchdog stays: a signal may end Python without its exit handlers.
    _WATCHDOGS.remove(watchdog)
    with watchdog:
        watchdog.kill()


KEPT_LINES = 200
_MAX_CHARACTERS = 300  # of a line that is shown
_READ_BYTES = 4096  # at a time; longer lines are kept in pieces
_READ_SECONDS = 5.0  # to read the rest of an ended process, whose children may hold the pipe open
_RAISED = re.compile(r"(?:\w+\.)*[A-Z]\w*[a-z]\w*(?:: \S.*)?")  # the last line of a traceback


class ChildErrors:
    """The last `KEPT_LINES` lines of the stderr of a process, read by a thread so that the process never blocks.

    Args:
        stream: the end of the pipe to read; it is closed when the process closes its end.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while line := self._stream.readline(_READ_BYTES):
                self._lines.append(line)

    def error_line(self) -> str:
        """Return the error of the last traceback of the ended process, else its last line; empty without output."""
        self._thread.join(_READ_SECONDS)
        decoded = [line.decode("utf-8", "replace").rstrip() for line in list(self._lines)]
        lines = [line for line in decoded if line]
        raised = [line for line in lines if _RAISED.fullmatch(line)]
        return (raised or lines or [""])[-1][:_MAX_CHARACTERS]
