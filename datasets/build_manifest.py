"""Manifest of a build directory: reading it, and the state of unfinished builds.

``manifest.json`` commits a build and is written last. Its ``files`` lists every output, relative to the build directory,
with ``bytes`` and ``sha256``, and ``url`` if it is in an object store instead. A directory with the build marker or with receipts (of finished jobs) but no manifest is
an interrupted or running build; its outputs are incomplete. A folder with neither is not a build directory.
"""

import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.errors import StorageError
from pairwright.datasets.remote.store_path import StorePath
from pairwright.datasets.version_switch import LOCK_FILE, MANIFEST_FILE, complete_pending_switch

PAIRS_FOLDER = "pairs"
RECEIPTS_FOLDER = "receipts"
BUILD_MARKER = ".pairwright"  # the first file that a build writes into its folder
CONFIG_FILE = "build.yaml"


def is_build(folder: Path) -> bool:
    """Return whether ``folder`` is a build directory, finished or not, or has the layout of one."""
    return (folder / PAIRS_FOLDER).is_dir() or _is_started(folder)


def _is_started(folder: Path) -> bool:
    return (folder / RECEIPTS_FOLDER).is_dir() or (folder / BUILD_MARKER).is_file()


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder; empty if it has none and is not an unfinished build.

    Raises:
        StorageError: if the build is unfinished, or the manifest is not a JSON object.
    """
    complete_pending_switch(folder)
    path = folder / MANIFEST_FILE
    if not path.is_file():
        if _is_started(folder):
            raise StorageError(_unfinished_message(folder))
        return {}
    try:
        manifest = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        manifest = None
    if not isinstance(manifest, dict):
        raise StorageError(f"{path}: not a JSON object. Delete it and build again.")
    return manifest


def describe_finished_stages(folder: Path) -> str:
    """Return the finished stages of a build in order, with their numbers of parts; empty if there are none.

    Parts that a new version links to for reuse are not counted.
    """
    stages = {
        path: [one for one in sorted(path.glob("*.json")) if not one.is_symlink()]
        for path in (folder / RECEIPTS_FOLDER).glob("*")
    }
    begun = sorted(
        (min(each.stat().st_mtime_ns for each in done), path.name, done) for path, done in stages.items() if done
    )
    parts = _count_parts(folder)
    return ", ".join(_describe_stage(name, done, parts) for _, name, done in begun)


def _count_parts(folder: Path) -> int:
    receipts = folder / RECEIPTS_FOLDER / PAIRS_FOLDER
    for name, fact in (("all", "parts"), ("numbers", "starts")):  # of an increment, of a full build
        try:
            stated = orjson.loads((receipts / f"{name}.json").read_bytes())["facts"][fact]
        except (OSError, ValueError, LookupError, TypeError):
            continue
        return len(stated) if isinstance(stated, list) else int(stated)
    return sum(path.stem.isdigit() for path in receipts.glob("*.json"))


def _describe_stage(name: str, done: Sequence[Path], parts: int) -> str:
    numbered = sum(path.stem.isdigit() for path in done)
    if not numbered or name == "shards":  # one job, or a number of jobs that the parts do not give
        return name
    return name if numbered >= parts else f"{name} {numbered} of {parts} parts"


def _unfinished_message(folder: Path) -> str:
    far = describe_finished_stages(folder)
    progress = f"done: {far}" if far else "nothing is done yet"
    if _is_running(folder):
        return f"{folder}: unfinished build, which is running now ({progress}). Wait until it is complete."
    config = folder / CONFIG_FILE
    again = f"`pairwright build {config} --out {folder}`" if config.is_file() else "`pairwright build` with its config"
    return f"{folder}: unfinished build ({progress}). To resume it, run {again}."


def _is_running(folder: Path) -> bool:
    """Return whether a process holds the lock of the build directory."""
    try:
        with (folder / LOCK_FILE).open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock file, or a file system without locks
        return False
    return False


def shard_paths(folder: Path, files: Mapping[str, Any]) -> list[Path]:
    """Return the shards of a build in order, on disk or in the store that it wrote them to.

    Args:
        folder: the build directory.
        files: of its manifest.
    """
    shards = sorted(name for name in files if name.startswith("shards/") and name.endswith(".tar"))
    return [StorePath(url) if (url := files[name].get("url")) else folder / name for name in shards]


def stored_shards(folder: Path) -> str:
    """Return the URL of the folder that a build wrote its shards to; empty if they are on disk or it is unfinished."""
    try:
        shards = read_manifest(folder).get("shards")
    except StorageError:
        return ""
    return str(shards.get("url", "")) if isinstance(shards, dict) else ""


def require_manifest_files(folder: Path, manifest: Mapping[str, Any], parts: Sequence[str]) -> None:
    """Require the files of a build that its manifest lists; without them, the rest would look complete.

    Args:
        folder: the build directory.
        manifest: its manifest.
        parts: prefixes of the names of required files, such as ``annotations/``.

    Raises:
        StorageError: naming the first missing file.
    """
    files = manifest.get("files")
    stated = files.items() if isinstance(files, dict) else ()
    named = [name for name, entry in stated if name.startswith(tuple(parts)) and not entry.get("url")]
    gone = [name for name in named if not (folder / name).is_file()]
    if gone:
        count = f"{len(gone)} files are" if len(gone) > 1 else "a file is"
        raise StorageError(
            f"{folder}: {count} missing that {MANIFEST_FILE} lists, first {gone[0]}. Copy the build again, or build again."
        )
