"""Whether a text is its source with two stretches exchanged, or one word moved to another thing.

``A x B y C`` becomes ``A y B x C``: the stretches x and y change places, B between them stays. When B is empty, one
stretch has moved past the other. Words are compared without capitals, and in any number, since what moves to another
place takes the number of its new neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pairwright.generators.edit_checks.alignment import agree
from pairwright.generators.language.tokens import Token


@dataclass(frozen=True, slots=True)
class Swap:
    """What changed places.

    Attributes:
        first: tokens of the source, (start, end).
        second: tokens of the source behind them; where ``first`` ends when one stretch has only moved past the other.
        mended: words that changed in number, article or pronoun.
    """

    first: tuple[int, int]
    second: tuple[int, int]
    mended: int

    @property
    def between(self) -> tuple[int, int]:
        """Tokens between the two."""
        return self.first[1], self.second[0]


def swapped(source: Sequence[Token], text: Sequence[Token]) -> Swap | None:
    """Return the exchange that makes the text of its source, the shortest stretches there are; None when none does."""
    if len(source) != len(text):
        return None
    start, end = 0, len(source)
    while start < end and _alike(source[start], text[start]):
        start += 1
    while end > start and _alike(source[end - 1], text[end - 1]):
        end -= 1
    size = end - start
    options = sorted(
        ((left, right) for left in range(1, size) for right in range(1, size - left + 1)),
        key=lambda lengths: (sum(lengths), lengths),
    )
    for left, right in options:
        if not _alike(source[start], text[end - left]) or not _alike(source[end - right], text[start]):
            continue
        moved = [*range(end - right, end), *range(start + left, end - right), *range(start, start + left)]
        if all(_alike(source[old], text[new]) for old, new in zip(moved, range(start, end), strict=True)):
            order = [*range(start), *moved, *range(end, len(source))]
            mended = sum(not _same(source[old], text[new]) for new, old in enumerate(order))
            return Swap((start, start + left), (end - right, end), mended)
    return None


def _same(one: Token, other: Token) -> bool:
    return one.text.lower() == other.text.lower()


def _alike(one: Token, other: Token) -> bool:
    return _same(one, other) or agree(one, other)
