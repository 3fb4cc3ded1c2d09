"""ADD edits: absent objects and attributes at insertion points where captions have such words.

Proposals are all pairs of an insertion point (`insertion_points`) and an absent word (`absence`, `attributes`) that is
frequent enough there: by the cloze model, p(word | context) is at least `floor` times that of a typical word, whose
log-probability in a context is the expected one, the sum of p log p. Likewise the model must expect the relation by
which an object is added.

For both-sides pairs, the false word comes with one that is true at the same point (`stated`). Both pass the same tests,
so neither the point nor the class of word tells which of them is true; weights then balance the words, the true one in
the role of the replaced word of a REPLACE edit.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Final, TypeVar

import numpy as np

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.additions.absence import AbsentObjects, BoolArray
from pairwright.generators.edits.additions.attributes import FalseAttributes
from pairwright.generators.edits.additions.insertion_points import (
    ATTRIBUTE,
    OBJECT,
    InsertionPoint,
    attribute_insertions,
    object_insertions,
    shape_nouns,
)
from pairwright.generators.edits.constraints.knowledge import MIN_COUNT
from pairwright.generators.edits.constraints.stated import stated_objects
from pairwright.generators.edits.floors import ADDED_PAIR_FLOOR, ADDITION_FLOORS, MAX_LENGTH_DIFFERENCE, RELATION_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import (
    FloatArray,
    WordPair,
    WordProposals,
    insertion_proposals,
    relative_fits,
    typical_log_probs,
)
from pairwright.generators.lexicon.function_words import words_with

_MAX_LOG_RATIO: Final = 0.0  # words above typical probability are not preferred
_ANY_NOUN: Final = "<noun>"  # no word of a caption: the model reads it as an unknown one
_Added = TypeVar("_Added")
SLOT_OF_TARGET: Final = {OBJECT: "noun", ATTRIBUTE: "adjective"}


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
        self.attributes = FalseAttributes(materials.knowledge)
        self._columns = np.array([known[noun] for noun in self.objects.nouns], np.int64)
        self._at = {noun: at for at, noun in enumerate(self.objects.nouns)}
        self._alive, self._figures = map(self.objects.mask_of, (nouns.is_alive, shape_nouns().__contains__))
        self._attested_with = lru_cache(maxsize=10_000)(self._find_attested)

    def propose(self, captions: Sequence[Caption], target: str, *, paired: bool = False) -> list[WordProposals]:
        """Return the false additions for each caption, scored in one batch; independent of the other captions.

        If paired, each comes with a true addition at the same point.
        """
        kind, targets = SLOT_OF_TARGET[target], self._model.targets(SLOT_OF_TARGET[target])
        unpaired_objects = target == OBJECT and not paired
        absent = [self._find_absent(each) if unpaired_objects else 0 for each in captions]
        if target == ATTRIBUTE:
            points = [*map(attribute_insertions, captions)]
        else:
            if paired:
                points = [*map(object_insertions, captions)]
            else:
                points = [self._object_points(*each) for each in zip(captions, absent, strict=True)]
            points = self._with_relation(captions, [[(each, each, _ANY_NOUN) for each in own] for own in points])
        fits = relative_fits(
            self._model,
            kind,
            [[point.context(each) for point in own] for each, own in zip(captions, points, strict=True)],
        )
        if unpaired_objects:
            found = [[*self._false_objects(*each)] for each in zip(points, fits, absent, strict=True)]
            added = zip(points, found, strict=True)
            placed = [[(each, own[each[0]], targets[each[2]]) for each in words] for own, words in added]
            found = self._with_relation(captions, placed)
        else:
            pairs = self._object_pairs if target == OBJECT else self._attribute_pairs
            find = pairs if paired else self._false_attributes
            found = [[*find(*each)] for each in zip(captions, points, fits, strict=True)]
        reason = "no_positive" if paired else "no_candidate"
        return [
            insertion_proposals(
                each, own, targets, words, reason if (own if paired else each.things) else "", paired=paired
            )
            for each, own, words in zip(captions, points, found, strict=True)
        ]

    def _find_absent(self, caption: Caption) -> int:
        absent = self.objects.absent(caption)
        return absent & self._possible_objects(caption) if absent else 0

    def _object_points(self, caption: Caption, absent: int) -> list[InsertionPoint]:
        """Return the points at which one of the absent objects may be inserted."""
        return [
            point
            for point in (object_insertions(caption) if absent else ())
            if not point.template.is_existential and self._fitting_objects(point, absent)
        ]

    def _fitting_objects(self, point: InsertionPoint, objects: int) -> int:
        """Return those of some objects that co-occur with the noun of a point."""
        return objects & self.objects.cooccurring(point.head) if point.head else objects

    def _with_relation(
        self, captions: Sequence[Caption], added: Sequence[Sequence[tuple[_Added, InsertionPoint, str]]]
    ) -> list[list[_Added]]:
        """Return what is added to each caption, at a point with a noun, if the model expects the relation where it must."""
        of_captions = zip(captions, added, strict=True)
        related = [(caption, *each[1:]) for caption, own in of_captions for each in own if each[1].requires_relation]
        contexts = [point.relation_context(caption, noun) for caption, point, noun in related]
        log_probs, index = self._model.log_probs("relation", contexts), self._model.index("relation")
        columns = np.array([index.get(point.template.relation, -1) for _, point, _ in related], np.int64)
        own = log_probs[np.arange(len(columns)), columns]
        fits = iter(((columns >= 0) & (own >= typical_log_probs(log_probs) + np.log(RELATION_FLOOR))).tolist())
        return [[each for each, point, _ in own if not point.requires_relation or next(fits)] for own in added]

    def _possible_objects(self, caption: Caption) -> int:
        """Return the objects that the image may show: only shapes in drawings, and no persons if the caption says "alone"."""
        hidden = self._figures if shape_nouns().isdisjoint(caption.lemmas) else 0
        return ~(hidden if words_with("alone").isdisjoint(caption.lower) else hidden | self._alive)

    def _find_attested(self, head: str) -> BoolArray:
        """Return for each adjective whether the pool attests it with a noun."""
        counts = map(self._pool.adjacency, self._model.targets("adjective"), repeat(head))
        return np.array([*counts], np.int64) >= MIN_COUNT

    def _false_objects(self, points: Sequence[InsertionPoint], fit: FloatArray, absent: int) -> Iterator[WordPair]:
        fits = fit[:, self._columns] >= np.log(self._floors[OBJECT])
        for at, point in enumerate(points):
            for column in self._columns[
                fits[at] & self.objects.unpacked(self._fitting_objects(point, absent))
            ].tolist():
                yield at, -1, column, min(float(fit[at, column]), _MAX_LOG_RATIO)

    def _object_pairs(self, caption: Caption, points: Sequence[InsertionPoint], fit: FloatArray) -> Iterator[WordPair]:
        # Likely objects are never added falsely, so adding them would reveal the true text.
        possible = self.objects.possible(caption) & self._possible_objects(caption)
        stated = map(self._at.__getitem__, stated_objects(caption, self._at, self._nouns))
        true = [at for at in stated if possible >> at & 1]
        existential = [at for at, point in enumerate(points) if true and point.is_existential]
        nouns, false = self.objects.nouns, self.objects.unpacked(self._find_absent(caption) if existential else 0)
        for point in existential:
            row = fit[point, self._columns]
            fits = row >= np.log(ADDED_PAIR_FLOOR)
            for is_true in (at for at in true if fits[at]):
                for is_false in np.flatnonzero(false & fits):
                    if _have_similar_length(nouns[is_true], nouns[is_false]):
                        ratio = min(float(row[is_false] - row[is_true]), _MAX_LOG_RATIO)
                        yield point, int(self._columns[is_true]), int(self._columns[is_false]), ratio

    def _false_attributes(
        self, caption: Caption, points: Sequence[InsertionPoint], fit: FloatArray
    ) -> Iterator[WordPair]:
        index, targets = self._model.index("adjective"), self._model.targets("adjective")
        fits = fit >= np.log(self._floors[ATTRIBUTE])
        for at, point in enumerate(points):
            attested = [
                targets[column] for column in np.flatnonzero(fits[at] & self._attested_with(point.head)).tolist()
            ]
            for word in self.attributes.false_attributes_of(caption, point.phrase, attested) if point.phrase else ():
                yield at, -1, index[word], min(float(fit[at, index[word]]), _MAX_LOG_RATIO)

    def _attribute_pairs(
        self, caption: Caption, points: Sequence[InsertionPoint], fit: FloatArray
    ) -> Iterator[WordPair]:
        index, targets = self._model.index("adjective"), self._model.targets("adjective")
        for at, _, new, _ in self._false_attributes(caption, points, fit):
            phrase, row = points[at].phrase, fit[at]
            stated = self.attributes.true_attributes_of(caption, phrase) if phrase else ()
            for true in (index[word] for word in stated if word in index and _have_similar_length(word, targets[new])):
                if row[true] >= np.log(self._floors[ATTRIBUTE]):
                    yield at, true, new, min(float(row[new] - row[true]), _MAX_LOG_RATIO)


def _have_similar_length(one: str, other: str) -> bool:
    return abs(len(one) - len(other)) <= MAX_LENGTH_DIFFERENCE and one.count(" ") == other.count(" ")
