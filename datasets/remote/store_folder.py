"""Folders of an object store as paths, from one listing, and datasets there that are read in place."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from pairwright.datasets.remote.listing import find_input_files
from pairwright.datasets.remote.local_copies import fetch_local_copy
from pairwright.datasets.remote.object_store import StoredFile, is_remote, open_store
from pairwright.datasets.remote.store_path import StorePath


class StoreFolder(StorePath):
    """The URL of a folder of a store as a path that can be asked for the files that its listing had."""

    files: Mapping[str, StoredFile] | None = None
    """All files below it, by path in the store; None for a path derived from that of a folder."""

    @classmethod
    def of_files(cls, url: str, files: Mapping[str, StoredFile]) -> "StoreFolder":
        """Return the path of a folder with the files below it."""
        path = cls(url)
        path.files = files
        return path

    @classmethod
    def list(cls, url: str) -> "StoreFolder":
        """Return the path of a folder as the store lists it now.

        Raises:
            StorageError: the store fails.
        """
        store, path = open_store(url)
        return cls.of_files(url, {each.path: each for each in store.find(path)})

    def is_dir(self) -> bool:
        """Return whether it was listed as a folder."""
        return self.files is not None

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it was listed as a folder, or there is such a file."""
        return self.is_dir() or super().exists(follow_symlinks=follow_symlinks)

    def __truediv__(self, name: object) -> StorePath:  # type: ignore[override]
        """Return the path of a file or folder below it, with what the listing says of it."""
        url = f"{self}/{name}"
        store, path = open_store(url)
        files = self.files or {}
        if path in files:
            return StorePath.of(store, files[path])
        below = {each: file for each, file in files.items() if each.startswith(f"{path}/")}
        return StoreFolder.of_files(url, below) if below else StorePath(url)

    def iterdir(self) -> Iterator[StorePath]:  # type: ignore[override]  # in Path, of paths of its own class
        """Yield the files and folders in it, by name."""
        _, top = open_store(str(self))
        names = {path.removeprefix(f"{top}/").partition("/")[0] for path in self.files or ()}
        yield from (self / name for name in sorted(names))

    def glob(self, pattern: str) -> Iterator[StorePath]:  # type: ignore[override]
        """Yield the files and folders in it whose names match a pattern, by name."""
        yield from (path for path in self.iterdir() if fnmatchcase(path.name, pattern))


def open_dataset(written: str) -> Path:
    """Return a dataset as a path that is read in place: on disk, or a file, brace pattern or folder of a store.

    Of a published dataset it is the newest version. Only a ``.json`` of a store is copied.

    Raises:
        InputError, StorageError, UsageError, MissingResourceError: as `LocalCopies.fetch`.
    """
    if not is_remote(written) or written.partition(":")[0].lower() == "file" or written.lower().endswith(".json"):
        return Path(fetch_local_copy(written))
    store, top = open_store(written)
    top, files = find_input_files(store, top)
    if "{" in top:
        return StorePath(store.url(top))
    if files[0].path == top:
        return StorePath.of(store, files[0])
    return StoreFolder.of_files(store.url(top), {each.path: each for each in files})
