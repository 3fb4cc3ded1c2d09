"""Proposed words for the slots of a caption, with their scores by the cloze model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.edited import EditPairOutcome
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


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
