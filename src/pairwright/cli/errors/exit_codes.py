"""Exit codes of all commands; docs/reference/exit-codes.md lists them for users.

Errors carry theirs (`datasets.errors`): 2 for the command line and the config, 1 for data, files, system and servers.
"""

from typing import NoReturn

import typer

from pairwright.cli.output.console import note

FAILED = 1
BELOW_TARGET = 3
PARTS_LEFT = 4  # of `build --part`: other parts have to go on first


def exit_below_target(*reasons: str) -> NoReturn:
    """Exit a command that is done but gave less than was asked, such as no kept row.

    Args:
        reasons: lines for stderr.
    """
    for line in reasons:
        note(line)
    raise typer.Exit(BELOW_TARGET)
