"""Handler that ends a build cleanly on SIGTERM, as Ctrl-C does.

While an event loop runs, the signal cancels the task of the build, which then ends its workers. Otherwise, for example
while Prefect's server starts, it raises `BuildTerminated`. Prefect installs a handler of its own around a flow, which
raises an exception wherever the loop happens to be; there it may be lost or end the process without a message.
`install_in_loop` therefore replaces it inside the flow. A handler that the caller has set is kept, and so are the
handlers of a process whose build does not run in the main thread.
"""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class BuildTerminated(BaseException):
    """SIGTERM arrived while no event loop ran."""


class SigtermHandler:
    """Handler of SIGTERM for one build; a context manager."""

    def __init__(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        self._ours = in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        self._ending = False

    def __enter__(self) -> Self:
        if self._ours:
            signal.signal(signal.SIGTERM, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _handle(self, *_: object) -> None:
        if not self._ending:
            raise BuildTerminated
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the build is ending; a second signal kills the process

    @contextmanager
    def cancel_on_sigterm(self) -> Iterator[None]:
        """Cancel the running task on SIGTERM; after the block the first signal is ignored."""
        self.install_in_loop()
        try:
            yield
        finally:
            if self._ours:
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # between the two handlers
                self._ending = True
                asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
                signal.signal(signal.SIGTERM, self._handle)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def install_in_loop(self) -> None:
        """Make the event loop handle the signal, by cancelling the running task."""
        task = asyncio.current_task()
        if self._ours and task:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
