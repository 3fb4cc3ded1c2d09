"""Detection of the image columns of a Parquet file, and their values in rows; image bytes are not read.

An image column has bytes, Hugging Face's ``{bytes, path}``, or a struct with bytes of that name. In a row its value is the
location (`TableImage`), with the name in its path; in row groups with paths and no bytes it is the path. Of a column with
lists of ``{bytes, path}`` it is that of a list's only image, null for an empty list, and a list for several images. Other
columns of bytes are empty bytes in every row, which no part of a pair accepts.

Some tools write texts as bytes (Spark, Impala and Hive, which leave out Parquet's type of texts). A column of short bytes,
or of lists of them, is one of texts if most of its checked values are UTF-8 and none has a NUL byte, as images have: some
rows of images may be the error pages of failed downloads. Under a name of images, texts must also name images.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import detect_unsupported_format
from pairwright.datasets.images.parquet_cells import LIST_ITEMS
from pairwright.datasets.readers.columns import IMAGE_COLUMN_NAMES
from pairwright.datasets.readers.csv_tsv import is_image_name
from pairwright.datasets.readers.input_rows import TableImage
from pairwright.datasets.remote.object_store import is_remote

_MAX_TEXT = 16_384  # mean bytes of a text; photos are larger, and a row group of them is not read to look
_CHECKED_TEXTS = 1000  # rows of the first row group, and of the last
_MIN_TEXTS = 0.8  # share of UTF-8; rows with other bytes are rejected
_IMAGE_NAMES = frozenset({"image", *IMAGE_COLUMN_NAMES})
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class TableColumns:
    """How the columns of a table are read.

    Attributes:
        table: absolute path.
        read: columns to read; of images with a path and of lists of images the paths, of other columns of bytes nothing.
        unread: empty bytes for each column of bytes without images.
        bare: image columns without a path.
        named: image columns with a path, each with the row groups without bytes, as first and last row.
        lists: columns with lists of images.
        texts: columns of bytes that are texts.
    """

    table: str
    read: list[str]
    unread: dict[str, Any]
    bare: list[str]
    named: dict[str, list[tuple[int, int]]]
    lists: list[str]
    texts: list[str]

    @property
    def pictures(self) -> tuple[str, ...]:
        """All image columns."""
        return (*self.bare, *self.named, *self.lists)

    def filled(self, values: dict[str, Any], number: int) -> dict[str, Any]:
        """Return the values of row ``number`` (from 1), with placeholders for bytes."""
        if not (self.unread or self.pictures):
            return values
        more: dict[str, Any] = {name: TableImage("", self.table, name, number) for name in self.bare}
        for name, without in self.named.items():
            if (value := values[name]) is not None:
                written = value["path"] or ""
                is_path = written and any(first <= number <= last for first, last in without)
                more[name] = written if is_path else TableImage(written, self.table, name, number)
        for name in self.lists:
            images = [
                TableImage((value or {}).get("path") or "", self.table, name, number, item)
                for item, value in enumerate(values[name] or (), 1)
            ]
            more[name] = images if len(images) > 1 else next(iter(images), None)
        return {**values, **self.unread, **more}


def classify_columns(path: Path, file: Any) -> TableColumns:
    """Return how to read a table.

    Args:
        path: of the file.
        file: the same, opened by pyarrow.

    Raises:
        InputError: if two columns have one name.
    """
    schema = file.schema_arrow
    if len(set(schema.names)) < len(schema.names):
        raise InputError("two columns have the same name", where=str(path), fix="Rename one of them.")
    named = [field.name for field in schema if _is_named_image(field.type)]
    texts = [field.name for field in schema if _may_be_texts(field.type) and _has_texts(file, field.name)]
    bare = [field.name for field in schema if field.name not in (*named, *texts) and _is_image(field.type)]
    paths = {field.name: leaf for field in schema if (leaf := _path_in_list(field, file.metadata))}
    known = (*named, *texts, *bare, *paths)
    others = [field.name for field in schema if field.name not in known and _holds_bytes(field.type)]
    return TableColumns(
        # A locator is text, and abspath does not follow links.
        table=str(path) if is_remote(path) else os.path.abspath(path),  # noqa: PTH100
        read=[
            f"{name}.path" if name in named else paths.get(name, name)
            for name in schema.names
            if name not in (*bare, *others)
        ],
        unread=dict.fromkeys(others, b""),
        bare=bare,
        named={name: _null_row_groups(file.metadata, f"{name}.bytes") for name in named},
        lists=list(paths),
        texts=texts,
    )


def _is_image(kind: Any) -> bool:
    import pyarrow as pa

    if not pa.types.is_struct(kind):
        return _is_bytes(kind)
    return any(kind.field(at).name == "bytes" and _is_bytes(kind.field(at).type) for at in range(kind.num_fields))


def _is_named_image(kind: Any) -> bool:
    import pyarrow as pa

    if not _is_image(kind) or {kind.field(at).name for at in range(kind.num_fields)} != {"bytes", "path"}:
        return False
    # The path is null in all rows if pyarrow was given none.
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    return any(is_text(kind.field("path").type) for is_text in texts)


def _path_in_list(field: Any, footer: Any) -> str:
    """Return the Parquet column with the paths of a field that has lists of images; empty for other fields."""
    import pyarrow as pa

    lists = (pa.types.is_list, pa.types.is_large_list)
    if not (any(is_list(field.type) for is_list in lists) and _is_named_image(field.type.value_type)):
        return ""
    paths = {f"{field.name}.list.{inner}.path" for inner in LIST_ITEMS}
    return next((path for at in range(footer.num_columns) if (path := footer.schema.column(at).path) in paths), "")


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests) or (pa.types.is_dictionary(kind) and _is_bytes(kind.value_type))


def _may_be_texts(kind: Any) -> bool:
    """Return whether values are bytes of any length, or lists of them."""
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return _is_bytes(kind) and not pa.types.is_fixed_size_binary(kind)  # which are hashes


def _has_texts(file: Any, name: str) -> bool:
    """Return whether the bytes of a column are short, and most of the checked ones UTF-8, some with letters."""
    if not file.num_row_groups:
        return False
    group = file.metadata.row_group(0)
    leaf = next(
        column
        for column in map(group.column, range(group.num_columns))
        if column.path_in_schema == name or column.path_in_schema.startswith(f"{name}.")
    )
    if leaf.total_uncompressed_size > _MAX_TEXT * max(1, leaf.num_values):
        return False
    found = [row for at in {0, file.num_row_groups - 1} for row in _first_rows(file, at, name)]
    values = [value for row in found for value in (row if isinstance(row, list) else [row]) if value]
    if any(b"\0" in value for value in values):
        return False
    texts = [value.decode() for value in values if _is_utf8(value) and not detect_unsupported_format(value)]  # SVG
    if name.strip() in _IMAGE_NAMES and not any(map(is_image_name, texts)):
        return False
    return any(map(_LETTER.search, texts)) and len(texts) >= _MIN_TEXTS * len(values)


def _first_rows(file: Any, row_group: int, name: str) -> list[Any]:
    import pyarrow as pa

    batch = None
    with suppress(pa.ArrowException, OSError):  # a damaged page is reported when it is read
        # Without threads: they must not read a Python file.
        batch = next(file.iter_batches(_CHECKED_TEXTS, row_groups=[row_group], columns=[name], use_threads=False), None)
    return [] if batch is None else batch.column(0).to_pylist()


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _holds_bytes(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_nested(kind):
        return any(_holds_bytes(kind.field(index).type) for index in range(kind.num_fields))
    return _is_bytes(kind)


def _null_row_groups(footer: Any, leaf: str) -> list[tuple[int, int]]:
    """Return first and last row, from 1, of each row group whose statistics say that all bytes are null."""
    at = next(number for number in range(footer.num_columns) if footer.schema.column(number).path == leaf)
    found, end = [], 0
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        start, end = end + 1, end + group.num_rows
        statistics = group.column(at).statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count == group.num_rows:
            found.append((start, end))
    return found
