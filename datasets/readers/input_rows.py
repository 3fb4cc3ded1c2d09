"""Raw input rows, and the class that describes a reader.

A reader yields an `InputRow` per row, or a `Reject` for what it cannot read as a row. What the fields mean is decided
in one place for all formats (`normaliser.py`).
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
        load: returns the bytes of the row's image, if the reader has them. Valid until the next row.
        pictures: columns with images, not names of images.
        missing_caption: why there is no caption, if no column has it; empty where a column has to be named.
        bad_box: why the reader omits the boxes of the row; empty if it does not.
        other_captions: of the same image, from the rows next to it.
    """

    place: str
    fields: dict[str, Any]
    load: Callable[[], bytes] | None = None
    pictures: tuple[str, ...] = ()
    missing_caption: str = ""
    bad_box: str = ""
    other_captions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableImage:
    """An image stored inside a table; its bytes are not read.

    Attributes:
        name: its path in Hugging Face's ``{bytes, path}``; may be empty.
        table: absolute path.
        column: its column.
        row: from 1.
        item: of the list in this row, from 1.
    """

    name: str
    table: str
    column: str
    row: int
    item: int = 1

    @property
    def locator(self) -> str:
        """Its locator, see `images.loading`; empty if the table's name does not end in .parquet."""
        if not self.table.endswith(PARQUET_SUFFIX):
            return ""
        return f"{self.table}::{format_cell_name(self.column, self.row, PurePath(self.name).name, self.item)}"

    def __str__(self) -> str:
        return "<bytes>"


InputRowIterator: TypeAlias = Iterator[InputRow | Reject]


@dataclass(frozen=True, slots=True)
class Reader:
    """An input format.

    Attributes:
        name: value of the option `format`.
        about: description for ``pairwright plugins``.
        read: yields the rows of a file, or of a folder if `reads_folders`.
        suffixes: file name endings of the format, in lower case, with their dot.
        sniff_json: recognises the content of a ``.json`` file, of a list the first 100 items.
        reads_folders: whether an input is a folder; else it is a file, or a folder of files with these `suffixes`.
        compressed: whether files with these `suffixes` may be compressed (``.jsonl.gz``, ``.csv.zst``).
        transcodes: whether `read` has a parameter ``transcoder``, for lines that are not UTF-8.
        fixed_columns: whether all rows of a file have the same columns.
        caption_per_row: whether an image with several captions has a row of each, next to each other.
    """

    name: str
    about: str
    read: Callable[..., InputRowIterator]
    suffixes: tuple[str, ...] = ()
    sniff_json: Callable[[Any], bool] | None = None
    reads_folders: bool = False
    compressed: bool = False
    fixed_columns: bool = False
    caption_per_row: bool = False
    transcodes: bool = False
