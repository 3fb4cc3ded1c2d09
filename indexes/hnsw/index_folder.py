"""The folder of an index: names of its parts, and clearing away what a kill or an older index left, but nothing else."""

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

ADDED_PAIRS_FOLDER = "new"  # in the folder of pairs that were read: those of an addition that are not in the index

_PART_NAME = re.compile(r"(text|image)-(\d{5,})(?:-(\d+))?")
_INDEX_FILE = re.compile(
    r"vectors\.faiss|raw\.f16\.npy|keys\.npy|captions\.npy|aliases\.npy|probes\.npz|\d{5,}\.parquet|\..+\.tmp-\d+(?:@.+)?"
)
_REPLACEABLE = re.compile(rf"{_PART_NAME.pattern}|encoder\.(npz|json)|{PAIRS_FOLDER}|{TEMPORARY_PAIRS_FOLDER}|\..*")
_ENCODER_FILE = re.compile(r"encoder\.(npz|json)")


P = ParamSpec("P")
R = TypeVar("R")


def lock_index(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that writes to an index be the only one there: its argument ``directory`` is locked meanwhile.

    The lock is the operating system's, on the folder itself: it ends with the process, however that ends, and leaves
    nothing behind. The function then raises UsageError when another process has it.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        directory: Path = signature.bind(*args, **kwargs).arguments["directory"]
        made = not directory.exists()
        if made:
            directory.mkdir(parents=True)
        handle = os.open(directory, os.O_RDONLY)
        try:
            acquire_lock(handle, directory)
            return function(*args, **kwargs)
        except BlockingIOError:
            raise StorageError(
                f"{directory}: another process is writing to this index. Wait until it is done, then start again."
            ) from None
        finally:
            os.close(handle)
            if made:
                with suppress(OSError):  # a refusal leaves no empty folder
                    directory.rmdir()

    return locked


def part_name(modality: Modality, number: int, revision: int = 0) -> str:
    """Return the name of a part's folder; ``revision`` counts how often it was extended."""
    return f"{modality}-{number:05d}" + (f"-{revision}" if revision else "")


def parse_part_name(name: str) -> tuple[Modality, int, int]:
    """Return modality, number and revision of the part of that name."""
    found = _PART_NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is not the name of a part")
    return "text" if found[1] == "text" else "image", int(found[2]), int(found[3] or 0)


def prepare_folder(directory: Path) -> None:
    """Make the folder, and take away what would make it an index: the sidecar first, then the files that it named.

    Raises:
        StorageError: when there is a file in its place, it is a folder of something else, or a folder in it is a link, whose
            files are not of this index.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StorageError(f"{directory}: not a folder. Name a folder for the index.") from None
    others = [path.name for path in directory.iterdir() if not _REPLACEABLE.fullmatch(path.name)]
    if others and not _is_index_metadata(directory / METADATA_FILE, alone=others == [METADATA_FILE]):
        raise StorageError(f"{directory}: holds other things ({min(others)}) and no index. Name a new folder.")
    forbid_symlinked_folders(directory, sorted(path.name for path in directory.iterdir() if path.is_dir()))
    (directory / METADATA_FILE).unlink(missing_ok=True)
    remove_stale_files(directory, ())


def _is_index_metadata(sidecar: Path, *, alone: bool) -> bool:
    """Say whether this is the sidecar of an index, of any version; one that is torn is ours if nothing else is there."""
    try:
        content = json.loads(sidecar.read_bytes())
    except ValueError:
        return alone
    except OSError:
        return False
    return isinstance(content, dict) and "format" in content


def remove_stale_files(directory: Path, named: Collection[str]) -> None:
    """Remove parts and files of ours that are not among the ``named`` paths: what a kill or an older index left."""
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
    """Remove our files in a folder of an index, but for some, and the folder when it is empty then."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if _INDEX_FILE.fullmatch(path.name) and f"{folder.name}/{path.name}" not in but:
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
