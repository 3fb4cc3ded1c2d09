"""Whether the boxes of an image bear out how many of a thing a written caption counts, and on which side it puts it.

Boxes are held against a negative so that it is not true by chance, hence loosely: any box that may be meant is reckoned
with, and of two boxes the centres tell which is further to a side. Both numbers err on the side of "borne out".
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pairwright.datasets.records import Box
from pairwright.generators.captions import Caption
from pairwright.generators.context import ImageWords, loosely_same
from pairwright.generators.phrases import NUMBER_WORDS
from pairwright.generators.relations import RELATIONS

_NUMBERS: Final[Mapping[str, int]] = {
    **{word: number for number, word in enumerate(NUMBER_WORDS, 1)},
    **{str(number): number for number in range(1, len(NUMBER_WORDS) + 1)},
    "single": 1, "couple": 2, "pair": 2, "both": 2, "double": 2, "trio": 3,
}  # fmt: skip
_SEVERAL: Final = frozenset({"several", "many", "multiple", "numerous", "various", "some", "group", "bunch", "lots"})
_SIDES: Final = {
    wording: relation.name
    for relation in RELATIONS
    if relation.name in {"left", "right", "above", "below"}
    for wording in relation.wordings
}


def number_of(word: str) -> int:
    """Return the number that a word stands for; 0 for one that counts nothing."""
    return _NUMBERS.get(word, 0)


def is_vague(word: str) -> bool:
    """Whether a word counts several without saying how many."""
    return word in _SEVERAL


def may_count(noun: str, word: str, words: ImageWords) -> bool:
    """Whether there may be as many things as a word says, by boxes, crowds, and the numbers that other captions give.

    Args:
        noun: lemma of the thing.
        word: a number, or "several" and the like; another word counts nothing and is never borne out.
        words: what is said of the image.
    """
    number = number_of(word)
    if not number and word not in _SEVERAL:
        return False
    names = loosely_same(noun) | {noun}
    boxes = [words.labels.get(name, 0) for name in sorted(names)]
    if word in _SEVERAL:
        return sum(boxes) > 1 or any(name in words.crowds for name in names)
    same = [other for other, value in _NUMBERS.items() if value == number]
    return number in boxes or any(words.said_with(noun, other, elsewhere=True) for other in same)


def may_stand(first: str, wording: str, second: str, caption: Caption) -> bool:
    """Whether some box of one thing is on that side of some box of another.

    Args:
        first: lemma.
        wording: a relation such as "to the left of"; one that names no side of the picture is never borne out.
        second: lemma.
        caption: with its pair's boxes.
    """
    side = _SIDES.get(wording)
    if side is None or not caption.pair.boxes:
        return False
    return any(_is_on(side, one, other) for one in _boxes(first, caption) for other in _boxes(second, caption))


def _boxes(noun: str, caption: Caption) -> Sequence[Box]:
    names = loosely_same(noun) | {noun}
    return [box for box in caption.pair.boxes if box.label.strip().lower() in names]


def _is_on(side: str, one: Box, other: Box) -> bool:
    across, down = one.x1 + one.x2 - other.x1 - other.x2, one.y1 + one.y2 - other.y1 - other.y2
    return {"left": across < 0, "right": across > 0, "above": down < 0, "below": down > 0}[side]
