"""A process that shall not outlive this one, even when this one is killed outright.

A process that is killed does not exit in order, and the Prefect server that it started would run on for ever. So a shell waits on a pipe that only this process holds open: when the pipe closes,
for whatever reason, it ends the server.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

_WATCHING: list[subprocess.Popen[bytes]] = []


@contextmanager
def terminated_with_this_process(pid: int) -> Iterator[None]:
    """End the process ``pid`` when this process dies inside the block."""
    command = ["/bin/sh", "-c", 'read _; kill "$1"', "watchdog", str(pid)]
    quiet = subprocess.DEVNULL
    watchdog = subprocess.Popen(  # noqa: S603 - a fixed command and a number
        command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
    )
    _WATCHING.append(watchdog)  # held, so that its pipe stays open until this process ends
    yield
    # Left in order: who started the process ends it. After an error the watchdog stays, since what comes next may be
    # a signal that ends Python without its exit handlers.
    _WATCHING.remove(watchdog)
    with watchdog:
        watchdog.kill()
