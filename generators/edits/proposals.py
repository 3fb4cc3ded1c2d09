"""Proposals of replacements: candidate words for the slots of captions, scored by the cloze model in batches.

Candidates are the words that the cloze model predicts, so the vocabulary of the pool. A lexicon selects those that
exclude the word in the slot; the model gives p(new | context). Proposals below a floor are dropped as unnatural, even
if the original word is as unlikely; the *ratio* p(new | context) / p(old | context) is used for sampling.

Exclusion is symmetric, and a word that the model does not know is not replaced, since it could not be inserted either.
Neither are attributes and relations of nouns that the model does not know.
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

_MAX_ROWS: Final = 20_000  # cached candidate lists
MAX_LOG_RATIO: Final = 3.0  # clipped, so that an odd original does not dominate


class EditSlot(Protocol):
    """A slot of a caption where a word is replaced or inserted."""

    def proposed(self, caption: Caption, new: str) -> ProposedEdit:
        """Return the proposed edit that writes a word here, for constraints."""
        ...

    def change(self, caption: Caption, word: str) -> Change:
        """Return the change that writes a word here."""
        ...


@dataclass(frozen=True, slots=True)
class WordProposals:
    """Proposed words for the slots of one caption; the arrays have one entry per proposal.

    Attributes:
        caption: the caption.
        slots: the slots.
        targets: the vocabulary.
        slot: index into ``slots``, int64.
        old: index into ``targets`` of the replaced word, or of the true word for the same slot, int64; -1 for none.
        new: index into ``targets`` of the proposed word, int64.
        log_ratio: natural logarithm of p(new | context) / p(old | context), at most 3, float32; without an old word,
            relative to a typical word.
        reasons: reason codes of rejections.
        paired: whether each has a true word for the same slot.
    """

    caption: Caption
    slots: Sequence[EditSlot]
    targets: Sequence[str]
    slot: IntArray
    old: IntArray
    new: IntArray
    log_ratio: FloatArray
    reasons: Sequence[str] = ()
    paired: bool = False

    def __len__(self) -> int:
        return len(self.new)

    def proposed_edit(self, at: int) -> ProposedEdit:
        """Return proposal ``at``, for constraints."""
        return self.slots[int(self.slot[at])].proposed(self.caption, self.targets[int(self.new[at])])

    def outcome(self, at: int) -> EditOutcome | EditPairOutcome:
        """Return the change of proposal ``at``; if paired, the false and the true one."""
        false = (self.false_change(at),)
        return (false, (self.true_change(at),)) if self.paired else false

    def false_change(self, at: int) -> Change:
        """Return the change of proposal ``at`` that is false."""
        return self.slots[int(self.slot[at])].change(self.caption, self.targets[int(self.new[at])])

    def true_change(self, at: int) -> Change:
        """Return the change that writes the true word of proposal ``at`` in the same slot."""
        return self.slots[int(self.slot[at])].change(self.caption, self.targets[int(self.old[at])])


def split_by_caption(slots: Sequence[int], of: IntArray) -> Iterator[slice]:
    """Yield the slice of the proposals of each caption, given the numbers of slots and the slot of each proposal."""
    ends = np.searchsorted(of, np.cumsum(slots)).tolist()
    yield from map(slice, [0, *ends], ends)


@dataclass
class Proposer:
    """Proposes replacements for the slots of one kind.

    Attributes:
        kind: of the slots.
        model: the cloze model.
        substitutes: returns the columns of the vocabulary, ascending, that may replace the word of a slot.
        group: returns the cache key of a slot for `substitutes`.
        floor: minimum probability of a proposal in its context, above 0.
        by_place: constraints that depend on the replaced words only.
        known: WordNet and pool statistics, for constraints.
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
        """Return the proposals for each caption, scored in one batch; independent of the other captions.

        Args:
            captions: the captions.
            slots: slots of each caption; those of other kinds are skipped.
        """
        index, targets = self.model.index(self.kind), self.model.targets(self.kind)
        by_caption, rejected = self._open_slots(captions, slots)
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
            captions, by_caption, rejected, split_by_caption(sizes, at), strict=True
        ):
            slot = at[part] - first
            given = [*reasons, "no_candidate"] if found and not len(slot) else reasons
            made.append(WordProposals(caption, found, targets, slot, old[at[part]], new[part], ratios[part], given))
            first += len(found)
        return made

    def _open_slots(
        self, captions: Sequence[Caption], slots: Sequence[Sequence[Slot]]
    ) -> tuple[list[list[Slot]], list[list[str]]]:
        """Return the replaceable slots of each caption whose words the model knows, and the reasons of rejections."""
        index, nouns = self.model.index(self.kind), self.model.index(NOUN)
        opened: list[list[Slot]] = [[] for _ in captions]
        rejected: list[list[str]] = [[] for _ in captions]
        for at, (caption, found) in enumerate(zip(captions, slots, strict=True)):
            for slot in found:
                if slot.kind == self.kind and slot.key in index and (not slot.after or slot.after in nouns):
                    violated = first_violated(self.by_place, slot.proposed(caption, ""), self.known)
                    if violated is None:
                        opened[at].append(slot)
                    else:
                        rejected[at].append(violated.reason)
        return opened, rejected

    def _candidates(self, slot: Slot) -> npt.NDArray[np.int32]:
        key = self.group(slot)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MAX_ROWS:
                self._rows.clear()
            row = self._rows[key] = np.asarray(self.substitutes(slot), np.int32)
        return row
