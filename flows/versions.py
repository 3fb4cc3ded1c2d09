"""Versions of a build directory, and how a new one takes the place of the old at once.

Every finished build leaves its manifest in ``manifests/NNNN.json``; ``manifest.json`` is the newest. A full build that
makes the same files as the version before has its number.

An increment is made in ``.next/``, laid out like the build directory, so that nobody sees it before it is whole. Then a
*journal* names its files, and from there on there is no way back: ``manifest.json`` goes, the files are renamed into
their places, and the new manifest comes last. Whoever finds a journal (`recover`) does what is left of it; a rename that
was done is not there to be done again.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic import write_bytes
from pairwright.datasets.errors import StorageError
from pairwright.datasets.manifest import MANIFEST

MANIFESTS, NEXT, JOURNAL, INCREMENTS, AUDIT = "manifests", ".next", "journal.json", "increments", "audit.json"
_NUMBERED = re.compile(r"\d{4,}\.json")


def version_path(root: Path, number: int) -> Path:
    """Return where the manifest of a version stands."""
    return root / MANIFESTS / f"{number:04d}.json"


def newest(root: Path) -> dict[str, Any]:
    """Return the manifest of the newest version; empty when there is none."""
    found = [path for path in (root / MANIFESTS).glob("*.json") if _NUMBERED.fullmatch(path.name)]
    if not found:
        return {}
    path = max(found, key=lambda each: int(each.stem))
    try:
        manifest = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        raise StorageError(f"{path}: cannot be read. Delete it and build again.") from None
    return dict(manifest)


def dump(manifest: Mapping[str, Any]) -> bytes:
    """Return a manifest as it stands on the disk."""
    return orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def number_of_full(root: Path, manifest: Mapping[str, Any]) -> int:
    """Return the version of a full build: the newest's, when it made the same files; else the next."""
    before = newest(root)
    if not before:
        return 1
    same = before["build"]["kind"] == "full" and before["files"] == manifest["files"]
    return int(before["build"]["number"]) + (not same)


def write_version(root: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest under its number, and then as the newest."""
    for path in (version_path(root, manifest["build"]["number"]), root / MANIFEST):
        write_bytes(path, dump(manifest))


def commit(root: Path, moves: Sequence[tuple[str, str]]) -> None:
    """Let what stands in ``.next/`` take its place.

    Args:
        root: the build directory.
        moves: of each file its name below ``.next/`` and that below ``root``; ``manifest.json`` is the last of them.
    """
    write_bytes(root / NEXT / JOURNAL, orjson.dumps(moves))
    recover(root)


def recover(root: Path) -> bool:
    """Finish a commit that was begun, if there is one; say whether there was."""
    staged = root / NEXT
    try:
        moves = orjson.loads((staged / JOURNAL).read_bytes())
    except FileNotFoundError:
        return False
    if (staged / MANIFEST).exists():
        (root / MANIFEST).unlink(missing_ok=True)
    for source, name in moves:
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (staged / source).exists():
            (staged / source).replace(target)
    discard(root)
    return True


def discard(root: Path) -> None:
    """Remove what stands in ``.next/``; the journal goes first, so that half of it is never taken for a commit."""
    (root / NEXT / JOURNAL).unlink(missing_ok=True)
    if (root / NEXT).exists():
        shutil.rmtree(root / NEXT)


def forget_increments(root: Path) -> None:
    """Remove what increments left that no stage of a full build accounts for."""
    discard(root)
    (root / AUDIT).unlink(missing_ok=True)
    if (root / INCREMENTS).exists():
        shutil.rmtree(root / INCREMENTS)
