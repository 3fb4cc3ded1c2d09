"""Edits of captions that contain invisible characters (zero-width marks).

Rules read the pair without invisible characters, with which words are unknown. The edits are then applied to the
caption as written: invisible characters are kept, except inside replaced words.
"""

from collections.abc import Sequence
from dataclasses import replace

from pairwright.datasets.captions.invisible_characters import OffsetMap, has_invisible, remove_invisible
from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.captions.realisation import Change, apply_changes
from pairwright.generators.language.tokens import Token


def strip_invisible(pair: Pair, tokens: Sequence[Token]) -> tuple[Pair, Sequence[Token]]:
    """Return the pair and its tokens without invisible characters; unchanged if there are none."""
    if not (has_invisible(pair.caption) or any(map(has_invisible, pair.captions))):
        return pair, tokens
    caption, offsets = remove_invisible(pair.caption), OffsetMap(pair.caption)
    moved = []
    for token in tokens:
        start, end = offsets.to_visible(token.start, token.end)
        moved.append(replace(token, text=caption[start:end], start=start, end=end))
    return replace(pair, caption=caption, captions=tuple(map(remove_invisible, pair.captions))), moved


def restore_invisible(rows: list[Annotation], pair: Pair) -> list[Annotation]:
    """Return annotations of a stripped pair, with their edits applied to the original ``pair``."""
    if not has_invisible(pair.caption):
        return rows
    offsets = OffsetMap(pair.caption)
    return [_restore_row(row, pair.caption, offsets) for row in rows]


def _restore_row(row: Annotation, caption: str, offsets: OffsetMap) -> Annotation:
    if not row.edits:
        return replace(row, source_text=caption)
    text, edits = apply_changes(
        caption, (Change(*offsets.written(*edit.before_span), edit.after) for edit in row.edits)
    )
    return replace(row, text=text, source_text=caption, edits=edits)
