"""Process pool: workers that end with their parent and are silent at Ctrl-C.

Workers are spawned, not forked: tagging holds Python's lock, and a fork would inherit the threads of polars and FAISS.
Where all of them need the same modules and tables, a server process loads these once and forks the workers (Linux); it
is started with the pool, ends with the parent, and runs no thread and no other work.

Progress steps that workers report (`datasets.progress`) are forwarded to this process if it has a listener. Other work
reports by its results; the caller counts them.

An interrupt during start-up would end a worker with a traceback or silently, so workers start with interrupts blocked
and unblock them when ready. If this process ignores interrupts (a background job of a script), so do its workers.
"""

import atexit
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pairwright.datasets.garbage_collection import collect_rarely
from pairwright.datasets.progress import ProgressReport, has_listener, send_report, set_listener

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerProcesses(ProcessPoolExecutor):
    """A pool with a fixed number of processes.

    Args:
        workers: processes.
        preload: module that imports and loads what all of them need; empty: none. The first one of a process counts.
        deaf: whether they ignore Ctrl-C, for a parent that finishes work under way before it ends.
    """

    def __init__(self, workers: int, preload: str = "", *, deaf: bool = False) -> None:
        context = start_fork_server(preload) if preload else multiprocessing.get_context("spawn")
        deaf |= signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # not inherited: polars installs its own handler
        self._reports = _ReportPipe(context) if has_listener() else None
        sending = self._reports.sending if self._reports else None
        super().__init__(
            workers, mp_context=context, initializer=_initialize_worker, initargs=(deaf, sending, dict(os.environ))
        )

    def submit(
        self, work: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> "Future[Result]":
        """Call a function in one of the processes; the first call starts them."""
        with _hold_interrupts():
            return super().submit(work, *args, **kwargs)

    def kill(self) -> None:
        """End the processes at once, also those that are starting and would act on an interrupt only when ready."""
        for process in list((self._processes or {}).values()):
            process.kill()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as the base has it
        """End the processes."""
        if self._result_queue is not None:
            # As long as this process can write results too, a worker that ended while it wrote one (Ctrl-C) leaves the
            # thread that reads them waiting for the rest of it.
            self._result_queue._writer.close()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way
        super().shutdown(wait, cancel_futures=cancel_futures)
        if self._reports is not None:
            self._reports.sending.close()


def start_fork_server(preload: str) -> ForkServerContext | SpawnContext:
    """Start the server that loads a module and forks workers, unless there is one; return the context of such processes."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload])
    with _hold_interrupts():
        forkserver.ensure_running()
    return context


class _ReportPipe:
    """A pipe through which workers send progress reports.

    A report is smaller than PIPE_BUF, so several processes may write without a lock. A worker that finds the pipe full
    drops its report instead of waiting.
    """

    def __init__(self, context: ForkServerContext | SpawnContext) -> None:
        self._coming, self.sending = context.Pipe(duplex=False)
        os.set_blocking(self.sending.fileno(), False)
        threading.Thread(target=self._pass_on, daemon=True).start()

    def _pass_on(self) -> None:
        with self._coming, contextlib.suppress(EOFError):
            while True:
                send_report(ProgressReport.from_bytes(self._coming.recv_bytes()))


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Block interrupts in this thread and in processes that it starts; the thread receives them at the end."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start unblocks interrupts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _initialize_worker(  # a pool passes the arguments by position
    deaf: bool,  # noqa: FBT001
    reports: "Connection | None",
    environment: dict[str, str],
) -> None:
    if dict(os.environ) != environment:  # those of a fork server are of the time when it started
        os.environ.clear()
        os.environ.update(environment)
    atexit.register(_exit_at_once)  # before those of libraries that jobs load, so that it runs after them
    _exit_with_parent(deaf)
    collect_rarely()
    if reports is not None:
        set_listener(lambda report: _send_report(reports, report) if report.owner else None)


def _send_report(reports: "Connection", report: ProgressReport) -> None:
    with contextlib.suppress(OSError):  # the pipe is full, or the parent has ended
        reports.send_bytes(report.as_bytes())


def _exit_at_once() -> None:
    """End this process without freeing each object: half a second of CPU with a tagger and WordNet in memory.

    `multiprocessing` has run its finalizers and flushed the streams by then.
    """
    os._exit(0)


def _exit_with_parent(deaf: bool) -> None:  # noqa: FBT001 - a pool hands it over by place
    """End this process when its parent has ended, and silently at Ctrl-C unless the parent is ``deaf`` to it.

    Without it a worker would wait forever, and print a traceback at Ctrl-C.
    """
    # Not SIG_DFL: polars, imported later, would install its own handler first and not call the default one.
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
