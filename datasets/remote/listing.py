"""Files of an input in an object store: a file, a folder, a brace pattern, or a published dataset."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from pairwright.datasets.brace_patterns import expand_braces
from pairwright.datasets.remote.object_store import RemoteStore, StoredFile, not_found_error
from pairwright.datasets.remote.published_versions import POINTER_FILE, VERSIONS_FOLDER, read_pointer

_TABLE = ".parquet"  # img2dataset's table for the tar of the same name


def find_input_files(store: RemoteStore, path: str) -> tuple[str, list[StoredFile]]:
    """Return the path of an input and its files, without hidden ones; for a published dataset those of its newest version.

    A pattern or tar also has the img2dataset tables (``00000.parquet``) of its tars.

    Raises:
        InputError: nothing is there, or a file of a pattern is missing.
        StorageError: the store fails.
    """
    files = _files(store, path)
    if any(each.path == f"{path}/{POINTER_FILE}" for each in files):
        path = f"{path}/{VERSIONS_FOLDER}/{read_pointer(store, path)[0]}"
        return path, _files(store, path)
    if not files and (newest := _resolve_published(store, path)):
        path, files = newest, _files(store, newest)
    if not files:
        raise not_found_error(store, next(name for name in _names(path) if not store.find(name)))
    return path, files


def _resolve_published(store: RemoteStore, path: str) -> str:
    """Return a path below a published dataset inside its newest version; empty for other paths."""
    for folder in map(str, PurePosixPath(path).parents):
        if folder not in {".", "/"} and (versions := read_pointer(store, folder)):
            return f"{folder}/{VERSIONS_FOLDER}/{versions[0]}{path.removeprefix(folder)}"
    return ""


def _names(path: str) -> Iterator[str]:
    yield from expand_braces(path) if "{" in path else [path]


def _files(store: RemoteStore, path: str) -> list[StoredFile]:
    """Return the files of a path or pattern; empty if one of a pattern is missing."""
    if "{" in path:
        names = list(_names(path))
        found = {each.path: each for folder in sorted({_parent(name) for name in names}) for each in store.find(folder)}
        if not found.keys() >= set(names):
            return []
        tables = [name.removesuffix(".tar") + _TABLE for name in names if name.endswith(".tar")]
        return [*(found[name] for name in names), *(found[name] for name in tables if name in found)]
    files = [each for each in store.find(path) if not _is_hidden(each.path, path)]
    if files and files[0].path == path and path.endswith(".tar"):
        files += store.find(path.removesuffix(".tar") + _TABLE)
    return files


def _parent(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _is_hidden(path: str, below: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(path.removeprefix(below)).parts)
