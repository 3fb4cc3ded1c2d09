"""Translation of an accepted edit into character-level changes of its source.

A model also normalizes capitals, spacing and the final mark, which alone would identify its texts. So only the new
words are inserted into the source (`realisation.rewrite`).
"""

from collections.abc import Callable, Sequence
from typing import Final

from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.written.alignment import Difference, TokenSpan
from pairwright.generators.edits.written.swaps import Swap
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
    if old.start < old.end:  # a removal, with the space before it, or behind it at the start
        start = source[old.start - 1].end if old.start else source[0].start
        whole = old.start or old.end == len(source)
        return Change(start, source[old.end - 1].end if whole else source[old.end].start, "")
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


def changes_of_swap(source: Sequence[Token], text: Sequence[Token], swap: Swap, is_name: IsName) -> list[Change]:
    """Return the changes that exchange two spans, and those of agreeing words."""
    (start, middle), (second, end) = swap.first, swap.second
    left, right = middle - start, end - second
    moved = [((start, middle), (start, start + right)), ((second, end), (end - left, end))]
    before, between, behind = range(start), range(middle, second), range(end, len(source))
    kept = zip((*before, *between, *behind), (*before, *range(start + right, end - left), *behind), strict=True)
    agreeing = [((at, at + 1), (new, new + 1)) for at, new in kept if _is_other_word(source[at], text[new])]
    spans = [*(moved if between else [((start, end), (start, end))]), *agreeing]
    found = (Difference(TokenSpan.of(source, old), TokenSpan.of(text, new)) for old, new in spans)
    return [change_of(each, is_name) for each in found]


def _is_other_word(old: Token, new: Token) -> bool:
    """Return whether a word is another one; `realisation.rewrite` corrects articles."""
    return old.text.lower() != new.text.lower() and old.text.lower() not in ARTICLES


def _render_words(tokens: Sequence[Token], *, opens: bool, is_name: IsName) -> str:
    """Return words as written in the middle of a sentence, with single spaces; ``opens``: the first one opened a text."""
    words = "".join(" " * (at > 0 and token.start > tokens[at - 1].end) + token.text for at, token in enumerate(tokens))
    if not opens or is_name(tokens[0]) or tokens[0].text[1:] != tokens[0].text[1:].lower():
        return words
    return words[:1].lower() + words[1:]
