"""A folder of images with their captions beside them: ``a/b.jpg`` with ``a/b.txt`` and/or ``a/b.json``.

Sub-folders follow, names in order of code points; the source id is the path without its suffix. The
whole .txt is one caption, but for the line break at its end. A .txt or .json without an image is a lost
sample and refused; files of other kinds are no samples, and hidden ones are passed over. A table
``00000.parquet`` beside a folder ``00000`` (img2dataset) tells which downloads failed.

Limits: the names of one folder at a time are held in memory, since a file system gives them in no order.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.images import SUFFIXES
from pairwright.datasets.readers.downloads import failed_downloads
from pairwright.datasets.readers.rows import Row, Rows
from pairwright.datasets.readers.samples import File, sample_row
from pairwright.datasets.rejects import Refused, Reject, reject

SIDE_FILES = frozenset({".txt", ".json"})


def read_image_folder(path: Path) -> Rows:
    """Yield a row an image; places are the image's path."""
    return _read(path.absolute(), path.absolute())


def _read(root: Path, folder: Path) -> Rows:
    samples: dict[str, list[File]] = {}
    folders: list[Path] = []
    for entry in _entries(folder):
        inner = Path(entry.path)
        suffix = inner.suffix.lower()
        if entry.is_dir():
            folders.append(inner)
        elif suffix in SUFFIXES | SIDE_FILES:
            samples.setdefault(inner.stem, []).append(_file(inner, suffix))
    for stem, files in samples.items():
        yield _row(root, folder / stem, files)
    for inner in folders:
        yield from _read(root, inner)
        table = inner.with_name(f"{inner.name}.parquet")
        if table.is_file():
            keys = {name.stem for name in inner.iterdir() if name.suffix.lower() in SUFFIXES}
            yield from failed_downloads(table, keys)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(
            f"cannot be listed ({error.strerror})", where=str(folder), mend="Check path and rights."
        ) from None
    return (entry for entry in ordered if not entry.name.startswith("."))


def _file(path: Path, suffix: str) -> File:
    try:
        size = path.stat().st_size
    except OSError:  # a link that leads nowhere; the image check tells it as missing
        size = 0
    return File(suffix, str(path), size, partial(_read_side, path))


def _read_side(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused("missing_caption", f"{path.name} cannot be read ({error.strerror})") from None


def _row(root: Path, base: Path, files: list[File]) -> Row | Reject:
    key = base.relative_to(root).as_posix()
    image = next((file.name for file in files if file.suffix in SUFFIXES), "")
    if not image:
        names = ", ".join(Path(file.name).name for file in files)
        return reject(str(base), "missing_image", f"{names} without an image of that name")
    row = sample_row(image, key, files)
    # Images in files of their own are looked at by path: a header is less than a file.
    return row if isinstance(row, Reject) else replace(row, load=None)
