"""What the parts of a build (`--part`) must have in common: settings, code and package versions.

The fingerprints of their jobs contain all three. Parts that differ take each other's finished jobs for outdated ones and
repeat them, one after the other without an end, or at the same time over each other's files.
"""

from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.errors import UsageError
from pairwright.flows.state.code_versions import package_versions, source_hash
from pairwright.flows.state.layout import PARTS_SETUP
from pairwright.flows.state.locks import running_parts
from pairwright.flows.state.receipts import json_hash


def compare_parts(root: Path, settings: dict[str, Any], part: str) -> str:
    """Compare a part with the last one that ran in the build directory ``root``, and record it as the last one.

    Call it under `locks.setup_lock`.

    Args:
        root: the build directory.
        settings: of the config, those that shape the files of a build.
        part: name of the share of this process.

    Returns:
        What differs from the last part, as text; empty if nothing does.

    Raises:
        UsageError: when something differs and another part runs now.
    """
    path = root / PARTS_SETUP
    packages = dict(version.rsplit(" ", 1) for version in package_versions())
    now = {
        "settings": {name: json_hash(value) for name, value in settings.items()},
        "versions": {"pairwright": source_hash(), **packages},
    }
    what = _differences(_read(path), now)
    if what and (running := running_parts(root, part)):
        raise UsageError(
            f"{root}: part {running[0]} runs with another version or setting of {what}. "
            "Give all parts the same config and packages, or wait until that one has ended."
        )
    write_bytes(path, orjson.dumps(now))
    return what


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        return dict(orjson.loads(path.read_bytes()))
    except (FileNotFoundError, orjson.JSONDecodeError):
        return {}


def _differences(before: dict[str, dict[str, str]], now: dict[str, dict[str, str]]) -> str:
    """Return the names of the settings and packages that differ; empty if there was no part before."""
    if not before:
        return ""
    settings, versions = (
        sorted(name for name in {*before[kind], *now[kind]} if before[kind].get(name) != now[kind].get(name))
        for kind in ("settings", "versions")
    )
    return ", ".join([*(f"`{name}`" for name in settings), *versions])
