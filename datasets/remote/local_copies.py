"""Local copies of inputs in an object store.

A copy has the size and modification time of its original, which identify it: unchanged files are not copied again, and a
build notices changed ones (`flows/state/inputs.py`), except one of equal size within the second that S3 dates to. Files are copied atomically. The copy of a folder has the same files
without hidden ones; files removed from the original are removed from the copy. For a published dataset
(`published_versions.py`) the newest version is copied.

Copies take as much disk space as the originals, up to a limit. To make room, the least recently used ones are removed;
access times are set on use. Copies in use are never removed: those of this process, and all of them while another process
holds the lock of the folder, or the file system has no locks. If the limit is too small for the input, nothing is copied.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.progress import track
from pairwright.datasets.remote.cache import cache_folder
from pairwright.datasets.remote.listing import find_input_files
from pairwright.datasets.remote.object_store import RemoteStore, StoredFile, is_remote, open_store
from pairwright.datasets.remote.published_versions import VERSIONS_FOLDER, read_pointer

GIB = 2**30
_PARALLEL_COPIES = 8
_IN_USE = ".in-use"
_DEFAULT_GIB = 100.0


def default_copies_folder() -> Path:
    """Return the default folder of copies: below PAIRWRIGHT_CACHE, else ``~/.cache/pairwright``."""
    return cache_folder("remote")


def default_copies_limit() -> int:
    """Return the limit in bytes of `default_copies_folder`: PAIRWRIGHT_CACHE_GIB, else 100 GiB.

    Raises:
        UsageError: if the variable is not a number above 0.
    """
    given = os.environ.get("PAIRWRIGHT_CACHE_GIB", "")
    try:
        size = float(given or _DEFAULT_GIB)
    except ValueError:
        size = 0.0
    if not 0 < size < float("inf"):
        raise UsageError(f"PAIRWRIGHT_CACHE_GIB is {given!r}. Give GiB, a number above 0.")
    return int(size * GIB)


@dataclass
class LocalCopies:
    """Copies in a folder, and those in use by this process.

    Attributes:
        folder: of the copies.
        limit: in bytes.
        setting: how to raise the limit, for messages.
    """

    folder: Path
    limit: int
    setting: str
    _used: dict[Path, int] = field(default_factory=dict)
    _lock: IO[bytes] | None = None

    def fetch(self, written: str) -> str:
        """Return a local path or brace pattern of an input; a URL is copied first.

        Args:
            written: path, brace pattern, or either of them as a URL.

        Raises:
            InputError: if nothing is there.
            StorageError: if the store refuses or cannot be reached, or the copies do not fit.
            UsageError: for a URL with a user or a query.
            MissingResourceError: if the store's package is not installed.
        """
        if not is_remote(written):
            return written
        store, path = open_store(written)
        if store.scheme == "file":
            versions = read_pointer(store, path) if "{" not in path else []
            return f"{path}/{VERSIONS_FOLDER}/{versions[0]}" if versions else path
        path, files = find_input_files(store, path)
        top = self.folder / store.scheme
        places = {_copy_path(top, each.path): each for each in files}
        place = _copy_path(top, path)
        if files[0].path != path and "{" not in path:
            _remove_other_copies(place, set(places))
        self._hold()
        missing = [each for file, each in places.items() if not _is_current(file, each)]
        self._make_room(places, sum(each.size for each in missing))
        with ThreadPoolExecutor(_PARALLEL_COPIES) as pool:
            coming = [pool.submit(_copy_one, store, each, _copy_path(top, each.path)) for each in missing]
            for copied in track(coming, "copying inputs", unit="files") if coming else ():
                copied.result()
        now = time.time_ns()
        for file, each in places.items():
            os.utime(file, ns=(now, each.time_ns))
        return str(place)

    def _hold(self) -> None:
        """Hold a shared lock while copies are in use by this process."""
        if self._lock is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / _IN_USE).open("ab")
            _try_lock(self._lock, fcntl.LOCK_SH)

    def _make_room(self, places: dict[Path, StoredFile], missing: int) -> None:
        """Remove copies to free ``missing`` bytes within the limit and the disk.

        Raises:
            StorageError: if that is not enough.
        """
        self._used.update((file, each.size) for file, each in places.items())
        if sum(self._used.values()) > self.limit:
            raise StorageError(
                f"{self.folder}: copies of {sum(self._used.values()):,} bytes are needed, and {self.limit:,} are "
                f"allowed. Raise {self.setting}."
            )
        if not missing:
            return
        there = {path: path.stat() for path in _files_of(self.folder)}
        free = shutil.disk_usage(self.folder).free
        excess = max(sum(stat.st_size for stat in there.values()) + missing - self.limit, missing - free)
        unused = sorted((stat.st_atime_ns, path) for path, stat in there.items() if path not in self._used)
        if excess > 0 and unused and self._lock is not None and _try_lock(self._lock, fcntl.LOCK_EX):
            for _, path in unused:
                if excess > 0:
                    path.unlink(missing_ok=True)
                    excess -= there[path].st_size
            _try_lock(self._lock, fcntl.LOCK_SH)
        if excess > 0 and missing > shutil.disk_usage(self.folder).free:
            raise StorageError(
                f"{self.folder}: copies of {missing:,} bytes do not fit into {free:,}. Choose a disk with more space: --out "
                "of the build, else PAIRWRIGHT_CACHE."
            )
        if excess > 0:
            raise StorageError(
                f"{self.folder}: {excess:,} bytes too many for new copies, and another process uses the existing "
                f"ones. Wait until it ends, or raise {self.setting}."
            )


_COPIES_BY_FOLDER: dict[Path, LocalCopies] = {}


def fetch_local_copy(written: str, folder: Path | None = None) -> str:
    """Return a local path of an input; as `LocalCopies.fetch`.

    Args:
        written: path, brace pattern, or either of them as a URL.
        folder: of the copies; None for `default_copies_folder`.
    """
    if not is_remote(written):
        return written
    place = folder or default_copies_folder()
    shared = _COPIES_BY_FOLDER.setdefault(place, LocalCopies(place, 0, "PAIRWRIGHT_CACHE_GIB (in the environment)"))
    shared.limit = default_copies_limit()
    return shared.fetch(written)


def _try_lock(handle: IO[bytes], how: int) -> bool:
    """Try to take a lock, or to change the mode of a held one; return whether it succeeded."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except OSError:  # another process holds it, or the file system has no locks
        return False
    return True


def _files_of(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.name != _IN_USE)


def _copy_path(top: Path, path: str) -> Path:
    parts = PurePosixPath(path.lstrip("/")).parts
    if ".." in parts:
        raise UsageError(f"{path}: a key with `..` is not copied. Rename it.")
    place = top.joinpath(*parts)
    for folder in (place, *place.parents[: len(parts)]):
        if folder.is_symlink():  # files behind it must not be replaced or removed
            raise StorageError(f"{folder}: is a symbolic link, and copies are written there. Remove the link.")
    return place


def _remove_other_copies(folder: Path, there: set[Path]) -> None:
    if folder.is_file():
        folder.unlink()
    for path in _files_of(folder):
        if path not in there:
            path.unlink()


def _is_current(path: Path, of: StoredFile) -> bool:
    try:
        stat = path.stat()
    except OSError:
        return False
    return path.is_file() and stat.st_size == of.size and stat.st_mtime_ns == of.time_ns


def _copy_one(store: RemoteStore, file: StoredFile, place: Path) -> None:
    with replace_atomically(place) as temporary:
        store.get(file.path, temporary)
        if temporary.stat().st_size != file.size:
            raise StorageError(
                f"{store.url(file.path)}: {temporary.stat().st_size:,} bytes of {file.size:,} received. "
                "Start again when the file is no longer written to."
            )
        os.utime(temporary, ns=(file.time_ns, file.time_ns))
