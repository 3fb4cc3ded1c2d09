"""Checks and settings that come before the import of Prefect, which takes seconds.

Two known problems keep Prefect from starting; `pairwright doctor` prints them, and a flow refuses to start with them:

1. Prefect 3.8 does not start with FastAPI 0.155 and later (its server passes ``min_items`` to ``Body()``, which newer
   FastAPI refuses). pyproject.toml bounds FastAPI; other environments may break the bound.
2. The package ``dataclasses`` on PyPI is a backport for Python 3.6 that img2dataset depends on. Prefect starts its
   ephemeral server with site-packages first on the path, so the backport shadows the standard library's module and the
   server fails. It can be uninstalled: img2dataset works without it.

Telemetry of Prefect is switched off, unless the user has set it.
"""

import os
import sys
import tempfile
import warnings
from importlib import metadata
from pathlib import Path

from pairwright.datasets.errors import MissingResourceError

FASTAPI_TOO_NEW = (0, 155)


def in_flow_run() -> bool:
    """Return whether this code runs in a Prefect flow; a flow's function can also be called without Prefect."""
    context = sys.modules.get("prefect.context")
    return context is not None and context.FlowRunContext.get() is not None


def prefect_problems() -> list[str]:
    """Return the problems that keep Prefect from starting, each as a line with its fix."""
    problems = []
    if _version("prefect") is None:
        problems.append("prefect is not installed. Install it: pip install 'prefect>=3.4'")
    fastapi = _version("fastapi")
    if fastapi and _numbers(fastapi) >= FASTAPI_TOO_NEW:
        problems.append(
            f"fastapi {fastapi} is too new for prefect, whose server does not start. Run: pip install 'fastapi<0.151'"
        )
    if _version("dataclasses"):
        problems.append(
            "the PyPI package `dataclasses` (a Python 3.6 backport that img2dataset depends on) shadows the standard "
            "library's module and keeps prefect's server from starting. Run: pip uninstall dataclasses"
        )
    home = prefect_home()
    if not os.environ.get("PREFECT_API_URL") and not _can_hold_files(home):
        problems.append(
            f"{home}, the folder of prefect's database, is not writable. Set PREFECT_HOME to a writable folder"
        )
    return problems


def prefect_home() -> Path:
    """Return the folder of Prefect's database: PREFECT_HOME, else ``~/.prefect``."""
    return Path(os.environ.get("PREFECT_HOME") or Path("~/.prefect")).expanduser()


def _can_hold_files(folder: Path) -> bool:
    existing = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    try:
        tempfile.TemporaryFile(dir=existing).close()  # permissions are not enough: the file system may be read-only
    except OSError:
        return False
    return True


def refuse_broken_prefect() -> None:
    """Refuse to start with a known problem of Prefect.

    Raises:
        MissingResourceError: naming the first problem and its fix.
    """
    problems = prefect_problems()
    if problems:
        raise MissingResourceError(f"{problems[0]}. Or build with --no-prefect")
    if not os.environ.get("PREFECT_API_URL"):
        prefect_home().mkdir(parents=True, exist_ok=True)  # without its parents Prefect would wait forever


def prepare_prefect() -> None:
    """Set Prefect's environment for quiet runs without telemetry; variables that the user has set are kept."""
    for name, value in {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",  # shown only if the server does not start
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",  # the default of 20 s is too short on a busy machine
    }.items():
        os.environ.setdefault(name, value)
    # A build without Prefect works without its folder.
    warnings.filterwarnings("ignore", "Failed to create the Prefect home directory", UserWarning)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
