"""Editors: one for each type of negative, which proposes, samples, checks and realises its edits.

Captions are prepared in batches, since one call of the cloze model for many slots takes less time than many calls; the
edits of a caption do not depend on the others.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
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
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import Constraint, applicable_constraints, first_violated
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.negation import Negations
from pairwright.generators.edits.proposals import FloatArray, Proposals, Proposer
from pairwright.generators.edits.replacements import REPLACEMENT_TYPES, build_proposer
from pairwright.generators.edits.sampling import balance_of_targets, order_by_weight
from pairwright.generators.edits.shuffling import shuffle
from pairwright.generators.edits.slots import find_slots
from pairwright.generators.edits.swaps.proposal import SwapProposal
from pairwright.generators.edits.swaps.swaps import SWAPPED, Swaps

MAX_TRIES: Final = 128  # proposals of a caption that are checked at most
_MOST_REMEMBERED: Final = 200_000
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
Proposal = tuple[int, int, float]  # index of the replaced word, of the inserted one, and the log-ratio


class Editor(Protocol):
    """Makes the edits of one type."""

    def outcomes(self, caption: Caption, proposals: Any, seed: int) -> Iterator[Outcome | BothOutcome]:
        """Yield edits of a caption in random order, and reasons where there is none.

        Args:
            caption: the caption.
            proposals: of `PreparedCaption`, of this type.
            seed: 64 random bits.
        """
        ...


@dataclass
class WordEditor:
    """Makes edits with words that the cloze model proposes: REPLACE, ADD and NEGATION.

    Proposals are drawn by weight (`sampling`), and pass the constraints one by one until one makes a text.

    Attributes:
        balance: of each word of the vocabulary; see `word_balance`.
        known: what the constraints read.
        by_words: constraints that the words of an edit decide.
        others: constraints on an edit as a whole.
    """

    balance: FloatArray
    known: Knowledge
    by_words: Sequence[Constraint]
    others: Sequence[Constraint]
    _decided: dict[Hashable, Constraint | None] = field(default_factory=dict)

    def outcomes(
        self,
        caption: Caption,  # noqa: ARG002 - the protocol's
        proposals: Proposals | AdditionProposals,
        seed: int,
    ) -> Iterator[Outcome | BothOutcome]:
        """Yield reasons, and edits, or pairs of a false and a true one, in random order."""
        yield from proposals.reasons
        weights = proposals.log_ratio + self.balance[proposals.new] - self.balance[proposals.old]
        for at in islice(order_by_weight(weights, seed), MAX_TRIES):
            violated = self._violation(proposals.proposed_edit(at))
            yield proposals.outcome(at) if violated is None else violated.reason

    def allowed(self, proposals: Proposals | AdditionProposals) -> Iterator[Proposal]:
        """Yield the likeliest proposals that no constraint rejects."""
        for at in np.argsort(-proposals.log_ratio, kind="stable")[:MAX_TRIES].tolist():
            if self._violation(proposals.proposed_edit(at)) is None:
                yield int(proposals.old[at]), int(proposals.new[at]), float(proposals.log_ratio[at])

    def _violation(self, edit: ProposedEdit) -> Constraint | None:
        key = edit.old, edit.new, edit.before, edit.after
        if key not in self._decided:
            if len(self._decided) >= _MOST_REMEMBERED:
                self._decided.clear()
            self._decided[key] = first_violated(self.by_words, edit, self.known)
        return self._decided[key] or first_violated(self.others, edit, self.known)


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
        replacing: of types that replace words: the proposers.
        insertions: of types that insert words: return the proposals for captions.
        swaps: proposes the swaps of types that exchange words.
    """

    materials: EditMaterials
    by_type: Mapping[str, Editor]
    replacing: Mapping[str, Proposer]
    insertions: Mapping[str, ProposeInsertions]
    swaps: Swaps

    def outcomes(self, prepared: PreparedCaption, name: str, seed: int) -> Iterator[Outcome | BothOutcome]:
        """Yield edits of a type, and reasons; see `Editor.outcomes`."""
        return self.by_type[name].outcomes(prepared.caption, prepared.proposals.get(name), seed)

    def allowed(self, prepared: PreparedCaption, name: str) -> Iterator[Proposal]:
        """Yield the likeliest proposals of a type of `BALANCED_TYPES` that no constraint rejects."""
        return cast("WordEditor", self.by_type[name]).allowed(prepared.proposals[name])

    def prepare(self, captions: Sequence[Caption]) -> list[PreparedCaption]:
        """Return captions with what the editors read, scored together."""
        prepared = [PreparedCaption(caption) for caption in captions]
        slots = [find_slots(each, self.materials.knowledge.thesaurus) if self.replacing else [] for each in captions]
        found: dict[str, Sequence[Any]] = {
            name: proposer.propose(captions, slots) for name, proposer in self.replacing.items()
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
    replacing: dict[str, Proposer] = {}
    insertions: dict[str, ProposeInsertions] = {}
    swaps = Swaps(materials, [name for name in wanted if name in SWAPPED], skip)
    additions = Additions(materials) if not ADDED.keys().isdisjoint(wanted) else None
    for name in wanted:
        if name in SWAPPED or name == "shuffle":
            editors[name] = SwapEditor() if name in SWAPPED else ShuffleEditor()
            continue
        form, _, target = name.partition("-")
        constraints = applicable_constraints("hard_negative", form, target or OBJECT, skip)
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
