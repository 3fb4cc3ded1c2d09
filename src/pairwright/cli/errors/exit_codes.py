"""Exit codes of all commands, one for each kind of outcome; docs/reference/exit-codes.md lists them for users.

Errors carry theirs (`datasets.errors`): 2 for the call and the config, 1 for data, files, the system and servers.
"""

from typing import NoReturn

import typer

from pairwright.cli.output.console import note

FAILED = 1
BELOW_TARGET = 3


def exit_below_target(*why: str) -> NoReturn:
    """End a command that is done but gave less than was asked; nothing kept counts as that.

    Args:
        why: lines for stderr.
    """
    for line in why:
        note(line)
    raise typer.Exit(BELOW_TARGET)
