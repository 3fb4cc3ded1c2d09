"""Format normalisation: both texts of a row in the same format, so that the format detects nothing.

Normalised text has a capital first letter, single spaces, no space before punctuation, and no final period. The words
do not change. The spans and words of recorded edits are adjusted; an edit that becomes empty is removed.
"""

import re
from typing import Any

import polars as pl

from pairwright.filters.candidates.rows import SCHEMA

_REMOVED = re.compile(r"\s+(?=[.,;:!?])|(?<=\s)\s+|\A\s+|\s+\Z|[\s.]+\Z")
_BLANK = re.compile(r"\s")


def normalize_format(text: str) -> str:
    """Return ``text`` in normalised format."""
    return _normalize_with_offsets(text)[0]


def normalize_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return candidate rows with all texts normalised; a row with an empty text is unchanged."""
    columns: dict[str, list[Any]] = {
        name: frame[name].to_list() for name in ("caption", "negative", "positive", "edit")
    }
    for row, edits in enumerate(columns["edit"]):
        caption, source = _normalize_with_offsets(columns["caption"][row])
        negative, place = _normalize_with_offsets(columns["negative"][row])
        if not caption or not negative:
            continue
        columns["caption"][row], columns["negative"][row] = caption, negative
        columns["positive"][row] = normalize_format(columns["positive"][row])
        columns["edit"][row] = [
            moved for edit in edits if (moved := _move_edit(edit, (caption, source), (negative, place)))
        ]
    return frame.with_columns([pl.Series(name, values, SCHEMA[name]) for name, values in columns.items()])


def _normalize_with_offsets(text: str) -> tuple[str, list[int]]:
    # The normalised text, and for each offset of the original (its end included) the offset in the new text.
    removed = [False] * len(text)
    for cut in _REMOVED.finditer(text):
        removed[cut.start() : cut.end()] = [True] * (cut.end() - cut.start())
    places: list[int] = []
    kept: list[str] = []
    for letter, is_removed in zip(text, removed, strict=True):
        places.append(len(kept))
        if not is_removed:
            kept.append(" " if _BLANK.match(letter) else letter)
    places.append(len(kept))
    if kept and len(kept[0].upper()) == 1:
        kept[0] = kept[0].upper()
    return "".join(kept), places


def _move_edit(
    edit: dict[str, Any], source: tuple[str, list[int]], target: tuple[str, list[int]]
) -> dict[str, Any] | None:
    # Spans are lists of two, or empty where unknown: then only the words are kept.
    moved = dict(edit)
    for words, span, (text, places) in (("from", "from_span", source), ("to", "to_span", target)):
        if not edit[span]:
            continue
        start, end = edit[span]
        if end >= len(places):
            return moved
        moved[span] = [places[start], places[end]]
        moved[words] = text[places[start] : places[end]]
    return moved if moved["from"] or moved["to"] else None
