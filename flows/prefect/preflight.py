"""What has to hold before Prefect is imported, and the two known ways in which it does not.

1. Prefect 3.8 does not start with FastAPI 0.155 and later (its server passes ``min_items`` to ``Body()``,
   which newer FastAPI refuses). pyproject.toml bounds FastAPI; an environment made otherwise may break the bound.
2. The package ``dataclasses`` on PyPI is a backport for Python 3.6. img2dataset asks for it. Prefect starts its
   ephemeral server with site-packages first on the path, so the backport shadows the standard library's module
   and the server dies. Nobody misses it when it is uninstalled, img2dataset neither.

Both are found here without importing Prefect: `pairwright doctor` prints them, a flow refuses to start with them.
Telemetry of Prefect is switched off here too, before it is imported, unless the user has set it.
"""

import os
import tempfile
import warnings
from importlib import metadata
from pathlib import Path

from pairwright.datasets.errors import MissingResourceError

FASTAPI_TOO_NEW = (0, 155)


def prefect_problems() -> list[str]:
    """Return what keeps Prefect from starting, one line each with how to mend it; empty when all is well."""
    problems = []
    if _version("prefect") is None:
        problems.append("prefect is not installed. Install it: pip install 'prefect>=3.4'")
    fastapi = _version("fastapi")
    if fastapi and _numbers(fastapi) >= FASTAPI_TOO_NEW:
        problems.append(
            f"fastapi {fastapi} is too new for prefect, whose server will not start. Run: pip install 'fastapi<0.151'"
        )
    if _version("dataclasses"):
        problems.append(
            "the PyPI package `dataclasses` (a Python 3.6 backport that img2dataset asks for) shadows the standard "
            "library's module and keeps prefect's server from starting. Run: pip uninstall dataclasses"
        )
    home = prefect_home()
    if not os.environ.get("PREFECT_API_URL") and not _can_hold_files(home):
        problems.append(
            f"{home}, where prefect keeps its database, cannot be written. Name a folder of yours in PREFECT_HOME"
        )
    return problems


def prefect_home() -> Path:
    """Return the folder that Prefect keeps its database in: PREFECT_HOME, else ``~/.prefect``."""
    return Path(os.environ.get("PREFECT_HOME") or Path("~/.prefect")).expanduser()


def _can_hold_files(folder: Path) -> bool:
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    try:
        tempfile.TemporaryFile(dir=there).close()  # permissions alone do not tell: a file system may refuse anybody
    except OSError:
        return False
    return True


def refuse_broken_prefect() -> None:
    """Refuse when Prefect is known not to start.

    Raises:
        MissingResource: naming the first problem and its mend.
    """
    problems = prefect_problems()
    if problems:
        raise MissingResourceError(f"{problems[0]}. Or build with --no-prefect")
    if not os.environ.get("PREFECT_API_URL"):
        prefect_home().mkdir(parents=True, exist_ok=True)  # Prefect makes no folder above it, and waits for ever


def prepare_prefect() -> None:
    """Set Prefect's environment for an unobtrusive run; what the user has set stays as it is."""
    for name, value in {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",  # heard by us alone, and told where the server does not come up
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",  # its 20 s are too few on a busy machine
    }.items():
        os.environ.setdefault(name, value)
    # Importing Prefect asks for its folder. Whoever needs it is refused without; a build without Prefect does not care.
    warnings.filterwarnings("ignore", "Failed to create the Prefect home directory", UserWarning)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
