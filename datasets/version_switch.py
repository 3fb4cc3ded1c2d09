"""How a new version of a build replaces the old one: a journal of steps, the steps, and the manifest last.

A version is made in ``.next/``, where no reader looks. When it is complete, a *journal* there lists every file to rename
and every file to remove; from then on there is no way back: ``manifest.json`` is removed, the steps are taken, and the
new manifest is put in place last. Whoever finds a journal completes it, a reader too, so that no reader meets half a
switch. A step that was taken before is skipped.
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
    """Let the version in ``.next/`` replace the one in ``root``.

    Args:
        root: the build directory, locked by the caller.
        steps: (name below ``.next/``, name below ``root``) of each file to rename, or (`REMOVE_STEP`, name below ``root``);
            ``manifest.json`` is the last of them.
    """
    write_bytes(root / STAGING_FOLDER / JOURNAL_FILE, orjson.dumps(steps))
    finish_switch(root)


def finish_switch(root: Path) -> bool:
    """Complete a switch that was begun, if there is one, and return whether there was; ``root`` is locked by the caller."""
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
    with suppress(OSError):  # other files are in it
        while folder != root:
            folder.rmdir()
            folder = folder.parent


def discard_staged_version(root: Path) -> None:
    """Remove ``.next/``; the journal goes first, so that half of it is never taken for a complete version."""
    (root / STAGING_FOLDER / JOURNAL_FILE).unlink(missing_ok=True)
    if (root / STAGING_FOLDER).exists():
        shutil.rmtree(root / STAGING_FOLDER)


def complete_pending_switch(root: Path) -> None:
    """Complete a switch that a killed build left in ``root``, or wait for one that is in progress; for readers.

    Raises:
        StorageError: when it cannot be completed from here, or takes longer than a minute.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    while (root / STAGING_FOLDER / JOURNAL_FILE).is_file():
        try:
            with (root / LOCK_FILE).open("a") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                finish_switch(root)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StorageError(f"{root}: a new version is being put in place. Try again in a minute.") from None
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise StorageError(
                f"{root}: a new version was being put in place when its build stopped, and it cannot be completed from "
                f"here ({error.strerror}). Run `pairwright verify` or `pairwright build` where {root} is writable."
            ) from None
