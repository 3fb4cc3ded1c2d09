"""ADD edits: absent objects and attributes at insertion points where captions have such words.

Proposals are all pairs of an insertion point (`insertion_points`) and an absent word (`absence`, `attributes`) that is
frequent enough there: by the cloze model, p(word | context) is at least `floor` times that of a typical word, whose
log-probability in a context is the expected one, the sum of p log p. Likewise the model must expect the relation by
which an object is added.

For both-sides pairs, the false word comes with one that is true at the same point (`stated`). Both pass the same tests,
so neither the point nor the class of word tells which of them is true; weights then balance the words, the true one in
the role of the replaced word of a REPLACE edit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.additions.absence import AbsentObjects, BoolArray
from pairwright.generators.edits.additions.attributes import MIN_COUNT, FalseAttributes
from pairwright.generators.edits.additions.insertion_points import (
    ATTRIBUTE,
    OBJECT,
    InsertionPoint,
    attribute_insertions,
    object_insertions,
    shape_nouns,
)
from pairwright.generators.edits.constraints.stated import StatedObjects
from pairwright.generators.edits.floors import ADDED_PAIR_FLOOR, ADDITION_FLOORS, MAX_LENGTH_DIFFERENCE, RELATION_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import FloatArray, IntArray, WordProposals, split_by_caption
from pairwright.generators.language.cloze.context import ClozeContext
from pairwright.generators.lexicon.function_words import words_with

WordPair = tuple[int, int, int, float]  # point, column of the true word, of the false one, and its log-ratio

_MAX_LOG_RATIO: Final = 0.0  # words above typical probability are not preferred
SLOT_OF_TARGET: Final = {OBJECT: "noun", ATTRIBUTE: "adjective"}


class ScoredPoints(NamedTuple):
    """The insertion points of captions for one target, with scores of all words.

    Attributes:
        captions: the captions.
        of: index of the caption of each of n points, ascending, int64.
        points: the insertion points.
        fit: log-probability of each word of the vocabulary minus that of a typical word, float32 (n, vocabulary).
        absent: bit mask of the absent objects of each caption; empty if not computed.
    """

    captions: Sequence[Caption]
    of: IntArray
    points: Sequence[InsertionPoint]
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
        self._alive, self._figures = map(self.objects.mask_of, (nouns.is_alive, shape_nouns().__contains__))
        self._cooccurring = lru_cache(maxsize=10_000)(self._find_cooccurring)
        self._attested_with = lru_cache(maxsize=10_000)(self._find_attested)

    def score(self, captions: Sequence[Caption], target: str, *, paired: bool = False) -> ScoredPoints:
        """Return the insertion points of captions at which the relation fits, scored in one batch.

        Points without an absent object are skipped as well unless additions are paired.
        """
        find, filtered = (
            object_insertions if target == OBJECT else attribute_insertions,
            target == OBJECT and not paired,
        )
        absent = [self._find_absent(each) for each in captions] if filtered else []
        found = [
            (at, point)
            for at, each in enumerate(captions)
            if not filtered or absent[at]
            for point in find(each)
            if not filtered or self._has_object(point, absent[at])
        ]
        found = self._with_fitting_relations(captions, found)
        fit = self._model.log_probs(SLOT_OF_TARGET[target], [point.context(captions[at]) for at, point in found])
        fit -= typical_log_probs(fit)[:, None]
        of = np.array([at for at, _ in found], np.int64)
        return ScoredPoints(captions, of, [point for _, point in found], fit, absent)

    def _find_absent(self, caption: Caption) -> int:
        absent = self.objects.absent(caption)
        return absent & self._possible_objects(caption) if absent else 0

    def _has_object(self, point: InsertionPoint, absent: int) -> bool:
        """Return whether an absent object may be inserted at a point."""
        return not point.is_existential_only and bool(self._fitting_objects(point, absent))

    def _fitting_objects(self, point: InsertionPoint, objects: int) -> int:
        """Return those of some objects that co-occur with the noun of a point."""
        if not point.head:
            return objects
        return objects & self._cooccurring(point.head, alike=bool(point.before and not point.relation))

    def propose(self, captions: Sequence[Caption], target: str, *, paired: bool = False) -> list[WordProposals]:
        """Return the false additions for each caption, independent of the others.

        Args:
            captions: the captions.
            target: `OBJECT` or `ATTRIBUTE`.
            paired: each comes with a true addition in the same point.
        """
        scored = self.score(captions, target, paired=paired)
        counts = np.bincount(scored.of, minlength=len(captions)).tolist()
        if paired:
            find = self._object_pairs if target == OBJECT else self._attribute_pairs
            point, old, new, ratios = columns_of(find(scored), _MAX_LOG_RATIO)
            tried: Sequence[Any] = counts
        else:
            point, new = self._false_objects(scored) if target == OBJECT else self._false_attributes(scored)
            old, ratios = np.full(len(new), -1), np.minimum(scored.fit[point, new], _MAX_LOG_RATIO)
            tried = [caption.things for caption in captions]
        targets, made, first = self._model.targets(SLOT_OF_TARGET[target]), list[WordProposals](), 0
        reason = "no_positive" if paired else "no_candidate"
        for caption, count, part, any_tried in zip(
            captions, counts, split_by_caption(counts, point), tried, strict=True
        ):
            own = (point[part] - first, old[part], new[part], ratios[part])
            reasons = (reason,) if any_tried and not len(own[0]) else ()
            points = scored.points[first : first + count]
            made.append(WordProposals(caption, points, targets, *own, reasons, paired))
            first += count
        return made

    def _with_fitting_relations(
        self, captions: Sequence[Caption], found: list[tuple[int, InsertionPoint]]
    ) -> list[tuple[int, InsertionPoint]]:
        related = [at for at, (_, point) in enumerate(found) if point.requires_relation]
        contexts = [point.relation_context(captions[of]) for of, point in map(found.__getitem__, related)]
        fits = self._fit_relation([found[at][1].relation for at in related], contexts)
        unlikely = {at for at, fit in zip(related, fits, strict=True) if not fit}
        return [each for at, each in enumerate(found) if at not in unlikely]

    def _fit_relation(self, relations: Sequence[str], contexts: Sequence[ClozeContext]) -> BoolArray:
        """Return whether each relation is likely enough in its context."""
        log_probs, index = self._model.log_probs("relation", contexts), self._model.index("relation")
        columns = np.array([index.get(each, -1) for each in relations], np.int64)
        own = log_probs[np.arange(len(columns)), columns]
        fits: BoolArray = own >= typical_log_probs(log_probs) + np.log(RELATION_FLOOR)
        return fits & (columns >= 0)

    def _false_objects(self, scored: ScoredPoints) -> tuple[IntArray, IntArray]:
        """Return the points, and the columns of the absent objects that fit there."""
        fits = scored.fit[:, self._columns] >= np.log(self._floors[OBJECT])
        for at, (of, each) in enumerate(zip(scored.of.tolist(), scored.points, strict=True)):
            fits[at] &= self.objects.unpacked(self._fitting_objects(each, scored.absent[of]))
        point, column = np.nonzero(fits)
        new, targets = self._columns[column], self._model.targets("noun")
        related = [at for at, each in enumerate(point.tolist()) if scored.points[each].requires_relation]
        added = [(scored.captions[scored.of[point[at]]], scored.points[point[at]], targets[new[at]]) for at in related]
        contexts = [each.relation_context(caption, noun) for caption, each, noun in added]
        kept = np.ones(len(new), bool)
        kept[related] = self._fit_relation([each.relation for _, each, _ in added], contexts)
        return point[kept], new[kept]

    def _possible_objects(self, caption: Caption) -> int:
        """Return the objects that the image may show: only shapes in drawings, and no persons if the caption says "alone"."""
        hidden = self._figures if shape_nouns().isdisjoint(caption.lemmas) else 0
        return ~(hidden if words_with("alone").isdisjoint(caption.lower) else hidden | self._alive)

    def _find_attested(self, head: str) -> BoolArray:
        """Return for each adjective whether the pool attests it with a noun."""
        counts = map(self._pool.adjacency, self._model.targets("adjective"), repeat(head))
        return np.array([*counts], np.int64) >= MIN_COUNT

    def _find_cooccurring(self, head: str, *, alike: bool) -> int:
        """Return the objects that co-occur with the noun of a point and, in a coordination, share a class with it."""
        together = self.objects.cooccurring(head)
        if not alike:
            return together
        classes = self._nouns.classes(head)
        return together & self.objects.mask_of(lambda noun: not classes.isdisjoint(self._nouns.classes(noun)))

    def _object_pairs(self, scored: ScoredPoints) -> Iterator[WordPair]:
        nouns, least = self.objects.nouns, np.log(ADDED_PAIR_FLOOR)
        for of, caption in enumerate(scored.captions):
            # Likely objects are never added falsely, so adding them would reveal the true text.
            possible = self.objects.possible(caption) & self._possible_objects(caption)
            true = [at for at in map(self._at.__getitem__, self._stated.stated(caption)) if possible >> at & 1]
            points = [
                at for at in np.flatnonzero(scored.of == of).tolist() if true and scored.points[at].is_existential
            ]
            false = self.objects.unpacked(self._find_absent(caption) if points else 0)
            for point in points:
                row = scored.fit[point, self._columns]
                for is_true in (at for at in true if row[at] >= least):
                    for is_false in np.flatnonzero(false & (row >= least)):
                        if _have_similar_length(nouns[is_true], nouns[is_false]):
                            old, new = self._columns[is_true], self._columns[is_false]
                            yield point, int(old), int(new), float(row[is_false] - row[is_true])

    def _false_attributes(self, scored: ScoredPoints) -> tuple[IntArray, IntArray]:
        """Return the points, and the columns of the attested attributes that are false there."""
        index, targets = self._model.index("adjective"), self._model.targets("adjective")
        fits, found = scored.fit >= np.log(self._floors[ATTRIBUTE]), list[tuple[int, int]]()
        for at, (of, point) in enumerate(zip(scored.of.tolist(), scored.points, strict=True)):
            fitting = [
                targets[column] for column in np.flatnonzero(fits[at] & self._attested_with(point.head)).tolist()
            ]
            false = (
                self.attributes.false_attributes_of(scored.captions[of], point.phrase, fitting) if point.phrase else ()
            )
            found += [(at, index[word]) for word in false]
        points, columns = np.array(found, np.int64).reshape(-1, 2).T
        return points, columns

    def _attribute_pairs(self, scored: ScoredPoints) -> Iterator[WordPair]:
        index, targets = self._model.index("adjective"), self._model.targets("adjective")
        for at, new in zip(*map(np.ndarray.tolist, self._false_attributes(scored)), strict=True):
            phrase, row = scored.points[at].phrase, scored.fit[at]
            stated = self.attributes.true_attributes_of(scored.captions[scored.of[at]], phrase) if phrase else ()
            for true in (index[word] for word in stated if word in index and _have_similar_length(word, targets[new])):
                if row[true] >= np.log(self._floors[ATTRIBUTE]):
                    yield at, true, new, float(row[new] - row[true])


def columns_of(pairs: Iterable[WordPair], limit: float = np.inf) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return word pairs as columns, with log-ratios clipped to a limit."""
    found = list(pairs)
    point, old, new = np.array([pair[:3] for pair in found], np.int64).reshape(-1, 3).T
    return point, old, new, np.array([min(pair[3], limit) for pair in found], np.float32)


def typical_log_probs(log_probs: FloatArray) -> FloatArray:
    """Return the expected log-probability of a word (the negative entropy) in each context, shape (n,)."""
    return np.asarray((np.exp(log_probs) * log_probs).sum(axis=1), np.float32)


def _have_similar_length(one: str, other: str) -> bool:
    """Return whether two words are of about the same length."""
    return abs(len(one) - len(other)) <= MAX_LENGTH_DIFFERENCE and one.count(" ") == other.count(" ")
