"""Editors of negatives: for each type, proposals that are sampled, checked by the constraints and realised.

A *proposer* returns the proposals of some types for a batch of captions, since one call of the cloze model for many
slots is faster than many calls; the edits of a caption do not depend on the other captions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.edited import EditPairOutcome
from pairwright.generators.edits.additions.insertion_points import ATTRIBUTE, OBJECT
from pairwright.generators.edits.additions.proposals import SLOT_OF_TARGET, Additions
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.object_classifier import OBJECT_CLASSIFIER
from pairwright.generators.edits.constraints.relation_classifier import RELATION_CLASSIFIER
from pairwright.generators.edits.constraints.table import Constraint, applicable_constraints, first_violated
from pairwright.generators.edits.floors import NULL_WEIGHTS
from pairwright.generators.edits.materials import EditMaterials, are_of_photographs
from pairwright.generators.edits.negation import Negations
from pairwright.generators.edits.proposals import FloatArray, WordProposals
from pairwright.generators.edits.replacements import REPLACED_KINDS, PlaceChecks, Replacements
from pairwright.generators.edits.sampling import balance_of_targets, order_by_weight
from pairwright.generators.edits.shuffling import shuffle
from pairwright.generators.edits.swaps.swaps import SWAP_TYPES, propose_swaps

MAX_TRIES: Final = 128  # proposals of a caption that are checked at most, of the preferred and of the others
ADDED: Final = {"add-object": OBJECT, "add-attribute": ATTRIBUTE}
BALANCED_TYPES: Final = {  # with the slot kind whose vocabulary they insert
    **REPLACED_KINDS,
    **{name: SLOT_OF_TARGET[target] for name, target in ADDED.items()},
}
CLASSIFIERS: Final = {"replace-object": OBJECT_CLASSIFIER, "replace-relation": RELATION_CLASSIFIER}
PAIRED_TYPES: Final = frozenset((*ADDED, "negation"))  # whose negative and positive can share a slot

Proposal = tuple[int, int, float]  # index of the replaced word, of the inserted one, and the log-ratio
EditOutcomes = Iterator[EditOutcome | EditPairOutcome]


Proposer = Callable[[Sequence[Caption]], Mapping[str, Sequence[Any]]]  # by type, `WordProposals` or `SwapProposals`


class Editor:
    """Draws proposals by weight (`sampling`).

    Attributes:
        null: weight of drawing nothing.
    """

    null: float = 0.0

    def outcomes(self, proposals: Sequence[Any], seeds: Sequence[int]) -> list[EditOutcomes]:
        """Return for each caption the reason codes of rejections, then its edits in random order by a 64-bit seed."""
        sizes = [len(each.log_ratio) for each in proposals]
        orders = order_by_weight(self._log_weights(proposals), sizes, seeds, self.null)
        return [self._outcomes(each, order) for each, order in zip(proposals, orders, strict=True)]

    def _log_weights(self, proposals: Sequence[Any]) -> FloatArray:
        return np.concatenate([each.log_ratio for each in proposals])

    def _outcomes(self, proposals: Any, order: Sequence[int]) -> EditOutcomes:
        yield from proposals.reasons
        yield from map(proposals.outcome, order)


@dataclass
class WordEditor(Editor):
    """Draws words that the cloze model proposes (REPLACE, ADD and NEGATION), and checks the constraints one by one.

    Attributes:
        balance: of each word of the vocabulary; see `word_balance`.
        constraints: in the order in which they are checked.
    """

    balance: FloatArray
    known: Knowledge
    constraints: Sequence[Constraint]
    null: float = 0.0

    def _log_weights(self, proposals: Sequence[WordProposals]) -> FloatArray:
        new, old = (np.concatenate([getattr(each, name) for each in proposals]) for name in ("new", "old"))
        weights: FloatArray = super()._log_weights(proposals) + self.balance[new] - self.balance[old]
        return weights

    def _outcomes(self, proposals: Any, order: Sequence[int]) -> EditOutcomes:
        yield from proposals.reasons
        written = False
        for group in self._groups(proposals, order):
            nothing_drawn = False  # which counts if no edit was drawn before, and one is allowed
            for at in group:
                if at == len(proposals):
                    nothing_drawn = not written
                elif violated := self._violated(proposals, at):
                    yield violated.reason
                elif nothing_drawn:
                    yield "overused_word"
                    return
                else:
                    written = True
                    yield proposals.outcome(at)

    def allowed(self, proposals: WordProposals) -> Iterator[Proposal]:
        """Yield the most likely proposals that no constraint rejects; the preferred ones alone if there are any."""
        order = np.argsort(-proposals.log_ratio, kind="stable").tolist()
        groups = self._groups(proposals, order)
        found = ([at for at in group if self._violated(proposals, at) is None] for group in groups)
        for at in next(filter(None, found), ()):
            yield int(proposals.old[at]), int(proposals.new[at]), float(proposals.log_ratio[at])

    def _groups(self, proposals: WordProposals, order: Sequence[int]) -> Iterator[list[int]]:
        """Yield the first preferred proposals, then the first others, both with the index that stands for drawing nothing."""
        preferred = proposals.preferred.tolist()
        for wanted in (True, False):
            tried = (at for at in order if at == len(preferred) or preferred[at] is wanted)
            yield list(islice(tried, MAX_TRIES))

    def _violated(self, proposals: WordProposals, at: int) -> Constraint | None:
        return first_violated(self.constraints, proposals.proposed_edit(at), self.known)


@dataclass(frozen=True)
class EditorSet:
    """The editors of some types.

    Attributes:
        by_type: the editors, but for SHUFFLE, which has no proposals.
        proposers: each for one or several of these types.
    """

    by_type: Mapping[str, Editor]
    proposers: Sequence[Proposer]

    def outcomes(
        self, captions: Sequence[Caption], seeds: Sequence[Mapping[str, int]]
    ) -> list[dict[str, EditOutcomes]]:
        """Return the edits of each caption by type, given a seed for each type; see `Editor.outcomes`."""
        if not captions:
            return []
        proposals = self.propose(captions)
        found = {
            name: self.by_type[name].outcomes(each, [own[name] for own in seeds]) for name, each in proposals.items()
        }
        found["shuffle"] = [shuffle(caption, own["shuffle"]) for caption, own in zip(captions, seeds, strict=True)]
        return [{name: by_caption[at] for name, by_caption in found.items()} for at in range(len(captions))]

    def propose(self, captions: Sequence[Caption]) -> dict[str, Sequence[Any]]:
        """Return the proposals for each caption by type, scored in one batch."""
        return {name: found for propose in self.proposers for name, found in propose(captions).items()}


def build_editors(  # noqa: PLR0913 - options of the negatives
    materials: EditMaterials,
    types: Iterable[str],
    floor: float,
    *,
    both_sides: bool = False,
    vocabulary: Sequence[str] = (),
    skip: frozenset[str] = frozenset(),
) -> EditorSet:
    """Return the editors of some types of negatives; for the arguments see `negatives.NegativeOptions`."""
    wanted = frozenset(types)
    if "replace-relation" in wanted and not are_of_photographs(materials.knowledge.pool):
        skip |= {*RELATION_CLASSIFIER.constraints}  # it knows captions of photographs only
    swapped = [name for name in SWAP_TYPES if name in wanted]
    replaced = dict[str, PlaceChecks]()
    by_type: dict[str, Editor] = {name: Editor() for name in swapped}
    for name in sorted(wanted.intersection((*BALANCED_TYPES, "negation"))):
        form, _, target = name.partition("-")
        constraints = applicable_constraints("hard_negative", form, target or OBJECT, by_rules=True, skip=skip)
        if name in REPLACED_KINDS:
            classifier = (
                CLASSIFIERS[name].demanded_by({each.id for each in constraints}) if name in CLASSIFIERS else None
            )
            replaced[name] = PlaceChecks([each for each in constraints if each.by_place], classifier)
            judged = classifier.constraints if classifier else ()
            constraints = tuple(each for each in constraints if not each.by_place and each.id not in judged)
        balance = materials.model.balance.get(name, {}) if both_sides or name not in ADDED else {}
        targets = materials.model.cloze.targets(BALANCED_TYPES.get(name, "noun"))
        null = NULL_WEIGHTS.get(name, 0.0)
        by_type[name] = WordEditor(balance_of_targets(targets, balance), materials.knowledge, constraints, null)
    proposers = list[Proposer]()
    if replaced:
        proposers.append(Replacements(materials, replaced, floor).propose)
    if added := [name for name in ADDED if name in wanted]:
        additions = Additions(materials)
        proposers += (
            _of_type(name, partial(additions.propose, target=ADDED[name], paired=both_sides)) for name in added
        )
    if "negation" in wanted:
        negations = Negations(materials.model.cloze, materials.knowledge.thesaurus, vocabulary)
        proposers.append(_of_type("negation", negations.propose))
    if swapped:
        proposers.append(partial(propose_swaps, materials, swapped, skip=skip))
    return EditorSet(by_type, proposers)


def _of_type(name: str, propose: Callable[[Sequence[Caption]], Sequence[Any]]) -> Proposer:
    return lambda captions: {name: propose(captions)}
