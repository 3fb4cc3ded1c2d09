"""Captions of ColorShape scenes: several an image, in varied wording, all of them true.

A *description* names a kind of object by some of its size, colour and shape; objects of one description are
said together with their number ("two red circles"). Of the captions of a scene one is *complete*: it names
every object with size, colour and shape, so that whatever contradicts the scene contradicts a caption. The
others list objects with fewer attributes, relate two of them, compare their sizes, or do both.

What is said is clear to the eye: left, right, above and below differ by at least 0.18 of the picture along
their axis and by at most half of that across it; "next to" means that at most 0.10 of the picture lies
between the boxes; size words are far apart. Caption number n of a scene depends on the seed, the index and
the scene only.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pairwright.datasets.chance import stream
from pairwright.datasets.colorshape.scenes import Scene, SceneObject, box_gap

CLEARLY_APART = 0.18
CLEARLY_NEAR = 0.10

_LEFT = ("to the left of", "to the left of", "left of", "on the left of")
_RIGHT = ("to the right of", "to the right of", "right of", "on the right of")
_ABOVE = ("above", "above", "over")
_BELOW = ("below", "below", "under", "beneath")
_NEAR = ("next to", "next to", "near", "beside")
_LARGE = ("large", "large", "big")
_SMALL = ("small", "small", "little")
_LARGER = ("larger than", "bigger than")
_NUMBERS = ("no", "one", "two", "three", "four")
_FRAMES = (
    "a picture of {}",
    "an image of {}",
    "a drawing of {}",
    "a picture showing {}",
    "an image showing {}",
    "an image with {}",
    "the image shows {}",
    "the picture shows {}",
)


@dataclass(frozen=True, slots=True)
class Saying:
    """Which attributes a description spells out; the shape always is."""

    size: bool = True
    colour: bool = True


_COMPLETE = Saying()
_PARTIAL = (Saying(size=False), Saying(size=False), Saying(colour=False), Saying(size=False, colour=False))
_Kind = tuple[str, str, str]


def captions_of(scene: Scene, seed: int, index: int, count: int = 4) -> tuple[str, ...]:
    """Return up to ``count`` different captions of a scene, the complete one at a random place.

    Args:
        scene: with named colours.
        seed: of the corpus.
        index: of the scene in it.
        count: how many to try for, at least 1; simple scenes may have fewer.
    """
    chance = stream(seed, "colorshape", "wording", index)
    captions = [_listing(scene, _COMPLETE, chance)]
    for _ in range(2 * count):
        if len(captions) >= count:
            break
        caption = _free(scene, chance)
        if caption not in captions:
            captions.append(caption)
    chance.shuffle(captions)
    return tuple(_styled(caption, chance) for caption in captions)


def _free(scene: Scene, chance: random.Random) -> str:
    """Return a sentence of any kind that is not bound to be complete."""
    draw = chance.random()
    if draw < 0.6:
        related = _related(scene, chance)
        if related:
            return related
    if draw < 0.75:
        compared = _compared(scene, chance)
        if compared:
            return compared
    return _listing(scene, chance.choice(_PARTIAL), chance)


def _styled(text: str, chance: random.Random) -> str:
    """Write the sentence as captions come: plain, or with a capital, or with a capital and a full stop."""
    draw = chance.random()
    if draw < 0.5:
        return text
    text = text[0].upper() + text[1:]
    return text if draw < 0.6 else f"{text}."


# ---- noun phrases ------------------------------------------------------------------------------------


def _kind(item: SceneObject, saying: Saying) -> _Kind:
    return (item.size if saying.size else "", item.colour if saying.colour else "", item.shape)


def _words(kind: _Kind, number: int, chance: random.Random) -> str:
    """Return adjectives and noun of ``number`` objects of a kind."""
    size, colour, shape = kind
    noun = shape if number == 1 else f"{shape}es" if shape == "cross" else f"{shape}s"
    if size in {"large", "small"}:
        size = chance.choice(_LARGE if size == "large" else _SMALL)
    return " ".join(word for word in (size, colour, noun) if word)


def _counted(kind: _Kind, number: int, chance: random.Random) -> str:
    words = _words(kind, number, chance)
    if number > 1:
        return f"{_NUMBERS[number]} {words}"
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def _unique(item: SceneObject, scene: Scene, chance: random.Random) -> _Kind | None:
    """Return a description that fits ``item`` and nothing else, often the shortest; None for a twin."""
    sayings = [_COMPLETE, Saying(size=False), Saying(size=False), Saying(colour=False), Saying(False, False)]
    chance.shuffle(sayings)
    for saying in (*sayings, _COMPLETE):
        kind = _kind(item, saying)
        if sum(_kind(other, saying) == kind for other in scene.objects) == 1:
            return kind
    return None


def _joined(phrases: Sequence[str], chance: random.Random) -> str:
    if len(phrases) <= 2:
        return " and ".join(phrases)
    last = ", and " if chance.random() < 0.5 else " and "
    return ", ".join(phrases[:-1]) + last + phrases[-1]


# ---- sentences ---------------------------------------------------------------------------------------


def _listing(scene: Scene, saying: Saying, chance: random.Random) -> str:
    """List every object: "two red circles and a green star", "there is ...", "a picture of ..."."""
    kinds = list(Counter(_kind(item, saying) for item in scene.objects).items())
    chance.shuffle(kinds)
    phrase = _joined([_counted(kind, number, chance) for kind, number in kinds], chance)
    return _framed(phrase, "are" if kinds[0][1] > 1 else "is", chance)


def _framed(phrase: str, verb: str, chance: random.Random) -> str:
    draw = chance.random()
    if draw < 0.5:
        return phrase
    if draw < 0.7:
        return f"there {verb} {phrase}"
    return chance.choice(_FRAMES).format(phrase)


def _related(scene: Scene, chance: random.Random) -> str:
    """Relate two objects that are each described uniquely; empty when no pair stands clearly."""
    for first, second in _pairs(scene, chance):
        relation = _relation(first, second, chance)
        a, b = _unique(first, scene, chance), _unique(second, scene, chance)
        if not relation or a is None or b is None:
            continue
        draw = chance.random()
        if draw < 0.2:
            return f"the {_words(a, 1, chance)} is {relation} the {_words(b, 1, chance)}"
        one, other = _counted(a, 1, chance), _counted(b, 1, chance)
        if draw < 0.4:
            return _with_rest(scene, (first, second), f"{one} is {relation} {other}", chance)
        return _framed(f"{one} {relation} {other}", "is", chance)
    return ""


def _with_rest(scene: Scene, said: tuple[SceneObject, ...], clause: str, chance: random.Random) -> str:
    """Add a clause about two further objects when there are any that stand clearly."""
    rest = [item for item in scene.objects if item not in said]
    if len(rest) == 2:
        a, b = (_unique(item, scene, chance) for item in rest)
        relation = _relation(rest[0], rest[1], chance)
        if a is not None and b is not None and relation:
            return f"{clause}, and {_counted(a, 1, chance)} is {relation} {_counted(b, 1, chance)}"
    return clause


def _compared(scene: Scene, chance: random.Random) -> str:
    """Compare a large and a small object; empty when all are of one size."""
    for first, second in _pairs(scene, chance):
        if (first.size, second.size) != ("large", "small"):
            continue
        a, b = _sizeless(first, scene), _sizeless(second, scene)
        if a is not None and b is not None:
            one, other = _words(a, 1, chance), _words(b, 1, chance)
            if chance.random() < 0.5:
                return f"the {one} is {chance.choice(_LARGER)} the {other}"
            return f"the {other} is smaller than the {one}"
    return ""


def _sizeless(item: SceneObject, scene: Scene) -> _Kind | None:
    saying = Saying(size=False)
    kind = _kind(item, saying)
    return kind if sum(_kind(other, saying) == kind for other in scene.objects) == 1 else None


def _pairs(scene: Scene, chance: random.Random) -> list[tuple[SceneObject, SceneObject]]:
    pairs = [(a, b) for a in scene.objects for b in scene.objects if a is not b]
    chance.shuffle(pairs)
    return pairs


def _relation(first: SceneObject, second: SceneObject, chance: random.Random) -> str:
    """Return words for how ``first`` stands to ``second``, or an empty string when no word is clear."""
    dx = second.centre[0] - first.centre[0]
    dy = second.centre[1] - first.centre[1]
    near = box_gap(first, second) <= CLEARLY_NEAR
    if near and chance.random() < 0.3:
        return chance.choice(_NEAR)
    if abs(dx) >= CLEARLY_APART and abs(dy) <= abs(dx) / 2:
        return chance.choice(_LEFT if dx > 0 else _RIGHT)
    if abs(dy) >= CLEARLY_APART and abs(dx) <= abs(dy) / 2:
        return chance.choice(_ABOVE if dy > 0 else _BELOW)
    return chance.choice(_NEAR) if near else ""
