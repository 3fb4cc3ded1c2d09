"""Images inside Parquet tables: ``table.parquet::image/row-00000017`` is row 17 of the column ``image``.

The file name stored in the table may follow, ``image/row-00000017/dog.jpg``; it is informative only. The column has bytes,
Hugging Face's ``{bytes, path}``, or lists of one of these, of which the first is meant; ``images/row-00000017-2`` is the
second. Only that column is read, in windows of `WINDOW_BYTES` bytes within one row group.
Rows in order cost one pass over the table. A row before the cached windows restarts its row group: random access is fast
if row groups are small, as `datasets` writes them.

Memory: two windows, and the decompressed size of one page, for each of the `MAX_OPEN_TABLES` most recently used columns.
"""

import os
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from pairwright.datasets.rejects import RejectError
from pairwright.datasets.remote.reading import open_table
from pairwright.datasets.remote.store_path import StorePath

PARQUET_SUFFIX = ".parquet"
MAX_OPEN_TABLES = 2
WINDOW_BYTES = 8 * 2**20
LIST_ITEMS = ("element", "item", "array_element")  # what writers call the items of a list in Parquet's schema
_MAX_WINDOW_ROWS = 1024  # a value stored once for many rows is small in the file and large in memory
_BUFFER = 2**18
_MEMBER = re.compile(r"(.+?)/row-([0-9]{1,18})(?:-([0-9]{1,9}))?(?:/[^/]*)?", re.DOTALL)


def format_cell_name(column: str, row: int, name: str = "", item: int = 1) -> str:
    """Return the name of a row (from 1) of a column in a locator; names sort in row order.

    Args:
        column: its name.
        row: from 1.
        name: of the image's file, for information; may be empty.
        item: of a list in the row, from 1.
    """
    return f"{column}/row-{row:08}{f'-{item}' if item > 1 else ''}{name and '/'}{name}"


def read_cell_image(path: Path, member: str) -> bytes:
    """Return the bytes of the image ``member`` of the table ``path``.

    Raises:
        RejectError: missing_image or bad_image.
        OSError: if there is no such file.
    """
    column, row, item = _find_column(path, member)
    return column.read(row, item)


def estimate_cell_size(path: Path, member: str) -> int:
    """Return the approximate bytes of an image: the mean of its row group. Errors as in `read_cell_image`."""
    column, row, _ = _find_column(path, member)
    return column.mean(row)


def _find_column(path: Path, member: str) -> "tuple[_ImageColumn, int, int]":
    """Return the column, and the row and its item, from 0, that a member names."""
    stored = isinstance(path, StorePath)  # its open file fails if the table is replaced
    status = None if stored else path.stat()
    found = _MEMBER.fullmatch(member)
    if found is None:
        raise RejectError("missing_image", "pictures in a table are named COLUMN/row-NUMBER")
    state = (status.st_mtime_ns, status.st_size) if status else (0, os.getpid())
    column = _open_column(str(path), found[1], *state)
    if not 0 < int(found[2]) <= column.rows:
        raise RejectError("missing_image", f"the table has no such row, but {column.rows:,}")
    return column, int(found[2]) - 1, max(0, int(found[3] or 1) - 1)


@lru_cache(maxsize=MAX_OPEN_TABLES)
def _open_column(path: str, column: str, _changed: int, _length: int) -> "_ImageColumn":
    return _ImageColumn(path, column)


class _ImageColumn:
    """A column of images, read forward. Rows count from 0."""

    def __init__(self, path: str, name: str) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            # Neither prefetched nor memory-mapped: a row group may be larger than memory.
            self._file = parquet.ParquetFile(open_table(path), buffer_size=_BUFFER, pre_buffer=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise RejectError(*_describe_damage("not a whole Parquet file", error)) from None
        footer = self._file.metadata
        leaves = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
        names = (f"{name}.bytes", name, *(f"{name}.list.{inner}.bytes" for inner in LIST_ITEMS))
        self._leaf = next((leaf for leaf in names if leaf in leaves), "")
        if not self._leaf or not _holds_bytes(footer.schema.column(leaves[self._leaf])):
            raise RejectError("missing_image", f"the table has no column {name} of pictures")
        self._starts, self._bytes = [0], list[int]()
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            self._starts.append(self._starts[-1] + group.num_rows)
            self._bytes.append(group.column(leaves[self._leaf]).total_uncompressed_size)
        self._windows: deque[tuple[int, Any]] = deque(maxlen=2)
        self._ahead: Iterator[tuple[int, Any]] = iter(())
        self._next, self._end = 0, 0  # rows that `_ahead` may still yield
        self._torn: dict[int, tuple[int, tuple[str, str]]] = {}  # row group: first damaged row, and why
        self._lock = Lock()  # images are opened in threads

    @property
    def rows(self) -> int:
        """Number of rows of the table."""
        return self._starts[-1]

    def mean(self, row: int) -> int:
        """Return the mean size of the images in a row's group."""
        group = self._group(row)
        return self._bytes[group] // (self._starts[group + 1] - self._starts[group])

    def read(self, row: int, item: int = 0) -> bytes:
        """Return the bytes in a row, of a list those of an item; raises `RejectError`."""
        with self._lock:
            start, values = self._window(row)
        value = values[row - start].as_py()
        if isinstance(value, list):
            value = value[item] if item < len(value) else None
        elif item:
            raise RejectError("missing_image", "the table has one image in this row, and no list")
        data = value.get("bytes") if isinstance(value, dict) else value
        if not data:
            raise RejectError("missing_image", "the table has no bytes in this row")
        return bytes(data)

    def _group(self, row: int) -> int:
        return bisect_right(self._starts, row) - 1

    def _window(self, row: int) -> tuple[int, Any]:
        for start, values in self._windows:
            if start <= row < start + len(values):
                return start, values
        group = self._group(row)
        torn = self._torn.get(group)
        if torn and row >= torn[0]:
            raise RejectError(*torn[1])
        if not self._next <= row < self._end:
            self._next, self._end = self._starts[group], self._starts[group + 1]
            self._ahead = self._read_group(group)
        for start, values in self._ahead:
            self._next = start + len(values)
            if row < self._next:
                self._windows.append((start, values))
                return start, values
        raise RejectError(*self._torn[group][1])

    def _read_group(self, group: int) -> Iterator[tuple[int, Any]]:
        """Yield first row and values of each window of a row group; damage is recorded and ends it."""
        import pyarrow as pa

        start, end = self._starts[group], self._starts[group + 1]
        size = max(1, min(_MAX_WINDOW_ROWS, WINDOW_BYTES * (end - start) // max(1, self._bytes[group])))
        flaw = "bad_image", "the table ends before this row"
        try:
            for batch in self._file.iter_batches(size, [group], [self._leaf], use_threads=False):
                yield start, batch.column(0)
                start += batch.num_rows
        except (pa.ArrowException, OSError, ValueError) as error:
            flaw = _describe_damage("the table is damaged here", error)
        self._end = self._next = start
        self._torn[group] = start, flaw


def _holds_bytes(column: Any) -> bool:
    """Return whether a column of the file has plain bytes, not bytes with a logical type such as text or decimal."""
    return column.physical_type in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"} and column.logical_type.type == "NONE"


def _describe_damage(what: str, error: Exception) -> tuple[str, str]:
    reason = str(error).partition("\n")[0]
    return "bad_image", f"{what} ({reason})"
