"""ADD edits: objects and attributes that are absent, in places where captions have such words.

Proposals are all pairs of a place (`insertion_points`) and a word that is absent (`absence`, `attributes`) and that captions have
there often enough: by the cloze model, p(word | context) is at least `floor` times that of a typical word, whose
log-probability in a context is the expected one, the sum of p log p. Likewise the model has to expect the relation by
which an object is added.

For both-sides pairs, the false word comes with one that is true in the same place (`stated`). Both pass the same
tests, so neither the place nor the kind of word says which of them is true; weights then balance the words, the true
one standing for the replaced word of a REPLACE edit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.additions.absence import AbsentObjects, BoolArray
from pairwright.generators.edits.additions.attributes import SEEN, FalseAttributes
from pairwright.generators.edits.additions.insertion_points import (
    ATTRIBUTE,
    OBJECT,
    Place,
    attribute_places,
    drawn_figures,
    object_places,
)
from pairwright.generators.edits.constraints.stated import StatedObjects
from pairwright.generators.edits.floors import ADDED_PAIR_FLOOR, ADDITION_FLOORS, MAX_LENGTH_DIFFERENCE, RELATION_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import FloatArray, IntArray, WordProposals, split_by_caption
from pairwright.generators.language.cloze.context import ClozeContext
from pairwright.generators.lexicon.function_words import words_with

WordPair = tuple[int, int, int, float]  # place, column of the true word, of the false one, and its log-ratio

_MAX_LOG_RATIO: Final = 0.0  # a word that is likelier than a typical one is not preferred
KINDS: Final = {OBJECT: "noun", ATTRIBUTE: "adjective"}


class ScoredPlaces(NamedTuple):
    """The places of some captions for additions of one target, and how well each word fits there.

    Attributes:
        captions: the captions.
        of: number of the caption of each of n places, ascending, int64.
        places: the places.
        fit: log-probability of each word of the vocabulary less that of a typical one, float32 (n, vocabulary).
        absent: of each caption, the objects that are absent; empty if not computed.
    """

    captions: Sequence[Caption]
    of: IntArray
    places: Sequence[Place]
    fit: FloatArray
    absent: Sequence[int]


class Additions:
    """Proposes additions.

    Args:
        materials: WordNet, the statistics and the edit model of the user's captions, and the lexicons.
        floors: by target; see the module.
    """

    def __init__(self, materials: EditMaterials, *, floors: Mapping[str, float] | None = None) -> None:
        self._model, self._floors = materials.model.cloze, ADDITION_FLOORS if floors is None else floors
        self._nouns = nouns = materials.knowledge.nouns
        self._pool = materials.knowledge.pool
        known = self._model.index("noun")
        self.objects = AbsentObjects(materials.knowledge.thesaurus, self._pool, known)
        self.attributes = FalseAttributes(materials.knowledge.attributes, nouns, self._pool)
        self._stated = StatedObjects(nouns, self.objects.nouns)
        self._columns = np.array([known[noun] for noun in self.objects.nouns], np.int64)
        self._at = {noun: at for at, noun in enumerate(self.objects.nouns)}
        self._alive, self._figures = map(self.objects.those, (nouns.is_alive, drawn_figures().__contains__))
        self._joins = lru_cache(maxsize=10_000)(self._find_joins)
        self._seen_with = lru_cache(maxsize=10_000)(self._find_seen_with)

    def score(self, captions: Sequence[Caption], target: str, *, paired: bool = False) -> ScoredPlaces:
        """Return the places of captions, scored together; those in which no relation fits are left out.

        Places of objects at which none is absent are left out as well unless additions are paired.
        """
        find, filtered = object_places if target == OBJECT else attribute_places, target == OBJECT and not paired
        absent = [self._find_absent(each) for each in captions] if filtered else []
        found = [
            (at, place)
            for at, each in enumerate(captions)
            if not filtered or absent[at]
            for place in find(each)
            if not filtered or self._has_object(place, absent[at])
        ]
        found = self._with_fitting_relations(captions, found)
        fit = self._model.log_probs(KINDS[target], [place.context(captions[at]) for at, place in found])
        fit -= typical_log_probs(fit)[:, None]
        of = np.array([at for at, _ in found], np.int64)
        return ScoredPlaces(captions, of, [place for _, place in found], fit, absent)

    def _find_absent(self, caption: Caption) -> int:
        absent = self.objects.absent(caption)
        return absent & self._may_be_shown(caption) if absent else 0

    def _has_object(self, place: Place, absent: int) -> bool:
        """Whether an absent object may be written at a place."""
        return not place.claim and bool(self._joined(place, absent))

    def _joined(self, place: Place, objects: int) -> int:
        """Return those of some objects that go with the noun of a place."""
        if not place.head:
            return objects
        return objects & self._joins(place.head, alike=bool(place.before and not place.relation))

    def propose(self, captions: Sequence[Caption], target: str, *, paired: bool = False) -> list[WordProposals]:
        """Return the false additions to captions, which do not depend on the others.

        Args:
            captions: the captions.
            target: `OBJECT` or `ATTRIBUTE`.
            paired: each comes with a true addition in the same place.
        """
        scored = self.score(captions, target, paired=paired)
        counts = np.bincount(scored.of, minlength=len(captions)).tolist()
        if paired:
            find = self._object_pairs if target == OBJECT else self._attribute_pairs
            place, old, new, ratios = columns_of(find(scored), _MAX_LOG_RATIO)
            tried: Sequence[Any] = counts
        else:
            place, new = self._false_objects(scored) if target == OBJECT else self._false_attributes(scored)
            old, ratios = np.full(len(new), -1), np.minimum(scored.fit[place, new], _MAX_LOG_RATIO)
            tried = [caption.things for caption in captions]
        targets, made, first = self._model.targets(KINDS[target]), list[WordProposals](), 0
        reason = "no_positive" if paired else "no_candidate"
        for caption, count, part, any_tried in zip(
            captions, counts, split_by_caption(counts, place), tried, strict=True
        ):
            own = (place[part] - first, old[part], new[part], ratios[part])
            reasons = (reason,) if any_tried and not len(own[0]) else ()
            places = scored.places[first : first + count]
            made.append(WordProposals(caption, places, targets, *own, reasons, paired))
            first += count
        return made

    def _with_fitting_relations(
        self, captions: Sequence[Caption], found: list[tuple[int, Place]]
    ) -> list[tuple[int, Place]]:
        asked = [at for at, (_, place) in enumerate(found) if place.asks_relation]
        contexts = [place.relation_context(captions[of]) for of, place in map(found.__getitem__, asked)]
        fits = self._fit_relation([found[at][1].relation for at in asked], contexts)
        unfit = {at for at, fit in zip(asked, fits, strict=True) if not fit}
        return [each for at, each in enumerate(found) if at not in unfit]

    def _fit_relation(self, relations: Sequence[str], contexts: Sequence[ClozeContext]) -> BoolArray:
        """Return whether captions would have each relation in its context."""
        log_probs, index = self._model.log_probs("relation", contexts), self._model.index("relation")
        columns = np.array([index.get(each, -1) for each in relations], np.int64)
        own = log_probs[np.arange(len(columns)), columns]
        fits: BoolArray = own >= typical_log_probs(log_probs) + np.log(RELATION_FLOOR)
        return fits & (columns >= 0)

    def _false_objects(self, scored: ScoredPlaces) -> tuple[IntArray, IntArray]:
        """Return places, and columns of the absent objects that captions could have there and join so to its noun."""
        fits = scored.fit[:, self._columns] >= np.log(self._floors[OBJECT])
        for at, (of, each) in enumerate(zip(scored.of.tolist(), scored.places, strict=True)):
            fits[at] &= self.objects.unpacked(self._joined(each, scored.absent[of]))
        place, column = np.nonzero(fits)
        new, targets = self._columns[column], self._model.targets("noun")
        asked = [at for at, each in enumerate(place.tolist()) if scored.places[each].asks_relation]
        added = [(scored.captions[scored.of[place[at]]], scored.places[place[at]], targets[new[at]]) for at in asked]
        contexts = [each.relation_context(caption, noun) for caption, each, noun in added]
        kept = np.ones(len(new), bool)
        kept[asked] = self._fit_relation([each.relation for _, each, _ in added], contexts)
        return place[kept], new[kept]

    def _may_be_shown(self, caption: Caption) -> int:
        """Return the objects that the image may show: figures only if it is a drawing, none alive beside someone who is alone."""
        hidden = self._figures if drawn_figures().isdisjoint(caption.lemmas) else 0
        return ~(hidden if words_with("alone").isdisjoint(caption.lower) else hidden | self._alive)

    def _find_seen_with(self, head: str) -> BoolArray:
        """Return for each adjective whether captions describe a noun by it."""
        counts = map(self._pool.adjacency, self._model.targets("adjective"), repeat(head))
        return np.array([*counts], np.int64) >= SEEN

    def _find_joins(self, head: str, *, alike: bool) -> int:
        """Return the objects that go with the noun of a place, and in a list share a class with it."""
        together = self.objects.joins(head)
        if not alike:
            return together
        classes = self._nouns.classes(head)
        return together & self.objects.those(lambda noun: not classes.isdisjoint(self._nouns.classes(noun)))

    def _object_pairs(self, scored: ScoredPlaces) -> Iterator[WordPair]:
        nouns, least = self.objects.nouns, np.log(ADDED_PAIR_FLOOR)
        for of, caption in enumerate(scored.captions):
            # What is expected would never be added falsely, so that adding it would say that it is true.
            possible = self.objects.possible(caption) & self._may_be_shown(caption)
            true = [at for at in map(self._at.__getitem__, self._stated.stated(caption)) if possible >> at & 1]
            places = [at for at in np.flatnonzero(scored.of == of).tolist() if true and scored.places[at].shown]
            false = self.objects.unpacked(self._find_absent(caption) if places else 0)
            for place in places:
                row = scored.fit[place, self._columns]
                for is_true in (at for at in true if row[at] >= least):
                    for is_false in np.flatnonzero(false & (row >= least)):
                        if _alike(nouns[is_true], nouns[is_false]):
                            old, new = self._columns[is_true], self._columns[is_false]
                            yield place, int(old), int(new), float(row[is_false] - row[is_true])

    def _false_attributes(self, scored: ScoredPlaces) -> tuple[IntArray, IntArray]:
        """Return places, and columns of the attributes that captions give such a thing and this one does not have."""
        index, targets = self._model.index("adjective"), self._model.targets("adjective")
        fits, found = scored.fit >= np.log(self._floors[ATTRIBUTE]), list[tuple[int, int]]()
        for at, (of, place) in enumerate(zip(scored.of.tolist(), scored.places, strict=True)):
            fitting = [targets[column] for column in np.flatnonzero(fits[at] & self._seen_with(place.head)).tolist()]
            false = self.attributes.false_of(scored.captions[of], place.phrase, fitting) if place.phrase else ()
            found += [(at, index[word]) for word in false]
        places, columns = np.array(found, np.int64).reshape(-1, 2).T
        return places, columns

    def _attribute_pairs(self, scored: ScoredPlaces) -> Iterator[WordPair]:
        index, targets = self._model.index("adjective"), self._model.targets("adjective")
        for at, new in zip(*map(np.ndarray.tolist, self._false_attributes(scored)), strict=True):
            phrase, row = scored.places[at].phrase, scored.fit[at]
            stated = self.attributes.stated_of(scored.captions[scored.of[at]], phrase) if phrase else ()
            for true in (index[word] for word in stated if word in index and _alike(word, targets[new])):
                if row[true] >= np.log(self._floors[ATTRIBUTE]):
                    yield at, true, new, float(row[new] - row[true])


def columns_of(pairs: Iterable[WordPair], limit: float = np.inf) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the columns of pairs of words, log-ratios up to a limit."""
    found = list(pairs)
    place, old, new = np.array([pair[:3] for pair in found], np.int64).reshape(-1, 3).T
    return place, old, new, np.array([min(pair[3], limit) for pair in found], np.float32)


def typical_log_probs(log_probs: FloatArray) -> FloatArray:
    """Return the expected log-probability of a word drawn in each context, shape (n,)."""
    return np.asarray((np.exp(log_probs) * log_probs).sum(axis=1), np.float32)


def _alike(one: str, other: str) -> bool:
    """Whether two words are of about the same length."""
    return abs(len(one) - len(other)) <= MAX_LENGTH_DIFFERENCE and one.count(" ") == other.count(" ")
