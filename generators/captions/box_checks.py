"""Checks of counts and spatial relations against the boxes of an image.

A negative must be false, which a caption alone may not prove: "two dogs" is also said of an image with three, where
"three dogs" would be true. If boxes cover a noun, by its name or by one that captioners use for the same thing, an edit
is *in doubt* unless the boxes refute it. If they do not cover it, they say nothing, and nothing is in doubt.

Counts: as many boxes as the caption states confirm it, and any other number is false. With more boxes, the caption
counts some of them, and only a number beyond all boxes is false; with fewer, any number except theirs. A crowd has no
number.

Spatial relations: only those in the image plane (left, right, above, below, near, inside), no depth ("behind"). Lengths
are fractions of the width and height of the image.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pairwright.datasets.records import Box
from pairwright.generators.captions.image_words import ImageWords, in_both_numbers, plural_of
from pairwright.generators.lexicon.attributes import counts
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import loosely_same
from pairwright.generators.lexicon.tables import read_rows

MARGIN = 0.02  # minimum distance of centres for left, right, above and below
NEAR_DISTANCE = 0.1  # boxes closer than this are not far apart
FAR_DISTANCE = 0.3  # boxes farther apart than this are not near
MIN_OVERLAP = 0.5  # share of the smaller box that is inside the other: more inside than outside

Refutes = Callable[[Box, Box], bool]
_SEVERAL = words_with("vague")


def number_of(word: str) -> int:
    """Return the value of a number word; 0 for other words."""
    return counts().get(word, 0)


def is_vague(word: str) -> bool:
    """Return whether a word denotes an unspecified number."""
    return word in _SEVERAL


def count_may_hold(words: ImageWords, nouns: Iterable[str], word: str, stated: int = 0) -> bool:
    """Return whether boxes, crowds or other captions allow as many things as a number word says; false for other words.

    The lemmas in ``nouns`` are all names for the thing, of which the caption has the number ``stated``, 0 if it has none.
    """
    number, bounded = number_of(word), bool(words.labels or words.crowds)
    if is_vague(word):
        return bounded and any(
            not words.crowds.isdisjoint(labels) or sum(words.labels.get(label, 0) for label in labels) > 1
            for labels in (_labels(words, noun) for noun in nouns)
        )
    same = {other for other, value in counts().items() if value == number} if number else set[str]()
    # "Two girls on an elephant" are no two elephants.
    forms = frozenset(map(plural_of, nouns)) if number > 1 else in_both_numbers(nouns)
    if words.has_description(same, forms, own=False):
        return True
    return bool(number) and bounded and any(count_in_doubt(words, noun, stated, number) for noun in nouns)


def count_in_doubt(words: ImageWords, noun: str, stated: int, new: int) -> bool:
    """Return whether boxes allow ``new`` things of a noun, of which the caption states ``stated``; large for "many"."""
    there = _boxes_of(words, noun)
    if there is None:
        return True
    if there in {0, stated}:
        return False
    return new <= there if there > stated else new == there


def exceeds_boxes(words: ImageWords, noun: str, number: int) -> bool:
    """Return whether a number exceeds the boxes of a noun, which has at least one box and no crowd."""
    return 0 < (_boxes_of(words, noun) or 0) < number


def position_in_doubt(words: ImageWords, one: str, wording: str, other: str) -> bool:
    """Return whether boxes allow a spatial relation between two nouns, given by their lemmas.

    False as well if boxes cannot tell: they do not cover both nouns, or the relation is one of depth.
    """
    refutes = _REFUTED_BY.get(wording)
    if refutes is None or not words.boxes:
        return False
    first, second = _boxes(words, one), _boxes(words, other)
    if not first or not second:
        return False
    pairs = [(a, b) for a in first for b in second if a is not b]
    return not pairs or not all(refutes(a, b) for a, b in pairs)


def _labels(words: ImageWords, noun: str) -> frozenset[str]:
    """Return the labels for a noun: its name, and names that captioners use for the same thing."""
    if not words.labels and not words.crowds:
        return frozenset()
    return loosely_same(noun) & (words.labels.keys() | words.crowds)


def _boxes_of(words: ImageWords, noun: str) -> int | None:
    """Return the number of boxes of a noun; None for a crowd, which has no number."""
    labels = _labels(words, noun)
    if not words.crowds.isdisjoint(labels):
        return None
    return sum(words.labels[label] for label in labels & words.labels.keys())


def _boxes(words: ImageWords, noun: str) -> list[Box]:
    labels = _labels(words, noun)
    return [box for box in words.boxes if box.label.strip().lower() in labels]


def _across(one: Box, other: Box) -> float:
    """Return how far the centre of ``one`` is to the right."""
    return (one.x1 + one.x2 - other.x1 - other.x2) / 2


def _down(one: Box, other: Box) -> float:
    """Return how far the centre of ``one`` is below."""
    return (one.y1 + one.y2 - other.y1 - other.y2) / 2


def _gap(one: Box, other: Box) -> float:
    """Return the larger of the two distances between boxes, across and down; below 0 when they overlap."""
    across = max(one.x1, other.x1) - min(one.x2, other.x2)
    down = max(one.y1, other.y1) - min(one.y2, other.y2)
    return max(across, down)


def _is_in_line(one: Box, other: Box) -> bool:
    """Return whether most of the narrower box overlaps the other horizontally."""
    shared = min(one.x2, other.x2) - max(one.x1, other.x1)
    return shared >= MIN_OVERLAP * min(one.x2 - one.x1, other.x2 - other.x1)


def _is_within(one: Box, other: Box) -> bool:
    width = min(one.x2, other.x2) - max(one.x1, other.x1)
    height = min(one.y2, other.y2) - max(one.y1, other.y1)
    return width > 0 < height and width * height >= MIN_OVERLAP * (one.x2 - one.x1) * (one.y2 - one.y1)


_REFUTATIONS: Final[Mapping[str, Refutes]] = {
    "right": lambda one, other: _across(one, other) > MARGIN,
    "left": lambda one, other: _across(one, other) < -MARGIN,
    "lower": lambda one, other: _down(one, other) > MARGIN,
    "higher": lambda one, other: _down(one, other) < -MARGIN,
    "touches_not": lambda one, other: _gap(one, other) > MARGIN or _down(one, other) > MARGIN,
    "close": lambda one, other: _gap(one, other) < NEAR_DISTANCE,
    "apart": lambda one, other: _gap(one, other) > FAR_DISTANCE,
    # One is on or behind the other, or far from it; right below it may still be next to it.
    "not_beside": lambda one, other: (
        (_is_in_line(one, other) and _gap(one, other) < 0) or _gap(one, other) > FAR_DISTANCE
    ),
    "not_within": lambda one, other: not _is_within(one, other),
}
_REFUTED_BY: Final = {row["phrase"]: _REFUTATIONS[row["refuted_by"]] for row in read_rows("box_relations")}
