"""Reader for the lexicon's tables: tab-separated rows of words and features in ``data/``.

The first line that is not a comment names the columns. Empty lines and lines that start with ``#`` are skipped.
A row may end early; its missing cells are empty strings.
"""

from collections.abc import Hashable, Iterable
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

DATA: Final = Path(__file__).parent / "data"


def read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of ``data/<name>.tsv``, each a mapping from column name to cell.

    Raises:
        ValueError: a row has more cells than there are columns.
    """
    text = (DATA / f"{name}.tsv").read_text(encoding="utf-8")
    header, *rows = (
        (number, [cell.strip() for cell in line.split("\t")])
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    )
    return [_row(header[1], cells, f"{name}.tsv:{number}") for number, cells in rows]


def cell_words(cell: str) -> tuple[str, ...]:
    """Return the comma-separated words and phrases of a cell."""
    return tuple(word.strip() for word in cell.split(",") if word.strip())


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, tuple[_Value, ...]]:
    """Return the values of each key, in order."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def united(pairs: Iterable[tuple[str, Iterable[str]]]) -> dict[str, frozenset[str]]:
    """Return the union of the words of each key."""
    return {key: frozenset(chain.from_iterable(words)) for key, words in grouped(pairs).items()}


def _row(columns: list[str], cells: list[str], where: str) -> dict[str, str]:
    if len(cells) > len(columns):
        raise ValueError(f"{where}: {len(cells)} cells for {len(columns)} columns")
    return dict(zip(columns, cells + [""] * (len(columns) - len(cells)), strict=True))
