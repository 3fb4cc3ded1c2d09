"""A Ray cluster of two nodes on loopback, each a tree of processes of its own, so that one can be killed.

What is started is ended by process id: each node is the leader of a process group.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_RAY = Path(sys.executable).with_name("ray")
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1"}
_START_SECONDS = 90


@dataclass(frozen=True)
class TwoNodes:
    """A running cluster.

    Attributes:
        address: of the head, HOST:PORT.
        head: the head's process group.
        second: the other node's process group.
    """

    address: str
    head: int
    second: int

    def kill_second(self) -> None:
        """End the second node as a power cut would: all of its processes at once, without a word."""
        os.killpg(self.second, signal.SIGKILL)


@contextmanager
def two_nodes(folder: Path, cores_each: int = 1) -> Iterator[TwoNodes]:
    """Start two nodes, give them when both are in, and end both.

    Args:
        folder: for Ray's own files; its path has to be short, since sockets are kept there.
        cores_each: that each node offers.
    """
    port = _free_port()
    address = f"127.0.0.1:{port}"
    place = ["--node-ip-address", "127.0.0.1", f"--num-cpus={cores_each}", "--object-store-memory=80000000"]
    head = ["--head", f"--port={port}", f"--temp-dir={folder}", "--include-dashboard=false", *place]
    started: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "nodes.log").open("wb") as log:
            for options in (head, [f"--address={address}", *place]):
                started.append(_node(options, log.fileno()))
                _wait_for_nodes(address, len(started), folder / "nodes.log")
        yield TwoNodes(address, started[0].pid, started[1].pid)
    finally:
        for node in reversed(started):
            _end(node)


def _node(options: list[str], log: int) -> "subprocess.Popen[bytes]":
    ray = [str(_RAY), "start", "--block", "--disable-usage-stats", *options]
    # The shell ends its process group when the pipe closes: a test that is killed leaves no cluster behind.
    command = ["/bin/sh", "-c", '"$@" & read _; kill -9 0', "node", *ray]
    environment = {**os.environ, **_QUIET}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True
    )


def _wait_for_nodes(address: str, count: int, log: Path) -> None:
    ask = f"import ray; ray.init({address!r}, log_to_driver=False); print(sum(n['Alive'] for n in ray.nodes()))"
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        asked = subprocess.run(
            [sys.executable, "-c", ask], capture_output=True, text=True, check=False, env={**os.environ, **_QUIET}
        )
        if asked.returncode == 0 and int(asked.stdout.split()[-1]) >= count:
            return
    raise AssertionError(f"Ray's nodes did not come up:\n{log.read_text()[-2000:]}")


def _end(node: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(node.pid, signal.SIGKILL)
    node.wait(120)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
