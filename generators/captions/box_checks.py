"""What the boxes of an image say against a count or a place that a negative would put in, made by rules or written.

A negative has to be false, and a caption alone may not show it: "two dogs" is said of a picture with three dogs on it
as well, and "three dogs" would then be true. Where boxes cover a noun, by its own name or by one that captions use for
the same, an edit is *in doubt* unless the boxes refute it. Where they do not cover it they tell nothing, and nothing is
in doubt for their sake.

Counts: as many boxes as the caption counts bear it out, and any other number is false. With more boxes the caption
speaks of some of them, so only a number beyond all of them is false; with fewer, any number but theirs. A crowd has no
number.

Places: only what a flat picture shows, sides and heights, nearness and being inside. Depth ("behind") is not among
them. Lengths are parts of the width and height of the picture.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pairwright.datasets.records import Box
from pairwright.generators.captions.image_words import ImageWords, plural_of
from pairwright.generators.lexicon.attributes import counts
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import loosely_same
from pairwright.generators.lexicon.tables import read_rows

MARGIN = 0.02  # by which centres must differ to be on the other side of each other
CLOSE = 0.1  # what is no further apart is not far
APART = 0.3  # what is further apart is not near
MOSTLY = 0.5

Refutes = Callable[[Box, Box], bool]
_SEVERAL = words_with("vague")


def number_of(word: str) -> int:
    """Return the value of a number word; 0 for other words."""
    return counts().get(word, 0)


def is_vague(word: str) -> bool:
    """Whether a word counts several without saying how many."""
    return word in _SEVERAL


def may_count(words: ImageWords, nouns: Iterable[str], word: str, said: int = 0) -> bool:
    """Whether there may be as many things as a word says, by boxes, crowds, and the numbers that other captions give.

    Args:
        words: of the image.
        nouns: lemmas by which captions may call the thing.
        word: a number, or "several" and the like; another word counts nothing and is never borne out.
        said: the number that the caption gives; 0 where it gives none.
    """
    number, bounded = number_of(word), bool(words.labels or words.crowds)
    if is_vague(word):
        return bounded and any(
            not words.crowds.isdisjoint(labels) or sum(words.labels.get(label, 0) for label in labels) > 1
            for labels in (_labels(words, noun) for noun in nouns)
        )
    same = {other for other, value in counts().items() if value == number} if number else set[str]()
    if not same.isdisjoint(words.elsewhere):
        forms = {form for noun in nouns for form in (noun, plural_of(noun))}
        if words.say(same, forms, own=False):
            return True
    return bool(number) and bounded and any(count_in_doubt(words, noun, said, number) for noun in nouns)


def count_in_doubt(words: ImageWords, noun: str, said: int, new: int) -> bool:
    """Whether boxes leave open that there are ``new`` things of that noun, of which the caption says ``said``.

    Args:
        words: of the image.
        noun: lemma.
        said: the number in the caption; more than any count where it says "many".
        new: the number that would be written.
    """
    labels = _labels(words, noun)
    if not words.crowds.isdisjoint(labels):
        return True
    there = sum(words.labels[label] for label in labels & words.labels.keys())
    if not there or there == said:
        return False
    return new <= there if there > said else new == there


def exceeds_boxes(words: ImageWords, noun: str, number: int) -> bool:
    """Whether ``number`` things of that noun are more than its boxes, of which there is one at least and no crowd."""
    labels = _labels(words, noun)
    there = sum(words.labels[label] for label in labels & words.labels.keys())
    return 0 < there < number and words.crowds.isdisjoint(labels)


def place_in_doubt(words: ImageWords, one: str, wording: str, other: str) -> bool:
    """Whether boxes leave open that a thing called ``one`` is, by that wording, at a thing called ``other``.

    False as well when boxes cannot tell: they do not cover both nouns (lemmas), or the wording speaks of depth.
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
    """Return the labels that cover a noun: they are its name, or captions use them for the same."""
    if not words.labels and not words.crowds:
        return frozenset()
    return loosely_same(noun) & (words.labels.keys() | words.crowds)


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
    """Whether most of the narrower box is straight above, below or upon the other."""
    shared = min(one.x2, other.x2) - max(one.x1, other.x1)
    return shared >= MOSTLY * min(one.x2 - one.x1, other.x2 - other.x1)


def _is_within(one: Box, other: Box) -> bool:
    width = min(one.x2, other.x2) - max(one.x1, other.x1)
    height = min(one.y2, other.y2) - max(one.y1, other.y1)
    return width > 0 < height and width * height >= MOSTLY * (one.x2 - one.x1) * (one.y2 - one.y1)


_REFUTATIONS: Final[Mapping[str, Refutes]] = {
    "right": lambda one, other: _across(one, other) > MARGIN,
    "left": lambda one, other: _across(one, other) < -MARGIN,
    "lower": lambda one, other: _down(one, other) > MARGIN,
    "higher": lambda one, other: _down(one, other) < -MARGIN,
    "touches_not": lambda one, other: _gap(one, other) > MARGIN or _down(one, other) > MARGIN,
    "close": lambda one, other: _gap(one, other) < CLOSE,
    "apart": lambda one, other: _gap(one, other) > APART,
    # One is upon or behind the other, or far from it; below it, close to it, it may well be next to it.
    "not_beside": lambda one, other: (_is_in_line(one, other) and _gap(one, other) < 0) or _gap(one, other) > APART,
    "not_within": lambda one, other: not _is_within(one, other),
}
_REFUTED_BY: Final = {row["phrase"]: _REFUTATIONS[row["refuted_by"]] for row in read_rows("box_relations")}
