"""Paths of files in an object store, for readers that take a `Path`: opened by byte ranges, never copied."""

import os
import stat
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any

from pairwright.datasets.remote.object_store import RemoteStore, StoredFile, is_remote, open_store
from pairwright.datasets.remote.reading import open_file


class StorePath(PosixPath):
    """The URL of a file in a store as a path: its text is the URL, and it can be opened and asked for size and time."""

    @classmethod
    def of(cls, store: RemoteStore, file: StoredFile) -> "StorePath":
        """Return the path of a listed file."""
        path = cls(store.url(file.path))
        path.listed = file
        return path

    def __str__(self) -> str:
        text = super().__str__()
        return text.replace(":/", ":///" if text.startswith("file:") else "://", 1)

    def __fspath__(self) -> str:
        return str(self)

    listed: StoredFile | None = None
    """What the store's listing says of the file, where it is known."""

    def open(self, *_: Any, **__: Any) -> Any:
        """Open the file for reading bytes, as `open_file`."""
        return open_file(str(self))

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002 - as of Path
        """Return size and time of change: as listed if known, else as the store lists them now.

        Raises:
            FileNotFoundError: there is no such file.
            StorageError: the store fails.
        """
        file = self.look_up()
        time = file.time_ns  # as of local copies
        seconds = time // 10**9
        mode = stat.S_IFREG | 0o444
        return os.stat_result((mode, 0, 0, 1, 0, 0, file.size, seconds, seconds, seconds), {"st_mtime_ns": time})

    def look_up(self) -> StoredFile:
        """Return what the store says of the file: as listed if known, else as it lists it now; errors as in `stat`."""
        store, path = open_store(str(self))
        file = self.listed or next((each for each in store.find(path) if each.path == path), None)
        if file is None:
            raise FileNotFoundError(2, os.strerror(2), str(self))
        return file

    def identity(self) -> str:
        """Return size, time of change and version of the file, by which a changed one is noticed; errors as in `stat`."""
        file = self.look_up()
        return ":".join(filter(None, (str(file.size), str(file.time_ns), file.version)))

    def exists(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - as of Path
        """Return whether there is such a file; folders of a store do not exist."""
        return self.is_file()

    def is_file(self) -> bool:
        """Return whether there is such a file."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Return False: a store has no folders."""
        return False

    def absolute(self) -> "StorePath":
        """Return the path itself."""
        return self


class StoreListings:
    """Sizes and times of files in stores from listings of their folders: one request for a thousand files."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, StoredFile]] = {}

    def path(self, name: str) -> Path:
        """Return the path of a file, with what its folder's listing says of it if it is in a store.

        Raises:
            StorageError: the store fails.
        """
        if not is_remote(name):
            return Path(name)
        store, path = open_store(name)
        folder = str(PurePosixPath(path).parent)
        if folder not in self._folders:
            self._folders[folder] = {each.path: each for each in store.find(folder)}
        found = self._folders[folder].get(path)
        return StorePath(name) if found is None else StorePath.of(store, found)


def to_path(name: str | Path) -> Path:
    """Return a path: a `StorePath` for a URL of a store."""
    return StorePath(name) if is_remote(name) else Path(name)
