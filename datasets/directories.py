"""Folder listings that follow symbolic links, as datasets often link to other disks.

A folder that is reached again inside itself by a link is entered once. Names are sorted by code point.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pairwright.datasets.errors import InputError, StorageError

FolderIdentity = tuple[int, int]

STANDARD_INPUT_PREFIX = "pairwright-stdin-"
"""Start of the name of a folder with a copy of standard input."""


def is_standard_input(path: Path) -> bool:
    """Return whether a file is a copy of standard input."""
    return path.parent.name.startswith(STANDARD_INPUT_PREFIX)


def folder_of_input(path: Path) -> Path:
    """Return the absolute folder that relative paths in an input start from: its own; of standard input the working one."""
    path = path.absolute()
    folder = path if path.is_dir() else path.parent
    return Path.cwd() if folder.name.startswith(STANDARD_INPUT_PREFIX) else folder


def stable_place(place: str, file: Path) -> str:
    """Return a place in a file, without the folder if it is a copy of standard input, which has another name each time."""
    return place.removeprefix(f"{file.parent}/") if is_standard_input(file) else place


def list_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, sorted by name.

    Raises:
        InputError: if it cannot be listed.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(
            f"cannot be listed ({error.strerror})", where=str(folder), fix="Check the path and its permissions."
        ) from None


def identify_folder(folder: Path) -> FolderIdentity:
    """Return device and inode of a folder, equal for all links that lead to it."""
    found = folder.stat()
    return found.st_dev, found.st_ino


def forbid_symlinked_folders(root: Path, names: Iterable[str]) -> None:
    """Refuse a folder in which a subfolder is a link: files removed or overwritten there could belong to other data.

    Args:
        root: the folder.
        names: subfolders whose files are removed or overwritten; neither they nor the folders in them may be links.

    Raises:
        StorageError: naming the first link.
    """
    for name in names:
        folder = root / name
        hidden = name.startswith(".")  # our staging folder, which links back into the build
        inside = list_entries(folder) if folder.is_dir() and not (hidden or folder.is_symlink()) else []
        for path in (folder, *(Path(entry.path) for entry in inside if entry.is_dir())):
            if path.is_symlink():
                raise StorageError(
                    f"{path}: is a symbolic link to {path.readlink()}, and files in this folder are removed and "
                    f"overwritten. Replace the link with a real folder, or move all of {root} to the other disk."
                )


def walk_files(folder: Path, above: frozenset[FolderIdentity] = frozenset()) -> Iterator[Path]:
    """Yield the files below a folder, broken links included.

    Args:
        folder: the folder to walk.
        above: its parent folders, which are not entered again.

    Raises:
        InputError: if a folder cannot be listed.
    """
    within = above | {identify_folder(folder)}
    for entry in list_entries(folder):
        path = Path(entry.path)
        if not entry.is_dir():
            yield path
        elif identify_folder(path) not in within:
            yield from walk_files(path, within)
