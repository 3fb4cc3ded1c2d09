"""Replacement of a build by its new version: a journal of steps, the steps, and the manifest last.

A version is made in ``.next/``, which readers ignore. When it is complete, a *journal* there lists every file to rename
and to remove; from then on the switch always completes: ``manifest.json`` is removed, the steps are executed, and the
new manifest is moved in last. Any process that finds a journal completes it, readers included, so no reader sees half a
switch. Steps that were already executed are skipped.
"""

import fcntl
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.errors import StorageError

MANIFEST_FILE = "manifest.json"
STAGING_FOLDER, JOURNAL_FILE, LOCK_FILE = ".next", "journal.json", ".lock"
REMOVE_STEP = ""
"""The source of a step that removes its target."""

SwitchStep = tuple[str, str]

_WAIT_SECONDS, _POLL_SECONDS = 60.0, 0.05


def switch_version(root: Path, steps: Sequence[SwitchStep]) -> None:
    """Replace the version in ``root`` by the one in ``.next/``.

    Args:
        root: the build directory, locked by the caller.
        steps: (name below ``.next/``, name below ``root``) of each file to rename, or (`REMOVE_STEP`, name below ``root``);
            ``manifest.json`` is the last of them.
    """
    write_bytes(root / STAGING_FOLDER / JOURNAL_FILE, orjson.dumps(steps))
    finish_switch(root)


def finish_switch(root: Path) -> bool:
    """Complete a pending switch, and return whether there was one; ``root`` is locked by the caller."""
    staged = root / STAGING_FOLDER
    try:
        steps = orjson.loads((staged / JOURNAL_FILE).read_bytes())
    except FileNotFoundError:
        return False
    if (staged / MANIFEST_FILE).exists():
        (root / MANIFEST_FILE).unlink(missing_ok=True)
    for source, name in steps:
        target = root / name
        if source == REMOVE_STEP:
            target.unlink(missing_ok=True)
            _remove_empty(target.parent, root)
        elif (staged / source).exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            (staged / source).replace(target)
    discard_staged_version(root)
    return True


def _remove_empty(folder: Path, root: Path) -> None:
    with suppress(OSError):  # the folder has other files
        while folder != root:
            folder.rmdir()
            folder = folder.parent


def discard_staged_version(root: Path) -> None:
    """Remove ``.next/``, its journal first, so that a partial journal is never read as complete."""
    (root / STAGING_FOLDER / JOURNAL_FILE).unlink(missing_ok=True)
    if (root / STAGING_FOLDER).exists():
        shutil.rmtree(root / STAGING_FOLDER)


def complete_pending_switch(root: Path) -> None:
    """Complete a switch that a killed build left in ``root``, or wait for a running one; for readers.

    Raises:
        StorageError: if it cannot be completed from here, or takes longer than a minute.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    while (root / STAGING_FOLDER / JOURNAL_FILE).is_file():
        try:
            with (root / LOCK_FILE).open("a") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                finish_switch(root)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StorageError(
                    f"{root}: the build is being replaced by a new version. Try again in a minute."
                ) from None
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise StorageError(
                f"{root}: its build stopped while a new version replaced the old one, which cannot be completed from "
                f"here ({error.strerror}). Run `pairwright verify` or `pairwright build` where {root} is writable."
            ) from None
