"""What the captions and boxes of an image already say, as words.

A text is only a safe negative when nothing said about the image makes it true, and "the dog" is only clear when
nobody speaks of dogs. `ImageWords` holds the lower-case words of the caption, of the other captions and of the box
labels, and answers such questions by words alone: the other captions are not tagged, which keeps this fast. It errs on
the side of "mentioned".
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pairwright.datasets.records import Pair
from pairwright.generators.attributes import COLOUR, same_concept
from pairwright.generators.language.inflection import inflect
from pairwright.generators.phrases import NUMBER_WORDS
from pairwright.generators.synonyms import LOOSELY_SAME, OBJECTS

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_COLOUR_WORDS = frozenset(word for words in COLOUR.values() for word in words)
_REACH = 4  # words before a noun in which its adjectives stand


@lru_cache(maxsize=20_000)
def plural_of(label: str) -> str:
    """Return a singular noun or compound in the plural ("sports ball" gives "sports balls")."""
    before, gap, last = label.rpartition(" ")
    return before + gap + inflect(last, "NNS")


@lru_cache(maxsize=20_000)
def loosely_same(noun: str) -> frozenset[str]:
    """Return the nouns that captions use for the same thing as ``noun``, itself among them."""
    words = {noun, *OBJECTS.get(noun, ())}
    for group in LOOSELY_SAME:
        if noun in group:
            words |= group
    return frozenset(words)


@dataclass(frozen=True, slots=True)
class ImageWords:
    """The words said about an image.

    Attributes:
        own: words of the caption.
        others: words of each other caption, in order.
        labels: box labels, lower-case, with how often each occurs.
        all: every word of all of them.
        text: all of them as one string of words, for phrases.
    """

    own: tuple[str, ...]
    others: tuple[tuple[str, ...], ...]
    labels: dict[str, int]
    all: frozenset[str]
    text: str

    @classmethod
    def of(cls, pair: Pair) -> "ImageWords":
        """Collect the words of a pair."""
        own = words_of(pair.caption)
        others = tuple(words_of(caption) for caption in pair.captions)
        labels: dict[str, int] = {}
        for box in pair.boxes:
            label = box.label.strip().lower()
            labels[label] = labels.get(label, 0) + 1
        lines = [own, *others, *(words_of(label) for label in labels)]
        text = " | ".join(" ".join(words) for words in lines)
        return cls(own, others, labels, frozenset(word for words in lines for word in words), f" {text} ")

    def has(self, phrase: str) -> bool:
        """Whether a word or phrase occurs as written."""
        return phrase in self.all or (" " in phrase and f" {phrase} " in self.text)

    def has_any(self, words: Iterable[str]) -> bool:
        """Whether one of the words or phrases occurs."""
        return any(map(self.has, words))

    def speaks_of(self, noun: str) -> bool:
        """Whether the noun, its plural, or a word that captions use for the same occurs; of a compound, its head."""
        said_as = loosely_same(noun) | loosely_same(noun.rsplit(maxsplit=1)[-1])
        return any(self.has(word) or self.has(plural_of(word)) for word in said_as)

    def several(self, noun: str) -> bool:
        """Whether there may be more than one: two boxes of that label, or a caption that has the plural."""
        return self.labels.get(noun, 0) > 1 or self.has(plural_of(noun))

    def said_with(self, noun: str, adjective: str, *, elsewhere: bool = False) -> bool:
        """Whether some caption has a word of the adjective's concept shortly before the noun.

        Args:
            noun: lemma; its plural counts too.
            adjective: lower-case.
            elsewhere: leave the caption itself out.
        """
        adjectives, nouns = frozenset(same_concept(adjective)), {noun, plural_of(noun)}
        lines = self.others if elsewhere else (self.own, *self.others)
        return any(_stands_before(words, adjectives, nouns) for words in lines)

    def other_number(self, noun: str, number: str) -> bool:
        """Whether some caption counts the noun otherwise ("three dogs") than ``number``, a word up to ten."""
        rest = frozenset(NUMBER_WORDS) - {number, "one"}
        return any(_stands_before(words, rest, {plural_of(noun)}) for words in (self.own, *self.others))

    def other_colour(self, noun: str, colour: str) -> bool:
        """Whether some caption gives the noun another colour than ``colour``."""
        rest = _COLOUR_WORDS - {colour}
        return any(_stands_before(words, rest, {noun, plural_of(noun)}) for words in (self.own, *self.others))


def words_of(text: str) -> tuple[str, ...]:
    """Return the lower-case words of a text."""
    return tuple(_WORD.findall(text.lower()))


def _stands_before(words: tuple[str, ...], adjectives: frozenset[str], nouns: Iterable[str]) -> bool:
    if adjectives.isdisjoint(words):
        return False
    wanted = set(nouns)
    return any(
        word in wanted and not adjectives.isdisjoint(words[max(0, at - _REACH) : at]) for at, word in enumerate(words)
    )
