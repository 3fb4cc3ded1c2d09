"""Translation of an accepted edit into character-level changes of its source.

A model also normalizes capitals, spacing and the final mark, which alone would identify its texts. So only the new
words are inserted into the source (`realisation.rewrite`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
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
    words = _render_words(added, opens=new.start == 0, is_name=is_name)
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
    ahead = _moved_words(source[second:end], text[start : start + right], is_name)
    behind = _moved_words(source[start:middle], text[end - left : end], is_name)
    gap = source[second].start - source[middle - 1].end if second == middle else 0
    if gap or second == middle:  # one span moved past the other
        changes = [Change(source[start].start, source[end - 1].end, f"{ahead}{' ' * gap}{behind}")]
    else:
        changes = [Change(source[start].start, source[middle - 1].end, ahead)]
        changes += [Change(source[second].start, source[end - 1].end, behind)]
    kept = [(at, at) for at in (*range(start), *range(end, len(source)))]
    for at, new in [*kept, *((at, at - left + right) for at in range(middle, second))]:
        words = source[at].text.lower(), text[new].text.lower()
        if words[0] != words[1] and words[0] not in ARTICLES:  # `rewrite` corrects articles
            changes.append(Change(source[at].start, source[at].end, words[1]))
    return _merge_adjacent(changes)


def _merge_adjacent(changes: list[Change]) -> list[Change]:
    """Return the changes, with those separated by one space merged: "two arms" for "one arm"."""
    made: list[Change] = []
    for change in sorted(changes):
        if made and change.start == made[-1].end + 1:
            made[-1] = Change(made[-1].start, change.end, f"{made[-1].after} {change.after}")
        else:
            made.append(change)
    return made


def _moved_words(source: Sequence[Token], text: Sequence[Token], is_name: IsName) -> str:
    """Return the words of a moved span: those of the source, except those that agree with another noun now."""
    same = [old.text.lower() == new.text.lower() for old, new in zip(source, text, strict=True)]
    made = [
        old if each else replace(new, start=old.start, end=old.end)
        for old, new, each in zip(source, text, same, strict=True)
    ]
    return _render_words(made, opens=made[0].start == 0, is_name=is_name)


def _render_words(tokens: Sequence[Token], *, opens: bool, is_name: IsName) -> str:
    """Return words as written in the middle of a sentence, with single spaces."""
    words = "".join(" " * (at > 0 and token.start > tokens[at - 1].end) + token.text for at, token in enumerate(tokens))
    first = tokens[0] if tokens else None
    if first is None or not opens or is_name(first) or first.text[1:] != first.text[1:].lower():
        return words
    return words[:1].lower() + words[1:]
