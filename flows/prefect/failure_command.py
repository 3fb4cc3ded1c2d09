"""The user's command for scheduled runs that fail or are killed.

It is split into words as by a shell, but started without one. Facts about the run are in its environment, so that the text
of an error cannot become part of a command:

- ``PAIRWRIGHT_RUN_NAME``, ``PAIRWRIGHT_RUN_ID``: of the flow run in Prefect.
- ``PAIRWRIGHT_RUN_STATE``: ``Failed`` or ``Crashed``.
- ``PAIRWRIGHT_RUN_ERROR``: the error message.
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
_MAX_CHARACTERS = 4000  # of an error: the environment of a process has a limit


def parse_failure_command(written: str) -> tuple[str, ...]:
    """Return the words of a command, the first as an absolute path.

    Raises:
        UsageError: when it is empty, a quote is not closed, or the program does not exist.
    """
    try:
        words = shlex.split(written)
    except ValueError as error:
        raise UsageError(f"--on-failure {written!r}: {error}. Quote it as for a shell.") from None
    if not words:
        raise UsageError(f"--on-failure {written!r}: empty command. Give a command, or omit the option.")
    program = shutil.which(words[0])
    if program is None:
        raise UsageError(f"--on-failure {written!r}: program {words[0]} not found. Install it, or give its path.")
    return (str(Path(program).absolute()), *words[1:])


def run_failure_command(
    command: Sequence[str], facts: Mapping[str, str], seconds: float = TIMEOUT_SECONDS
) -> tuple[str, str]:
    """Run the command.

    Args:
        command: its words.
        facts: about the run, by the ending of the variable's name in lower case.
        seconds: until it is killed.

    Returns:
        Its output, and its error; empty if it succeeded.
    """
    variables = {
        f"PAIRWRIGHT_RUN_{name.upper()}": text.replace("\0", "")[:_MAX_CHARACTERS] for name, text in facts.items()
    }
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command, and no shell
            command,
            env={**os.environ, **variables},
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
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with its child processes
            return process.communicate()[0].strip(), f"was killed after {seconds:g} s"
    return output.strip(), f"ended with exit code {process.returncode}" if process.returncode else ""
