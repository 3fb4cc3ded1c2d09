"""Editors: for each type of negative, the class that proposes, samples, checks and realises its edits.

Captions are processed in batches, since one call of the cloze model for many slots is faster than many calls; the edits
of a caption do not depend on the other captions.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, cast

import numpy as np

from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.edited import EditPairOutcome
from pairwright.generators.edits.additions.insertion_points import ATTRIBUTE, OBJECT
from pairwright.generators.edits.additions.proposals import SLOT_OF_TARGET, Additions
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import Constraint, applicable_constraints, first_violated
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.negation import Negations
from pairwright.generators.edits.proposals import FloatArray, Proposer, WordProposals
from pairwright.generators.edits.replacements import REPLACEMENT_TYPES, build_proposer
from pairwright.generators.edits.sampling import balance_of_targets, order_by_weight
from pairwright.generators.edits.shuffling import shuffle
from pairwright.generators.edits.slots import find_slots
from pairwright.generators.edits.swaps.proposal import SwapProposal
from pairwright.generators.edits.swaps.swaps import SWAP_TYPES, Swaps

MAX_TRIES: Final = 128  # proposals of a caption that are checked at most
_MAX_CACHED: Final = 200_000
ADDED: Final = {"add-object": OBJECT, "add-attribute": ATTRIBUTE}
BALANCED_TYPES: Final = {  # with the slot kind whose vocabulary they insert
    **{name: each.kind for name, each in REPLACEMENT_TYPES.items()},
    **{name: SLOT_OF_TARGET[target] for name, target in ADDED.items()},
}
PAIRED_TYPES: Final = frozenset((*ADDED, "negation"))  # whose negative and positive can share a slot


ProposeInsertions = Callable[[Sequence[Caption]], Sequence[WordProposals]]
Proposal = tuple[int, int, float]  # index of the replaced word, of the inserted one, and the log-ratio
EditOutcomes = Iterator[EditOutcome | EditPairOutcome]


class Editor(Protocol):
    """Makes the edits of one type."""

    def outcomes(
        self, captions: Sequence[Caption], proposals: Sequence[Any], seeds: Sequence[int]
    ) -> list[EditOutcomes]:
        """Return the edits of each caption in random order, with the reason codes of rejections.

        Args:
            captions: the captions.
            proposals: result of `EditorSet.propose` for this type.
            seeds: a 64-bit seed for each caption.
        """
        ...


@dataclass
class WordEditor:
    """Makes edits with words that the cloze model proposes: REPLACE, ADD and NEGATION.

    Proposals are drawn by weight (`sampling`) and checked by the constraints one by one.

    Attributes:
        balance: of each word of the vocabulary; see `word_balance`.
        known: WordNet and pool statistics, for constraints.
        by_words: constraints that depend on the words of an edit only.
        others: the other constraints.
    """

    balance: FloatArray
    known: Knowledge
    by_words: Sequence[Constraint]
    others: Sequence[Constraint]
    _cached_violations: dict[Hashable, Constraint | None] = field(default_factory=dict)

    def outcomes(
        self,
        captions: Sequence[Caption],  # noqa: ARG002 - the protocol's
        proposals: Sequence[WordProposals],
        seeds: Sequence[int],
    ) -> list[EditOutcomes]:
        """Return reasons, then edits (or pairs of a false and a true one) in random order."""
        ratios, new, old = (
            np.concatenate([getattr(each, name) for each in proposals]) for name in ("log_ratio", "new", "old")
        )
        weights = ratios + self.balance[new] - self.balance[old]
        orders = order_by_weight(weights, [*map(len, proposals)], seeds)
        return [self._outcomes(each, order[:MAX_TRIES]) for each, order in zip(proposals, orders, strict=True)]

    def _outcomes(self, proposals: WordProposals, order: Sequence[int]) -> EditOutcomes:
        yield from proposals.reasons
        for at in order:
            violated = self._violation(proposals.proposed_edit(at))
            yield proposals.outcome(at) if violated is None else violated.reason

    def allowed(self, proposals: WordProposals) -> Iterator[Proposal]:
        """Yield the most likely proposals that no constraint rejects."""
        for at in np.argsort(-proposals.log_ratio, kind="stable")[:MAX_TRIES].tolist():
            if self._violation(proposals.proposed_edit(at)) is None:
                yield int(proposals.old[at]), int(proposals.new[at]), float(proposals.log_ratio[at])

    def _violation(self, edit: ProposedEdit) -> Constraint | None:
        key = edit.old, edit.new, edit.before, edit.after
        if key not in self._cached_violations:
            if len(self._cached_violations) >= _MAX_CACHED:
                self._cached_violations.clear()
            self._cached_violations[key] = first_violated(self.by_words, edit, self.known)
        return self._cached_violations[key] or first_violated(self.others, edit, self.known)


class SwapEditor:
    """Makes SWAP edits of one target."""

    def outcomes(
        self,
        captions: Sequence[Caption],  # noqa: ARG002 - the protocol's
        proposals: Sequence[Sequence[SwapProposal | str]],
        seeds: Sequence[int],
    ) -> list[EditOutcomes]:
        """Return reasons, then edits in random order."""
        swaps = [[each for each in found if not isinstance(each, str)] for found in proposals]
        weights = np.log(np.array([each.weight for found in swaps for each in found], np.float32))
        orders = order_by_weight(weights, [*map(len, swaps)], seeds)
        reasons = ([each for each in found if isinstance(each, str)] for found in proposals)
        return [
            iter([*given, *(found[at].changes for at in order)])
            for given, found, order in zip(reasons, swaps, orders, strict=True)
        ]


class ShuffleEditor:
    """Makes SHUFFLE edits, which need no proposals."""

    def outcomes(
        self,
        captions: Sequence[Caption],
        proposals: Sequence[Any],  # noqa: ARG002 - the protocol's
        seeds: Sequence[int],
    ) -> list[EditOutcomes]:
        """Return edits in random order."""
        return [*map(shuffle, captions, seeds)]


@dataclass(frozen=True)
class EditorSet:
    """The editors of some types.

    Attributes:
        materials: of the pool.
        by_type: the editors.
        replacing: proposers of the types that replace words.
        insertions: proposers of the types that insert words.
        swaps: proposer of the types that exchange words.
    """

    materials: EditMaterials
    by_type: Mapping[str, Editor]
    replacing: Mapping[str, Proposer]
    insertions: Mapping[str, ProposeInsertions]
    swaps: Swaps

    def outcomes(
        self, captions: Sequence[Caption], seeds: Sequence[Mapping[str, int]]
    ) -> list[dict[str, EditOutcomes]]:
        """Return the edits of each caption by type; see `Editor.outcomes`.

        Args:
            captions: the captions.
            seeds: for each caption, a 64-bit seed for each type.
        """
        if not captions:
            return []
        proposals = self.propose(captions)
        found = {
            name: editor.outcomes(captions, proposals.get(name, ()), [each[name] for each in seeds])
            for name, editor in self.by_type.items()
        }
        return [{name: by_caption[at] for name, by_caption in found.items()} for at in range(len(captions))]

    def allowed(self, proposals: WordProposals, name: str) -> Iterator[Proposal]:
        """Yield the likeliest proposals of a type of `BALANCED_TYPES` that no constraint rejects."""
        return cast("WordEditor", self.by_type[name]).allowed(proposals)

    def propose(self, captions: Sequence[Caption]) -> dict[str, Sequence[Any]]:
        """Return the proposals for each caption by type, scored in one batch."""
        slots = [find_slots(each, self.materials.knowledge.thesaurus) if self.replacing else [] for each in captions]
        replacing = {name: proposer.propose(captions, slots) for name, proposer in self.replacing.items()}
        insertions = {name: propose(captions) for name, propose in self.insertions.items()}
        return {**replacing, **insertions, **self.swaps.propose(captions)}


def build_editors(  # noqa: PLR0913 - options of the negatives
    materials: EditMaterials,
    types: Iterable[str],
    floor: float,
    *,
    both_sides: bool = False,
    vocabulary: Sequence[str] = (),
    skip: frozenset[str] = frozenset(),
) -> EditorSet:
    """Return the editors of some types of negatives.

    Args:
        materials: of the pool.
        types: of `edit_types.NEGATIVE_TYPES`.
        floor: least probability of a replacement in its context.
        both_sides: pair each false addition with a true one.
        vocabulary: labels that are annotated exhaustively, for NEGATION.
        skip: ids of constraints that are not applied.
    """
    wanted = tuple(types)
    editors: dict[str, Editor] = {}
    replacing: dict[str, Proposer] = {}
    insertions: dict[str, ProposeInsertions] = {}
    swaps = Swaps(materials, [name for name in wanted if name in SWAP_TYPES], skip)
    additions = Additions(materials) if not ADDED.keys().isdisjoint(wanted) else None
    for name in wanted:
        if name in SWAP_TYPES or name == "shuffle":
            editors[name] = SwapEditor() if name in SWAP_TYPES else ShuffleEditor()
            continue
        form, _, target = name.partition("-")
        constraints = applicable_constraints("hard_negative", form, target or OBJECT, by_rules=True, skip=skip)
        if name in REPLACEMENT_TYPES:
            at_place = [each for each in constraints if each.by_place]
            replacing[name] = build_proposer(name, materials, floor, at_place)
            constraints = tuple(each for each in constraints if not each.by_place)
        elif name in ADDED and additions is not None:
            insertions[name] = partial(additions.propose, target=ADDED[name], paired=both_sides)
        else:
            insertions[name] = Negations(materials.model.cloze, materials.knowledge.thesaurus, vocabulary).propose
        balanced = both_sides or name not in ADDED
        balance = materials.model.balance.get(name, {}) if balanced else {}
        editors[name] = _word_editor(name, materials, constraints, balance)
    return EditorSet(materials, editors, replacing, insertions, swaps)


def _word_editor(
    name: str, materials: EditMaterials, constraints: Sequence[Constraint], balance: Mapping[str, float]
) -> WordEditor:
    targets = materials.model.cloze.targets(BALANCED_TYPES.get(name, "noun"))
    by_words, others = ([each for each in constraints if each.by_words is alone] for alone in (True, False))
    return WordEditor(balance_of_targets(targets, balance), materials.knowledge, by_words, others)
