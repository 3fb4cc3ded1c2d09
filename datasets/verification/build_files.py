"""Hashes of the files of a build, compared with its manifest."""

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pairwright.datasets.build_manifest import read_manifest
from pairwright.datasets.progress import track
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.remote.store_path import StorePath
from pairwright.datasets.version_switch import MANIFEST_FILE


def find_changed_files(folder: Path, digest: Callable[[Path], str]) -> Iterator[str]:
    """Yield a line for each file that differs from the manifest of ``folder``: missing, or with other size or content.

    Args:
        folder: a build directory; without a manifest nothing is compared.
        digest: returns the SHA-256 of a file in hex; called for files of the right size only.

    Raises:
        StorageError: as in `read_manifest`.
    """
    manifest = read_manifest(folder)
    if not manifest and not (folder / MANIFEST_FILE).is_file():
        return
    files = manifest.get("files")
    if not isinstance(files, dict):
        yield f"{MANIFEST_FILE} does not list the files of the build"
        return
    for name, entry in track(files.items(), "hashing", unit="files"):
        problem = _file_problem(folder, name, entry, digest)
        if problem:
            yield f"{name} {problem}"


def _file_problem(folder: Path, name: str, entry: Any, digest: Callable[[Path], str]) -> str:
    if not isinstance(entry, dict) or not {"bytes", "sha256"} <= entry.keys():
        return f"has no bytes and sha256 in {MANIFEST_FILE}"
    path = _locate(folder, name, str(entry.get("url", "")))
    if path is None:
        return f"lies outside the build directory, says {MANIFEST_FILE}"
    try:
        if not path.is_file():
            return f"is missing, {MANIFEST_FILE} names it"
        if path.stat().st_size != entry["bytes"]:
            return f"has {path.stat().st_size} bytes, {MANIFEST_FILE} says {entry['bytes']}"
        return "" if digest(path) == entry["sha256"] else f"does not match the checksum in {MANIFEST_FILE}"
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        return f"cannot be read ({error})"


def _locate(folder: Path, name: str, url: str) -> Path | None:
    """Return the path of a file, in a store if it has a URL; None for another place."""
    if url:
        return StorePath(url) if is_remote(url) else None
    place = PurePosixPath(name)
    # A foreign manifest must not make us read other files.
    return None if place.is_absolute() or ".." in place.parts else folder / name
