"""The Prefect server that a schedule needs: the user's, or one of our own that ends with us.

A schedule is kept by a service of Prefect's server. The ephemeral server that a single flow gets does not run that
service, so `serve` starts a whole one, on loopback, with its web page; its database stands in PREFECT_HOME, so that the
next one knows the runs of this one.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.flows.preflight import prepare_prefect
from pairwright.flows.watchdog import ends_with_us

HOST = "127.0.0.1"
_PATIENCE = 180.0  # seconds to wait for a server on a busy machine; 5 to 20 are usual
_ENDING = 15.0  # seconds until a server that does not end is killed
_LEASES = "prefect.server.concurrency.lease_storage.filesystem"


@contextmanager
def server_of_our_own(port: int) -> Iterator[str]:
    """Start a Prefect server on loopback for the block, and give the address of its API.

    Args:
        port: to listen on; 0 for any that is free.

    Raises:
        UsageError: when the port is taken.
        PairwrightError: when the server does not come up.
    """
    port = _free(port)
    prepare_prefect()
    # Leases of the one place that a run holds outlive the server: in memory they would be forgotten, the place not.
    environment = {"PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": _LEASES, **os.environ}
    command = [
        sys.executable,
        "-m",
        "prefect",
        "server",
        "start",
        "--host",
        HOST,
        "--port",
        str(port),
    ]
    process = subprocess.Popen(  # noqa: S603 - our own Python and a number
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        with ends_with_us(process.pid):
            url = f"http://{HOST}:{port}/api"
            _wait_for(url, process)
            yield url
    finally:
        _end(process)


def _free(port: int) -> int:
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


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise PairwrightError(
                f"Prefect's server ended at once (exit {process.returncode}). See what it says: prefect server start"
            )
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:  # noqa: S310 - loopback
                if reply.status == HTTPStatus.OK:
                    return
        except OSError:
            time.sleep(0.1)
    raise PairwrightError(f"Prefect's server did not answer at {url} within {_PATIENCE:.0f} s. Start again.")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the server and what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_ENDING)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return
    process.wait()
