"""Which word may take another's place in a hard negative.

A candidate has to be of the same kind without meaning the same, and captions must use it: kinds of our own first
(`nouns.py`, `attributes.py`), then WordNet's co-hyponyms within two levels (of things only, of the same kind) and
antonyms. What is rare in the pool goes, and so do synonyms, hypernyms, hyponyms and words that captioners mix up. This
much depends on the word alone and is kept.

Per caption it must make sense beside the other words (the pool's plausibility) and must not be said of the image
already, in any wording: that would be a false negative.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from pairwright.generators.attributes import (
    CLASSES,
    OPPOSITE,
    PLACES,
    UNTOUCHED,
    contrary,
    excluded_beside,
    place,
    same_concept,
)
from pairwright.generators.context import ImageWords, loosely_same, plural_of
from pairwright.generators.draws import Draws, Urn
from pairwright.generators.knowledge import Pool, Thesaurus
from pairwright.generators.language.inflection import article
from pairwright.generators.language.lemmas import lemma
from pairwright.generators.language.links import WORDINGS
from pairwright.generators.nouns import (
    ADDABLE,
    EVERYWHERE,
    FIGURES,
    FLYING,
    FRAMES,
    GATHERINGS,
    KINDS,
    MASS,
    OF_PEOPLE,
    OPEN_PLACES,
    PLURAL_ONLY,
    SEXED,
    SURROUNDINGS,
    WORN,
)
from pairwright.generators.odds import Odds
from pairwright.generators.relations import ENCLOSED, TABLES
from pairwright.generators.scenes import Scenes
from pairwright.generators.synonyms import reword_each_other
from pairwright.generators.wordlists import word_set

ENOUGH = 4  # kinds of our own; fewer, and WordNet is asked as well
LEVELS = 2  # of WordNet between a word and its co-hyponyms
SLACK = 0.05  # plausibility by which our own kinds may fall short of the old word, and WordNet's must do better
USUAL = 0.01  # share of a noun's captions in which it goes with a preposition
SLIP = 0.003  # share of a noun's captions that say so by a slip ("sitting at a chair")
OFTEN = 5  # captions that show that it was no slip
SEEN = 2  # captions of the pool that show that two words go together
STRANGE = -0.15  # plausibility of two words that are hardly ever seen together where chance alone would have them
EITHER_WAY = 0.1  # of how often a relation is said one way, that it must be the other way round
COMMON = 0.05  # share of a word's captions in which another is usual
UNSAID = 0.02  # share of a word's captions in which a thing is, above which it may be there though nobody says so
KNOWN = 100  # captions that have a thing, for what is not said of it to tell anything
_LIVELY = ("walk", "eat", "look", "run", "graze", "swim")
_EVERY_PLACE, _MAINLY = frozenset({"on", "in", "at", "under", "through", "along", "down"}), 5
TRIED = 24  # candidates looked at in one place

_PEOPLE = OF_PEOPLE | GATHERINGS
_ANYBODY = ("man", "woman", "person")  # what one of them does, another may do
_ANY_ANIMAL = ("dog", "cat", "horse", "cow", "sheep", "elephant", "bear")
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
_KINDS = {  # what may not be mistaken for each other; of several, the first counts (a cake is also a bar of soap)
    "food": ("food", "solid food", "dish", "baked goods", "foodstuff", "produce", "beverage", "edible fruit"),
    "living": ("animal", "person"),
    "made": ("artifact",),
    "grown": ("plant", "flower"),
    "land": ("geological formation", "body of water", "land"),
}
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
_OF_THE_LIVING = frozenset({"young", "elderly"})  # motorcycles are not young again
_SAT_AT = frozenset({"bench", "piano", "stove", "computer", "laptop"})
_BESIDES = frozenset({"next to", "beside", "behind", "in front of"})  # whatever can be seen
_NEEDS_A_BODY = frozenset({"under", "underneath", "beneath", "outside"})


_GREENS = word_set(
    "park countryside grass grassland grassy hill hillside forest pasture meadow landscape vegetation jungle lawn"
)
_WITHERED = frozenset({"brown", "yellow"})
_OF_BEASTS = frozenset({"paw", "hoof", "tail", "trunk", "snout"})
_COATS = frozenset({"brown", "black", "white", "gray"})  # of fur and feathers
ENOUGH_SAID = 20  # captions that tell the colour, or the like, of a noun, for its rare ones to be known
RARE = 0.06  # share of a word among them
_TOLD = ("colour", "material", "pattern")  # whose silence tells something; that a door is closed goes unsaid


@dataclass(frozen=True, slots=True)
class Attribute:
    """A word that captions say of a noun; ``rare`` when hardly any of those that tell such a thing have it."""

    text: str
    rare: bool


class Slot(NamedTuple):
    """A place of a caption that wants another noun.

    Attributes:
        noun: the lemma that stands there, compounds with spaces.
        governor: lemma of the verb or preposition right before it, or empty.
        context: lemmas of the content words of the caption.
        act: lemma of the verb that says what it does, or empty.
        contents: of what it is full, or consists, or a part: the lemma after "of", or empty.
        described: words that stay before it, adjectives and nouns.
        airborne: the caption speaks of the air.
        whole: what it fills, or is a part or a number of: the lemma before "of", or empty.
        placed: lemmas of what is said to be at it, things and deeds, each with the preposition.
        place: the preposition and the noun by which it is said where it is, or empty.
    """

    noun: str
    governor: str
    context: Sequence[str]
    act: str = ""
    contents: str = ""
    described: tuple[str, ...] = ()
    airborne: bool = False
    whole: str = ""
    placed: tuple[tuple[str, str], ...] = ()
    place: tuple[str, str] = ("", "")


_STUFFED = frozenset({"stuffed", "plush", "teddy"})
_STILL = frozenset({"sit", "stand", "lie", "lay", "rest", "lean"})  # what things do as well as the living
_DOUBLE_DECKERS = frozenset({"bus", "train", "tram", "trolley", "boat", "ship", "ferry", "plane", "airplane", "truck"})


class Candidates:
    """Finds replacements; holds tables only, and memories of what the tables say.

    Args:
        thesaurus: WordNet.
        pool: statistics of the captions that the negatives are to look like.
        minimum: captions of the pool in which a new word must occur.
        least: plausibility in its context that a new word must reach, unless the old one has hardly more.
    """

    def __init__(self, thesaurus: Thesaurus, pool: Pool, *, minimum: int, least: float) -> None:
        self._thesaurus, self._pool = thesaurus, pool
        self._minimum, self._least = minimum, least
        self.odds = Odds(pool)
        self.scenes = Scenes(pool, self._is_alive)
        self.adjectives = lru_cache(maxsize=20_000)(self._adjectives)
        self.attributes_of = lru_cache(maxsize=20_000)(self._find_attributes_of)
        self._urn = lru_cache(maxsize=20_000)(self._urn_for)
        self._sayings = lru_cache(maxsize=100_000)(self._find_sayings)
        self._beside_it = lru_cache(maxsize=20_000)(self._find_beside_it)
        self._beside = lru_cache(maxsize=200_000)(self._find_beside)
        self._belongs = lru_cache(maxsize=200_000)(self._find_belongs)
        self._kinds = lru_cache(maxsize=20_000)(self._find_kinds)
        self._is_body = lru_cache(maxsize=20_000)(self._find_is_body)
        self._said_as = lru_cache(maxsize=20_000)(self._find_said_as)
        self._is_usual = lru_cache(maxsize=50_000)(self._find_is_usual)
        self._takes = lru_cache(maxsize=5_000)(self._find_takes)
        self.moves = lru_cache(maxsize=20_000)(self._find_moves)
        self.said_before = lru_cache(maxsize=50_000)(self._find_said_before)
        self.is_alive = lru_cache(maxsize=20_000)(self._is_alive)

    def has_kinds(self, noun: str) -> bool:
        """Whether our own tables tell what may stand for a noun."""
        return noun in KINDS

    def for_noun(self, slot: Slot, words: ImageWords, rng: Draws) -> tuple[str, str]:
        """Return a noun to stand in a place, or an empty string and the reason why there is none."""
        if slot.noun in SEXED and words.has_any(GATHERINGS):
            return "", "true_of_image"  # "a couple" may well hold the other one
        return self._first(self._urn(slot.noun), slot, words, rng)

    def by_place(self, slot: Slot, words: ImageWords, rng: Draws) -> tuple[str, str]:
        """Return a noun of our own tables where the words around vouch for it, if not the whole caption.

        Captions must have it after the verb (or, a place for a place, after the preposition) more than by a slip, or it
        must be strange beside nothing.
        """
        reason = "no_candidate"
        ours = KINDS.get(slot.noun, ()) if slot.noun not in OF_PEOPLE else ()
        for candidate in rng.out_of(self._urn(slot.noun), TRIED) if ours else ():
            if candidate not in ours or not (self._fits_after(candidate, slot) and self._fits_around(candidate, slot)):
                continue
            if self.is_said(candidate, slot.noun, words):
                reason = "true_of_image"
            elif self._is_vouched_for(candidate, slot):
                return candidate, ""
        return "", reason

    def _is_vouched_for(self, candidate: str, slot: Slot) -> bool:
        word = candidate.rsplit(maxsplit=1)[-1]
        lands = slot.noun in SURROUNDINGS and candidate in SURROUNDINGS
        tells = lands or self._pool.frequency(slot.governor, "VERB") >= OFTEN
        if tells and self._pool.adjacency(slot.governor, word) >= self._often(word):
            return True
        rest = (other for other in slot.context if other not in slot.noun.split())
        return not self.is_strange_beside_any(candidate, rest)

    def for_person(self, slot: Slot, words: ImageWords, rng: Draws) -> tuple[str, str]:
        """Return an animal to stand for somebody, or an empty string and the reason why there is none."""
        fitting = tuple(noun for noun in self._animals if self.goes_along(noun, slot.context))
        found = self._first(self._urn_of(fitting), slot, words, rng)
        if found[0]:
            return found
        known = tuple(noun for noun in self._animals if not self.is_strange_beside_any(noun, slot.context))
        return self._first(self._urn_of(known), slot, words, rng)

    @cached_property
    def _animals(self) -> tuple[str, ...]:
        return tuple(noun for noun in _ANIMALS if self.is_frequent(noun, "NOUN"))

    def _first(self, found: Urn, slot: Slot, words: ImageWords, rng: Draws) -> tuple[str, str]:
        reason = "no_candidate"
        for candidate in rng.out_of(found, TRIED):
            if not (self._fits_after(candidate, slot) and self._fits_around(candidate, slot)):
                continue
            if self.is_said(candidate, slot.noun, words):
                reason = "true_of_image"
            elif self._is_in_place(candidate, slot) and self.fits(candidate, slot.noun, slot.context):
                return candidate, ""
        return "", reason

    def _is_in_place(self, candidate: str, slot: Slot) -> bool:
        """Whether captions put such things as are told at the candidate, and the candidate where it is told to be."""
        word, scenes = candidate.rsplit(maxsplit=1)[-1], self.scenes
        for left, preposition in slot.placed:
            if scenes.is_strange(left, preposition, word) or not scenes.is_seen(left, preposition, word):
                return False
        preposition, noun = slot.place
        if not noun:
            return True
        return not scenes.is_strange(word, preposition, noun) and scenes.is_seen(word, preposition, noun)

    def _fits_after(self, candidate: str, slot: Slot) -> bool:
        """Whether the pool has the candidate after the verb or preposition; not asked where it hardly has any."""
        if not slot.governor or slot.governor == "of":
            return not slot.whole or self._fits_in(candidate, slot)
        word = candidate.rsplit(maxsplit=1)[-1]
        if slot.governor == "at" and slot.noun in TABLES and word not in TABLES | _SAT_AT:
            return False  # "sitting at a boat"
        ours = candidate in _ANIMALS or candidate in KINDS.get(slot.noun, (candidate,))
        known = self._pool.adjacency(slot.governor, slot.noun.rsplit(maxsplit=1)[-1])
        seen = self._pool.adjacency(slot.governor, word)
        return (ours and known < ENOUGH_SAID) or seen >= max(SEEN, SLIP * self._pool.frequency(word, "NOUN"))

    def _fits_in(self, candidate: str, slot: Slot) -> bool:
        """Whether "body of" and the like may stand before the candidate, if the pool has them with the old noun."""
        known = self._pool.cooccurrence(slot.whole, slot.noun.rsplit(maxsplit=1)[-1])
        return known < OFTEN or self._beside(candidate, slot.whole) > STRANGE

    def _fits_around(self, candidate: str, slot: Slot) -> bool:
        """Whether the pool would say of the candidate what the caption says of the old noun, as far as it says it."""
        word, old = candidate.rsplit(maxsplit=1)[-1], slot.noun.rsplit(maxsplit=1)[-1]
        if slot.airborne and slot.noun in FLYING and candidate not in FLYING:
            return False
        somebody = slot.noun in OF_PEOPLE and candidate not in _ANIMALS
        acts = not slot.act or somebody or self._pool.adjacency(old, slot.act) < OFTEN
        if self.is_alive(slot.noun) and not self.is_alive(candidate):
            acts = slot.act in _STILL or not slot.act  # no plane swims
        least = 1 if candidate in KINDS.get(slot.noun, ()) else SEEN
        if not acts and self._pool.adjacency(word, slot.act) < least:
            return False
        if slot.contents and slot.noun in _LIKENESSES and candidate not in _LIKENESSES:
            return False  # "a statue of a lady", and no fire hydrant of one
        if candidate in _OF_BEASTS and not _PEOPLE.isdisjoint(slot.context):
            return False  # "a man holding a phone to his paw"
        told = slot.contents and self._pool.cooccurrence(old, slot.contents) >= OFTEN
        if told and self._beside(candidate, slot.contents) < self._least:
            return False
        return all(self._goes_before(before, candidate, old) for before in slot.described)

    def _goes_before(self, before: str, candidate: str, old: str) -> bool:
        """Whether a word that stays may stand before the candidate: an adjective by the pool, a noun as in a compound."""
        word = candidate.rsplit(maxsplit=1)[-1]
        if before == "decker":
            return candidate in _DOUBLE_DECKERS
        if before in _STUFFED and not (self.is_alive(candidate) or candidate in _LIKENESSES):
            return False
        if before in UNTOUCHED or any(found.group in _OF_ANYTHING for found in PLACES.get(before, ())):
            return True
        if before in _OF_THINGS and self.is_of(candidate, "made"):
            return True
        if self._pool.frequency(before, "NOUN") > self._pool.frequency(before, "ADJ"):
            return self._pool.cooccurrence(before, word) >= OFTEN and self._beside(candidate, before) >= SLACK
        return self._pool.adjacency(before, old) < OFTEN or self._describes(before, word)

    def _urn_for(self, noun: str) -> Urn:
        return self._urn_of(self.nouns(noun))

    def _urn_of(self, found: tuple[str, ...]) -> Urn:
        """Return words to draw from; one that is four times as frequent is drawn twice as often."""
        return Urn.of(found, (math.sqrt(self._pool.frequency(word.split()[-1], "NOUN")) for word in found))

    def fits(self, candidate: str, instead_of: str, context: Sequence[str]) -> bool:
        """Whether the pool has a word beside some word of the context, and finds it sensible beside all of them.

        WordNet's candidates have to fit better than those of our own tables, which are about pictures.
        """
        rest = [lemma for lemma in context if lemma not in instead_of.split()]
        word = candidate.rsplit(maxsplit=1)[-1]
        ours = not instead_of or candidate in _ANIMALS or candidate in KINDS.get(instead_of, (candidate,))
        seen, fit = self._pool.company(word, rest, SEEN)
        if seen < min(len(rest), 1 if ours and instead_of else 2):
            return False
        if not ours or not instead_of:
            return fit >= self._least + 2 * SLACK
        return fit >= self._least or fit >= self._pool.plausibility(instead_of.rsplit(maxsplit=1)[-1], rest) - SLACK

    def goes_along(self, candidate: str, context: Sequence[str]) -> bool:
        """Whether captions have a thing in such company: strange beside none of it, and sensible beside all of it."""
        total, beside = 0.0, self._beside
        for other in context:
            fit = beside(candidate, other)
            if fit <= STRANGE:
                return False
            total += fit
        return bool(context) and total >= (self._least + SLACK) * len(context)

    def fit(self, candidate: str, context: Sequence[str]) -> float:
        """Return how well a thing goes with all the words of a context together."""
        return sum(self._beside(candidate, other) for other in context)

    def stands_beside(self, candidate: str, other: str) -> bool:
        """Whether captions have a thing with another one as often as chance would, or often enough not to matter."""
        return self._stands(candidate, other, self._beside(candidate, other))

    def _stands(self, candidate: str, other: str, fit: float) -> bool:
        return fit >= self._least or self._is_common(candidate.rsplit(maxsplit=1)[-1], other)

    def _find_beside(self, candidate: str, other: str) -> float:
        """Return how well a thing goes with a word; of a compound, its worst word ("hot dog" is not about dogs)."""
        if " " not in candidate:
            return self._plausible(candidate, other)
        return min(self._plausible(word, other) for word in candidate.split())

    def _plausible(self, word: str, other: str) -> float:
        """Return the plausibility of two words, below zero where they are never seen together: rare ones rarely are."""
        seen, fit = self._pool.company(word, (other,), SEEN)
        return fit if seen or word == other else min(fit, -SLACK)

    def _is_common(self, word: str, beside: str) -> bool:
        often = self._pool.cooccurrence(beside, beside)
        return often > 0 and self._pool.cooccurrence(word, beside) >= max(SEEN, COMMON * often)

    def is_said(self, candidate: str, instead_of: str, words: ImageWords) -> bool:
        """Whether a caption or box speaks of the candidate; words that may mean the original do not count."""
        single, compound = self._sayings(candidate, instead_of)
        return not words.all.isdisjoint(single) or (bool(compound) and words.has_any(compound))

    def _find_sayings(self, candidate: str, instead_of: str) -> tuple[frozenset[str], tuple[str, ...]]:
        forms = self._said_as(candidate)
        if self._is_bird(candidate) and not self._is_bird(instead_of):
            forms |= {"bird", "birds"}  # somebody's bird may be another's duck
        if instead_of:
            forms -= loosely_same(instead_of)
        else:
            same = loosely_same(candidate) | loosely_same(candidate.rsplit(maxsplit=1)[-1])
            forms |= same | {plural_of(word) for word in same}
        return frozenset(form for form in forms if " " not in form), tuple(
            sorted(form for form in forms if " " in form)
        )

    def _is_bird(self, noun: str) -> bool:
        return self._thesaurus.is_a(noun, "bird", "NOUN")

    def is_written(self, form: str) -> bool:
        """Whether captions have the word as it is."""
        return self._pool.form_frequency(form) >= SEEN

    def has_posture(self, noun: str) -> bool:
        """Whether sitting and standing are two things for it: people and animals, but not birds."""
        return self.is_alive(noun) and not self._is_bird(noun)

    def is_word(self, compound: str) -> bool:
        """Whether the dictionary has the compound as a noun of its own."""
        return self._thesaurus.has(compound, "NOUN")

    def describing(self, word: str, noun: str, rng: Draws, *, joined: bool = False) -> list[str]:
        """Return what may be said of a noun instead of ``word``, in random order.

        Captions of the pool have to say it of such nouns. Only where none of them does, or where it is ``joined`` to
        other colours, any colour may take the place of a colour.
        """
        found = [other for other in self.adjectives(word) if excluded_beside(word, other, noun)]
        if noun in OF_PEOPLE and is_size(word):
            found = [other for other in found if not is_size(other)]  # a little girl is no large one, but grown
        if noun in OF_PEOPLE and not is_colour(word):
            found = [other for other in found if not is_colour(other)]  # "a blonde woman" tells of her hair
        if noun in _GREENS and is_colour(word):
            found = [other for other in found if not is_colour(other) or not _WITHERED.isdisjoint(same_concept(other))]
        if self.is_alive(noun) and not joined:
            found = [other for other in found if not is_colour(other) or self._is_coat(other, noun)]
        opposites = OPPOSITE.get(word, ()) if noun not in OF_PEOPLE or is_size(word) else ()
        seen = [other for other in found if other in opposites or is_size(other) or self._describes(other, noun)]
        if not self.is_alive(noun):
            seen = [other for other in seen if other not in _OF_THE_LIVING]
        drawn = rng.by_weight(seen, self.odds.of_words(word, tuple(seen), noun))
        if is_colour(word) and (joined or not seen):
            rest = [other for other in found if is_colour(other) and other not in seen]
            drawn += rng.by_weight(rest, self.odds.of_words(word, tuple(rest), noun))
        return drawn

    def _is_coat(self, colour: str, noun: str) -> bool:
        """Whether a living thing may have a colour: as many have, or as captions say right before such a noun."""
        return not _COATS.isdisjoint(same_concept(colour)) or self._pool.adjacency(colour, noun) >= self._often(noun)

    def _describes(self, adjective: str, noun: str) -> bool:
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
        counted = wording if tuple(words) in WORDINGS else words[-1]
        return self._pool.adjacency(counted, noun) >= SEEN or words[-1] == "than"

    @cached_property
    def _addable(self) -> tuple[str, ...]:
        return tuple(noun for noun in ADDABLE if self.is_frequent(noun, "NOUN"))

    def addable_beside(self, other: str, rng: Draws) -> Iterator[str]:
        """Draw some of the things that captions have beside another, frequent ones sooner."""
        return rng.out_of(self._beside_it(other), TRIED)

    def is_like(self, noun: str, other: str) -> bool:
        """Whether two things are of one kind, and neither is worn, so that a list may hold both."""
        return self._kinds(noun) == self._kinds(other) and WORN.isdisjoint((noun, other))

    def _find_beside_it(self, other: str) -> Urn:
        # Asked once, of all there are: remembered one by one, these would drive out what is asked again.
        fits = ((noun, self._find_beside(noun, other)) for noun in self._addable)
        return self._urn_of(tuple(noun for noun, fit in fits if self._stands(noun, other, fit)))

    def drawn_by_use(self, forms: Sequence[str], rng: Draws) -> list[str]:
        """Return words in a random order, those that the pool has often sooner; what it lacks is left out."""
        often = [min(self._pool.form_frequency(word) for word in form.split()) for form in forms]
        drawn = [(rng.share() ** (1 / seen), form) for form, seen in zip(forms, often, strict=True) if seen >= SEEN]
        return [form for _, form in sorted(drawn, reverse=True)]

    def is_strange_beside_any(self, noun: str, words: Iterable[str]) -> bool:
        """Whether captions hardly ever have a thing beside one of the words where chance alone would have it."""
        return any(self._beside(noun, word) <= STRANGE for word in words)

    def belongs_with_any(self, noun: str, words: Iterable[str]) -> bool:
        """Whether captions speak so often of a thing beside one of the words that it may be there unsaid."""
        return any(self._belongs(noun, word) for word in words)

    def _find_belongs(self, noun: str, word: str) -> bool:
        often = self._pool.cooccurrence(word, word)
        return self._pool.cooccurrence(noun.rsplit(maxsplit=1)[-1], word) > UNSAID * often

    def addable_like(self, noun: str, rng: Draws) -> list[str]:
        """Return all things of as many words that may be added, those of the same length first."""
        words = len(noun.split())
        like = [other for other in self._addable if len(other.split()) == words and other != noun]
        return sorted(rng.shuffled(like), key=lambda other: abs(len(_indefinite(other)) - len(_indefinite(noun))))

    def names_of(self, noun: str) -> frozenset[str]:
        """Return the word forms by which captions may mean the noun or a kind of it."""
        return self._said_as(noun)

    def is_another(self, noun: str, other: str) -> bool:
        """Whether nobody would call a thing by the other noun: one of another kind, or one that often stands beside it.

        Words that the pool hardly has are never sure: they may be slips of the pen.
        """
        if not self.is_frequent(other, "NOUN"):
            return False
        one, two = self._kinds(noun), self._kinds(other)
        often = min(self._pool.cooccurrence(word, other) for word in noun.split()) >= OFTEN
        return (bool(one) and one.isdisjoint(two)) or (often and self._beside(noun, other) >= SLACK)

    def is_of(self, noun: str, kind: str) -> bool:
        """Whether a noun is of a kind of `_KINDS`."""
        return kind in self._kinds(noun)

    def is_kin(self, noun: str, other: str) -> bool:
        """Whether one is a kind of the other, or may be taken for it, as one dish for another."""
        near = other in KINDS.get(noun, ()) or noun in KINDS.get(other, ()) or {noun, other} == {"pot", "vase"}
        dishes = "food" in self._kinds(noun) & self._kinds(other)
        return near or dishes or reword_each_other(noun, other) or self._thesaurus.related(noun, other, "NOUN")

    def _find_kinds(self, noun: str) -> frozenset[str]:
        """Return the kind of thing, none for what is no thing (a trick)."""
        word = noun if self._thesaurus.has(noun, "NOUN") else noun.rsplit(maxsplit=1)[-1]
        found = (
            name for name, above in _KINDS.items() if any(self._thesaurus.is_a(word, kind, "NOUN") for kind in above)
        )
        return frozenset(islice(found, 1))

    def is_adjective(self, word: str, noun: str) -> bool:
        """Whether captions describe such nouns by the word."""
        return (word in PLACES or self._pool.frequency(word, "ADJ") >= self._minimum) and (
            self._pool.adjacency(word, noun) >= SEEN
        )

    def told_instead(self, true: str, others: Sequence[str], noun: str, rng: Draws) -> str:
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
                if count >= SEEN and self._pool.frequency(word, "ADJ") >= self._minimum
            ]
        return tuple(found)

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
        often = self._often(noun)
        if preposition == "with" and not (self.is_alive(noun) or self._pool.adjacency("hold", noun) >= often):
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
        doers = (noun, *(_ANYBODY if noun in _PEOPLE else _ANY_ANIMAL if alone else ()))
        seen = any(self._pool.adjacency(doer, verb) >= SEEN for doer in doers)
        return seen or (alone and self._pool.cooccurrence(noun, verb) >= SEEN)

    def _find_moves(self, noun: str) -> bool:
        """Whether captions say of it what only the living do: a monitor lizard is rarely meant."""
        return any(self._pool.adjacency(noun, verb) >= SEEN for verb in _LIVELY)

    def makes_sense(self, word: str, instead_of: str, context: Sequence[str]) -> bool:
        """Whether the pool does not find a word strange beside the others of a caption."""
        rest = [lemma for lemma in context if lemma != instead_of]
        return self._pool.plausibility(word, rest) >= self._least - SLACK

    def lemma_of(self, form: str) -> str:
        """Return the verb of a participle."""
        return lemma(form, "VBG" if form.endswith("ing") else "VBN")

    def may_trade_places(self, first: str, relation: str, second: str) -> bool:
        """Whether captions have ``second`` before such a relation and ``first`` after it, as more than a slip.

        And not much less often than the other way round: plates are on tables, and hardly ever tables on plates.
        """
        words = relation.split()
        counted = relation if tuple(words) in WORDINGS else words[-1]
        before, after = self._pool.adjacency(second, words[0]), self._pool.adjacency(counted, first)
        as_said = self._pool.adjacency(first, words[0]) * self._pool.adjacency(counted, second)
        usual = before >= self._often(second) and after >= self._often(first)
        return usual and before * after >= EITHER_WAY * as_said

    def may_trade_parts(self, first: str, verb: str, second: str) -> bool:
        """Whether captions say that ``second`` does it, and that it is done to ``first``, as more than a slip."""
        done = self._pool.adjacency(second, verb) >= self._often(second)
        return done and self._pool.adjacency(verb, first) >= max(OFTEN, SLIP * self._pool.frequency(first, "NOUN"))

    def goes_well(self, candidate: str, other: str) -> bool:
        """Whether captions have a thing with another one more often than chance would."""
        return self._beside(candidate, other) >= self._least + SLACK

    def does(self, noun: str, verb: str) -> bool:
        """Whether captions say that such a thing does it, as more than a slip."""
        return self._pool.adjacency(noun, verb) >= self._often(noun)

    def is_described(self, noun: str, adjective: str) -> bool:
        """Whether captions say the adjective of such a noun; what is made, and what the pool hardly has, may be anything."""
        if self._kinds(noun) == {"made"}:
            return True
        if is_colour(adjective) and self.is_alive(noun) and noun not in OF_PEOPLE:
            return self._is_coat(adjective, noun)
        seen = self._pool.adjacency(adjective, noun) >= SEEN
        known = self._pool.frequency(noun, "NOUN") >= ENOUGH_SAID
        return seen or not known or (not is_colour(adjective) and self._describes(adjective, noun))

    def _often(self, noun: str) -> float:
        return max(SEEN, USUAL * self._pool.frequency(noun, "NOUN"))

    def is_frequent(self, word: str, pos: str) -> bool:
        """Whether the pool has the word often enough, or a compound's parts together."""
        *before, last = word.split()
        return self._pool.frequency(last, pos) >= self._minimum and all(
            self._pool.cooccurrence(part, last) >= SEEN for part in before
        )

    def nouns(self, noun: str) -> tuple[str, ...]:
        """Return what may stand for a noun, whatever the caption."""
        if noun in FRAMES:
            return ()
        found = list(KINDS.get(noun, ()))
        if noun not in OF_PEOPLE and len(found) < ENOUGH:
            found += self._siblings(noun)
        return tuple(word for word in dict.fromkeys(found) if self._may_replace(word, noun))

    def _is_frequent_noun(self, word: str) -> bool:
        often = self._pool.frequency(word, "NOUN")
        return word.isalpha() and 2 * often > self._pool.form_frequency(word) and self.is_frequent(word, "NOUN")

    def _siblings(self, noun: str) -> list[str]:
        """Return WordNet's co-hyponyms that are things of the same kind: a motor scooter is no purse, a sign no video."""
        if self._thesaurus.is_a(noun, "person", "NOUN"):
            return []  # a passenger may be a tourist as well
        kinds = self._kinds(noun)
        if self._thesaurus.has(noun, "NOUN") and not kinds:
            return []
        near = self._thesaurus.co_hyponyms(noun, "NOUN", LEVELS, self._is_frequent_noun)
        return [word for word in near if self._kinds(word) == kinds and self.is_alive(word) <= self.is_alive(noun)]

    def _may_replace(self, word: str, noun: str) -> bool:
        return (
            word not in FRAMES
            and word not in EVERYWHERE
            and (word in KINDS.get(noun, ()) or word not in OF_PEOPLE)
            and self.is_frequent(word, "NOUN")
            and (word in MASS) == (noun in MASS)
            and (word in PLURAL_ONLY) == (noun in PLURAL_ONLY)
            and not reword_each_other(word, noun)
            # WordNet's co-hyponyms leave out what is related; our own tables are asked.
            and (word not in KINDS.get(noun, ()) or not self._thesaurus.related(word, noun, "NOUN"))
        )

    def _adjectives(self, word: str) -> tuple[str, ...]:
        found = list(contrary(word))
        if word not in PLACES:
            found += [other for other in self._thesaurus.antonyms(word, "ADJ") if " " not in other]
        return tuple(
            other
            for other in dict.fromkeys(found)
            if other.isalpha()
            and self._pool.frequency(other, "ADJ") >= self._minimum
            and not reword_each_other(word, other)
        )

    def _find_said_as(self, candidate: str) -> frozenset[str]:
        """Return the word forms that would make the candidate true: itself, its synonyms, and its kinds."""
        same = {candidate, *self._thesaurus.synonyms(candidate, "NOUN"), *loosely_same(candidate)}
        kinds = (word for word in self._thesaurus.hyponyms(candidate, "NOUN") if self._pool.frequency(word, "NOUN"))
        forms = {*same, *kinds} - FRAMES
        return frozenset(forms | {plural_of(form) for form in forms})

    def _find_is_body(self, noun: str) -> bool:
        """Whether a noun is a thing that one can stand beside."""
        seen = noun in KINDS or any(self._thesaurus.is_a(noun, kind, "NOUN") for kind in ("artifact", "animal"))
        return seen and noun not in FIGURES | WORN and self.is_frequent(noun, "NOUN")

    def _is_alive(self, noun: str) -> bool:
        """Whether a noun is a person or an animal in every sense that counts: a bat and a mug are not."""
        if noun in _PEOPLE:
            return True
        kinds = [kind for kind in ("person", "animal", "artifact", "food") if self._thesaurus.is_a(noun, kind, "NOUN")]
        return bool(kinds) and not {"artifact", "food"}.intersection(kinds)


def _indefinite(noun: str) -> str:
    return f"{article(noun)} {noun}"


def adjective_is_said(adjective: str, words: ImageWords) -> bool:
    """Whether some caption uses a word of the adjective's concept, of whatever thing."""
    return words.has_any(same_concept(adjective))


def is_size(word: str) -> bool:
    """Whether a word is a size, which any thing may have."""
    found = place(word)
    return found is not None and found.group == "size"


def is_colour(word: str) -> bool:
    """Whether a word is a colour that any painted thing may have."""
    found = place(word)
    return found is not None and found.group == "colour" and found.concept != "blond"
