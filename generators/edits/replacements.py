"""REPLACE edits: a noun, attribute or relation of the caption is replaced by one that excludes it.

Candidates are the words that the cloze model predicts, so the vocabulary of the pool. A lexicon selects those that
exclude the word in the slot; the model gives p(new | context). Proposals below a floor are dropped as unnatural, even
if the original word is as unlikely; the *ratio* p(new | context) / p(old | context) is used for sampling.

Exclusion is symmetric, and a word that the model does not know is not replaced, since it could not be inserted either.
Neither are attributes and relations of nouns that the model does not know.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.edit_classifier import Candidates, EditClassifier, are_preferred
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import Constraint, first_violated
from pairwright.generators.edits.floors import DEFAULT_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import BoolArray, FloatArray, IntArray, WordProposals, split_by_caption
from pairwright.generators.edits.slots import (
    ADJECTIVE,
    NOUN,
    RELATION,
    Slot,
    context_of,
    find_slots,
    lexicon_key,
    relation_form,
)
from pairwright.generators.lexicon.relations import UNKNOWN, NounClass, load_relations

REPLACED_KINDS: Final = {"replace-object": NOUN, "replace-attribute": ADJECTIVE, "replace-relation": RELATION}
_MAX_LOG_RATIO: Final = 3.0  # clipped, so that an odd original does not dominate

IndexArray = npt.NDArray[np.int32]


class PlaceChecks(NamedTuple):
    """What is checked of all candidates of a slot at once.

    Attributes:
        constraints: those that depend on the replaced words only.
        classifier: its bounds are constraints, too; None for none.
    """

    constraints: Sequence[Constraint] = ()
    classifier: EditClassifier | None = None


class _Verdict(NamedTuple):
    """What a classifier says of n proposals; bool (n,)."""

    kept: BoolArray
    may_be_true: BoolArray
    preferred: BoolArray


class Replacements:
    """Proposes replacements.

    Args:
        materials: of the pool.
        checks: by type, of `REPLACED_KINDS`.
        floor: minimum probability of the new word in its context, above 0.
    """

    def __init__(
        self, materials: EditMaterials, checks: Mapping[str, PlaceChecks], floor: float = DEFAULT_FLOOR
    ) -> None:
        self._model, self._known, self._checks = materials.model.cloze, materials.knowledge, checks
        self.floor = floor
        self._relations = lru_cache(maxsize=20_000)(self._find_relations)
        self._words = lru_cache(maxsize=20_000)(self._find_words)

    def propose(self, captions: Sequence[Caption]) -> dict[str, list[WordProposals]]:
        """Return by type the proposals for each caption, scored in one batch; independent of the other captions."""
        slots = [find_slots(each, self._known.thesaurus) for each in captions]
        return {name: self._propose(name, captions, slots) for name in self._checks}

    def _propose(self, name: str, captions: Sequence[Caption], slots: Sequence[Sequence[Slot]]) -> list[WordProposals]:
        kind = REPLACED_KINDS[name]
        index, targets = self._model.index(kind), self._model.targets(kind)
        opened = [self._open_slots(name, *each) for each in zip(captions, slots, strict=True)]
        open_slots = [*chain.from_iterable(found for found, _ in opened)]
        log_probs = self._model.log_probs(
            kind,
            [
                context_of(caption, slot.start, slot.end, slot.before, slot.after)
                for caption, (found, _) in zip(captions, opened, strict=True)
                for slot in found
            ],
        )
        rows = [self._candidates(slot) for slot in open_slots]
        old = np.array([index[slot.key] for slot in open_slots], np.int64)
        at = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        new = np.concatenate([np.zeros(0, np.int64), *rows])
        own = log_probs[at, new]
        fits = np.flatnonzero(own >= np.log(self.floor))
        at, new, own = at[fits], new[fits], own[fits]
        ratios = np.minimum(own - log_probs[np.arange(len(rows)), old][at], _MAX_LOG_RATIO)
        places = [slot.proposed(each, "") for each, (found, _) in zip(captions, opened, strict=True) for slot in found]
        verdict = self._judge(name, places, at, new, own)
        made, first = list[WordProposals](), 0
        parts = split_by_caption([len(found) for found, _ in opened], at)
        for caption, (found, reasons), part in zip(captions, opened, parts, strict=True):
            kept = part.start + np.flatnonzero(verdict.kept[part])
            given = reasons
            if found and len(kept) < max(part.stop - part.start, 1):
                given = [*reasons, "true_of_image" if verdict.may_be_true[part].any() else "no_candidate"]
            columns = (at[kept] - first, old[at[kept]], new[kept], ratios[kept], verdict.preferred[kept], own[kept])
            made.append(WordProposals(caption, found, targets, *columns, reasons=given))
            first += len(found)
        return made

    def _judge(
        self, name: str, places: Sequence[ProposedEdit], at: IntArray, new: IntArray, log_probs: FloatArray
    ) -> "_Verdict":
        """Return the verdict on proposals, given the place of each, ascending, and their words and probabilities."""
        classifier = self._checks[name].classifier
        if classifier is None or not len(at):
            return _Verdict(np.ones(len(at), bool), np.zeros(len(at), bool), np.ones(len(at), bool))
        targets = self._model.targets(REPLACED_KINDS[name])
        keys = np.array(_lexicon_keys(targets) if REPLACED_KINDS[name] == RELATION else targets, object)
        judged, of_judged = np.unique(at, return_inverse=True)
        candidates = Candidates([places[each] for each in judged], of_judged, keys[new].tolist(), log_probs)
        probabilities = classifier.judge(candidates, self._known)
        natural = probabilities[0] >= classifier.min_natural
        true = probabilities[1] > classifier.max_possibly_true
        return _Verdict(natural & ~true, natural & true, are_preferred(probabilities))

    def _open_slots(self, name: str, caption: Caption, slots: Sequence[Slot]) -> tuple[list[Slot], list[str]]:
        """Return the slots of a caption that have candidates and whose words the model knows, and reasons of rejections."""
        kind, nouns = REPLACED_KINDS[name], self._model.index(NOUN)
        index, opened, rejected = self._model.index(kind), list[Slot](), list[str]()
        for slot in slots:
            if slot.kind == kind and slot.key in index and (not slot.after or slot.after in nouns):
                violated = first_violated(self._checks[name].constraints, slot.proposed(caption, ""), self._known)
                if violated is None:
                    opened.append(slot)
                else:
                    rejected.append(violated.reason)
        filled = [slot for slot in opened if len(self._candidates(slot))]
        return filled, rejected if filled or not opened else [*rejected, "no_candidate"]

    def _candidates(self, slot: Slot) -> IndexArray:
        """Return the columns of the vocabulary that may replace the word of a slot, ascending."""
        if slot.kind == RELATION:  # the nouns that it joins matter by their classes only
            classes = load_relations().noun_classes(slot.before or UNKNOWN, slot.after)
            return self._relations(slot.key, slot.tag, classes)
        return self._words(slot.kind, slot.key, slot.after)

    def _find_relations(self, key: str, tag: str, classes: tuple[NounClass, ...]) -> IndexArray:
        columns, keys = _having_form(self._model.targets(RELATION), tag)
        return columns[load_relations().refuted(lexicon_key(key), keys, classes)]

    def _find_words(self, kind: str, key: str, noun: str) -> IndexArray:
        index, targets, known = self._model.index(kind), self._model.targets(kind), self._known
        found = (
            known.nouns.substitutes(key, targets) if kind == NOUN else known.attributes.substitutes(key, noun, targets)
        )
        return np.array([index[word] for word in found], np.int32)


@lru_cache(maxsize=4)
def _lexicon_keys(targets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(lexicon_key, targets))


@lru_cache(maxsize=64)
def _having_form(targets: tuple[str, ...], tag: str) -> tuple[IndexArray, tuple[str, ...]]:
    """Return the relations that can be inflected for a tag (empty: no verb): columns and lexicon keys."""
    found = [at for at, key in enumerate(targets) if relation_form(key, tag)]
    return np.array(found, np.int32), tuple(lexicon_key(targets[at]) for at in found)
