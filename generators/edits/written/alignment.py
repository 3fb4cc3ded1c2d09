"""Word-by-word differences between a caption and a text, and which of them are mere agreement.

Tokens are aligned so that the fewest words are left over, in the fewest places. A *hunk* is a stretch in which the texts
differ. Two words *agree* if one is the other in another number (a dog, dogs; is, are), or one article or pronoun
replaces another because a noun changed. Capitals make no difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.tables import read_rows

_LEFT_OVER: Final = 1.0
_AGREES: Final = 0.9
_OPENED: Final = 0.25
_STEPS: Final = ((1, 1), (1, 0), (0, 1))
_UNINFLECTED: Final = frozenset({"ADP", "ADV", "CCONJ", "SCONJ"})  # "toward" and "towards" are no two numbers
_FORMS: Final = tuple(frozenset(row["forms"].split()) for row in read_rows("agreeing_forms"))

Step = tuple[int, int, bool]


@dataclass(frozen=True, slots=True)
class Hunk:
    """A difference: tokens ``start`` to ``end`` of the source, ``new_start`` to ``new_end`` of the text.

    Attributes:
        start: first token of the source that differs.
        end: one past the last.
        new_start: first token of the text that differs.
        new_end: one past the last.
        gone: positions in the source whose words are gone.
        new: positions in the text whose words are new.
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
    """Whether two different words are one word in two numbers, or two forms that go with the noun."""
    inflected = one.pos not in _UNINFLECTED and other.pos not in _UNINFLECTED
    return inflected and _agree(one.text.lower(), one.lemma, other.text.lower(), other.lemma)


@lru_cache(maxsize=50_000)
def _agree(one: str, lemma: str, other: str, other_lemma: str) -> bool:
    if any(one in forms and other in forms for forms in _FORMS):
        return True
    if not (one.isalpha() and other.isalpha()) or one == other:
        return False
    forms = {one, other}
    return any(
        base in forms and not forms.isdisjoint({inflect(base, "NNS"), inflect(base, "VBZ")} - {base})
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
    return _hunks(_aligned(source[start:end], text[start:new_end]), start)


def _aligned(source: Sequence[Token], text: Sequence[Token]) -> list[Step]:
    """Return the steps (words of the source, words of the text, same or not) of the cheapest alignment.

    The table holds, from each pair of positions on, the least cost outside of a hunk and inside of one.
    """
    rows, columns = len(source), len(text)
    best = [[(0.0, 0.0)] * (columns + 1) for _ in range(rows + 1)]
    choice: dict[tuple[int, int], Step] = {}
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            options: list[tuple[float, int, bool]] = []  # cost inside of a hunk, number of the step, same
            if i < rows and j < columns:
                if source[i].text.lower() == text[j].text.lower():
                    options.append((best[i + 1][j + 1][0], 0, True))
                elif agree(source[i], text[j]):
                    options.append((_AGREES + best[i + 1][j + 1][1], 0, False))
            if i < rows:
                options.append((_LEFT_OVER + best[i + 1][j][1], 1, False))
            if j < columns:
                options.append((_LEFT_OVER + best[i][j + 1][1], 2, False))
            if options:
                inside, step, same = min(options)
                choice[i, j] = (*_STEPS[step], same)
                best[i][j] = (inside if same else inside + _OPENED, inside)
    steps, i, j = [], 0, 0
    while (i, j) != (rows, columns):
        steps.append(choice[i, j])
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
