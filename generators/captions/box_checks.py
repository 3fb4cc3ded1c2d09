"""Checks of counts against the boxes of an image.

A negative must be false, which a caption alone may not prove: "two dogs" is also said of an image with three, where
"three dogs" would be true. If boxes cover a noun, by its name or by one that captioners use for the same thing, an edit
is *in doubt* unless the boxes refute it. If they do not cover it, they say nothing, and nothing is in doubt.

Counts: as many boxes as the caption states confirm it, and any other number is false. With more boxes, the caption
counts some of them, and only a number beyond all boxes is false; with fewer, any number except theirs. A crowd has no
number.
"""

from collections.abc import Iterable

from pairwright.generators.captions.image_words import ImageWords, in_both_numbers
from pairwright.generators.lexicon.attributes import counts
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import loosely_same

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
    number = number_of(word)
    if is_vague(word):
        return any(there is None or there > 1 for there in (_boxes_of(words, noun) for noun in nouns))
    same = {other for other, value in counts().items() if value == number} if number else set[str]()
    if words.has_description(same, in_both_numbers(nouns), own=False):
        return True
    return bool(number) and any(count_in_doubt(words, noun, stated, number) for noun in nouns)


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


def _boxes_of(words: ImageWords, noun: str) -> int | None:
    """Return the number of boxes of a noun, under any name for the same thing; None for a crowd, which has no number."""
    names = loosely_same(noun)
    return sum(words.labels.get(name, 0) for name in names) if words.crowds.isdisjoint(names) else None
