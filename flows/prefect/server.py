"""The Prefect server that a build or a schedule needs: the user's, or one of our own that ends with us.

Both have their database in PREFECT_HOME, so that the next one knows the runs of this one.

- A build gets a temporary one without services and page, started as Prefect starts its own. Prefect's way would import
  the whole server into the build as well, and then wait for the other: twice the seconds.
- A schedule is kept by a service, so `serve` starts a whole one, with its web page.

Each is in a session of its own: a terminal's Ctrl-C goes to all processes of a session, and a build whose server is
gone would try for minutes to report its end.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus

from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.progress import open_step
from pairwright.flows.prefect.child_errors import ChildErrors
from pairwright.flows.prefect.preflight import prefect_home, prepare_prefect
from pairwright.flows.prefect.task_runs import ReportedRuns, wait_until_recorded
from pairwright.flows.prefect.watchdog import terminated_with_this_process

HOST = "127.0.0.1"
_PATIENCE = 180.0  # seconds to wait for a server on a busy machine; 5 to 20 are usual
_ENDING = 15.0  # seconds until a server that does not end is killed
_FROM_LATER = "Can't locate revision identified by"  # alembic, of a database that a later release has migrated
_LEASES = "prefect.server.concurrency.lease_storage.filesystem"


@contextmanager
def own_server(port: int) -> Iterator[str]:
    """Start a Prefect server on loopback for the block, and give the address of its API.

    Args:
        port: to listen on; 0 for any that is free.

    Raises:
        UsageError: when the port is taken.
        PairwrightError: when the server does not come up.
    """
    # Leases of the one place that a run holds outlive the server: in memory they would be forgotten, the place not.
    with _server_process(
        ["prefect", "server", "start"], port, {"PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": _LEASES}
    ) as url:
        yield url


@contextmanager
def build_server(reported: ReportedRuns, note: Callable[[str], None]) -> Iterator[None]:
    """Have Prefect use the server that its settings name, or a temporary one for the block.

    The temporary one ends when it has written the states of all task runs.

    Args:
        reported: the task runs of the block.
        note: gets a line when their states could not all be written.

    Raises:
        PairwrightError: when the server does not come up.
    """
    from pairwright.flows.prefect.api import PREFECT_API_URL, temporary_settings

    if PREFECT_API_URL.value():
        yield
        return
    settings = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
    nothing_to_import = str(prefect_home())  # without it the working directory comes first on the server's path
    server = ["uvicorn", "--factory", "prefect.server.api.server:create_app", "--app-dir", nothing_to_import]
    with (
        _server_process([*server, "--log-level", "error", "--lifespan", "on"], 0, settings) as url,
        temporary_settings({PREFECT_API_URL: url}),
    ):
        try:
            yield
        finally:
            wait_until_recorded(reported, note)


@contextmanager
def _server_process(module: Sequence[str], port: int, settings: Mapping[str, str]) -> Iterator[str]:
    """Run a Python module that is a Prefect server, with settings that the user's own override."""
    port = _free_port(port)
    url = f"http://{HOST}:{port}/api"
    prepare_prefect()
    process = subprocess.Popen(  # noqa: S603 - our own Python and a number
        [sys.executable, "-P", "-m", *module, "--host", HOST, "--port", str(port)],
        # Prefect's web page calls port 4200 unless it is told another address.
        env={**settings, "PREFECT_UI_API_URL": url, **os.environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        with terminated_with_this_process(process.pid):
            assert process.stderr
            with open_step("starting the Prefect server", unit=""):
                _wait_for(url, process, ChildErrors(process.stderr))
            yield url
    finally:
        _terminate(process)


def _free_port(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise UsageError(
                f"port {port} is taken. If a Prefect server listens there, name it: "
                f"PREFECT_API_URL=http://{HOST}:{port}/api. Else choose another with --port."
            ) from None
        return int(probe.getsockname()[1])


def _wait_for(url: str, process: "subprocess.Popen[bytes]", words: ChildErrors) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise PairwrightError(_exit_message(process.returncode, words.telling()))
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:  # noqa: S310 - loopback
                if reply.status == HTTPStatus.OK:
                    return
        except OSError:
            time.sleep(0.1)
    raise PairwrightError(f"Prefect's server did not answer at {url} within {_PATIENCE:.0f} s. Start again.")


def _exit_message(code: int, said: str) -> str:
    """Return what to tell of a server that did not come up, by what it said."""
    told = f"Prefect's server ended at once (exit {code})" + (f": {said.rstrip('.')}" if said else "")
    if _FROM_LATER in said:
        return (
            f"{told}. A newer Prefect has changed its database, which this one cannot read. Name another folder in "
            f"PREFECT_HOME (now {prefect_home()}), or let it forget all runs: prefect server database reset. "
            "Or build with --no-prefect."
        )
    return f"{told}. All that it says: prefect server start. Or build with --no-prefect."


def _terminate(process: "subprocess.Popen[bytes]") -> None:
    """End the server and what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_ENDING)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return
    process.wait()
