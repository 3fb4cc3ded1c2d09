"""Which word may be said of a noun instead of another: words of its class that exclude it, and antonyms.

Captions have to say it of such nouns. Classes and opposites of our own come first (`words/attributes.py`), then WordNet's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.context import ImageWords
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.knowledge.usage import SEEN
from pairwright.generators.knowledge.word_knowledge import WordKnowledge
from pairwright.generators.words.attributes import (
    CLASSES,
    OPPOSITE,
    PLACES,
    contrary,
    excluded_beside,
    is_colour,
    is_size,
    same_concept,
)
from pairwright.generators.words.nouns import OF_PEOPLE
from pairwright.generators.words.synonyms import attributes_like, reword_each_other
from pairwright.generators.words.wordlists import word_set

ENOUGH_SAID = 20  # captions that tell the colour, or the like, of a noun, for its rare ones to be known
RARE = 0.06  # share of a word among them
_TOLD = ("colour", "material", "pattern")  # whose silence tells something; that a door is closed goes unsaid
_OF_THE_LIVING = frozenset({"young", "elderly"})  # motorcycles are not young again
_COATS = frozenset({"brown", "black", "white", "gray"})  # of fur and feathers
_GREENS = word_set(
    "park countryside grass grassland grassy hill hillside forest pasture meadow landscape vegetation jungle lawn"
)
_COLOURLESS = ("black", "and", "white")
_PICTURES = word_set("photo photograph picture image photography shot photos pictures images photographs of")
_WITHERED = frozenset({"brown", "yellow"})


@dataclass(frozen=True, slots=True)
class Attribute:
    """A word that captions say of a noun; ``rare`` when hardly any of those that tell such a thing have it."""

    text: str
    rare: bool


class AdjectiveCandidates:
    """Finds words to be said of a noun, and remembers.

    Args:
        thesaurus: WordNet.
        pool: statistics of the captions that the negatives are to look like.
        known: what is known of words.
    """

    def __init__(self, thesaurus: Thesaurus, pool: Pool, known: WordKnowledge) -> None:
        self._thesaurus, self._pool = thesaurus, pool
        self._things, self._usage, self._odds = known.things, known.usage, known.odds
        self.attributes_of = lru_cache(maxsize=20_000)(self._find_attributes_of)
        self._adjectives = lru_cache(maxsize=20_000)(self._find_adjectives)

    def describing(self, word: str, noun: str, rng: RandomStream, *, joined: bool = False) -> list[str]:
        """Return what may be said of a noun instead of ``word``, in random order.

        Captions of the pool have to say it of such nouns. Only where none of them does, or where it is ``joined`` to
        other colours, any colour may take the place of a colour.
        """
        found = [other for other in self._adjectives(word) if excluded_beside(word, other, noun)]
        if noun in OF_PEOPLE and is_size(word):
            found = [other for other in found if not is_size(other)]  # a little girl is no large one, but grown
        if noun in OF_PEOPLE and not is_colour(word):
            found = [other for other in found if not is_colour(other)]  # "a blonde woman" tells of her hair
        if noun in _GREENS and is_colour(word):
            found = [other for other in found if not is_colour(other) or not _WITHERED.isdisjoint(same_concept(other))]
        if self._things.is_alive(noun) and not joined:
            found = [other for other in found if not is_colour(other) or self._is_coat(other, noun)]
        opposites = OPPOSITE.get(word, ()) if noun not in OF_PEOPLE or is_size(word) else ()
        seen = [other for other in found if other in opposites or is_size(other) or self._usage.describes(other, noun)]
        if not self._things.is_alive(noun):
            seen = [other for other in seen if other not in _OF_THE_LIVING]
        drawn = rng.weighted_shuffle(seen, self._odds.of_words(word, tuple(seen), noun))
        if is_colour(word) and (joined or not seen):
            rest = [other for other in found if is_colour(other) and other not in seen]
            drawn += rng.weighted_shuffle(rest, self._odds.of_words(word, tuple(rest), noun))
        return drawn

    def _find_adjectives(self, word: str) -> tuple[str, ...]:
        found = list(contrary(word))
        if word not in PLACES:
            found += [other for other in self._thesaurus.antonyms(word, "ADJ") if " " not in other]
        return tuple(
            other
            for other in dict.fromkeys(found)
            if other.isalpha() and self._usage.is_frequent(other, "ADJ") and not reword_each_other(word, other)
        )

    def _is_coat(self, colour: str, noun: str) -> bool:
        """Whether a living thing may have a colour: as many have, or as captions say right before such a noun."""
        return not _COATS.isdisjoint(same_concept(colour)) or self._pool.adjacency(colour, noun) >= self._usage.often(
            noun
        )

    def told_instead(self, true: str, others: Sequence[str], noun: str, rng: RandomStream) -> str:
        """Return one of the words that are not true of a noun, or nothing, so that no word tells which one is true.

        Words are drawn as often as captions say them of such a noun; and as the usual one ("a white toilet") is more often
        true than false, a pair is taken only with the chance at which its reverse comes up (detailed balance).
        """
        often = {word: self._pool.adjacency(word, noun) for word in (*others, true)}
        drawn = max(
            (word for word in others if often[word]), key=lambda word: rng.share() ** (1 / often[word]), default=""
        )
        total = sum(often.values())
        return drawn if drawn and rng.share() * (total - often[drawn]) < total - often[true] else ""

    def _find_attributes_of(self, noun: str) -> tuple[Attribute, ...]:
        """Return what captions say of such a noun, by classes, and whether it is rare in its class."""
        found = []
        classes = {name: [w for words in concepts.values() for w in words] for name, concepts in CLASSES.items()}
        classes[""] = [word for word in OPPOSITE if word not in PLACES]
        for name, words in classes.items():
            counts = {word: self._pool.adjacency(word, noun) for word in words}
            total = sum(counts.values())
            known = name in _TOLD and total >= ENOUGH_SAID
            found += [
                Attribute(word, known and count <= RARE * total)
                for word, count in counts.items()
                if count >= SEEN and self._usage.is_frequent(word, "ADJ")
            ]
        return tuple(found)

    def is_described(self, noun: str, adjective: str) -> bool:
        """Whether captions say the adjective of such a noun; what is made, and what the pool hardly has, may be anything."""
        if self._things.kinds(noun) == {"made"}:
            return True
        if is_colour(adjective) and self._things.is_alive(noun) and noun not in OF_PEOPLE:
            return self._is_coat(adjective, noun)
        seen = self._pool.adjacency(adjective, noun) >= SEEN
        known = self._pool.frequency(noun, "NOUN") >= ENOUGH_SAID
        return seen or not known or (not is_colour(adjective) and self._usage.describes(adjective, noun))


def keeps_its_colour(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether no other colour would be believed: of a stop sign, or of anything in a picture without colours."""
    if caption.noun(phrase) == "stop sign":
        return True
    return _COLOURLESS[0] in caption.lower and any(
        caption.lower[at : at + 3] == _COLOURLESS and not _PICTURES.isdisjoint(caption.lower[at + 3 : at + 5])
        for at in range(len(caption.lower) - 3)
    )


def adjective_is_said(adjective: str, words: ImageWords) -> bool:
    """Whether some caption uses a word of the adjective's concept, of whatever thing."""
    return words.has_any(attributes_like(adjective))
