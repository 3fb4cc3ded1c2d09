"""Translation of an accepted edit into character-level changes of its source.

A model also normalizes capitals, spacing and the final mark, which alone would identify its texts. So only the new
words are inserted into the source (`realisation.rewrite`).
"""

from collections.abc import Callable, Sequence
from typing import Final

from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.written.alignment import Difference, TokenSpan
from pairwright.generators.language.tokens import Token

IsName = Callable[[Token], bool]
_FINAL_MARKS: Final = frozenset(".!?,;:…")


def without_final_mark(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens without final punctuation."""
    end = len(tokens)
    while end and _FINAL_MARKS.issuperset(tokens[end - 1].text):
        end -= 1
    return tokens[:end]


def change_of(difference: Difference, is_name: IsName) -> Change:
    """Return the change of the source that a difference requires."""
    old, new = difference.old, difference.new
    source, added = old.tokens, new.tokens[new.start : new.end]
    words = _render_words(added, opens=bool(added) and added[0].start == 0, is_name=is_name)
    if old.start < old.end and words:
        return Change(source[old.start].start, source[old.end - 1].end, words)
    if old.start < old.end:  # a removal, with the space before it; at the start, the next word may need a capital
        following = old.following()
        if old.start or following is None:
            return Change(source[old.start - 1].end if old.start else source[0].start, source[old.end - 1].end, "")
        return Change(source[0].start, following.end, following.text)
    if old.start == 0:
        first, following = source[0], new.following()
        gap = " " * (following is None or following.start > added[-1].end)
        return Change(first.start, first.end, words + gap + _render_words([first], opens=True, is_name=is_name))
    at = source[old.start - 1].end
    return Change(at, at, " " * (added[0].start > new.tokens[new.start - 1].end) + words)


def comma_for_and(first: TokenSpan) -> Change:
    """Return the change that replaces the "and" at the start of a span by a comma, or deletes it after a comma."""
    before = first.tokens[first.start - 1]
    return Change(before.end, first.tokens[first.start].end, "" if before.text == "," else ",")


def _render_words(tokens: Sequence[Token], *, opens: bool, is_name: IsName) -> str:
    """Return words as written in the middle of a sentence, with single spaces; ``opens``: the first one opened a text."""
    words = "".join(" " * (at > 0 and token.start > tokens[at - 1].end) + token.text for at, token in enumerate(tokens))
    if not opens or is_name(tokens[0]) or tokens[0].text[1:] != tokens[0].text[1:].lower():
        return words
    return words[:1].lower() + words[1:]
