"""Commands of pairwright, run in this process."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from pairwright.cli.main import app


def pairwright(*arguments: str | float | Path, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """Run a command with ``--json`` and return what it prints.

    Args:
        arguments: of the command line, without ``--json``.
        codes: exit codes that are no error.

    Raises:
        RuntimeError: another exit code.
    """
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"], prog_name="pairwright")
    if result.exit_code not in codes:
        said = result.stderr or str(result.exception)
        raise RuntimeError(f"pairwright {' '.join(map(str, arguments))} exited {result.exit_code}: {said}")
    found: dict[str, Any] = json.loads(result.stdout) if result.stdout.strip() else {}
    return found
