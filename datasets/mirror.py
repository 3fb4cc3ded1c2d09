"""Inputs that lie in a store (`remote.py`) are copied to this machine, and read from there.

A copy has the size and the time of its original, by which it is known: what did not change is not copied again, and a
build notices what did (`flows/inputs.py`). A file is whole or absent here. Of a folder the copy holds the same files,
hidden ones left out; what went from the original goes from the copy.

The copies take as much disk as the originals. What is too large for that is brought near by other means.
"""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from pairwright.datasets.atomic import replacing
from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.remote import Found, Store, is_remote, nothing_there, open_store

_AT_A_TIME = 8
_TABLE = ".parquet"  # of img2dataset, beside the tar of the same name


def copies_folder() -> Path:
    """Return where copies stand that no build asked for: below PAIRWRIGHT_CACHE, else ``~/.cache/pairwright``."""
    return Path(os.environ.get("PAIRWRIGHT_CACHE") or "~/.cache/pairwright").expanduser() / "remote"


def local_copy(written: str, folder: Path | None = None) -> str:
    """Return where an input can be read on this machine: a path or brace pattern as it is, a URL copied before.

    Args:
        written: path, brace pattern, or either of them as a URL.
        folder: for the copies; `copies_folder` when left out.

    Raises:
        InputError: when nothing is there.
        StorageError: when the store refuses or cannot be reached.
        UsageError: for a URL with a user or a query.
        MissingResource: when the store's package is not installed.
    """
    if not is_remote(written):
        return written
    store, path = open_store(written)
    if store.scheme == "file":
        return path
    top = (folder or copies_folder()) / store.scheme
    _copy(store, _files(store, path, top), top)
    return str(_place(top, path))


def _files(store: Store, path: str, top: Path) -> list[Found]:
    from pairwright.datasets.readers.formats import expand_braces

    if "{" in path:
        names = list(expand_braces(path))
        found = {each.path: each for folder in sorted({_parent(name) for name in names}) for each in store.find(folder)}
        wanted = [found[name] for name in names if name in found]
        if len(wanted) < len(names):
            raise nothing_there(store, next(name for name in names if name not in found))
        tables = [name.removesuffix(".tar") + _TABLE for name in names if name.endswith(".tar")]
        return [*wanted, *(found[name] for name in tables if name in found)]
    files = [each for each in store.find(path) if not _hidden(each.path, path)]
    if not files:
        raise nothing_there(store, path)
    if files[0].path != path:
        _forget_others(_place(top, path), {_place(top, each.path) for each in files})
    elif path.endswith(".tar"):
        files += store.find(path.removesuffix(".tar") + _TABLE)
    return files


def _parent(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _hidden(path: str, below: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(path.removeprefix(below)).parts)


def _place(top: Path, path: str) -> Path:
    parts = PurePosixPath(path.lstrip("/")).parts
    if ".." in parts:
        raise UsageError(f"{path}: a key with `..` is not copied. Rename it.")
    return top.joinpath(*parts)


def _forget_others(folder: Path, there: set[Path]) -> None:
    if folder.is_file():
        folder.unlink()
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and path not in there:
            path.unlink()


def _copy(store: Store, files: list[Found], top: Path) -> None:
    missing = [each for each in files if not _is_current(_place(top, each.path), each)]
    room = sum(each.size for each in missing)
    top.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(top).free
    if room > free:
        raise StorageError(
            f"{top}: copies of {room:,} bytes do not fit into {free:,}. Choose a disk with room: --out of the build, "
            "else PAIRWRIGHT_CACHE."
        )
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        for copied in [pool.submit(_copy_one, store, each, _place(top, each.path)) for each in missing]:
            copied.result()


def _is_current(path: Path, of: Found) -> bool:
    try:
        stat = path.stat()
    except OSError:
        return False
    return path.is_file() and stat.st_size == of.size and stat.st_mtime_ns == _nanoseconds(of)


def _copy_one(store: Store, file: Found, place: Path) -> None:
    with replacing(place) as temporary:
        store.get(file.path, temporary)
        if temporary.stat().st_size != file.size:
            raise StorageError(
                f"{store.url(file.path)}: {temporary.stat().st_size:,} bytes came of {file.size:,}. "
                "Start again when nothing writes to it."
            )
        os.utime(temporary, ns=(_nanoseconds(file), _nanoseconds(file)))


def _nanoseconds(file: Found) -> int:
    return (
        round(file.time * 1000) * 1_000_000
    )  # whole milliseconds: finer than stores tell, and no file system rounds it
