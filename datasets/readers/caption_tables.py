"""Search of a folder of images without captions beside them for the files that have their captions.

Published datasets are folders of images with the captions in another file of the folder: COCO's
``annotations/captions_val2014.json``, Flickr30k's ``results.csv``, Flickr8k's ``captions.txt``. A file has the captions if
its first rows have a caption and an image that is in the folder, whatever the file's name and layout.

Limits: folders on a disk; the `MAX_TABLES` largest files, and the first `CHECKED_ROWS` rows of each.
"""

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from pairwright.datasets.directories import walk_files
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES
from pairwright.datasets.readers.column_expressions import compute
from pairwright.datasets.readers.columns import AmbiguousColumnsError, ColumnPlan, resolve_columns
from pairwright.datasets.readers.formats import NON_PAIR_FORMATS, READERS, guess_format
from pairwright.datasets.readers.image_folder import SIDECAR_SUFFIXES
from pairwright.datasets.readers.input_rows import InputRow
from pairwright.datasets.readers.text_files import strip_compression
from pairwright.datasets.rejects import RejectError

MAX_TABLES, CHECKED_ROWS = 40, 200
_CHECKED_IMAGES = 50
_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".token", ".parquet"})
_CAPTION_MARKS = (b"caption", b"sentence", b"text", b"description", b"phrase", b"comment")
"""Bytes of which a JSON file with captions has one; an instances file of COCO is half a gigabyte and has none."""


@dataclass(frozen=True, slots=True)
class CaptionTable:
    """A file with captions of the images of a folder.

    Attributes:
        path: of the file.
        images: how many of its first rows name an image of the folder.
    """

    path: Path
    images: int


def find_caption_tables(folder: Path, columns: Mapping[str, str] | None = None) -> list[CaptionTable]:
    """Return the files with the captions of a folder's images, that of most images first; none if captions are beside them.

    Args:
        folder: of images, with subfolders.
        columns: the user's mapping, part to column.

    Raises:
        InputError: if a folder cannot be listed.
    """
    files = [file for file in walk_files(folder) if not file.name.startswith(".")]
    images = [file for file in files if file.suffix.lower() in IMAGE_SUFFIXES]
    if not images or _have_sidecars(images):
        return []
    names = {image.name for image in images}
    stems = {image.stem for image in images}
    tables = [file for file in files if _is_table_name(file) and file.stem not in stems]
    largest = sorted(tables, key=lambda file: (-_size(file), file))[:MAX_TABLES]
    counted = [CaptionTable(file, _count_images(file, names, columns or {})) for file in largest]
    return sorted((one for one in counted if one.images), key=lambda one: (-one.images, one.path))


def _have_sidecars(images: Sequence[Path]) -> bool:
    """Return whether most images have a file with their caption beside them."""
    checked = images[:: -(-len(images) // _CHECKED_IMAGES)]
    captioned = sum(any(image.with_suffix(suffix).exists() for suffix in SIDECAR_SUFFIXES) for image in checked)
    return 2 * captioned > len(checked)


def _is_table_name(file: Path) -> bool:
    return PurePosixPath(strip_compression(file.name)).suffix.lower() in _SUFFIXES


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # a broken link
        return 0


def _count_images(file: Path, names: set[str], columns: Mapping[str, str]) -> int:
    """Return how many of a file's first rows have a caption and one of the images ``names``."""
    try:
        rows = [row for row in islice(_read_rows(file), CHECKED_ROWS) if isinstance(row, InputRow)]
        return sum(_image_name(row, columns) in names for row in rows)
    except (InputError, AmbiguousColumnsError):  # another kind of file
        return 0


def _read_rows(file: Path) -> Iterator[object]:
    if PurePosixPath(file.name).suffix.lower() == ".json" and not _has_caption_mark(file):
        return iter(())
    format_ = guess_format(file)
    return iter(()) if format_ in NON_PAIR_FORMATS else READERS.get(format_).read(file)


def _has_caption_mark(file: Path) -> bool:
    if not _size(file):
        return False
    with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(mark) >= 0 for mark in _CAPTION_MARKS)


def _image_name(row: InputRow, columns: Mapping[str, str]) -> str:
    """Return the name of the image file of a row with a caption; empty for other rows."""
    try:
        plan: ColumnPlan = resolve_columns(tuple(row.fields), columns, row.pictures)
        image = compute(row.fields, plan.image) if plan.image else None
    except RejectError:
        return ""
    if isinstance(image, list) and len(image) == 1:
        image = image[0]
    return PurePosixPath(image).name if isinstance(image, str) else ""
