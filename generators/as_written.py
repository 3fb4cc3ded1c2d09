"""Captions with letters that nobody sees: read without them, changed as they are written.

The rules look at a caption letter by letter, its images' other captions too, and a mark without width would hide a
word from them. They get the pair as one sees it; their edits are then made in the caption as written, where all such
marks stay but those inside of words that give way. So what is made differs from the caption by its edit only.
"""

from collections.abc import Sequence
from dataclasses import replace

from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.edits import Change, put_in
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.unseen import Places, has_unseen, seen


def as_seen(pair: Pair, tokens: Sequence[Token]) -> tuple[Pair, Sequence[Token]]:
    """Return a pair and the tokens of its caption as one sees them: the very same, where nothing is unseen."""
    if not (has_unseen(pair.caption) or any(map(has_unseen, pair.captions))):
        return pair, tokens
    caption, places = seen(pair.caption), Places(pair.caption)
    moved = []
    for token in tokens:
        start, end = places.of_seen(token.start, token.end)
        moved.append(replace(token, text=caption[start:end], start=start, end=end))
    return replace(pair, caption=caption, captions=tuple(map(seen, pair.captions))), moved


def as_written(rows: list[Annotation], pair: Pair) -> list[Annotation]:
    """Return what was made of a pair as `as_seen` gave it, made of the pair as it is."""
    if not has_unseen(pair.caption):
        return rows
    places = Places(pair.caption)
    return [_written(row, pair.caption, places) for row in rows]


def _written(row: Annotation, caption: str, places: Places) -> Annotation:
    if not row.edits:
        return replace(row, source_text=caption)
    text, edits = put_in(caption, (Change(*places.written(*edit.before_span), edit.after) for edit in row.edits))
    return replace(row, text=text, source_text=caption, edits=edits)
