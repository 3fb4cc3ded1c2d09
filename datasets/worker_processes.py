"""Processes that work for this one: spawned, ended with it, and silent at Ctrl-C, which all of them hear.

They are spawned, not forked: tagging holds Python's lock, and a forked process would inherit polars' and FAISS's threads.

Steps that a job of a build reports (`datasets.progress`) come out of this process as its own, when there is a listener.
Of other work only the results count: who shares it out reports how much is done.

While a process starts, an interrupt would end it with a traceback, or without a word. So it is started with interrupts
held back, and hears them once it can. Where this process is deaf to them (a script's job in the background), so are those.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pairwright.datasets.progress import ProgressReport, has_listener, send_report, set_listener

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class WorkerProcesses(ProcessPoolExecutor):
    """A pool of so many processes."""

    def __init__(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # not inherited: polars put a handler of its own there
        self._reports = _ReportPipe(context) if has_listener() else None
        sending = self._reports.sending if self._reports else None
        super().__init__(workers, mp_context=context, initializer=_initialize_worker, initargs=(deaf, sending))

    def submit(
        self, work: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> "Future[Result]":
        """Have a function called in one of the processes, which the first call starts."""
        with _hold_interrupts():
            return super().submit(work, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as the base has it
        """End the processes."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if self._reports is not None:
            self._reports.sending.close()


class _ReportPipe:
    """A pipe by which the processes send reports of steps to this one.

    A report is smaller than what a pipe takes at once, so several processes may write without a lock. One that finds the
    pipe full drops its report instead of waiting.
    """

    def __init__(self, context: SpawnContext) -> None:
        self._coming, self.sending = context.Pipe(duplex=False)
        os.set_blocking(self.sending.fileno(), False)
        threading.Thread(target=self._pass_on, daemon=True).start()

    def _pass_on(self) -> None:
        with self._coming, contextlib.suppress(EOFError):
            while True:
                send_report(ProgressReport.from_bytes(self._coming.recv_bytes()))


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Hold interrupts back from this thread and from processes that it starts; the thread hears them at the end."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # as it starts, it lets interrupts through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _initialize_worker(deaf: bool, reports: "Connection | None") -> None:  # noqa: FBT001 - a pool passes it by position
    _exit_with_parent(deaf)
    if reports is not None:
        set_listener(lambda report: _send_report(reports, report) if report.owner else None)


def _send_report(reports: "Connection", report: ProgressReport) -> None:
    with contextlib.suppress(OSError):  # the pipe is full, or the parent is gone
        reports.send_bytes(report.as_bytes())


def _exit_with_parent(deaf: bool) -> None:  # noqa: FBT001 - a pool hands it over by place
    """End this process when the one that started it is gone, and without a word at Ctrl-C unless that is ``deaf`` to it.

    Left to itself a pool's process would wait for ever, and print a traceback.
    """
    # Not SIG_DFL: polars, imported later, puts a handler of its own before ours and would not call that.
    signal.signal(signal.SIGINT, signal.SIG_IGN if deaf else lambda *_: os._exit(1))
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
