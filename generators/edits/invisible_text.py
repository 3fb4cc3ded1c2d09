"""Captions with letters that nobody sees: read without them, changed as they are written.

The rules look at a caption letter by letter, its images' other captions too, and a mark without width would hide a
word from them. They get the pair as one sees it; their edits are then made in the caption as written, where all such
marks stay but those inside of words that give way. So what is made differs from the caption by its edit only.
"""

from collections.abc import Sequence
from dataclasses import replace

from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.edits.realisation import Change, apply_changes
from pairwright.generators.language.invisible_characters import OffsetMap, has_invisible, remove_invisible
from pairwright.generators.language.tokens import Token


def strip_invisible(pair: Pair, tokens: Sequence[Token]) -> tuple[Pair, Sequence[Token]]:
    """Return a pair and the tokens of its caption as one sees them: the very same, where nothing is unseen."""
    if not (has_invisible(pair.caption) or any(map(has_invisible, pair.captions))):
        return pair, tokens
    caption, places = remove_invisible(pair.caption), OffsetMap(pair.caption)
    moved = []
    for token in tokens:
        start, end = places.to_visible(token.start, token.end)
        moved.append(replace(token, text=caption[start:end], start=start, end=end))
    return replace(pair, caption=caption, captions=tuple(map(remove_invisible, pair.captions))), moved


def restore_invisible(rows: list[Annotation], pair: Pair) -> list[Annotation]:
    """Return what was made of a pair as `strip_invisible` gave it, made of the pair as it is."""
    if not has_invisible(pair.caption):
        return rows
    places = OffsetMap(pair.caption)
    return [_restore_row(row, pair.caption, places) for row in rows]


def _restore_row(row: Annotation, caption: str, places: OffsetMap) -> Annotation:
    if not row.edits:
        return replace(row, source_text=caption)
    text, edits = apply_changes(caption, (Change(*places.written(*edit.before_span), edit.after) for edit in row.edits))
    return replace(row, text=text, source_text=caption, edits=edits)
