"""Detection of swaps: texts that are their source with two spans exchanged, or one word moved to another noun.

``A x B y C`` becomes ``A y B x C``: the spans x and y change places, B between them stays. If B is empty, one
span has moved past the other. Words are compared without capitals and in any number, since what moves takes the
number of its new neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.written.alignment import agree, lower_words
from pairwright.generators.edits.written.edit_location import noun_key
from pairwright.generators.edits.written.targets import ATTRIBUTE, OBJECT, RequestedEdit, noun_after, targets_of_swap
from pairwright.generators.language.tokens import Token


@dataclass(frozen=True, slots=True)
class Swap:
    """Two exchanged spans.

    Attributes:
        first: tokens of the source, (start, end).
        second: later tokens of the source; adjacent to ``first`` if one span only moved past the other.
        agreement_changes: words that changed in number, article or pronoun.
    """

    first: tuple[int, int]
    second: tuple[int, int]
    agreement_changes: int


def find_swap(source: Sequence[Token], text: Sequence[Token]) -> Swap | None:
    """Return the exchange of the shortest spans that turns the source into the text, or None."""
    if len(source) != len(text):
        return None
    start, end = 0, len(source)
    while start < end and _alike(source[start], text[start]):
        start += 1
    while end > start and _alike(source[end - 1], text[end - 1]):
        end -= 1
    size = end - start
    options = ((left, right) for left in range(1, size) for right in range(1, size - left + 1))
    for left, right in sorted(options, key=lambda lengths: (sum(lengths), lengths)):
        if not _alike(source[start], text[end - left]) or not _alike(source[end - right], text[start]):
            continue
        moved = [*range(end - right, end), *range(start + left, end - right), *range(start, start + left)]
        if all(_alike(source[old], text[new]) for old, new in zip(moved, range(start, end), strict=True)):
            order = [*range(start), *moved, *range(end, len(source))]
            agreement_changes = sum(not _same(source[old], text[new]) for new, old in enumerate(order))
            return Swap((start, start + left), (end - right, end), agreement_changes)
    return None


def is_of_target(source: Sequence[Token], swap: Swap, target: str) -> bool:
    """Return whether a swap is of the requested target; of a span that moved past another one, the shorter one counts."""
    moved = min(swap.first, swap.second, key=lambda span: span[1] - span[0])
    spans = (swap.first, swap.second) if swap.first[1] < swap.second[0] else (moved, moved)
    return target in targets_of_swap(source, *spans)


def as_proposed_swap(caption: Caption, requested: RequestedEdit, source: Sequence[Token], swap: Swap) -> ProposedEdit:
    """Return the proposed edit of a swap, for constraints."""
    (start, middle), (second, end) = swap.first, swap.second
    old, new, before, after = source[start:middle], source[second:end], "", ""
    if requested.target == ATTRIBUTE and middle < second:
        before, after = noun_after(source, middle), noun_after(source, end)
    elif requested.target == ATTRIBUTE and len(old) < len(new):  # the shorter span moved
        new, after = (), noun_after(source, end)
    elif requested.target == ATTRIBUTE:
        old, before = (), noun_after(source, start)
    is_object, nouns, span = requested.target == OBJECT, (before, after), (second, end)
    gone, fresh = (noun_key(each) if is_object else " ".join(lower_words(each)) for each in (old, new))
    return ProposedEdit(caption, "swap", requested.target, gone, fresh, *nouns, start, middle, span, requested.kind)


def _same(one: Token, other: Token) -> bool:
    return one.text.lower() == other.text.lower()


def _alike(one: Token, other: Token) -> bool:
    return _same(one, other) or agree(one, other)
