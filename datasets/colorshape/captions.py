"""Captions of ColorShape scenes: several per image, in varied wording, all true.

A *description* names a kind of object by some of its size, colour and shape; objects with one description are named
together with their number ("two red circles"). One caption of a scene is *complete*: it names every object with size,
colour and shape, so that anything that contradicts the scene contradicts a caption. The others list objects with fewer
attributes, relate two of them, compare their sizes, or do both.

Statements are visually clear: left, right, above and below differ by at least 0.18 of the image along their axis and by at
most half of that across it; "next to" means a gap of at most 0.10 of the image between the boxes; size words are far apart.
Caption number n of a scene depends on the seed, the index and the scene only.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import permutations

from pairwright.datasets.colorshape.scenes import Scene, SceneObject, box_distance, pick_option
from pairwright.datasets.rng import make_rng

FAR_DISTANCE = 0.18
NEAR_DISTANCE = 0.10

_LEFT = ("to the left of", "to the left of", "left of", "on the left of")
_RIGHT = ("to the right of", "to the right of", "right of", "on the right of")
_ABOVE = ("above", "above", "over")
_BELOW = ("below", "below", "under", "beneath")
_NEAR = ("next to", "next to", "near", "beside")
_LARGE = ("large", "large", "big")
_SMALL = ("small", "small", "little")
_LARGER = ("larger than", "bigger than")
_NUMBERS = {2: "two", 3: "three", 4: "four"}
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


# A saying states which attributes a description names: (size, colour); the shape always. A kind is an object's
# (size, colour, shape) by a saying, empty for attributes that are not named.
_DetailLevel = tuple[bool, bool]
_Kind = tuple[str, str, str]
_COMPLETE: _DetailLevel = (True, True)
_SIZELESS: _DetailLevel = (False, True)
_COLOURLESS: _DetailLevel = (True, False)
_SHAPE_ONLY: _DetailLevel = (False, False)
_ALL = (_COMPLETE, _SIZELESS, _COLOURLESS, _SHAPE_ONLY)
_PARTIAL = (_SIZELESS, _SIZELESS, _COLOURLESS, _SHAPE_ONLY)


def generate_captions(scene: Scene, seed: int, index: int, count: int = 4) -> tuple[str, ...]:
    """Return up to ``count`` different captions of a scene, the complete one at a random position.

    Args:
        scene: with named colours.
        seed: of the corpus.
        index: of the scene in it.
        count: target number, at least 1; simple scenes may have fewer.
    """
    rng = make_rng(seed, "colorshape", "wording", index)
    teller = _CaptionWriter(scene, rng)
    captions = [teller.listing(_COMPLETE)]
    for _ in range(2 * count):
        if len(captions) >= count:
            break
        caption = teller.anything()
        if caption not in captions:
            captions.append(caption)
    rng.shuffle(captions)
    return tuple(_vary_capitals(caption, rng) for caption in captions)


def _vary_capitals(text: str, rng: random.Random) -> str:
    """Vary the capitals: plain, with a capital, or with a capital and a full stop."""
    draw = rng.random()
    if draw < 0.5:
        return text
    text = text[0].upper() + text[1:]
    return text if draw < 0.6 else f"{text}."


class _CaptionWriter:
    """Writes sentences about one scene; a sentence uses one word for large and one for small."""

    def __init__(self, scene: Scene, rng: random.Random) -> None:
        self.scene = scene
        self.rng = rng
        self.numbers = {saying: _count(_kind(item, saying) for item in scene.objects) for saying in _ALL}
        self._choose_words()

    def _choose_words(self) -> None:
        self.sizes = {"large": pick_option(_LARGE, self.rng), "small": pick_option(_SMALL, self.rng)}

    # ---- sentences

    def anything(self) -> str:
        """Return a sentence of any kind, not necessarily complete."""
        self._choose_words()
        draw = self.rng.random()
        sentence = ""
        if draw < 0.75:
            sentence = self.related()
        elif draw < 0.88:
            sentence = self.compared()
        return sentence or self.listing(pick_option(_PARTIAL, self.rng))

    def listing(self, saying: _DetailLevel) -> str:
        """List every object: "two red circles and a green star", "there is ...", "a picture of ..."."""
        kinds = list(self.numbers[saying].items())
        self.rng.shuffle(kinds)
        phrase = self._joined([self._counted(kind, number) for kind, number in kinds])
        return self._framed(phrase, "are" if kinds[0][1] > 1 else "is")

    def related(self) -> str:
        """Relate two objects with unique descriptions; empty if no relation is clear."""
        for first, second in self._pairs():
            relation = self._relation(first, second)
            a, b = (self._unique(first), self._unique(second)) if relation else (None, None)
            if a is None or b is None:
                continue
            draw = self.rng.random()
            if draw < 0.2:
                return f"the {self._words(a, 1)} is {relation} the {self._words(b, 1)}"
            one, other = self._counted(a, 1), self._counted(b, 1)
            if draw < 0.4:
                return self._with_rest(f"{one} is {relation} {other}", first, second)
            return self._framed(f"{one} {relation} {other}", "is")
        return ""

    def _with_rest(self, clause: str, first: SceneObject, second: SceneObject) -> str:
        """Add a clause about the two other objects of four if their relation is clear."""
        rest = [item for item in self.scene.objects if item is not first and item is not second]
        relation = self._relation(*rest) if len(rest) == 2 else ""
        a, b = (self._unique(rest[0]), self._unique(rest[1])) if relation else (None, None)
        if a is None or b is None:
            return clause
        return f"{clause}, and {self._counted(a, 1)} is {relation} {self._counted(b, 1)}"

    def compared(self) -> str:
        """Compare a large and a small object; empty if all have one size."""
        for first, second in self._pairs():
            if (first.size, second.size) != ("large", "small"):
                continue
            a, b = _kind(first, _SIZELESS), _kind(second, _SIZELESS)
            if self.numbers[_SIZELESS][a] == self.numbers[_SIZELESS][b] == 1:
                one, other = self._words(a, 1), self._words(b, 1)
                if self.rng.random() < 0.5:
                    return f"the {one} is {pick_option(_LARGER, self.rng)} the {other}"
                return f"the {other} is smaller than the {one}"
        return ""

    # ---- phrases

    def _framed(self, phrase: str, verb: str) -> str:
        draw = self.rng.random()
        if draw < 0.5:
            return phrase
        if draw < 0.7:
            return f"there {verb} {phrase}"
        return pick_option(_FRAMES, self.rng).format(phrase)

    def _joined(self, phrases: Sequence[str]) -> str:
        if len(phrases) <= 2:
            return " and ".join(phrases)
        last = ", and " if self.rng.random() < 0.5 else " and "
        return ", ".join(phrases[:-1]) + last + phrases[-1]

    def _counted(self, kind: _Kind, number: int) -> str:
        words = self._words(kind, number)
        if number > 1:
            return f"{_NUMBERS[number]} {words}"
        return f"an {words}" if words[0] in "aeiou" else f"a {words}"

    def _words(self, kind: _Kind, number: int) -> str:
        """Return adjectives and noun of ``number`` objects of a kind."""
        size, colour, shape = kind
        noun = shape if number == 1 else f"{shape}es" if shape == "cross" else f"{shape}s"
        return " ".join(word for word in (self.sizes.get(size, size), colour, noun) if word)

    def _unique(self, item: SceneObject) -> _Kind | None:
        """Return a description of random length that fits only ``item``; None for a twin."""
        for saying in (pick_option(_ALL, self.rng), _SIZELESS, _COMPLETE):
            kind = _kind(item, saying)
            if self.numbers[saying][kind] == 1:
                return kind
        return None

    def _pairs(self) -> list[tuple[SceneObject, SceneObject]]:
        pairs = list(permutations(self.scene.objects, 2))
        start = int(self.rng.random() * len(pairs))
        return pairs[start:] + pairs[:start]

    def _relation(self, first: SceneObject, second: SceneObject) -> str:
        """Return words for the relation of ``first`` to ``second``, empty if none is clear."""
        direction: tuple[str, ...] = ()
        (x, y), (other_x, other_y) = first.centre, second.centre
        dx, dy = other_x - x, other_y - y
        if abs(dx) >= FAR_DISTANCE and abs(dy) <= abs(dx) / 2:
            direction = _LEFT if dx > 0 else _RIGHT
        elif abs(dy) >= FAR_DISTANCE and abs(dx) <= abs(dy) / 2:
            direction = _ABOVE if dy > 0 else _BELOW
        if box_distance(first, second) <= NEAR_DISTANCE and (not direction or self.rng.random() < 0.3):
            direction = _NEAR
        return pick_option(direction, self.rng) if direction else ""


def _kind(item: SceneObject, saying: _DetailLevel) -> _Kind:
    return (item.size if saying[0] else "", item.colour if saying[1] else "", item.shape)


def _count(kinds: Iterable[_Kind]) -> dict[_Kind, int]:
    numbers: dict[_Kind, int] = {}
    for kind in kinds:  # a Counter takes four times as long for so few
        numbers[kind] = numbers.get(kind, 0) + 1
    return numbers
