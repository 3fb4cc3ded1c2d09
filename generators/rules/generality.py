"""What a general noun means by the image's other captions: a room that they call a kitchen is no bathroom.

"A room" alone excludes no kind of room, so no such word may take its place; but where other captions name the kind, any
that excludes the kind does, as it would in their place. In the same way "a person" whom others call a man, and nobody a
woman, is no woman. Both hold for what is told of one thing only: of rooms, dishes and people there must be no second.
"""

from collections.abc import Mapping

from pairwright.generators.captions.caption import GENDERED, Caption
from pairwright.generators.captions.context import ImageWords, plural_of
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.words.nouns import FEMALE, GATHERINGS, KINDS, MALE, OF_PEOPLE
from pairwright.generators.words.wordlists import word_set

_ROOMS = (
    "kitchen",
    "bathroom",
    "bedroom",
    "office",
    "living room",
    "classroom",
    "dining room",
    "restaurant",
    "hallway",
)
_ANIMALS = (
    "dog", "cat", "horse", "cow", "sheep", "elephant", "giraffe", "zebra", "bear", "goat", "pig", "rabbit", "monkey",
    "lion", "tiger", "deer", "bird", "duck",
)  # fmt: skip
_VEHICLES = ("car", "bus", "truck", "train", "airplane", "boat", "motorcycle", "bicycle", "helicopter", "tractor")
_DISHES = ("pizza", "sandwich", "burger", "salad", "hot dog", "cake", "soup", "donut")
_SORTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("room", _ROOMS),
    ("animal pet", _ANIMALS),
    ("vehicle", _VEHICLES),
    ("meal", _DISHES),
)
GENERAL: Mapping[str, tuple[str, ...]] = {
    noun: tuple(kind for kind in kinds if kind in KINDS) for nouns, kinds in _SORTS for noun in nouns.split()
}

_MEN, _WOMEN = word_set("man guy gentleman male"), word_set("woman lady female")
_SEVERAL = GATHERINGS | word_set(
    "another other others men women boys girls guys ladies players two three four five six"
)
_YOUNG = word_set("child kid")
_MIXED = word_set("couple family crowd children kids everyone boys girls boy girl child kid")
_SEXED = MALE | FEMALE | word_set("bride groom king queen mother father son daughter husband wife brother sister")
_NO_SEX = word_set("baby infant toddler teenager fan")
_TOLD = _SEXED | _NO_SEX
_ENOUGH = 2  # captions


def meant_by(noun: str, words: ImageWords) -> tuple[str, ...]:
    """Return the nouns by which the other captions of an image may mean what a general noun (`GENERAL`) names."""
    said = [kind for kind in GENERAL[noun] if words.has(kind) or words.has(plural_of(kind))]
    return tuple(said) if noun in {"animal", "pet", "vehicle"} or len(said) == 1 else ()


def other_sex(caption: Caption, phrase: NounPhrase) -> str:
    """Return "man", "woman", "boy" or "girl" for somebody whom other captions give the other sex; else nothing.

    Nobody else may be spoken of: who is only one of several may be the one whose sex is not told.
    """
    head, words = caption.head(phrase), caption.words
    people = [each for each in caption.phrases if caption.head(each) in OF_PEOPLE]
    if head in _TOLD or len(people) != 1 or not GENDERED.isdisjoint(caption.lower):
        return ""
    others = [line for line in words.others if not (MALE | FEMALE).isdisjoint(line)]
    female = not FEMALE.isdisjoint(words.all)
    if not others or female is not MALE.isdisjoint(words.all):
        return ""
    if caption.plural(phrase):
        return _of_several(caption, phrase, female=female)
    if any(not _SEVERAL.isdisjoint(line) for line in (words.own, *words.others)):
        return ""
    if head in _YOUNG:
        return "boy" if female else "girl"
    named = _WOMEN if female else _MEN
    return ("man" if female else "woman") if any(not named.isdisjoint(line) for line in others) else ""


def _of_several(caption: Caption, phrase: NounPhrase, *, female: bool) -> str:
    """Return who people are not, of whom other captions say that they are men, or women: all of them, if counted."""
    words, named = caption.words, frozenset({"women", "ladies"} if female else {"men", "guys"})
    telling = sum(not named.isdisjoint(line) for line in words.others)
    all_of_them = phrase.count >= 0 and caption.head(phrase) in {"person", "people"}
    if not all_of_them or telling < _ENOUGH or not _MIXED.isdisjoint(words.all):
        return ""
    return "man" if female else "woman"
