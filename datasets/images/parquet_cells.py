"""Pictures inside Parquet tables: ``table.parquet::image/row-00000017`` is the 17th row of the column ``image``.

A name that the table has for the picture may follow, ``image/row-00000017/dog.jpg``; it tells people, and opens nothing.
The column holds bytes, or Hugging Face's ``{bytes, path}``. Of the table only that column is read, and of it a window of
`WINDOW_BYTES` bytes at a time within one row group. Rows in order cost one reading of the table. A row before the windows that are
kept begins its row group anew: rows in any order are quick where groups are small, as `datasets` writes them.

Memory: two windows, and what one page of the file unpacks to, for each of the `MAX_OPEN_TABLES` columns used last.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from pairwright.datasets.rejects import RejectError

PARQUET_SUFFIX = ".parquet"
MAX_OPEN_TABLES = 2
WINDOW_BYTES = 8 * 2**20
_MAX_WINDOW_ROWS = 1024  # of a window: what is stored once for many rows takes little in the file, and much in memory
_BUFFER = 2**18
_MEMBER = re.compile(r"(.+?)/row-([0-9]{1,18})(?:/[^/]*)?", re.DOTALL)


def format_cell_name(column: str, row: int, name: str = "") -> str:
    """Return how a locator names a row (from 1) of a column; names sort as the rows do."""
    return f"{column}/row-{row:08}{name and '/'}{name}"


def read_cell_image(path: Path, member: str) -> bytes:
    """Return the bytes of the picture ``member`` of the table ``path``.

    Raises:
        Refused: missing_image or bad_image.
        OSError: when there is no such file.
    """
    column, row = _find_column(path, member)
    return column.read(row)


def estimate_cell_size(path: Path, member: str) -> int:
    """Return about how many bytes a picture has: the mean of its row group. Errors as in `read_cell_image`."""
    column, row = _find_column(path, member)
    return column.mean(row)


def _find_column(path: Path, member: str) -> "tuple[_ImageColumn, int]":
    status = path.stat()
    found = _MEMBER.fullmatch(member)
    if found is None:
        raise RejectError("missing_image", "pictures in a table are named COLUMN/row-NUMBER")
    column = _open_column(str(path), found[1], status.st_mtime_ns, status.st_size)
    if not 0 < int(found[2]) <= column.rows:
        raise RejectError("missing_image", f"the table has no such row, but {column.rows:,}")
    return column, int(found[2]) - 1


@lru_cache(maxsize=MAX_OPEN_TABLES)
def _open_column(path: str, column: str, _changed: int, _length: int) -> "_ImageColumn":
    return _ImageColumn(path, column)


class _ImageColumn:
    """A column of pictures, read forward. Rows count from 0."""

    def __init__(self, path: str, name: str) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            # Neither read ahead nor mapped: a row group may be larger than the memory.
            self._file = parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise RejectError(*_describe_damage("not a whole Parquet file", error)) from None
        footer = self._file.metadata
        leaves = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
        self._leaf = next((leaf for leaf in (f"{name}.bytes", name) if leaf in leaves), "")
        if not self._leaf or not _holds_bytes(footer.schema.column(leaves[self._leaf])):
            raise RejectError("missing_image", f"the table has no column {name} of pictures")
        self._starts, self._bytes = [0], list[int]()
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            self._starts.append(self._starts[-1] + group.num_rows)
            self._bytes.append(group.column(leaves[self._leaf]).total_uncompressed_size)
        self._windows: deque[tuple[int, Any]] = deque(maxlen=2)
        self._ahead: Iterator[tuple[int, Any]] = iter(())
        self._next, self._end = 0, 0  # rows that may still come from `_ahead`
        self._torn: dict[int, tuple[int, tuple[str, str]]] = {}  # row group: from which row on, and why
        self._lock = Lock()  # images are opened in threads

    @property
    def rows(self) -> int:
        """How many the table has."""
        return self._starts[-1]

    def mean(self, row: int) -> int:
        """Return the mean size of the pictures in a row's group."""
        group = self._group(row)
        return self._bytes[group] // (self._starts[group + 1] - self._starts[group])

    def read(self, row: int) -> bytes:
        """Return the bytes in a row; raises `Refused`."""
        with self._lock:
            start, values = self._window(row)
        value = values[row - start].as_py()
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
        """Yield first row and values of each window of a row group; what is torn is remembered, and ends it."""
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
    """Say whether a column of the file holds bytes that stand for nothing else, as texts and decimals do."""
    return column.physical_type in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"} and column.logical_type.type == "NONE"


def _describe_damage(what: str, error: Exception) -> tuple[str, str]:
    told = str(error).partition("\n")[0]
    return "bad_image", f"{what} ({told})"
