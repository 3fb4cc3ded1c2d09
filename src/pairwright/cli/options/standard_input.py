"""``-`` as INPUT: rows from standard input, copied to a temporary file, as commands read their input more than once."""

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TypeVar

import typer

from pairwright.datasets.directories import STANDARD_INPUT_PREFIX
from pairwright.datasets.errors import UsageError

STANDARD_INPUT = "-"
_NAME = "stdin.jsonl"  # which is the format, unless --format names another, and the name of the dataset

_FOLDER = re.compile(rf"\S*/{STANDARD_INPUT_PREFIX}\w+/")

Written = TypeVar("Written", str, Path)


def copy_standard_input(context: typer.Context, value: Written) -> Written:
    """Return the value of INPUT, for ``-`` the path of a copy of standard input, which is removed after the command.

    Raises:
        UsageError: nothing is piped into the command.
    """
    if str(value) != STANDARD_INPUT or context.resilient_parsing:
        return value
    if sys.stdin is None or sys.stdin.isatty():  # None: it is closed
        raise UsageError("INPUT is -, and nothing is piped into the command. Pipe JSON Lines into it, or name a file.")
    folder = context.with_resource(tempfile.TemporaryDirectory(prefix=STANDARD_INPUT_PREFIX))
    path = Path(folder) / _NAME
    with path.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return type(value)(path)


def hide_copy(message: str) -> str:
    """Return an error message without the temporary folder of the copy: ``stdin.jsonl:3: ...``."""
    return _FOLDER.sub("", message)
