"""A raw row: named fields as a file gave them, and the place where they stood.

Every format module yields rows (or, for what it cannot read as a row, a `Reject`); what the fields mean is
decided in one place for all formats, `normalise.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeAlias

from pairwright.datasets.images.parquet_cells import PARQUET_SUFFIX, format_cell_name
from pairwright.datasets.rejects import Reject


@dataclass(frozen=True, slots=True)
class InputRow:
    """A raw row.

    Attributes:
        place: file and line, row or member.
        fields: column name to value.
        load: gives the bytes of the row's image where the reader has them at hand. Valid until the next row.
        pictures: columns that hold pictures, not their names.
    """

    place: str
    fields: dict[str, Any]
    load: Callable[[], bytes] | None = None
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableImage:
    """A picture whose bytes stand inside a table; they are not read.

    Attributes:
        name: that Hugging Face's ``{bytes, path}`` has for it; may be empty.
        table: absolute path.
        column: that it stands in.
        row: from 1.
    """

    name: str
    table: str
    column: str
    row: int

    @property
    def locator(self) -> str:
        """What opens it, see `datasets.images`; empty for a table that no locator can name."""
        if not self.table.endswith(PARQUET_SUFFIX):
            return ""
        return f"{self.table}::{format_cell_name(self.column, self.row, PurePath(self.name).name)}"

    def __str__(self) -> str:
        return "<bytes>"


InputRowIterator: TypeAlias = Iterator[InputRow | Reject]
