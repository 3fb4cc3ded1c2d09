"""The folder of an index: its lock, names of parts, and removal of stale index files."""

import inspect
import json
import os
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from pairwright.datasets.directories import forbid_symlinked_folders
from pairwright.datasets.errors import StorageError
from pairwright.datasets.file_locks import acquire_lock
from pairwright.indexes.hnsw.metadata import METADATA_FILE, PAIRS_FOLDER, TEMPORARY_PAIRS_FOLDER, Modality

ADDED_PAIRS_FOLDER = "new"  # in TEMPORARY_PAIRS_FOLDER: the pairs of an addition that are not in the index

_PART_NAME = re.compile(r"(text|image)-(\d{5,})(?:-(\d+))?")
_INDEX_FILE = re.compile(
    r"vectors\.faiss|raw\.f16\.npy|keys\.npy|captions\.npy|aliases\.npy|probes\.npz|\d{5,}\.parquet|\..+\.tmp-\d+(?:@.+)?"
)
_ENCODER_FILE = re.compile(r"encoder\.(npz|json|[\w-]+\.state)")
_REPLACEABLE = re.compile(rf"{_PART_NAME.pattern}|{_ENCODER_FILE.pattern}|{PAIRS_FOLDER}|{TEMPORARY_PAIRS_FOLDER}|\..*")


P = ParamSpec("P")
R = TypeVar("R")


def lock_index(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that writes to an index to lock its argument ``directory`` while it runs.

    The lock is held by the operating system on the folder itself, so it ends with the process and leaves no file. The
    function raises StorageError when another process holds it.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        directory: Path = signature.bind(*args, **kwargs).arguments["directory"]
        created = not directory.exists()
        if created:
            directory.mkdir(parents=True)
        handle = os.open(directory, os.O_RDONLY)
        try:
            acquire_lock(handle, directory)
            return function(*args, **kwargs)
        except BlockingIOError:
            raise StorageError(
                f"{directory}: another process is writing to this index. Wait until it is done and start again."
            ) from None
        finally:
            os.close(handle)
            if created:
                with suppress(OSError):  # leave no empty folder after an error
                    directory.rmdir()

    return locked


def part_name(modality: Modality, number: int, revision: int = 0) -> str:
    """Return the folder name of a part; ``revision`` counts its extensions."""
    return f"{modality}-{number:05d}" + (f"-{revision}" if revision else "")


def parse_part_name(name: str) -> tuple[Modality, int, int]:
    """Return modality, number and revision of a part from its folder name."""
    found = _PART_NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is not the name of a part")
    return "text" if found[1] == "text" else "image", int(found[2]), int(found[3] or 0)


def prepare_folder(directory: Path) -> None:
    """Create the folder or empty that of an earlier index: index.json first, then the files that it lists.

    Raises:
        StorageError: if the path is a file, the folder holds other files, or a folder in it is a symlink.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StorageError(f"{directory}: not a folder. Choose a folder for the index.") from None
    others = [path.name for path in directory.iterdir() if not _REPLACEABLE.fullmatch(path.name)]
    if others and not _is_index_metadata(directory / METADATA_FILE, alone=others == [METADATA_FILE]):
        raise StorageError(f"{directory}: holds other files ({min(others)}) and no index. Choose a new folder.")
    forbid_symlinked_folders(directory, sorted(path.name for path in directory.iterdir() if path.is_dir()))
    (directory / METADATA_FILE).unlink(missing_ok=True)
    remove_stale_files(directory, ())


def _is_index_metadata(path: Path, *, alone: bool) -> bool:
    """Return whether the file is the index.json of any version; a damaged one counts if it is ``alone`` in the folder."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return alone
    except OSError:
        return False
    return isinstance(content, dict) and "format" in content


def remove_stale_files(directory: Path, named: Collection[str]) -> None:
    """Remove index files that are not in ``named``: the rest of an interrupted build or an older index."""
    parts = {name.partition("/")[0] for name in named}
    for path in sorted(directory.iterdir()):
        if _PART_NAME.fullmatch(path.name) and path.name not in parts:
            remove_index_files(path)
        elif _ENCODER_FILE.fullmatch(path.name) and path.name not in named:
            path.unlink()
    remove_index_files(directory / TEMPORARY_PAIRS_FOLDER / ADDED_PAIRS_FOLDER)
    remove_index_files(directory / TEMPORARY_PAIRS_FOLDER)
    remove_index_files(directory / PAIRS_FOLDER, [name for name in named if name.startswith(f"{PAIRS_FOLDER}/")])


def remove_index_files(folder: Path, but: Collection[str] = ()) -> None:
    """Remove the index files in ``folder`` except the paths ``but``, and the folder if it is empty then."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if _INDEX_FILE.fullmatch(path.name) and f"{folder.name}/{path.name}" not in but:
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
