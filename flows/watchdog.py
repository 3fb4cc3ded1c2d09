"""A process that shall not outlive this one, even when this one is killed outright.

Prefect ends its ephemeral server when Python exits; a process that is killed does not exit in order, and its
server would run on for ever. So a shell waits on a pipe that only this process holds open: when the pipe closes,
for whatever reason, it ends the server.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ends_with_us(pid: int | None) -> Iterator[None]:
    """End the process ``pid`` when this process dies inside the block; do nothing for None."""
    if pid is None:
        yield
        return
    command = ["/bin/sh", "-c", 'read _; kill "$1"', "watchdog", str(pid)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603 - a fixed command and a number
        command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
    ) as watchdog:
        try:
            yield
        finally:
            watchdog.kill()  # before the pipe closes, so that the server is left to end in order
