"""A raw row: named fields as a file gave them, and the place where they stood.

Every format module yields rows (or, for what it cannot read as a row, a `Reject`); what the fields mean is
decided in one place for all formats, `normalise.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from pairwright.datasets.rejects import Reject


@dataclass(frozen=True, slots=True)
class Row:
    """A raw row.

    Attributes:
        place: file and line, row or member.
        fields: column name to value.
        load: gives the bytes of the row's image where the reader has them at hand. Valid until the next row.
    """

    place: str
    fields: dict[str, Any]
    load: Callable[[], bytes] | None = None


@dataclass(frozen=True, slots=True)
class InTable:
    """A picture whose bytes stand inside a table (Hugging Face's ``{bytes, path}``), with its name; they are not read."""

    name: str

    def __str__(self) -> str:
        return "<bytes>"


Rows: TypeAlias = Iterator[Row | Reject]
