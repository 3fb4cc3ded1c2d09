"""Inputs in an object store that are read in place: which files of a URL, else that they are copied (`remote/local_copies.py`)."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pairwright.datasets.images.loading import IMAGE_SUFFIXES
from pairwright.datasets.readers.text_files import strip_compression
from pairwright.datasets.remote.listing import find_input_files
from pairwright.datasets.remote.object_store import StoredFile, open_store
from pairwright.datasets.remote.store_path import StorePath

_READ_IN_PLACE = frozenset(
    {".tar", ".parquet", ".jsonl", ".ndjson", ".jsonlines", ".csv", ".tsv", ".json"}
)  # compressed ones too
_SIDECAR = ".json"  # in a folder: of an image of the same name


def list_in_place(written: str) -> tuple[Path, ...]:
    """Return the files of an input in a store that are read in place, without tables of tars; empty if it must be copied.

    A folder of images, which may have folders, is one path: that of the folder.

    Raises:
        InputError: nothing is there, or a file of a pattern is missing.
        StorageError: the store fails.
        UsageError: a URL with a user or a query.
    """
    store, path = open_store(written)
    if store.scheme == "file":
        return ()
    path, files = find_input_files(store, path)
    folder = "{" not in path and files[0].path != path
    if folder and _has_image_files(path, files):
        return (StorePath(store.url(path)),)
    if any(_kind(file.path) not in _READ_IN_PLACE - ({_SIDECAR} if folder else set()) for file in files):
        return ()
    names = {file.path for file in files}
    tables = {name.removesuffix(".tar") + ".parquet" for name in names if name.endswith(".tar")}
    listed = [file for file in files if file.path not in tables]
    nested = folder and any(str(PurePosixPath(file.path).parent) != path for file in listed)
    mixed = len({_kind(file.path) for file in listed}) != 1
    # Folders in folders and mixed kinds are read as on disk, from a copy.
    return () if nested or mixed else tuple(StorePath.of(store, file) for file in listed)


def _has_image_files(folder: str, files: Sequence[StoredFile]) -> bool:
    """Return whether a folder is one of images, by the rules for folders on disk (`readers/formats.py`)."""
    names = [PurePosixPath(file.path).relative_to(folder) for file in files]
    folders = {name.parts[0] for name in names if len(name.parts) > 1}
    if {"metadata"} < folders and folders & {"img_emb", "text_emb"}:
        return False
    top = [name for name in names if len(name.parts) == 1]
    others = {".tar", ".jsonl"} & {_kind(name.name) for name in top}
    tables = [name for name in top if name.suffix == ".parquet" and name.stem not in folders]
    return not others and not tables and any(_kind(name.name) in IMAGE_SUFFIXES for name in names)


def list_below(folder: Path) -> list[Path]:
    """Return the files below a folder of a store, by path, without hidden ones; errors as in `list_in_place`."""
    store, path = open_store(folder)
    return [StorePath.of(store, file) for file in find_input_files(store, path)[1]]


def _kind(name: str) -> str:
    return os.path.splitext(strip_compression(name))[1].lower()  # noqa: PTH122 - text, not a path
