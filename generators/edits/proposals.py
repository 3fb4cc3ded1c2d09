"""Proposed words for the slots of a caption, with their scores by the cloze model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.edited import EditPairOutcome
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.cloze.context import ClozeContext
from pairwright.generators.language.cloze.model import ClozeModel

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
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
        preferred: whether it goes before those that are not (`edit_classifier.are_preferred`), bool.
        log_prob: natural logarithm of p(new | context), float32; empty where it is not asked for.
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
    preferred: BoolArray
    log_prob: FloatArray = field(default_factory=lambda: np.zeros(0, np.float32))
    reasons: Sequence[str] = ()
    paired: bool = False

    def __len__(self) -> int:
        return len(self.new)

    def proposed_edit(self, at: int) -> ProposedEdit:
        """Return proposal ``at``, for constraints."""
        edit = self.slots[int(self.slot[at])].proposed(self.caption, self.targets[int(self.new[at])])
        return ProposedEdit(*edit[:-1], float(self.log_prob[at])) if len(self.log_prob) else edit

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


WordPair = tuple[int, int, int, float]  # slot, column of the true word (-1: none), of the false one, and the log-ratio


def insertion_proposals(  # noqa: PLR0913 - what proposals consist of
    caption: Caption,
    slots: Sequence[EditSlot],
    targets: Sequence[str],
    words: Sequence[WordPair],
    reason: str,
    *,
    paired: bool,
) -> WordProposals:
    """Return words as proposals, and a reason code, if it is not empty, if there are none."""
    slot, old, new = np.array([each[:3] for each in words], np.int64).reshape(-1, 3).T
    ratios = np.array([each[3] for each in words], np.float32)
    return WordProposals(
        caption,
        slots,
        targets,
        slot,
        old,
        new,
        ratios,
        np.ones(len(ratios), bool),
        reasons=(reason,) if reason and not words else (),
        paired=paired,
    )


def relative_fits(model: ClozeModel, kind: str, contexts: Sequence[Sequence[ClozeContext]]) -> list[FloatArray]:
    """Return the log-probability of each word of the vocabulary minus that of a typical word, scored in one batch.

    Args:
        model: the cloze model.
        kind: kind of the slots.
        contexts: n contexts of each caption.

    Returns:
        For each caption float32 (n, vocabulary).
    """
    fits = model.log_probs(kind, [*chain.from_iterable(contexts)])
    fits -= typical_log_probs(fits)[:, None]
    return np.split(fits, np.cumsum([*map(len, contexts)])[:-1]) if contexts else []


def typical_log_probs(log_probs: FloatArray) -> FloatArray:
    """Return the expected log-probability of a word (the negative entropy) in each context, shape (n,)."""
    return np.asarray((np.exp(log_probs) * log_probs).sum(axis=1), np.float32)


def split_by_caption(slots: Sequence[int], of: IntArray) -> Iterator[slice]:
    """Yield the slice of the proposals of each caption, given the numbers of slots and the slot of each proposal."""
    ends = np.searchsorted(of, np.cumsum(slots)).tolist()
    yield from map(slice, [0, *ends], ends)
