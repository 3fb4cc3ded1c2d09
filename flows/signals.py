"""SIGTERM ends a build in order, as Ctrl-C does, from the first moment of it to the last.

Where a loop runs, the signal cancels the build's task, which then ends its workers and says what is kept. Where none
does, as while Prefect's server starts, it raises `Ended`. Prefect puts a handler of its own around a flow, which raises
an exception wherever the signal finds the loop: in the flow's own code this ends the process without a word, and in
some other's it is lost. So within a flow the handler is set once more (`again`); until then the loop hears the signal
beside Prefect. What somebody else handles, and any thread but the main one, is left alone.
"""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class BuildTerminated(BaseException):
    """A signal came where no loop runs."""


class SigtermHandler:
    """Hears SIGTERM for a build; a context manager around all of it."""

    def __init__(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        self._ours = in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        self._over = False

    def __enter__(self) -> Self:
        if self._ours:
            signal.signal(signal.SIGTERM, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _heard(self, *_: object) -> None:
        if not self._over:
            raise BuildTerminated
        signal.signal(
            signal.SIGTERM, signal.SIG_DFL
        )  # it is ending anyway, and shall leave no server; once more ends it

    @contextmanager
    def cancel_on_sigterm(self) -> Iterator[None]:
        """Cancel the running task at the signal; after the block there is nothing left to end."""
        self.again()
        try:
            yield
        finally:
            if self._ours:
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # between the two nobody would hear it
                self._over = True
                asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
                signal.signal(signal.SIGTERM, self._heard)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def again(self) -> None:
        """Set the loop's handler in place of any other, for the task that is running."""
        task = asyncio.current_task()
        if self._ours and task:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
