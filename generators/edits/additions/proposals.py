"""ADD edits: objects and attributes that are absent, in places where captions have such words.

Proposals are all pairs of a place (`places`) and a word that is absent (`absence`, `attributes`) and that captions have
there often enough: by the cloze model, p(word | context) is at least `floor` times that of a typical word, whose
log-probability in a context is the expected one, the sum of p log p. Likewise the model has to expect the relation by
which an object is added.

For both-sides pairs, the false word comes with one that is true in the same place (`stated`). Both pass the same
tests, so neither the place nor the kind of word says which of them is true; weights then balance the words, the true
one standing for the replaced word of a REPLACE edit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.edited import BothOutcome
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.additions.absence import AbsentObjects, BoolArray
from pairwright.generators.edits.additions.attributes import FalseAttributes
from pairwright.generators.edits.additions.places import (
    ATTRIBUTE,
    OBJECT,
    Place,
    attribute_places,
    drawn_figures,
    object_places,
)
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.stated import StatedObjects
from pairwright.generators.edits.floors import ADDED_PAIR_FLOOR, ADDITION_FLOORS, MAX_LENGTH_DIFFERENCE, RELATION_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.language.cloze.context import ClozeContext
from pairwright.generators.lexicon.function_words import words_with

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

Row = tuple[IntArray, FloatArray]  # columns of the vocabulary, and their log-ratios
WordPair = tuple[int, int, int, float]  # place, column of the true word, of the false one, and its log-ratio

_MAX_LOG_RATIO: Final = 0.0  # a word that is likelier than a typical one is not preferred
KINDS: Final = {OBJECT: "noun", ATTRIBUTE: "adjective"}


class AnyPlace(Protocol):
    """A place of a caption where a word may be written."""

    @property
    def target(self) -> str:
        """`OBJECT` or `ATTRIBUTE`."""
        ...

    @property
    def head(self) -> str:
        """Lemma of the noun that the word is added to; empty if there is none."""
        ...

    @property
    def token(self) -> int:
        """The token before which words are written."""
        ...

    def change(self, word: str) -> Change:
        """Return the change that writes a word here."""
        ...


@dataclass(frozen=True, slots=True)
class ScoredPlaces:
    """The places of one caption for additions of one target, and how likely each word is there.

    Attributes:
        caption: the caption.
        places: n places.
        log_probs: natural log-probability of each word of the vocabulary, float32 (n, vocabulary).
        typical: that of a typical word (`typical_log_probs`), float32 (n,).
        absent: of each object, whether it is absent; empty if not computed.
    """

    caption: Caption
    places: Sequence[Place]
    log_probs: FloatArray
    typical: FloatArray
    absent: BoolArray


@dataclass(frozen=True, slots=True)
class AdditionProposals:
    """Proposals for one caption; the arrays have one entry a proposal.

    Attributes:
        caption: the caption.
        places: of the caption.
        targets: the vocabulary.
        place: index into ``places``, int64.
        old: index into ``targets`` of the word that is true there, int64; -1 where no true word is proposed.
        new: index into ``targets`` of the word that is false, int64.
        log_ratio: natural logarithm of p(new | context) over that of the true or a typical word, float32.
        form: of the edits.
        paired: whether each comes with a true word in the same place.
    """

    caption: Caption
    places: Sequence[AnyPlace]
    targets: Sequence[str]
    place: IntArray
    old: IntArray
    new: IntArray
    log_ratio: FloatArray
    form: str = "add"
    paired: bool = True

    @classmethod
    def of_pairs(
        cls,
        caption: Caption,
        places: Sequence[AnyPlace],
        targets: Sequence[str],
        found: Iterable[WordPair],
        form: str = "add",
    ) -> "AdditionProposals":
        """Return proposals of pairs of words."""
        pairs = list(found)
        place, old, new = np.array([pair[:3] for pair in pairs], np.int64).reshape(-1, 3).T
        return cls(caption, places, targets, place, old, new, np.array([pair[3] for pair in pairs], np.float32), form)

    def __len__(self) -> int:
        return len(self.new)

    def proposed_edit(self, at: int) -> ProposedEdit:
        """Return proposal ``at`` as constraints see it; those of plausibility are answered by the proposer."""
        place, new = self.places[int(self.place[at])], self.targets[int(self.new[at])]
        described = place.head if place.target == ATTRIBUTE else ""
        before = place.head if place.target == OBJECT else ""
        return ProposedEdit(
            self.caption, self.form, place.target, "", new, before, described, start=place.token, end=place.token
        )

    @property
    def reasons(self) -> Sequence[str]:
        """Why there are not more."""
        tried = self.places if self.paired else self.caption.things
        return () if len(self) or not tried else ("no_positive",) if self.paired else ("no_candidate",)

    def outcome(self, at: int) -> Outcome | BothOutcome:
        """Return the change of proposal ``at``, or the false and the true one."""
        false = (self.false_change(at),)
        return (false, (self.true_change(at),)) if self.paired else false

    def false_change(self, at: int) -> Change:
        """Return the change of proposal ``at`` that is false."""
        return self.places[int(self.place[at])].change(self.targets[int(self.new[at])])

    def true_change(self, at: int) -> Change:
        """Return the change that adds the true word of proposal ``at`` in the same place."""
        return self.places[int(self.place[at])].change(self.targets[int(self.old[at])])


class Additions:
    """Proposes additions.

    Args:
        materials: WordNet, the statistics and the edit model of the user's captions, and the lexicons.
        floors: by target; see the module.
    """

    def __init__(self, materials: EditMaterials, *, floors: Mapping[str, float] | None = None) -> None:
        self._model, self._floors = materials.model.cloze, ADDITION_FLOORS if floors is None else floors
        self._nouns = nouns = materials.knowledge.nouns
        known = self._model.index("noun")
        self.objects = AbsentObjects(materials.knowledge.thesaurus, materials.knowledge.pool, known)
        self.attributes = FalseAttributes(materials.knowledge.attributes, nouns, materials.knowledge.pool)
        self._stated = StatedObjects(nouns, self.objects.nouns)
        self._columns = np.array([known[noun] for noun in self.objects.nouns], np.int64)
        self._at = {noun: at for at, noun in enumerate(self.objects.nouns)}
        self._alive = np.array([nouns.is_alive(noun) for noun in self.objects.nouns], bool)
        self._figures = np.array([noun in drawn_figures() for noun in self.objects.nouns], bool)
        self._joins = lru_cache(maxsize=10_000)(self._find_joins)
        self._seen_with = lru_cache(maxsize=10_000)(self._find_seen_with)

    def score(self, captions: Sequence[Caption], target: str, *, paired: bool = False) -> list[ScoredPlaces]:
        """Return the places of captions, scored together; those in which no relation fits are left out.

        Places of objects at which none is absent are left out as well unless additions are paired.
        """
        find, filtered = object_places if target == OBJECT else attribute_places, target == OBJECT and not paired
        absent = [self._find_absent(each) if filtered else np.zeros(0, bool) for each in captions]
        found = [
            (at, place)
            for at, each in enumerate(captions)
            if not filtered or absent[at].any()
            for place in find(each)
            if not filtered or self._has_object(place, absent[at])
        ]
        found = self._with_fitting_relations(captions, found)
        log_probs = self._model.log_probs(KINDS[target], [place.context(captions[at]) for at, place in found])
        typical = typical_log_probs(log_probs)
        ends = np.searchsorted([at for at, _ in found], np.arange(len(captions)), side="right").tolist()
        return [
            ScoredPlaces(caption, [place for _, place in found[part]], log_probs[part], typical[part], absent[at])
            for at, (caption, part) in enumerate(zip(captions, map(slice, [0, *ends], ends), strict=True))
        ]

    def _find_absent(self, caption: Caption) -> BoolArray:
        absent = self.objects.absent(caption)
        return absent & self._may_be_shown(caption) if absent.any() else absent

    def _has_object(self, place: Place, absent: BoolArray) -> bool:
        """Whether an absent object may be written at a place."""
        return not place.claim and bool((absent & self._join(place) if place.head else absent).any())

    def _join(self, place: Place) -> BoolArray:
        return self._joins(place.head, alike=bool(place.before and not place.relation))

    def propose(self, captions: Sequence[Caption], target: str, *, paired: bool = False) -> list[AdditionProposals]:
        """Return the false additions to captions, which do not depend on the others.

        Args:
            captions: the captions.
            target: `OBJECT` or `ATTRIBUTE`.
            paired: each comes with a true addition in the same place.
        """
        scored = self.score(captions, target, paired=paired)
        if paired:
            find = self._object_pairs if target == OBJECT else self._attribute_pairs
            targets = self._model.targets(KINDS[target])
            return [AdditionProposals.of_pairs(each.caption, each.places, targets, find(each)) for each in scored]
        rows = [self._object_rows(each) if target == OBJECT else self._attribute_rows(each) for each in scored]
        if target == OBJECT:
            self._keep_fitting_relations(scored, rows)
        return [self._false_additions(each, target, row) for each, row in zip(scored, rows, strict=True)]

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
        own = [row[index[each]] if each in index else -np.inf for row, each in zip(log_probs, relations, strict=True)]
        fits: BoolArray = np.array(own, np.float32) >= typical_log_probs(log_probs) + np.log(RELATION_FLOOR)
        return fits

    def _object_rows(self, scored: ScoredPlaces) -> list[Row]:
        """Return for each place the columns of the absent objects that captions could have there, and their log-ratios."""
        if not scored.places:
            return []
        columns, rows = self._columns[scored.absent], []
        ratios = scored.log_probs[:, columns] - scored.typical[:, None]
        fits = ratios >= np.log(self._floors[OBJECT])
        for at, place in enumerate(scored.places):
            fitting = fits[at] & self._join(place)[scored.absent] if place.head else fits[at]
            rows.append((columns[fitting], ratios[at, fitting]))
        return rows

    def _keep_fitting_relations(self, captions: Sequence[ScoredPlaces], rows: Sequence[list[Row]]) -> None:
        """Remove from rows the objects that captions do not join in this way to the noun of the place."""
        targets = self._model.targets("noun")
        asked = [
            (found, at, scored.caption, place)
            for scored, found in zip(captions, rows, strict=True)
            for at, place in enumerate(scored.places)
            if place.asks_relation
        ]
        added = [
            (caption, place, targets[column]) for found, at, caption, place in asked for column in found[at][0].tolist()
        ]
        contexts = [place.relation_context(caption, noun) for caption, place, noun in added]
        fits, start = self._fit_relation([place.relation for _, place, _ in added], contexts), 0
        for found, at, _, _ in asked:
            columns, ratios = found[at]
            part = fits[start : (start := start + len(columns))]
            found[at] = columns[part], ratios[part]

    def _may_be_shown(self, caption: Caption) -> BoolArray:
        """Return for each object whether a caption like this may show it: figures in drawings, and nobody beside whom is alone."""
        words = frozenset(caption.lemmas)
        found = np.ones(len(self._columns), bool)
        if drawn_figures().isdisjoint(words):
            found &= ~self._figures
        if not words_with("alone").isdisjoint(caption.lower):
            found &= ~self._alive
        return found

    def _find_seen_with(self, head: str) -> BoolArray:
        """Return for each adjective whether captions describe a noun by it."""
        return np.array([self.attributes.is_seen(word, head) for word in self._model.targets("adjective")], bool)

    def _find_joins(self, head: str, *, alike: bool) -> BoolArray:
        """Return for each object whether it goes with the noun of a place, and in a list, whether they share a class."""
        together = self.objects.joins(head)
        if not alike:
            return together
        classes = self._nouns.classes(head)
        like: BoolArray = np.array(
            [not classes.isdisjoint(self._nouns.classes(noun)) for noun in self.objects.nouns], bool
        )
        return np.logical_and(together, like)

    def _object_pairs(self, scored: ScoredPlaces) -> Iterator[WordPair]:
        caption, log_probs = scored.caption, scored.log_probs
        candidates = [self._at[noun] for noun in self._stated.stated(caption)]
        # What is expected would never be added falsely, so that adding it would say that it is true.
        possible = self.objects.possible(caption)
        true = [at for at in candidates if possible[at]]
        places = [at for at, place in enumerate(scored.places) if place.shown]
        if not true or not places:
            return
        shown = self._may_be_shown(caption)
        false, true = self.objects.absent(caption) & shown, [at for at in true if shown[at]]
        nouns, least = self.objects.nouns, np.log(ADDED_PAIR_FLOOR)
        for place in places:
            row = log_probs[place, self._columns] - scored.typical[place]
            for is_true in true:
                if row[is_true] < least:
                    continue
                for is_false in np.flatnonzero(false & (row >= least)):
                    if _alike(nouns[is_true], nouns[is_false]):
                        old, new = self._columns[is_true], self._columns[is_false]
                        yield place, int(old), int(new), min(float(row[is_false] - row[is_true]), _MAX_LOG_RATIO)

    def _attribute_rows(self, scored: ScoredPlaces) -> list[Row]:
        index, targets, rows = self._model.index("adjective"), self._model.targets("adjective"), []
        fits = scored.log_probs - scored.typical[:, None] >= np.log(self._floors[ATTRIBUTE])
        for at, place in enumerate(scored.places):
            fits[at] &= self._seen_with(place.head)
            fitting = [targets[column] for column in np.flatnonzero(fits[at]).tolist()] if place.phrase else []
            false = self.attributes.false_of(scored.caption, place.phrase, fitting) if place.phrase else []
            columns = np.array([index[word] for word in false], np.int64)
            rows.append((columns, scored.log_probs[at, columns] - scored.typical[at]))
        return rows

    def _attribute_pairs(self, scored: ScoredPlaces) -> Iterator[WordPair]:
        index, targets = self._model.index("adjective"), self._model.targets("adjective")
        rows = self._attribute_rows(scored)
        for at, (place, (columns, ratios)) in enumerate(zip(scored.places, rows, strict=True)):
            stated = self.attributes.stated_of(scored.caption, place.phrase) if place.phrase else []
            for true in (word for word in stated if word in index):
                ratio = scored.log_probs[at, index[true]] - scored.typical[at]
                if ratio < np.log(self._floors[ATTRIBUTE]):
                    continue
                for new, false_ratio in zip(columns, ratios, strict=True):
                    if _alike(true, targets[new]):
                        yield at, index[true], int(new), min(float(false_ratio - ratio), _MAX_LOG_RATIO)

    def _false_additions(self, scored: ScoredPlaces, target: str, rows: Sequence[Row]) -> AdditionProposals:
        place = np.repeat(np.arange(len(rows)), [len(columns) for columns, _ in rows])
        new = np.concatenate([np.zeros(0, np.int64), *(columns for columns, _ in rows)])
        ratios = np.minimum(np.concatenate([np.zeros(0, np.float32), *(ratios for _, ratios in rows)]), _MAX_LOG_RATIO)
        targets = self._model.targets(KINDS[target])
        old = np.full(len(new), -1)
        return AdditionProposals(scored.caption, scored.places, targets, place, old, new, ratios, paired=False)


def typical_log_probs(log_probs: FloatArray) -> FloatArray:
    """Return the expected log-probability of a word drawn in each context, shape (n,)."""
    return np.asarray((np.exp(log_probs) * log_probs).sum(axis=1), np.float32)


def _alike(one: str, other: str) -> bool:
    """Whether two words are of about the same length."""
    return abs(len(one) - len(other)) <= MAX_LENGTH_DIFFERENCE and one.count(" ") == other.count(" ")
