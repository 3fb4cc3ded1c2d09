"""The manifest of a build directory: read it, and see whether the files are still those it tells of.

``manifest.json`` is the commit of a build, written last. Its ``files`` name every output, relative to the build
directory, with ``bytes`` and ``sha256``. A directory that holds the mark of a build, or receipts (of jobs done), but no
manifest is a build that was killed or still runs: not all it promises is there. A folder with neither is somebody's
own, and needs no manifest.
"""

import fcntl
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from pairwright.datasets.errors import StorageError
from pairwright.datasets.progress import track
from pairwright.datasets.version_switch import LOCK_FILE, MANIFEST_FILE, complete_pending_switch

PAIRS_FOLDER = "pairs"
RECEIPTS_FOLDER = "receipts"
BUILD_MARKER = ".pairwright"  # of a folder that a build has made its own, before all else
CONFIG_FILE = "build.yaml"


def is_build(folder: Path) -> bool:
    """Say whether ``folder`` is a build directory, finished or not, or laid out like one."""
    return (folder / PAIRS_FOLDER).is_dir() or _is_started(folder)


def _is_started(folder: Path) -> bool:
    return (folder / RECEIPTS_FOLDER).is_dir() or (folder / BUILD_MARKER).is_file()


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder; empty when there is none, and nothing that a build begins with.

    Raises:
        StorageError: when the build is unfinished, or the manifest is not a JSON object.
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
    """Return which stages a build has made, in order, and how many parts of each; empty: none.

    What a new version only links to, since it may be reused, is not counted.
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
    try:
        return int(orjson.loads((folder / RECEIPTS_FOLDER / PAIRS_FOLDER / "all.json").read_bytes())["facts"]["parts"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0


def _describe_stage(name: str, done: Sequence[Path], parts: int) -> str:
    if done[0].stem == "all" or name == "shards":  # whose number the parts do not tell
        return name
    return name if len(done) >= parts else f"{name} {len(done)} of {parts} parts"


def _unfinished_message(folder: Path) -> str:
    far = describe_finished_stages(folder)
    told = f"done: {far}" if far else "nothing is done yet"
    if _is_running(folder):
        return f"{folder}: unfinished build, which is running now ({told}). Wait until it is complete."
    config = folder / CONFIG_FILE
    again = f"`pairwright build {config} --out {folder}`" if config.is_file() else "`pairwright build` with its config"
    return f"{folder}: unfinished build ({told}). To resume it, run {again}."


def _is_running(folder: Path) -> bool:
    """Return whether a process holds the build directory."""
    try:
        with (folder / LOCK_FILE).open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock, or none that this file system knows
        return False
    return False


def find_changed_files(folder: Path, digest: Callable[[Path], str]) -> Iterator[str]:
    """Yield a line for each file that is not as the manifest of ``folder`` says: gone, of other size, of other content.

    Args:
        folder: a build directory; without a manifest there is nothing to compare with.
        digest: gives the SHA-256 of a file in hex; called for files of the right size only.

    Raises:
        StorageError: as in `read_manifest`.
    """
    manifest = read_manifest(folder)
    if not manifest and not (folder / MANIFEST_FILE).is_file():
        return
    files = manifest.get("files")
    if not isinstance(files, dict):
        yield f"{MANIFEST_FILE} does not tell the files of the build"
        return
    for name, told in track(files.items(), "hashing", unit="files"):
        problem = _file_problem(folder, name, told, digest)
        if problem:
            yield f"{name} {problem}"


def require_manifest_files(folder: Path, manifest: Mapping[str, Any], parts: Sequence[str]) -> None:
    """Refuse a build that lacks files of which its manifest tells: what is read of the others would seem to be all.

    Args:
        folder: the build directory.
        manifest: of it.
        parts: beginnings of names, such as ``annotations/``, of the files that are to be read.

    Raises:
        StorageError: naming the first of them.
    """
    files = manifest.get("files")
    named = [name for name in files if name.startswith(tuple(parts))] if isinstance(files, dict) else []
    gone = [name for name in named if not (folder / name).is_file()]
    if gone:
        count = f"{len(gone)} files are" if len(gone) > 1 else "a file is"
        raise StorageError(
            f"{folder}: {count} missing that {MANIFEST_FILE} names, first {gone[0]}. Copy the build again, or build again."
        )


def _file_problem(folder: Path, name: str, told: Any, digest: Callable[[Path], str]) -> str:
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts:  # a manifest from elsewhere does not send us over this machine
        return f"lies outside the build directory, says {MANIFEST_FILE}"
    if not isinstance(told, dict) or not {"bytes", "sha256"} <= told.keys():
        return f"has no bytes and sha256 in {MANIFEST_FILE}"
    path = folder / name
    try:
        if not path.is_file():
            return f"is missing, {MANIFEST_FILE} names it"
        if path.stat().st_size != told["bytes"]:
            return f"has {path.stat().st_size} bytes, {MANIFEST_FILE} says {told['bytes']}"
        return "" if digest(path) == told["sha256"] else f"does not have the check sum in {MANIFEST_FILE}"
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        return f"cannot be read ({error})"
