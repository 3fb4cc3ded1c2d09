"""Proposals: which words may stand in a slot instead, and how well they fit, for a whole caption at once.

The vocabulary is what the cloze model predicts, the words that captions of the pool use. A lexicon says which of them
exclude the word in the slot; the model gives p(new | context). Proposals below a floor are dropped: captions would not say
so. That the word in the slot is as unlikely does not make them natural; the *ratio* p(new | context) / p(old | context)
is for sampling.

Exclusion is symmetric, and a word that the model does not know is not replaced, since it could not be inserted either.
Neither is what is said of a thing that the model does not know, as what goes with it is not known.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.edited import EditPairOutcome
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import Constraint, first_violated
from pairwright.generators.edits.slots import NOUN, Slot, context_of
from pairwright.generators.language.cloze.model import ClozeModel

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

_MAX_ROWS: Final = 20_000  # of candidates that are remembered
MAX_LOG_RATIO: Final = 3.0  # above it a proposal is not preferred any more: an odd original must not decide alone


class WordPlace(Protocol):
    """Where a word of a caption is replaced or added."""

    def proposed(self, caption: Caption, new: str) -> ProposedEdit:
        """Return the edit that writes a word here, as constraints see it."""
        ...

    def change(self, caption: Caption, word: str) -> Change:
        """Return the change that writes a word here."""
        ...


@dataclass(frozen=True, slots=True)
class WordProposals:
    """Words that may be written in one caption; the arrays have one entry a proposal.

    Attributes:
        caption: the caption.
        places: where words may be written.
        targets: the vocabulary.
        place: index into ``places``, int64.
        old: index into ``targets`` of the replaced word, or of the one that is true in the same place, int64; -1 for none.
        new: index into ``targets`` of the proposed word, int64.
        log_ratio: natural logarithm of p(new | context) / p(old | context), at most 3, float32; without an old word, of
            p(new | context) over that of a typical word.
        reasons: why there are not more.
        paired: whether each comes with a true word in the same place.
    """

    caption: Caption
    places: Sequence[WordPlace]
    targets: Sequence[str]
    place: IntArray
    old: IntArray
    new: IntArray
    log_ratio: FloatArray
    reasons: Sequence[str] = ()
    paired: bool = False

    def __len__(self) -> int:
        return len(self.new)

    def proposed_edit(self, at: int) -> ProposedEdit:
        """Return proposal ``at`` as constraints see it."""
        return self.places[int(self.place[at])].proposed(self.caption, self.targets[int(self.new[at])])

    def outcome(self, at: int) -> EditOutcome | EditPairOutcome:
        """Return the change of proposal ``at``, or the false and the true one."""
        false = (self.false_change(at),)
        return (false, (self.true_change(at),)) if self.paired else false

    def false_change(self, at: int) -> Change:
        """Return the change of proposal ``at`` that is false."""
        return self.places[int(self.place[at])].change(self.caption, self.targets[int(self.new[at])])

    def true_change(self, at: int) -> Change:
        """Return the change that writes the true word of proposal ``at`` in the same place."""
        return self.places[int(self.place[at])].change(self.caption, self.targets[int(self.old[at])])


def split_by_caption(places: Sequence[int], of: IntArray) -> Iterator[slice]:
    """Yield which proposals are those of each caption, given the number of places of each and the places of proposals."""
    ends = np.searchsorted(of, np.cumsum(places)).tolist()
    yield from map(slice, [0, *ends], ends)


@dataclass
class Proposer:
    """Proposes replacements for the slots of one kind.

    Attributes:
        kind: of the slots.
        model: the cloze model.
        substitutes: returns the columns of the vocabulary, ascending, that may stand in a slot instead.
        group: what of a slot `substitutes` depends on.
        floor: the least probability of a proposal in its context, above 0.
        by_place: constraints that the replaced words decide.
        known: what they read.
    """

    kind: str
    model: ClozeModel
    substitutes: Callable[[Slot], Sequence[int] | npt.NDArray[Any]]
    group: Callable[[Slot], Hashable]
    floor: float
    by_place: Sequence[Constraint]
    known: Knowledge
    _rows: dict[Hashable, npt.NDArray[np.int32]] = field(default_factory=dict)

    def propose(self, captions: Sequence[Caption], slots: Sequence[Sequence[Slot]]) -> list[WordProposals]:
        """Return the proposals for each caption, scored together; they do not depend on the others.

        Args:
            captions: the captions.
            slots: of each caption; those of other kinds are left out.
        """
        index, targets = self.model.index(self.kind), self.model.targets(self.kind)
        by_caption, refused = self._open_slots(captions, slots)
        open_slots = [*chain.from_iterable(by_caption)]
        log_probs = self.model.log_probs(
            self.kind,
            [
                context_of(caption, slot.start, slot.end, slot.before, slot.after)
                for caption, found in zip(captions, by_caption, strict=True)
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
        ratios = np.minimum(own - log_probs[np.arange(len(rows)), old][at], MAX_LOG_RATIO)
        sizes, made, first = [len(found) for found in by_caption], [], 0
        for caption, found, reasons, part in zip(
            captions, by_caption, refused, split_by_caption(sizes, at), strict=True
        ):
            place = at[part] - first
            given = [*reasons, "no_candidate"] if found and not len(place) else reasons
            made.append(WordProposals(caption, found, targets, place, old[at[part]], new[part], ratios[part], given))
            first += len(found)
        return made

    def _open_slots(
        self, captions: Sequence[Caption], slots: Sequence[Sequence[Slot]]
    ) -> tuple[list[list[Slot]], list[list[str]]]:
        """Return the slots of each caption whose words the model knows and may be replaced, and why others may not."""
        index, nouns = self.model.index(self.kind), self.model.index(NOUN)
        opened: list[list[Slot]] = [[] for _ in captions]
        refused: list[list[str]] = [[] for _ in captions]
        for at, (caption, found) in enumerate(zip(captions, slots, strict=True)):
            for slot in found:
                if slot.kind == self.kind and slot.key in index and (not slot.after or slot.after in nouns):
                    violated = first_violated(self.by_place, slot.proposed(caption, ""), self.known)
                    if violated is None:
                        opened[at].append(slot)
                    else:
                        refused[at].append(violated.reason)
        return opened, refused

    def _candidates(self, slot: Slot) -> npt.NDArray[np.int32]:
        key = self.group(slot)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MAX_ROWS:
                self._rows.clear()
            row = self._rows[key] = np.asarray(self.substitutes(slot), np.int32)
        return row
