"""Reader of a folder of images with captions: ``a/b.jpg`` with ``a/b.txt`` and/or ``a/b.json``.

Subfolders are included, symbolic links followed, names sorted by code point; the source id is the path without its
suffix. The .txt is one caption, without its final line break. A .txt or .json without an image is a missing sample and
rejected; images of unsupported formats (HEIC) are rejected as such; other files and hidden ones are skipped. A table
``00000.parquet`` of a folder ``00000`` (img2dataset) lists failed downloads; its ``00000_stats.json`` is not a sample.

Limits: the names of one folder (and of its parents) are held in memory, about 100 bytes each, as file systems list them
unsorted.
"""

from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

from pairwright.datasets.directories import FolderIdentity, identify_folder, list_entries
from pairwright.datasets.images.loading import IMAGE_SUFFIXES
from pairwright.datasets.images.loading import UNSUPPORTED_SUFFIXES as UNREAD
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.sample_files import SampleFile, build_sample_row, iter_failed_downloads
from pairwright.datasets.rejects import Reject, RejectError, make_reject

SIDECAR_SUFFIXES = frozenset({".txt", ".json"})


def read_image_folder(path: Path) -> InputRowIterator:
    """Yield a row per image; places are the image's path."""
    return _read(path.absolute(), path.absolute())


def _read(root: Path, folder: Path, above: frozenset[FolderIdentity] = frozenset()) -> InputRowIterator:
    within = above | {identify_folder(folder)}
    names, folders = _list_sample_files(folder)
    for stem, group in groupby(names, key=lambda name: Path(name).stem):
        yield _row(root, folder / stem, [_file(folder / name) for name in group])
    for inner in folders:
        if identify_folder(inner) in within:
            continue
        yield from _read(root, inner, within)
        table = inner.with_name(f"{inner.name}.parquet")
        if table.is_file():
            keys = {name.stem for name in inner.iterdir() if name.suffix.lower() in IMAGE_SUFFIXES}
            yield from iter_failed_downloads(table, keys)


def _list_sample_files(folder: Path) -> tuple[list[str], list[Path]]:
    """Return the names of a folder's sample files, those of one sample adjacent, and its subfolders."""
    names, folders = list[str](), list[Path]()
    for entry in list_entries(folder):
        if entry.name.startswith(".") or _is_statistics(folder, entry.name):
            continue
        if entry.is_dir():
            folders.append(Path(entry.path))
        elif Path(entry.name).suffix.lower() in IMAGE_SUFFIXES | SIDECAR_SUFFIXES | UNREAD:
            names.append(entry.name)
    return sorted(names, key=lambda name: (Path(name).stem, name)), sorted(folders)


def _is_statistics(folder: Path, name: str) -> bool:
    stem = name.removesuffix("_stats.json")
    return stem != name and (folder / f"{stem}.parquet").is_file()


def _file(path: Path) -> SampleFile:
    try:
        size = path.stat().st_size
    except OSError:  # a broken link; reading it reports the error
        size = 0
    return SampleFile(path.suffix.lower(), str(path), size, partial(_read_sidecar, path))


def _read_sidecar(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RejectError("missing_caption", f"{path.name} cannot be read ({error.strerror})") from None


def _row(root: Path, base: Path, files: list[SampleFile]) -> InputRow | Reject:
    key = base.relative_to(root).as_posix()
    read = {file.suffix for file in files} & IMAGE_SUFFIXES
    files = [file for file in files if not read or file.suffix not in UNREAD]
    image = next((file.name for file in files if file.suffix in IMAGE_SUFFIXES | UNREAD), "")
    if not image:
        names = ", ".join(Path(file.name).name for file in files)
        return make_reject(str(base), "missing_image", f"{names} without an image of that name")
    row = build_sample_row(image, key, files)
    # Separate image files are checked by path: reading a header is cheaper than reading the file.
    return row if isinstance(row, Reject) else replace(row, load=None)
