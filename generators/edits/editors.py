"""Editors: one for each type of negative, which proposes, samples, checks and realises its edits.

Captions are prepared in batches, since one call of the cloze model for many slots takes less time than many calls; the
edits of a caption do not depend on the others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol, cast

import numpy as np

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.edited import BothOutcome
from pairwright.generators.edits.additions.places import ATTRIBUTE, OBJECT
from pairwright.generators.edits.additions.proposals import KINDS, AdditionProposals, Additions
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.table import find_violation
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.negation import Negations
from pairwright.generators.edits.proposals import FloatArray
from pairwright.generators.edits.replacements import MAX_TRIES, REPLACEMENT_TYPES, Replacements, build_replacements
from pairwright.generators.edits.sampling import balance_of_targets, log_weights, order_by_weight
from pairwright.generators.edits.shuffling import shuffle
from pairwright.generators.edits.slots import find_slots
from pairwright.generators.edits.swaps.proposal import SwapProposal
from pairwright.generators.edits.swaps.swaps import SWAPPED, Swaps

ADDED: Final = {"add-object": OBJECT, "add-attribute": ATTRIBUTE}
BALANCED_TYPES: Final = {  # with the slots whose vocabulary they insert
    **{name: each.kind for name, each in REPLACEMENT_TYPES.items()},
    **{name: KINDS[target] for name, target in ADDED.items()},
}
PAIRED_TYPES: Final = frozenset((*ADDED, "negation"))  # whose negative and positive can be made together


@dataclass(slots=True)
class PreparedCaption:
    """A caption with what editors have scored.

    Attributes:
        caption: the parsed caption.
        proposals: by type, of words to replace or insert.
    """

    caption: Caption
    proposals: dict[str, Any] = field(default_factory=dict)


ProposeInsertions = Callable[[Sequence[Caption]], Sequence[AdditionProposals]]


class Editor(Protocol):
    """Makes the edits of one type; `Replacements` is one."""

    def outcomes(self, caption: Caption, proposals: Any, seed: int) -> Iterator[Outcome | BothOutcome]:
        """Yield edits of a caption in random order, and reasons where there is none.

        Args:
            caption: the caption.
            proposals: of `PreparedCaption`, of this type.
            seed: 64 random bits.
        """
        ...


Proposal = tuple[int, int, float]  # index of the replaced word, of the inserted one, and the log-ratio


class BalancedEditor(Editor, Protocol):
    """An editor whose inserted and replaced words are balanced."""

    def allowed(self, caption: Caption, proposals: Any) -> Iterator[Proposal]:
        """Yield the likeliest proposals that no constraint rejects."""
        ...


@dataclass(frozen=True)
class InsertEditor:
    """Makes edits that insert words: ADD of one target, and NEGATION.

    Attributes:
        balance: of each word of the vocabulary, for paired edits.
        knowledge: what the constraints read.
        paired: yield pairs of a false and a true edit.
        skip: ids of constraints that are not applied.
    """

    balance: FloatArray
    knowledge: Knowledge
    paired: bool
    skip: frozenset[str]

    def outcomes(
        self,
        caption: Caption,
        proposals: AdditionProposals,
        seed: int,
    ) -> Iterator[Outcome | BothOutcome]:
        """Yield edits, or pairs of a false and a true one, in random order, and reasons."""
        if not len(proposals) and (proposals.places or not self.paired):
            yield "no_positive" if self.paired else "no_candidate"
        weights = log_weights(proposals, self.balance) if self.paired else proposals.log_ratio
        for at in islice(order_by_weight(weights, seed), MAX_TRIES):
            violated = find_violation(proposals.proposed_edit(at), self.knowledge, skip=self.skip)
            if violated is not None:
                yield violated.reason
            elif self.paired:
                yield (proposals.false_change(at),), (proposals.true_change(at),)
            else:
                yield (proposals.false_change(at),)

    def allowed(self, caption: Caption, proposals: AdditionProposals) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the likeliest proposals that no constraint rejects."""
        for at in np.argsort(-proposals.log_ratio, kind="stable")[:MAX_TRIES].tolist():
            if find_violation(proposals.proposed_edit(at), self.knowledge, skip=self.skip) is None:
                yield int(proposals.old[at]), int(proposals.new[at]), float(proposals.log_ratio[at])


class SwapEditor:
    """Makes SWAP edits of one target."""

    def outcomes(
        self,
        caption: Caption,  # noqa: ARG002 - the protocol's
        proposals: Sequence[SwapProposal | str],
        seed: int,
    ) -> Iterator[Outcome]:
        """Yield reasons, and edits in random order."""
        yield from (each for each in proposals if isinstance(each, str))
        swaps = [each for each in proposals if not isinstance(each, str)]
        weights = np.log(np.array([each.weight for each in swaps], np.float32))
        yield from (swaps[at].changes for at in order_by_weight(weights, seed))


class ShuffleEditor:
    """Makes SHUFFLE edits, which need no proposals."""

    def outcomes(self, caption: Caption, proposals: None, seed: int) -> Iterator[Outcome]:  # noqa: ARG002
        """Yield edits in random order."""
        return shuffle(caption, seed)


@dataclass(frozen=True)
class EditorSet:
    """The editors of some types.

    Attributes:
        materials: of the pool.
        by_type: the editors.
        insertions: of types that insert words: return the proposals for captions.
        swaps: proposes the swaps of types that exchange words.
    """

    materials: EditMaterials
    by_type: Mapping[str, Editor]
    insertions: Mapping[str, ProposeInsertions]
    swaps: Swaps

    def outcomes(self, prepared: PreparedCaption, name: str, seed: int) -> Iterator[Outcome | BothOutcome]:
        """Yield edits of a type, and reasons; see `Editor.outcomes`."""
        return self.by_type[name].outcomes(prepared.caption, prepared.proposals.get(name), seed)

    def allowed(self, prepared: PreparedCaption, name: str) -> Iterator[Proposal]:
        """Yield the likeliest proposals of a type of `BALANCED_TYPES` that no constraint rejects."""
        return cast("BalancedEditor", self.by_type[name]).allowed(prepared.caption, prepared.proposals[name])

    def prepare(self, captions: Sequence[Caption]) -> list[PreparedCaption]:
        """Return captions with what the editors read, scored together."""
        prepared = [PreparedCaption(caption) for caption in captions]
        replacing = {name: each for name, each in self.by_type.items() if isinstance(each, Replacements)}
        slots = [find_slots(each, self.materials.knowledge.thesaurus) if replacing else [] for each in captions]
        found: dict[str, Sequence[Any]] = {
            name: editor.proposer.propose(captions, slots) for name, editor in replacing.items()
        }
        found |= {name: propose(captions) for name, propose in self.insertions.items()}
        found |= self.swaps.propose(captions)
        for name, proposals in found.items():
            for each, proposed in zip(prepared, proposals, strict=True):
                each.proposals[name] = proposed
        return prepared


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
        both_sides: make each false addition with a true one.
        vocabulary: labels that the boxes of every image are complete for, for NEGATION.
        skip: ids of constraints that are not applied.
    """
    wanted = tuple(types)
    editors: dict[str, Editor] = {}
    insertions: dict[str, ProposeInsertions] = {}
    swaps = Swaps(materials, [name for name in wanted if name in SWAPPED], skip)
    additions = Additions(materials) if not ADDED.keys().isdisjoint(wanted) else None
    for name in wanted:
        if name in REPLACEMENT_TYPES:
            editors[name] = build_replacements(name, materials, floor, skip)
        elif name in ADDED and additions is not None:
            insertions[name] = partial(additions.propose, target=ADDED[name], paired=both_sides)
            editors[name] = _insert_editor(name, materials, paired=both_sides, skip=skip)
        elif name == "negation":
            negations = Negations(materials.model.cloze, materials.knowledge.thesaurus, vocabulary)
            insertions[name] = negations.propose
            editors[name] = _insert_editor(name, materials, paired=True, skip=skip)
        elif name in SWAPPED:
            editors[name] = SwapEditor()
        else:
            editors[name] = ShuffleEditor()
    return EditorSet(materials, editors, insertions, swaps)


def _insert_editor(name: str, materials: EditMaterials, *, paired: bool, skip: frozenset[str]) -> InsertEditor:
    targets = materials.model.cloze.targets(BALANCED_TYPES.get(name, "noun"))
    balance = balance_of_targets(targets, materials.model.balance.get(name, {}))
    return InsertEditor(balance, materials.knowledge, paired, skip)
