"""What a noun stands for: somebody, an animal, something made, eaten or grown; told by WordNet and our own tables."""

from functools import lru_cache
from itertools import islice

from pairwright.generators.knowledge.sources import Thesaurus
from pairwright.generators.words.nouns import KINDS, LIFELESS, PEOPLE, WORN
from pairwright.generators.words.synonyms import reword_each_other

_KINDS = {  # what may not be mistaken for each other; of several, the first counts (a cake is also a bar of soap)
    "food": ("food", "solid food", "dish", "baked goods", "foodstuff", "produce", "beverage", "edible fruit"),
    "living": ("animal", "person"),
    "made": ("artifact",),
    "grown": ("plant", "flower"),
    "land": ("geological formation", "body of water", "land"),
}


class Things:
    """Tells kinds of things apart, and remembers.

    Args:
        thesaurus: WordNet.
    """

    def __init__(self, thesaurus: Thesaurus) -> None:
        self._thesaurus = thesaurus
        self.is_alive = lru_cache(maxsize=20_000)(self._is_alive)
        self.kinds = lru_cache(maxsize=20_000)(self._find_kinds)

    def _is_alive(self, noun: str) -> bool:
        """Whether a noun is a person or an animal in every sense that counts: a bat and a mug are not."""
        if noun in PEOPLE or noun in LIFELESS:
            return noun in PEOPLE
        kinds = [kind for kind in ("person", "animal", "artifact", "food") if self._thesaurus.is_a(noun, kind, "NOUN")]
        return bool(kinds) and not {"artifact", "food"}.intersection(kinds)

    def has_posture(self, noun: str) -> bool:
        """Whether sitting and standing are two things for it: people and animals, but not birds."""
        return self.is_alive(noun) and not self.is_bird(noun)

    def is_bird(self, noun: str) -> bool:
        """Whether a noun is a bird."""
        return self._thesaurus.is_a(noun, "bird", "NOUN")

    def is_of(self, noun: str, kind: str) -> bool:
        """Whether a noun is of a kind of `_KINDS`."""
        return kind in self.kinds(noun)

    def _find_kinds(self, noun: str) -> frozenset[str]:
        """Return the kind of thing, none for what is no thing (a trick)."""
        word = noun if self._thesaurus.has(noun, "NOUN") else noun.rsplit(maxsplit=1)[-1]
        found = (
            name for name, above in _KINDS.items() if any(self._thesaurus.is_a(word, kind, "NOUN") for kind in above)
        )
        return frozenset(islice(found, 1))

    def is_like(self, noun: str, other: str) -> bool:
        """Whether two things are of one kind, and neither is worn, so that a list may hold both."""
        return self.kinds(noun) == self.kinds(other) and WORN.isdisjoint((noun, other))

    def is_kin(self, noun: str, other: str) -> bool:
        """Whether one is a kind of the other, or may be taken for it, as one dish for another."""
        near = other in KINDS.get(noun, ()) or noun in KINDS.get(other, ()) or {noun, other} == {"pot", "vase"}
        dishes = "food" in self.kinds(noun) & self.kinds(other)
        return near or dishes or reword_each_other(noun, other) or self._thesaurus.related(noun, other, "NOUN")

    def is_word(self, compound: str) -> bool:
        """Whether the dictionary has the compound as a noun of its own."""
        return self._thesaurus.has(compound, "NOUN")
