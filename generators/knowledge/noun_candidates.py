"""Which noun may take another's place in a hard negative.

A candidate has to be of the same kind without meaning the same, and captions must use it: kinds of our own first
(`words/nouns.py`), then WordNet's co-hyponyms within two levels, of things only and of the same kind. What is rare in the pool
goes, and so do synonyms, hypernyms, hyponyms and words that captioners mix up. This much depends on the word alone and
is kept.

Per caption it must make sense beside the other words (the pool's plausibility), captions must put such things there
(`scenes.py`), and it must not be said of the image already, in any wording: that would be a false negative.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache

from pairwright.generators.captions.context import ImageWords
from pairwright.generators.captions.noun_slots import NounSlot
from pairwright.generators.edits.rng import MAX_DRAWN_WORDS, RandomStream, WeightedWords
from pairwright.generators.knowledge.company import SLACK, STRANGE
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.knowledge.usage import OFTEN, SEEN, SLIP
from pairwright.generators.knowledge.word_knowledge import WordKnowledge
from pairwright.generators.words.attributes import OPPOSITE, PLACES, UNTOUCHED
from pairwright.generators.words.nouns import (
    EVERYWHERE,
    FLYING,
    FRAMES,
    GATHERINGS,
    KINDS,
    MASS,
    OF_PEOPLE,
    PEOPLE,
    PLURAL_ONLY,
    SEXED,
    SURROUNDINGS,
)
from pairwright.generators.words.relations import TABLES
from pairwright.generators.words.synonyms import reword_each_other
from pairwright.generators.words.wordlists import word_set

ENOUGH = 4  # kinds of our own; fewer, and WordNet is asked as well
LEVELS = 2  # of WordNet between a word and its co-hyponyms
_COMPARED = 2  # nouns that would do, of which one is taken that goes well with the rest of the caption
_FEW = 5  # nouns that may stand for one at all, up to which each is to have its turn
# Share of a noun's captions with "at" before it, or "of" behind it, that is no slip: few are at a street.
_AT_IT = 0.006
KNOWN = 20  # captions with the old noun in a place, for the new one's not being there to tell anything
_ANIMALS = (
    "dog",
    "cat",
    "horse",
    "cow",
    "sheep",
    "elephant",
    "bear",
    "bird",
    "giraffe",
    "zebra",
    "monkey",
    "goat",
    "duck",
)
_LIKENESSES = frozenset(
    (
        "statue",
        "sculpture",
        "painting",
        "drawing",
        "poster",
        "mural",
        "doll",
        "model",
        "portrait",
        "print",
        "figurine",
        "sign",
    )
)
_OF_ANYTHING = frozenset({"colour", "size"})
_OF_THINGS = frozenset({"old", "new", "modern"})  # said of whatever is made
_SAID_OF_LOOKS = word_set(
    "looking sized styled fashioned colored coloured shaped looked"
)  # "very nice | looking motorcycles"
_SAT_AT = frozenset({"bench", "piano", "stove", "computer", "laptop"})
_OF_BEASTS = frozenset({"paw", "hoof", "tail", "trunk", "snout"})
_UNCOUNTED = MASS - word_set(  # what "a" may stand before
    "tennis baseball soccer basketball football golf volleyball hockey rugby cricket coffee tea beer wine milk juice soda "
    "lemonade salad soup fruit cheese sushi cabbage cauliflower ham sausage meal pasta"
)
_CUT = frozenset({"slice", "piece", "bite"})
_EATEN_BEASTS = frozenset({"chicken", "turkey"})
_STUFFED = frozenset({"stuffed", "plush", "teddy"})
_STILL = frozenset({"sit", "stand", "lie", "lay", "rest", "lean"})  # what things do as well as the living
_DOUBLE_DECKERS = frozenset({"bus", "train", "tram", "trolley", "boat", "ship", "ferry", "plane", "airplane", "truck"})


class NounCandidates:
    """Finds nouns to stand in a place, and remembers what depends on the word alone.

    Args:
        thesaurus: WordNet.
        pool: statistics of the captions that the negatives are to look like.
        known: what is known of words.
        least: plausibility in its context that a new word must reach, unless the old one has hardly more.
    """

    def __init__(self, thesaurus: Thesaurus, pool: Pool, known: WordKnowledge, least: float) -> None:
        self._thesaurus, self._pool, self._least = thesaurus, pool, least
        self._things, self._usage, self._company = known.things, known.usage, known.company
        self._names, self._scenes = known.names, known.scenes
        self._urn = lru_cache(maxsize=20_000)(self._urn_for)

    def has_kinds(self, noun: str) -> bool:
        """Whether our own tables tell what may stand for a noun."""
        return noun in KINDS

    def for_noun(self, slot: NounSlot, words: ImageWords, rng: RandomStream) -> tuple[str, str]:
        """Return a noun to stand in a place, or an empty string and the reason why there is none."""
        if slot.noun in SEXED and words.has_any(GATHERINGS):
            return "", "true_of_image"  # "a couple" may well hold the other one
        return self._first(self._urn(slot.noun), slot, words, rng)

    def by_place(self, slot: NounSlot, words: ImageWords, rng: RandomStream) -> tuple[str, str]:
        """Return a noun of our own tables where the words around vouch for it, if not the whole caption.

        Captions must have it after the verb (or, a place for a place, after the preposition) more than by a slip, or it
        must be strange beside nothing.
        """
        reason = "no_candidate"
        ours = KINDS.get(slot.noun, ()) if slot.noun not in OF_PEOPLE else ()
        for candidate in rng.weighted_sample(self._urn(slot.noun), MAX_DRAWN_WORDS) if ours else ():
            if candidate not in ours or not (self._fits_after(candidate, slot) and self._fits_around(candidate, slot)):
                continue
            if self._names.is_said(candidate, slot.noun, words):
                reason = "true_of_image"
            elif self._is_vouched_for(candidate, slot):
                return candidate, ""
        return "", reason

    def _is_vouched_for(self, candidate: str, slot: NounSlot) -> bool:
        word = candidate.rsplit(maxsplit=1)[-1]
        lands = slot.noun in SURROUNDINGS and candidate in SURROUNDINGS
        tells = lands or self._pool.frequency(slot.governor, "VERB") >= OFTEN
        if tells and self._pool.adjacency(slot.governor, word) >= self._usage.often(word):
            return True
        rest = (other for other in slot.context if other not in slot.noun.split())
        return not self._company.is_strange_beside_any(candidate, rest)

    def for_person(self, slot: NounSlot, words: ImageWords, rng: RandomStream) -> tuple[str, str]:
        """Return an animal to stand for somebody, or an empty string and the reason why there is none."""
        fitting = tuple(noun for noun in self._animals if self._company.goes_along(noun, slot.context))
        found = self._first(self._usage.urn_of(fitting), slot, words, rng)
        if found[0]:
            return found
        known = tuple(noun for noun in self._animals if not self._company.is_strange_beside_any(noun, slot.context))
        return self._first(self._usage.urn_of(known), slot, words, rng)

    @cached_property
    def _animals(self) -> tuple[str, ...]:
        return tuple(noun for noun in _ANIMALS if self._usage.is_frequent(noun, "NOUN"))

    def _first(self, found: WeightedWords, slot: NounSlot, words: ImageWords, rng: RandomStream) -> tuple[str, str]:
        reason, fitting = "no_candidate", list[str]()
        compared = _COMPARED if len(found.words) > _FEW else 1
        for candidate in rng.weighted_sample(found, MAX_DRAWN_WORDS):
            if not (self._fits_after(candidate, slot) and self._fits_around(candidate, slot)):
                continue
            if self._names.is_said(candidate, slot.noun, words):
                reason = "true_of_image"
            elif self._is_in_place(candidate, slot) and self._fits(candidate, slot.noun, slot.context):
                fitting.append(candidate)
                if len(fitting) == compared:
                    break
        if not fitting:
            return "", reason
        rest = [lemma for lemma in slot.context if lemma not in slot.noun.split()]
        return self._company.better_first(fitting, rest, rng)[0], ""

    def _is_in_place(self, candidate: str, slot: NounSlot) -> bool:
        """Whether captions put such things as are told at the candidate, and the candidate where it is told to be."""
        word, is_usual = candidate.rsplit(maxsplit=1)[-1], self._scenes.is_usual
        preposition, noun = slot.place
        beside_it = all(is_usual(left, before, word) for left, before in slot.placed)
        return beside_it and (not noun or is_usual(word, preposition, noun))

    def _fits_after(self, candidate: str, slot: NounSlot) -> bool:
        """Whether the pool has the candidate after the verb or preposition; not asked where it hardly has any."""
        if not slot.governor or slot.governor == "of":
            return not slot.whole or self._fits_in(candidate, slot)
        word = candidate.rsplit(maxsplit=1)[-1]
        if slot.governor == "at" and slot.noun in TABLES and word not in TABLES | _SAT_AT:
            return False  # "sitting at a boat"
        ours = candidate in _ANIMALS or candidate in KINDS.get(slot.noun, (candidate,))
        known = self._pool.adjacency(slot.governor, slot.noun.rsplit(maxsplit=1)[-1])
        seen = self._pool.adjacency(slot.governor, word)
        least = _AT_IT if slot.governor == "at" else SLIP
        return (ours and known < KNOWN) or seen >= max(SEEN, least * self._pool.frequency(word, "NOUN"))

    def _fits_in(self, candidate: str, slot: NounSlot) -> bool:
        """Whether "body of" and the like may stand before the candidate, if the pool has them with the old noun."""
        old = slot.noun.rsplit(maxsplit=1)[-1]
        if slot.whole in _CUT and self._pool.linked(slot.whole, "of", old) >= OFTEN:  # "slices of | sandwich"
            return self._pool.linked(slot.whole, "of", candidate.rsplit(maxsplit=1)[-1]) >= SEEN
        known = self._pool.cooccurrence(slot.whole, old)
        return known < OFTEN or self._company.beside(candidate, slot.whole) > STRANGE

    def _fits_around(self, candidate: str, slot: NounSlot) -> bool:
        """Whether the pool would say of the candidate what the caption says of the old noun, as far as it says it."""
        if slot.airborne and slot.noun in FLYING and candidate not in FLYING:
            return False
        old = slot.noun.rsplit(maxsplit=1)[-1]
        told = slot.contents and self._pool.cooccurrence(old, slot.contents) >= OFTEN
        if told and self._company.beside(candidate, slot.contents) < self._least:
            return False
        if told and self._pool.adjacency(old, "of") >= OFTEN and not self._is_of_something(candidate):
            return False  # "chopsticks of food"
        fits = self._acts(candidate, slot) and not self._is_unlike(candidate, slot)
        return fits and all(self._goes_before(before, candidate, old) for before in slot.described)

    def _is_of_something(self, candidate: str) -> bool:
        word = candidate.rsplit(maxsplit=1)[-1]
        return self._pool.adjacency(word, "of") >= max(SEEN, _AT_IT * self._pool.frequency(word, "NOUN"))

    def _acts(self, candidate: str, slot: NounSlot) -> bool:
        """Whether captions have the candidate do what the caption says, if they have the old noun do it."""
        word, old = candidate.rsplit(maxsplit=1)[-1], slot.noun.rsplit(maxsplit=1)[-1]
        if not slot.act:
            return True
        if self._things.is_alive(slot.noun) and not self._things.is_alive(candidate):
            known = slot.act not in _STILL  # no plane swims
        else:
            somebody = slot.noun in OF_PEOPLE and candidate not in _ANIMALS
            known = not somebody and self._pool.adjacency(old, slot.act) >= OFTEN
        least = 1 if candidate in KINDS.get(slot.noun, ()) else SEEN
        if slot.noun in OF_PEOPLE and candidate in _ANIMALS and slot.act not in _STILL:
            least = OFTEN  # no dogs that brush their teeth
        return not known or self._pool.adjacency(word, slot.act) >= least

    def _is_unlike(self, candidate: str, slot: NounSlot) -> bool:
        """Whether the caption tells what kind of thing it means, and the candidate is none of that kind."""
        eaten = slot.noun in _EATEN_BEASTS and self._things.is_alive(candidate) is slot.uncounted
        if eaten or (slot.single and candidate in _UNCOUNTED):
            return True  # "a pizza with peacock on it", "two beefs in a yard", "a bread"
        if slot.contents and slot.noun in _LIKENESSES and candidate not in _LIKENESSES:
            return True  # "a statue of a lady", and no fire hydrant of one
        return candidate in _OF_BEASTS and not PEOPLE.isdisjoint(slot.context)  # "a man holding a phone to his paw"

    def _goes_before(self, before: str, candidate: str, old: str) -> bool:
        """Whether a word that stays may stand before the candidate: an adjective by the pool, a noun as in a compound."""
        word = candidate.rsplit(maxsplit=1)[-1]
        if before == "decker":
            return candidate in _DOUBLE_DECKERS
        if before in _STUFFED and not (self._things.is_alive(candidate) or candidate in _LIKENESSES):
            return False
        if before == "wooden":
            return self._things.is_of(candidate, "made") or self._pool.adjacency(before, word) > 0  # no wooden tree
        anything = before in UNTOUCHED | _SAID_OF_LOOKS or any(
            found.group in _OF_ANYTHING for found in PLACES.get(before, ())
        )
        if anything or (before in _OF_THINGS and self._things.is_of(candidate, "made")):
            return True
        if self._pool.frequency(before, "NOUN") > self._pool.frequency(before, "ADJ"):
            return self._pool.cooccurrence(before, word) >= OFTEN and self._company.beside(candidate, before) >= SLACK
        known = before in PLACES or before in OPPOSITE  # else "a potted book"
        told = self._usage.describes(before, word) if known else self._pool.adjacency(before, word) > 0
        return told or self._pool.adjacency(before, old) < OFTEN

    def _fits(self, candidate: str, instead_of: str, context: Sequence[str]) -> bool:
        """Whether the pool has a word beside some word of the context, and finds it sensible beside all of them.

        WordNet's candidates have to fit better than those of our own tables, which are about pictures.
        """
        rest = [lemma for lemma in context if lemma not in instead_of.split()]
        word = candidate.rsplit(maxsplit=1)[-1]
        ours = not instead_of or candidate in _ANIMALS or candidate in KINDS.get(instead_of, (candidate,))
        seen, fit = self._pool.context_fit(word, rest, SEEN)
        if seen < min(len(rest), 1 if ours and instead_of else 2):
            return False
        if not ours or not instead_of:
            return fit >= self._least + 2 * SLACK
        return fit >= self._least or fit >= self._pool.plausibility(instead_of.rsplit(maxsplit=1)[-1], rest) - SLACK

    def _urn_for(self, noun: str) -> WeightedWords:
        return self._usage.urn_of(self.instead_of(noun))

    def instead_of(self, noun: str) -> tuple[str, ...]:
        """Return what may stand for a noun, whatever the caption."""
        if noun in FRAMES:
            return ()
        found = list(KINDS.get(noun, ()))
        if noun not in OF_PEOPLE and len(found) < ENOUGH:
            found += self._siblings(noun)
        return tuple(word for word in dict.fromkeys(found) if self._may_replace(word, noun))

    def _siblings(self, noun: str) -> list[str]:
        """Return WordNet's co-hyponyms that are things of the same kind: a motor scooter is no purse, a sign no video."""
        if self._thesaurus.is_a(noun, "person", "NOUN"):
            return []  # a passenger may be a tourist as well
        kinds = self._things.kinds(noun)
        if self._thesaurus.has(noun, "NOUN") and not kinds:
            return []
        near = self._thesaurus.co_hyponyms(noun, "NOUN", LEVELS, self._is_frequent_noun)
        return [
            word
            for word in near
            if self._things.kinds(word) == kinds and self._things.is_alive(word) <= self._things.is_alive(noun)
        ]

    def _is_frequent_noun(self, word: str) -> bool:
        often = self._pool.frequency(word, "NOUN")
        return word.isalpha() and 2 * often > self._pool.form_frequency(word) and self._usage.is_frequent(word, "NOUN")

    def _may_replace(self, word: str, noun: str) -> bool:
        return (
            word not in FRAMES
            and word not in EVERYWHERE
            and (word in KINDS.get(noun, ()) or word not in OF_PEOPLE)
            and self._usage.is_frequent(word, "NOUN")
            and ((word in MASS) == (noun in MASS) or noun in _EATEN_BEASTS)
            and (word in PLURAL_ONLY) == (noun in PLURAL_ONLY)
            and not reword_each_other(word, noun)
            # WordNet's co-hyponyms leave out what is related; our own tables are asked.
            and (word not in KINDS.get(noun, ()) or not self._thesaurus.related(word, noun, "NOUN"))
        )
