"""State of a command's work when it ends early, and the exit of an interrupted one: code 130 for Ctrl-C, 143 for SIGTERM, and one line about the state of its work.

A command declares what an interrupt leaves; the last declaration counts. One that writes everything at its end handles
SIGTERM like Ctrl-C, so that no temporary file remains next to OUT; a second SIGTERM ends it immediately. The others
leave SIGTERM to what they run: a build, a session with a model, a server.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143

_AGAIN = "start the same command again"


@dataclass
class _CommandState:
    """State of the running command; a process runs one."""

    running: bool = False
    work: str = ""  # what an early end leaves, in a sentence
    terminated: bool = False


_command_state = _CommandState()


@contextmanager
def track_command() -> Iterator[None]:
    """Reset the state for a command, and restore SIGTERM after it."""
    _command_state.running, _command_state.work, _command_state.terminated = True, "", False
    try:
        yield
    finally:
        _command_state.running = False
        restore_sigterm()


def nothing_written_on_interrupt() -> None:
    """Declare that OUT is written completely or not at all, and handle SIGTERM from now on.

    A handler of the caller, or an ignored signal, stays; so does SIGTERM of a process that calls a verb as a function.
    """
    _command_state.work = f"Nothing was written or changed: {_AGAIN}."
    handles = _command_state.running and threading.current_thread() is threading.main_thread()
    if handles and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def resumable_on_interrupt(how: str = f"{_AGAIN} to resume") -> None:
    """Declare that finished work is kept, and how to resume; SIGTERM is left to what keeps it."""
    _command_state.work = f"Finished work is kept: {how}."
    restore_sigterm()


def restore_sigterm() -> None:
    """Stop handling SIGTERM."""
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def interrupt_message() -> str:
    """Return the line about the work of the interrupted command."""
    return f"stopped. {_command_state.work}" if _command_state.work else f"stopped before it was done: {_AGAIN}."


def describe_work() -> str:
    """Return what the command leaves when it ends early, and how to go on, in a sentence."""
    return _command_state.work or f"{_AGAIN.capitalize()}."


def exit_code() -> int:
    """Return the exit code of the interrupt."""
    return TERMINATED if _command_state.terminated else INTERRUPTED


def _on_sigterm(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signature of a signal handler
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process immediately
    _command_state.terminated = True
    raise KeyboardInterrupt
