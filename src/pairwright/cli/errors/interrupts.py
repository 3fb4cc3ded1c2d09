"""How a command ends that is stopped: by Ctrl-C with exit code 130, by SIGTERM with 143, and with one line that is true of it.

A command says what becomes of its work as soon as it is known, and the last word counts: whoever asks a model keeps the
answers, whatever else the command would lose. One that writes all at its end and asks nobody hears SIGTERM as it does
Ctrl-C, so that nothing half done is left beside OUT; once more ends it at once. The others leave SIGTERM to what they
run: a build, a session with a model, a server.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143

_NOT_DONE = "stopped before it was done: start the same command again."


@dataclass
class _CommandState:
    """What is known of the command; a process runs one."""

    begun: bool = False
    told: str = _NOT_DONE
    terminated: bool = False


_command_state = _CommandState()


@contextmanager
def track_command() -> Iterator[None]:
    """Begin with nothing said, and leave SIGTERM as it was found."""
    _command_state.begun, _command_state.told, _command_state.terminated = True, _NOT_DONE, False
    try:
        yield
    finally:
        _command_state.begun = False
        restore_sigterm()


def nothing_written_on_interrupt() -> None:
    """Say that OUT is written whole or not at all, so that a stop leaves all as it was; hear SIGTERM from now on.

    What somebody else handles, or has switched off, is left alone, and so is the process of one who calls a verb within it.
    """
    _command_state.told = "stopped. Nothing was written, and what was there is as it was: start the same command again."
    ours = _command_state.begun and threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def resumable_on_interrupt(how: str = "start the same command again to go on") -> None:
    """Say that what is done is kept, and how to go on; SIGTERM is left to what keeps it."""
    _command_state.told = f"stopped. What is done is kept: {how}."
    restore_sigterm()


def restore_sigterm() -> None:
    """Hear SIGTERM no longer."""
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def interrupt_message() -> str:
    """Return the line about the work of the command that was stopped."""
    return _command_state.told


def exit_code() -> int:
    """Return that of what stopped it."""
    return TERMINATED if _command_state.terminated else INTERRUPTED


def _on_sigterm(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signals are handed over
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # once more ends it at once
    _command_state.terminated = True
    raise KeyboardInterrupt
