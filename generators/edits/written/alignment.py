"""Word-by-word differences between a caption and a text, with agreement set apart.

Tokens are aligned so that the fewest words are unmatched, in the fewest hunks. A *hunk* is a span in which the texts
differ. Two words *agree* if one is the other in another number (a dog, dogs; is, are), or one article or pronoun
replaces another because a noun changed. Capitals make no difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Final

from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.tables import read_rows

_UNMATCHED: Final = 1.0
_AGREEMENT: Final = 0.9
_HUNK: Final = 0.25
_UNINFLECTED: Final = frozenset({"ADP", "ADV", "CCONJ", "SCONJ"})  # "toward" and "towards" are no two numbers
_FORMS: Final = tuple(frozenset(row["forms"].split()) for row in read_rows("agreeing_forms"))
_OTHER_FORMS: Final = frozenset({"be", "is"}).union(*_FORMS)

Step = tuple[int, int, bool]
_SAME: Final[Step] = (1, 1, True)
_AGREEING: Final[Step] = (1, 1, False)
_DELETED: Final[Step] = (1, 0, False)
_INSERTED: Final[Step] = (0, 1, False)
_END: Final[Step] = (0, 0, False)


@dataclass(frozen=True, slots=True)
class Hunk:
    """A difference: tokens ``start`` to ``end`` of the source, ``new_start`` to ``new_end`` of the text.

    Attributes:
        start: first token of the source that differs.
        end: one past the last.
        new_start: first token of the text that differs.
        new_end: one past the last.
        gone: positions of deleted words in the source.
        new: positions of inserted words in the text.
        agreed: (position in source, position in text) of words that differ in agreement only.
    """

    start: int
    end: int
    new_start: int
    new_end: int
    gone: tuple[int, ...]
    new: tuple[int, ...]
    agreed: tuple[tuple[int, int], ...] = ()

    @property
    def is_agreement(self) -> bool:
        """Whether nothing but agreement differs."""
        return not self.gone and not self.new


def agree(one: Token, other: Token) -> bool:
    """Return whether two different words differ in agreement only: in number, or as articles or pronouns."""
    if one.pos in _UNINFLECTED or other.pos in _UNINFLECTED:
        return False
    word, other_word = one.text.lower(), other.text.lower()
    if word[:1] != other_word[:1]:  # only "be" is inflected to another first letter
        return word in _OTHER_FORMS and other_word in _OTHER_FORMS and _agree(word, one.lemma, other_word, other.lemma)
    return _agree(word, one.lemma, other_word, other.lemma)


@lru_cache(maxsize=50_000)
def _agree(one: str, lemma: str, other: str, other_lemma: str) -> bool:
    if any(one in forms and other in forms for forms in _FORMS):
        return True
    if not (one.isalpha() and other.isalpha()) or one == other:
        return False
    return any(
        base in {one, other} and {one, other} & {inflect(base, "NNS"), inflect(base, "VBZ")} - {base}
        for base in {lemma, other_lemma}
    )


def differences(source: Sequence[Token], text: Sequence[Token]) -> list[Hunk]:
    """Return where two texts differ, from left to right."""
    words, new_words = [t.text.lower() for t in source], [t.text.lower() for t in text]
    start, end, new_end = 0, len(words), len(new_words)
    while start < min(end, new_end) and words[start] == new_words[start]:
        start += 1
    while end > start and new_end > start and words[end - 1] == new_words[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    return list(_hunks_between(tuple(source[start:end]), tuple(text[start:new_end]), start))


@lru_cache(maxsize=64)  # a text is compared for its repairs, and as an edit of each type
def _hunks_between(source: tuple[Token, ...], text: tuple[Token, ...], start: int) -> tuple[Hunk, ...]:
    return tuple(_hunks(_aligned(source, text), start))


def _aligned(source: Sequence[Token], text: Sequence[Token]) -> list[Step]:
    """Return the steps (words of the source, words of the text, same or not) of the cheapest alignment.

    The tables hold the least cost from each pair of positions to the end, outside and inside of a hunk.
    """
    rows, columns = len(source), len(text)
    words, new_words = [t.text.lower() for t in source], [t.text.lower() for t in text]
    inside, outside = [[0.0] * (columns + 1) for _ in range(rows + 1)], [[0.0] * (columns + 1) for _ in range(rows + 1)]
    choice = [[_END] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows, -1, -1):
        word = words[i] if i < rows else ""
        first = word[:1]
        for j in range(columns, -1, -1):
            least, step = inf, _END
            if i < rows and j < columns:
                new = new_words[j]
                if word == new:
                    least, step = outside[i + 1][j + 1], _SAME
                elif (first == new[:1] or word in _OTHER_FORMS) and agree(source[i], text[j]):
                    least, step = _AGREEMENT + inside[i + 1][j + 1], _AGREEING
            if i < rows and (cost := _UNMATCHED + inside[i + 1][j]) < least:
                least, step = cost, _DELETED
            if j < columns and (cost := _UNMATCHED + inside[i][j + 1]) < least:
                least, step = cost, _INSERTED
            if step is not _END:
                inside[i][j], choice[i][j] = least, step
                outside[i][j] = least if step is _SAME else least + _HUNK
    steps, i, j = [], 0, 0
    while (i, j) != (rows, columns):
        steps.append(choice[i][j])
        i, j = i + steps[-1][0], j + steps[-1][1]
    return steps


def _hunks(steps: Sequence[Step], start: int) -> list[Hunk]:
    hunks: list[Hunk] = []
    i = j = start
    at = 0
    while at < len(steps):
        first, new_first = i, j
        gone, new, agreed = [], [], []
        while at < len(steps) and not steps[at][2]:
            down, right, _ = steps[at]
            if down and right:
                agreed.append((i, j))
            elif down:
                gone.append(i)
            else:
                new.append(j)
            i, j, at = i + down, j + right, at + 1
        if (i, j) != (first, new_first):
            hunks.append(Hunk(first, i, new_first, j, tuple(gone), tuple(new), tuple(agreed)))
        while at < len(steps) and steps[at][2]:
            i, j, at = i + 1, j + 1, at + 1
    return hunks
