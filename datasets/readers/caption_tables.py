"""Search of a folder of images without captions beside them for the files that have their captions.

Published datasets are folders of images with the captions in another file of the folder: COCO's
``annotations/captions_val2014.json``, Flickr30k's ``results.csv``, Flickr8k's ``captions.txt``. A file has the captions if
its first rows have a caption and name an image that is in the folder, by its file or as an id, whatever the name and layout
of the file. A column of texts counts as one of captions if its name says so (``Image Caption``), even if the user has to map
it; a table with texts under other names (``Beschreibung``) is found apart. Files about the images that have no captions
(COCO instances, LLaVA conversations) are found too.

Limits: folders on a disk; the `MAX_TABLES` largest files, and the first `CHECKED_ROWS` rows of each.
"""

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from pairwright.datasets.directories import walk_files
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES
from pairwright.datasets.readers.column_expressions import compute
from pairwright.datasets.readers.columns import AmbiguousColumnsError, resolve_columns
from pairwright.datasets.readers.field_values import parse_identifier, parse_image_number
from pairwright.datasets.readers.formats import NON_PAIR_FORMATS, READERS, guess_format
from pairwright.datasets.readers.image_folder import SIDECAR_SUFFIXES
from pairwright.datasets.readers.input_rows import InputRow
from pairwright.datasets.readers.text_files import LIKELY_ENCODING, Transcoder, strip_compression
from pairwright.datasets.rejects import RejectError

MAX_TABLES, CHECKED_ROWS = 40, 200
COCO_DIGITS = 12  # of an id in COCO's file names
_MAX_OTHER_JSON = 64 * 2**20  # bytes of a JSON file without captions whose kind is found out
_CHECKED_IMAGES = 50
_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".token", ".parquet"})
_CAPTION_MARKS = (b"caption", b"sentence", b"text", b"description", b"phrase", b"comment")
"""Bytes of which a JSON file with captions has one; an instances file of COCO is half a gigabyte and has none."""
_CAPTION_WORDS = ("caption", "description", "comment", "sentence", "text", "suffix")  # in the name of a column
_ANY_NAME = ("",)
_MIN_WORDS = 3  # of a text in such a column


@dataclass(frozen=True, slots=True)
class CaptionTable:
    """A file with captions of the images of a folder.

    Attributes:
        path: of the file.
        images: how many of its first rows have a caption and an image of the folder.
        size: of the file in bytes.
    """

    path: Path
    images: int
    size: int


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """Files about the images of a folder.

    Attributes:
        captions: those with captions; that of most images first, of several the largest.
        texts: those with texts in columns whose names do not say that they are captions, in the same order.
        others: those without captions, with the name of the format in `NON_PAIR_FORMATS`.
    """

    captions: Sequence[CaptionTable] = ()
    texts: Sequence[CaptionTable] = ()
    others: Sequence[tuple[Path, str]] = ()


@dataclass(frozen=True, slots=True)
class _Images:
    """The names of the images of a folder, with and without their endings."""

    names: frozenset[str]
    stems: frozenset[str]


def find_caption_tables(folder: Path, columns: Mapping[str, str] | None = None) -> FolderFiles:
    """Return the files about a folder's images; none if their captions are beside them.

    Args:
        folder: of images, with subfolders.
        columns: the user's mapping, part to column.

    Raises:
        InputError: if a folder cannot be listed.
    """
    files = [file for file in walk_files(folder) if not file.name.startswith(".")]
    paths = [file for file in files if file.suffix.lower() in IMAGE_SUFFIXES]
    if not paths or _have_sidecars(paths):
        return FolderFiles()
    images = _Images(frozenset(path.name for path in paths), frozenset(path.stem for path in paths))
    tables = [(_size(file), file) for file in files if _is_table_name(file) and file.stem not in images.stems]
    captions, texts, others = list[CaptionTable](), list[CaptionTable](), list[tuple[Path, str]]()
    for size, file in sorted(tables, key=lambda each: (-each[0], each[1]))[:MAX_TABLES]:
        format_ = _format_of(file, size)
        if format_ in NON_PAIR_FORMATS:
            others.append((file, format_))
        elif format_:
            rows = _first_rows(file, format_)
            if count := sum(_has_image_and_caption(row, images, columns or {}) for row in rows):
                captions.append(CaptionTable(file, count, size))
            elif count := sum(_has_image_and_text(row, images, _ANY_NAME) for row in rows):
                texts.append(CaptionTable(file, count, size))
    return FolderFiles(_ranked(captions), _ranked(texts), sorted(others))


def _ranked(tables: Sequence[CaptionTable]) -> list[CaptionTable]:
    return sorted(tables, key=lambda one: (-one.images, -one.size, one.path))


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


def _format_of(file: Path, size: int) -> str:
    """Return the format of a file; empty for one of another kind, and for large JSON without captions."""
    try:
        if file.suffix.lower() == ".json" and size > _MAX_OTHER_JSON and not _has_caption_mark(file):
            return ""
        return guess_format(file)
    except (InputError, OSError):
        return ""


def _has_caption_mark(file: Path) -> bool:
    with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(mark) >= 0 for mark in _CAPTION_MARKS)


def _first_rows(file: Path, format_: str) -> list[InputRow]:
    """Return the first rows of a file; none of a file of another kind."""
    reader = READERS.get(format_)
    # Also a table whose header is not UTF-8, with which it cannot be read before the user names the encoding.
    read = partial(reader.read, transcoder=Transcoder(LIKELY_ENCODING)) if reader.transcodes else reader.read
    try:
        return [row for row in islice(read(file), CHECKED_ROWS) if isinstance(row, InputRow)]
    except InputError:
        return []


def _has_image_and_caption(row: InputRow, images: _Images, columns: Mapping[str, str]) -> bool:
    try:
        plan = resolve_columns(tuple(row.fields), columns, row.pictures)
        image = compute(row.fields, plan.image) if plan.image else None
        id_ = parse_identifier(compute(row.fields, plan.key), "key") if plan.key and not plan.image else ""
        id_ = id_ or parse_image_number(image)
    except AmbiguousColumnsError:
        return False
    except RejectError:  # no caption
        return _has_image_and_text(row, images, _CAPTION_WORDS)
    image = image[0] if isinstance(image, list) and len(image) == 1 else image
    return _is_name(image, images) or bool(id_ and {id_, id_.zfill(COCO_DIGITS)} & images.stems)


def _has_image_and_text(row: InputRow, images: _Images, words: Sequence[str]) -> bool:
    """Return whether a row names an image, and has a text in a column whose name contains one of ``words``."""
    return any(_is_name(value, images) for value in row.fields.values()) and any(
        isinstance(value, str) and len(value.split()) >= _MIN_WORDS and not _is_name(value, images)
        for name, value in row.fields.items()
        if any(word in name.lower() for word in words)
    )


def _is_name(value: Any, images: _Images) -> bool:
    return isinstance(value, str) and PurePosixPath(value).name in images.names
