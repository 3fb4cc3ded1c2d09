"""How captions use words: what they say before and after what, told by the statistics of the pool."""

import math
from collections.abc import Sequence
from functools import lru_cache

from pairwright.generators.edits.rng import RandomStream, WeightedWords
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.knowledge.things import Things
from pairwright.generators.language.prepositional_links import COMPLEX_PREPOSITIONS
from pairwright.generators.words.attributes import PLACES
from pairwright.generators.words.nouns import FIGURES, KINDS, OPEN_PLACES, PEOPLE, WORN
from pairwright.generators.words.relations import ENCLOSED

SEEN = 2  # captions of the pool that show that two words go together
OFTEN = 5  # captions that show that it was no slip
USUAL = 0.01  # share of a noun's captions in which it goes with a preposition
SLIP = 0.003  # share of a noun's captions that say so by a slip ("sitting at a chair")
EITHER_WAY = 0.1  # of how often a relation is said one way, that it must be the other way round
KNOWN = 100  # captions that have a thing, for what is not said of it to tell anything
_LIVELY = ("walk", "eat", "look", "run", "graze", "swim")
_EVERY_PLACE, _MAINLY = frozenset({"on", "in", "at", "under", "through", "along", "down"}), 5
_ANYBODY = ("man", "woman", "person")  # what one of them does, another may do
_ANY_ANIMAL = ("dog", "cat", "horse", "cow", "sheep", "elephant", "bear")
_BESIDES = frozenset({"next to", "beside", "behind", "in front of"})  # whatever can be seen
_NEEDS_A_BODY = frozenset({"under", "underneath", "beneath", "outside"})


class Usage:
    """Asks the pool what it says of which words, and remembers.

    Args:
        pool: statistics of the captions that the texts are to look like.
        thesaurus: WordNet.
        things: tells what nouns stand for.
        minimum: captions of the pool that have a frequent word.
    """

    def __init__(self, pool: Pool, thesaurus: Thesaurus, things: Things, minimum: int) -> None:
        self._pool, self._thesaurus, self._things, self._minimum = pool, thesaurus, things, minimum
        self.said_before = lru_cache(maxsize=50_000)(self._find_said_before)
        self.moves = lru_cache(maxsize=20_000)(self._find_moves)
        self._is_usual = lru_cache(maxsize=50_000)(self._find_is_usual)
        self._takes = lru_cache(maxsize=5_000)(self._find_takes)
        self._is_body = lru_cache(maxsize=20_000)(self._find_is_body)

    def is_written(self, form: str) -> bool:
        """Whether captions have the word as it is."""
        return self._pool.form_frequency(form) >= SEEN

    def is_frequent(self, word: str, pos: str) -> bool:
        """Whether the pool has the word often enough, or a compound's parts together."""
        *before, last = word.split()
        return self._pool.frequency(last, pos) >= self._minimum and all(
            self._pool.cooccurrence(part, last) >= SEEN for part in before
        )

    def often(self, noun: str) -> float:
        """Return how many captions show that a noun goes with a word by more than a slip."""
        return max(SEEN, USUAL * self._pool.frequency(noun, "NOUN"))

    def urn_of(self, found: tuple[str, ...]) -> WeightedWords:
        """Return words to draw from; one that is four times as frequent is drawn twice as often."""
        return WeightedWords.of(found, (math.sqrt(self._pool.frequency(word.split()[-1], "NOUN")) for word in found))

    def drawn_by_use(self, forms: Sequence[str], rng: RandomStream) -> list[str]:
        """Return words in a random order, those that the pool has often sooner; what it lacks is left out."""
        often = [min(self._pool.form_frequency(word) for word in form.split()) for form in forms]
        drawn = [(rng.share() ** (1 / seen), form) for form, seen in zip(forms, often, strict=True) if seen >= SEEN]
        return [form for _, form in sorted(drawn, reverse=True)]

    def is_adjective(self, word: str, noun: str) -> bool:
        """Whether captions describe such nouns by the word."""
        return (word in PLACES or self._pool.frequency(word, "ADJ") >= self._minimum) and (
            self._pool.adjacency(word, noun) >= SEEN
        )

    def describes(self, adjective: str, noun: str) -> bool:
        """Whether captions say an adjective, or a material, of such nouns."""
        # Materials are often nouns ("a metal bench"), which stand together without being counted as adjacent.
        return max(self._pool.adjacency(adjective, noun), self._pool.cooccurrence(adjective, noun) // 2) >= SEEN

    def stands_before(self, wording: str, noun: str) -> bool:
        """Whether the pool has the relation before such a noun: "under" before "table", but not before "wall"."""
        words = wording.split()
        if wording == "outside" and noun in ENCLOSED:
            return self._pool.form_frequency(wording) >= SEEN
        if noun in OPEN_PLACES and (words[0] in _NEEDS_A_BODY or wording in _BESIDES):
            return wording in _BESIDES and self._pool.adjacency(wording, noun) >= OFTEN
        if not all(self._pool.form_frequency(word) >= SEEN for word in words):
            return False
        if wording in _BESIDES and self._is_body(noun):
            return True
        counted = wording if tuple(words) in COMPLEX_PREPOSITIONS else words[-1]
        return self._pool.adjacency(counted, noun) >= SEEN or words[-1] == "than"

    def _find_is_body(self, noun: str) -> bool:
        """Whether a noun is a thing that one can stand beside."""
        seen = noun in KINDS or any(self._thesaurus.is_a(noun, kind, "NOUN") for kind in ("artifact", "animal"))
        return seen and noun not in FIGURES | WORN and self.is_frequent(noun, "NOUN")

    def has_object(self, verb: str, noun: str) -> bool:
        """Whether captions have the verb with such an object."""
        return self._pool.adjacency(verb, noun) >= SEEN

    def goes_with(self, verb: str, preposition: str) -> bool:
        """Whether captions have the verb right before the preposition."""
        return self._pool.adjacency(verb, preposition) >= SEEN

    def _find_said_before(self, phrases: tuple[tuple[str, str], ...], noun: str) -> tuple[tuple[str, str], ...]:
        """Return those verbs with prepositions that captions have before such a noun."""
        return tuple(phrase for phrase in phrases if self.are_said_before(*phrase, noun))

    def are_said_before(self, verb: str, preposition: str, noun: str) -> bool:
        """Whether captions have a verb with a preposition, and that before such a noun, as more than a slip."""
        if not preposition:
            return self._pool.adjacency(verb, noun) >= max(OFTEN, SLIP * self._pool.frequency(noun, "NOUN"))
        return self._is_usual(preposition, noun) and self._takes(verb, preposition) and self.together(verb, noun)

    def _find_is_usual(self, preposition: str, noun: str) -> bool:
        often = self.often(noun)
        if preposition == "with" and not (self._things.is_alive(noun) or self._pool.adjacency("hold", noun) >= often):
            return False  # "standing with a wall"
        if " " in preposition:
            return self.stands_before(preposition, noun)
        usual = _MAINLY if preposition in _EVERY_PLACE else 1
        return self._pool.adjacency(preposition, noun) >= max(OFTEN, usual * often)

    def _find_takes(self, verb: str, preposition: str) -> bool:
        often = max(OFTEN, USUAL * self._pool.frequency(verb, "VERB"))
        return " " in preposition or self._pool.adjacency(verb, preposition) >= often

    def together(self, verb: str, noun: str) -> bool:
        """Whether captions speak of a deed and a thing together; of a thing that they hardly know, it is not asked."""
        return self._pool.cooccurrence(noun, noun) < KNOWN or self._pool.cooccurrence(verb, noun) >= SEEN

    def acts(self, noun: str, verb: str, *, alone: bool) -> bool:
        """Whether captions say that the noun does it; where both stand in one caption will do for the living."""
        doers = (noun, *(_ANYBODY if noun in PEOPLE else _ANY_ANIMAL if alone else ()))
        seen = any(self._pool.adjacency(doer, verb) >= SEEN for doer in doers)
        return seen or (alone and self._pool.cooccurrence(noun, verb) >= SEEN)

    def does(self, noun: str, verb: str) -> bool:
        """Whether captions say that such a thing does it, as more than a slip."""
        return self._pool.adjacency(noun, verb) >= self.often(noun)

    def _find_moves(self, noun: str) -> bool:
        """Whether captions say of it what only the living do: a monitor lizard is rarely meant."""
        return any(self._pool.adjacency(noun, verb) >= SEEN for verb in _LIVELY)

    def may_trade_places(self, first: str, relation: str, second: str) -> bool:
        """Whether captions have ``second`` before such a relation and ``first`` after it, as more than a slip.

        And not much less often than the other way round: plates are on tables, and hardly ever tables on plates.
        """
        words = relation.split()
        counted = relation if tuple(words) in COMPLEX_PREPOSITIONS else words[-1]
        before, after = self._pool.adjacency(second, words[0]), self._pool.adjacency(counted, first)
        as_said = self._pool.adjacency(first, words[0]) * self._pool.adjacency(counted, second)
        usual = before >= self.often(second) and after >= self.often(first)
        return usual and before * after >= EITHER_WAY * as_said

    def may_trade_parts(self, first: str, verb: str, second: str) -> bool:
        """Whether captions say that ``second`` does it, and that it is done to ``first``, as more than a slip."""
        done = self._pool.adjacency(second, verb) >= self.often(second)
        return done and self._pool.adjacency(verb, first) >= max(OFTEN, SLIP * self._pool.frequency(first, "NOUN"))
