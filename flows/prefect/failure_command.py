"""The user's command that runs when a scheduled run fails or its process is killed.

It is split into words as a shell would and started without one; what is known of the run is in its environment, so no
text of an error is ever taken for a command:

- ``PAIRWRIGHT_RUN_NAME``, ``PAIRWRIGHT_RUN_ID``: of the flow run in Prefect.
- ``PAIRWRIGHT_RUN_STATE``: ``Failed`` or ``Crashed``.
- ``PAIRWRIGHT_RUN_ERROR``: what went wrong.
- ``PAIRWRIGHT_RUN_CONFIG``, ``PAIRWRIGHT_RUN_OUT``, ``PAIRWRIGHT_RUN_LOG``: the config file, the build directory and the log
  file of the run.
"""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pairwright.datasets.errors import UsageError

TIMEOUT_SECONDS = 300.0  # after which the command is killed
_MOST = 4000  # characters of an error: the environment of a process has a limit


def parse_failure_command(written: str) -> tuple[str, ...]:
    """Return the words of a command, the first as an absolute path.

    Raises:
        UsageError: when it has no words, a quote is open, or there is no such program.
    """
    try:
        words = shlex.split(written)
    except ValueError as error:
        raise UsageError(f"--on-failure {written!r}: {error}. Quote it as for a shell.") from None
    if not words:
        raise UsageError(f"--on-failure {written!r}: no command. Give one, or leave the option out.")
    program = shutil.which(words[0])
    if program is None:
        raise UsageError(f"--on-failure {written!r}: {words[0]} is not a program. Give its path, or install it.")
    return (str(Path(program).absolute()), *words[1:])


def run_failure_command(
    command: Sequence[str], facts: Mapping[str, str], seconds: float = TIMEOUT_SECONDS
) -> tuple[str, str]:
    """Run the command.

    Args:
        command: its words.
        facts: what is known of the run, by the ending of the variable's name in lower case.
        seconds: after which it is killed.

    Returns:
        What it wrote, and what went wrong with it; empty when it ended well.
    """
    told = {f"PAIRWRIGHT_RUN_{name.upper()}": text.replace("\0", "")[:_MOST] for name, text in facts.items()}
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command, and no shell
            command,
            env={**os.environ, **told},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return "", f"could not be started ({error.strerror})"
    with process:
        try:
            wrote, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with what it has started
            return process.communicate()[0].strip(), f"was killed after {seconds:g} s"
    return wrote.strip(), f"ended with exit code {process.returncode}" if process.returncode else ""
