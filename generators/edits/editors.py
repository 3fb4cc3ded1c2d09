"""Editors: one for each type of negative, which proposes, samples, checks and realises its edits.

Captions are prepared in batches, since one call of the cloze model for many slots takes less time than many calls; the
edits of a caption do not depend on the others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol, cast

import numpy as np

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.edited import BothOutcome
from pairwright.generators.edits.additions.places import ATTRIBUTE, OBJECT
from pairwright.generators.edits.additions.proposals import AdditionProposals, Additions, ScoredPlaces
from pairwright.generators.edits.constraints.table import find_violation
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import FloatArray
from pairwright.generators.edits.replacement_types import REPLACEMENT_TYPES, build_replacements
from pairwright.generators.edits.replacements import MAX_TRIES, Replacements
from pairwright.generators.edits.sampling import balance_of_targets, order_by_weight
from pairwright.generators.edits.scored_captions import ScoredCaption, score_captions
from pairwright.generators.edits.shuffling import shuffle
from pairwright.generators.edits.swaps.attributes import swap_attributes
from pairwright.generators.edits.swaps.fit import ClozeFit
from pairwright.generators.edits.swaps.objects import swap_objects
from pairwright.generators.edits.swaps.proposal import SwapMaterials, SwapProposal

BALANCED_TYPES: Final = (*REPLACEMENT_TYPES, "add-object", "add-attribute")
ADDED: Final = {"add-object": OBJECT, "add-attribute": ATTRIBUTE}
PAIRED_TYPES: Final = frozenset((*ADDED, "negation"))  # whose negative and positive can be made together


@dataclass(slots=True)
class PreparedCaption:
    """A caption with what editors have scored.

    Attributes:
        caption: the parsed caption.
        scored: its slots.
        places: places for additions, by target.
    """

    caption: Caption
    scored: ScoredCaption
    places: dict[str, ScoredPlaces] = field(default_factory=dict)


class Editor(Protocol):
    """Makes the edits of one type."""

    def outcomes(self, prepared: PreparedCaption, seed: int) -> Iterator[Outcome | BothOutcome]:
        """Yield edits of a caption in random order, and reasons where there is none.

        Args:
            prepared: the caption.
            seed: 64 random bits.
        """
        ...


Proposal = tuple[int, int, float]  # index of the replaced word, of the inserted one, and the log-ratio


class BalancedEditor(Editor, Protocol):
    """An editor whose inserted and replaced words are balanced."""

    @property
    def targets(self) -> Sequence[str]:
        """The vocabulary."""
        ...

    def allowed(self, prepared: PreparedCaption) -> Iterator[Proposal]:
        """Yield the likeliest proposals that no constraint rejects."""
        ...


@dataclass(frozen=True)
class ReplaceEditor:
    """Makes REPLACE edits of one kind."""

    replacements: Replacements

    @property
    def targets(self) -> Sequence[str]:
        """The vocabulary."""
        return self.replacements.targets

    def outcomes(self, prepared: PreparedCaption, seed: int) -> Iterator[Outcome]:
        """Yield edits in random order, and reasons."""
        return self.replacements.outcomes(prepared.scored, seed)

    def allowed(self, prepared: PreparedCaption) -> Iterator[Proposal]:
        """Yield the likeliest proposals that no constraint rejects."""
        return self.replacements.allowed(prepared.scored)


@dataclass(frozen=True)
class AddEditor:
    """Makes ADD edits of one target; with ``both_sides``, each false addition comes with a true one.

    Attributes:
        target: object or attribute.
        additions: proposes them.
        materials: of the pool.
        balance: of each word of the vocabulary.
        both_sides: yield pairs of edits.
        skip: ids of constraints that are not applied.
    """

    target: str
    additions: Additions
    materials: EditMaterials
    balance: FloatArray
    both_sides: bool
    skip: frozenset[str]

    @property
    def targets(self) -> Sequence[str]:
        """The vocabulary."""
        return self.materials.model.cloze.targets("noun" if self.target == OBJECT else "adjective")

    def outcomes(self, prepared: PreparedCaption, seed: int) -> Iterator[Outcome | BothOutcome]:
        """Yield edits, or pairs of a false and a true one, in random order, and reasons."""
        proposals = self._propose(prepared)
        if prepared.places[self.target].places and not len(proposals):
            yield "no_candidate"
        for at in islice(order_by_weight(self._weights(proposals), seed), MAX_TRIES):
            violated = find_violation(proposals.proposed_edit(at), self.materials.knowledge, skip=self.skip)
            if violated is not None:
                yield violated.reason
            elif self.both_sides:
                yield (proposals.false_change(at),), (proposals.true_change(at),)
            else:
                yield (proposals.false_change(at),)

    def allowed(self, prepared: PreparedCaption) -> Iterator[Proposal]:
        """Yield the likeliest proposals that no constraint rejects."""
        proposals = self._propose(prepared)
        for at in np.argsort(-proposals.log_ratio, kind="stable")[:MAX_TRIES]:
            if find_violation(proposals.proposed_edit(int(at)), self.materials.knowledge, skip=self.skip) is None:
                yield int(proposals.old[at]), int(proposals.new[at]), float(proposals.log_ratio[at])

    def _propose(self, prepared: PreparedCaption) -> AdditionProposals:
        places = prepared.places[self.target]
        return self.additions.propose_pairs(places) if self.both_sides else self.additions.propose(places)

    def _weights(self, proposals: AdditionProposals) -> FloatArray:
        if not self.both_sides:
            return proposals.log_ratio
        return proposals.log_ratio + self.balance[proposals.new] - self.balance[proposals.old]


@dataclass(frozen=True)
class SwapEditor:
    """Makes SWAP edits of one target."""

    propose: Callable[[Caption, SwapMaterials], Iterator[SwapProposal | str]]
    materials: SwapMaterials

    def outcomes(self, prepared: PreparedCaption, seed: int) -> Iterator[Outcome]:
        """Yield edits in random order, and reasons."""
        proposals: list[SwapProposal] = []
        for found in self.propose(prepared.caption, self.materials):
            if isinstance(found, str):
                yield found
            else:
                proposals.append(found)
        weights = np.log(np.array([proposal.weight for proposal in proposals], np.float32))
        yield from (proposals[at].changes for at in order_by_weight(weights, seed))


@dataclass(frozen=True)
class ShuffleEditor:
    """Makes SHUFFLE edits."""

    def outcomes(self, prepared: PreparedCaption, seed: int) -> Iterator[Outcome]:
        """Yield edits in random order."""
        return shuffle(prepared.caption, seed)


@dataclass(frozen=True)
class EditorSet:
    """The editors of some types.

    Attributes:
        materials: of the pool.
        by_type: the editors.
        additions: proposes additions.
    """

    materials: EditMaterials
    by_type: Mapping[str, Editor]
    additions: Additions | None

    def balanced(self, name: str) -> BalancedEditor:
        """Return the editor of a type of `BALANCED_TYPES`."""
        return cast("BalancedEditor", self.by_type[name])

    def prepare(self, captions: Sequence[Caption]) -> list[PreparedCaption]:
        """Return captions with what the editors read, scored together."""
        kinds = [REPLACEMENT_TYPES[name].kind for name in self.by_type if name in REPLACEMENT_TYPES]
        scored = score_captions(captions, self.materials.thesaurus, self.materials.model.cloze, kinds)
        prepared = [PreparedCaption(each.caption, each) for each in scored]
        for target in {ADDED[name] for name in self.by_type if name in ADDED}:
            assert self.additions is not None
            for each, places in zip(prepared, self.additions.score(captions, target), strict=True):
                each.places[target] = places
        return prepared


def build_editors(
    materials: EditMaterials,
    types: Iterable[str],
    floor: float,
    *,
    both_sides: bool = False,
    skip: frozenset[str] = frozenset(),
) -> EditorSet:
    """Return the editors of some types of negatives.

    Args:
        materials: of the pool.
        types: of `negatives.TYPES`.
        floor: least probability of a replacement, relative to the word that it replaces.
        both_sides: make each false addition with a true one.
        skip: ids of constraints that are not applied.
    """
    wanted = tuple(types)
    additions = Additions(materials) if not ADDED.keys().isdisjoint(wanted) else None
    swaps = SwapMaterials(
        materials.knowledge, materials.nouns, ClozeFit(materials.model.cloze, materials.thesaurus), skip=skip
    )

    def build(name: str) -> Editor:
        if name in REPLACEMENT_TYPES:
            return ReplaceEditor(build_replacements(name, materials, floor, skip))
        if name in ADDED and additions is not None:
            kind = "noun" if ADDED[name] == OBJECT else "adjective"
            balance = balance_of_targets(materials.model.cloze.targets(kind), materials.model.balance.get(name, {}))
            return AddEditor(ADDED[name], additions, materials, balance, both_sides, skip)
        if name.startswith("swap"):
            return SwapEditor(swap_objects if name == "swap-object" else swap_attributes, swaps)
        return ShuffleEditor()

    return EditorSet(materials, {name: build(name) for name in wanted}, additions)
