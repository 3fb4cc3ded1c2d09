"""What lies in and below a folder, links followed: data sets are often put together of links to other disks.

A folder that comes again within itself, by a link to one that it lies in, is entered once: its files are found there.
Names come in order of code points, since a file system gives them in none.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pairwright.datasets.errors import InputError, StorageError

FolderIdentity = tuple[int, int]


def list_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what lies in a folder.

    Raises:
        InputError: when it cannot be listed.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(
            f"cannot be listed ({error.strerror})", where=str(folder), fix="Check path and rights."
        ) from None


def identify_folder(folder: Path) -> FolderIdentity:
    """Return what tells a folder from all others, whatever links lead to it."""
    found = folder.stat()
    return found.st_dev, found.st_ino


def forbid_symlinked_folders(root: Path, names: Iterable[str]) -> None:
    """Refuse a folder of ours in which a subfolder is a link: what is removed or overwritten there is somebody else's.

    Args:
        root: the folder.
        names: its subfolders whose files are removed or overwritten; neither they nor the folders in them may be links.

    Raises:
        StorageError: naming the first link.
    """
    for name in names:
        folder = root / name
        hidden = name.startswith(".")  # our own workplace, where links lead back into the folder
        inside = list_entries(folder) if folder.is_dir() and not (hidden or folder.is_symlink()) else []
        for path in (folder, *(Path(entry.path) for entry in inside if entry.is_dir())):
            if path.is_symlink():
                raise StorageError(
                    f"{path}: is a symbolic link to {path.readlink()}, and files in this folder are removed and "
                    f"overwritten. Replace the link with a real folder, or move all of {root} to the other disk."
                )


def walk_files(folder: Path, above: frozenset[FolderIdentity] = frozenset()) -> Iterator[Path]:
    """Yield the files below a folder, links that lead nowhere among them.

    Args:
        folder: where to look.
        above: the folders that it lies in, which are not entered again.

    Raises:
        InputError: when a folder cannot be listed.
    """
    within = above | {identify_folder(folder)}
    for entry in list_entries(folder):
        path = Path(entry.path)
        if not entry.is_dir():
            yield path
        elif identify_folder(path) not in within:
            yield from walk_files(path, within)
