"""Proposals: which words may stand in a slot instead, and how well they fit, for a whole caption at once.

The vocabulary is what the cloze model predicts, the words that captions of the pool use. A lexicon says which of them
exclude the word in the slot; the model gives the *ratio* p(new | context) / p(old | context). Proposals below a floor of
this ratio are dropped: captions would not say so.

Exclusion is symmetric, and a word that the model does not know is not replaced, since it could not be inserted either.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pairwright.generators.edits.slots import Slot, form_of
from pairwright.generators.language.cloze.model import ClozeModel

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

Substitutes = Callable[[Slot, tuple[str, ...]], Sequence[str]]
_MAX_LOG_RATIO = 3.0  # above it a proposal is not preferred any more: an odd original must not decide alone


@dataclass(frozen=True, slots=True)
class Proposals:
    """Proposals of one kind for one caption; the arrays have one entry a proposal.

    Attributes:
        slots: of the caption.
        targets: the vocabulary.
        slot: index into ``slots``, int64.
        old: index of the word in the slot into ``targets``, int64.
        new: index of the proposed word into ``targets``, int64.
        log_ratio: natural logarithm of p(new | context) / p(old | context), at most 3, float32.
    """

    slots: Sequence[Slot]
    targets: Sequence[str]
    slot: IntArray
    old: IntArray
    new: IntArray
    log_ratio: FloatArray

    def __len__(self) -> int:
        return len(self.new)

    def at(self, index: int) -> tuple[Slot, str]:
        """Return the slot and the new word of a proposal."""
        return self.slots[self.slot[index]], self.targets[self.new[index]]


@dataclass
class Proposer:
    """Proposes replacements for the slots of one kind.

    Attributes:
        kind: of the slots.
        model: the cloze model.
        substitutes: returns the words of a vocabulary that exclude the word in a slot.
        group: what of a slot `substitutes` depends on.
        floor: the least ratio, above 0.
        least: the least probability of the new word itself, 0 to 1.
    """

    kind: str
    model: ClozeModel
    substitutes: Substitutes
    group: Callable[[Slot], Hashable]
    floor: float
    least: float = 0.0
    _rows: dict[Any, IntArray] = field(default_factory=dict)

    def propose(self, slots: Sequence[Slot], log_probs: FloatArray) -> Proposals:
        """Return the proposals for slots of one caption.

        Args:
            slots: n slots of this kind.
            log_probs: of each word of the vocabulary in each slot, shape (n, vocabulary).
        """
        index, targets = self.model.index(self.kind), self.model.targets(self.kind)
        parts: list[tuple[int, int, IntArray, FloatArray]] = []
        least = float(np.log(self.floor))
        for at, slot in enumerate(slots):
            old = index.get(slot.key)
            if old is None:
                continue
            row = self._candidates(slot, targets)
            ratios = log_probs[at, row] - log_probs[at, old]
            fits = (ratios >= least) & (np.exp(log_probs[at, row]) >= self.least)
            parts.append((at, old, row[fits], ratios[fits]))
        if not parts:
            empty = np.zeros(0, np.int64)
            return Proposals(slots, targets, empty, empty, empty, np.zeros(0, np.float32))
        sizes = [len(new) for _, _, new, _ in parts]
        return Proposals(
            slots,
            targets,
            np.repeat(np.array([at for at, *_ in parts]), sizes),
            np.repeat(np.array([old for _, old, *_ in parts]), sizes),
            np.concatenate([new for _, _, new, _ in parts]),
            np.minimum(np.concatenate([ratio for *_, ratio in parts]), _MAX_LOG_RATIO),
        )

    def _candidates(self, slot: Slot, targets: tuple[str, ...]) -> IntArray:
        key = self.group(slot)
        row = self._rows.get(key)
        if row is None:
            index = self.model.index(self.kind)
            words = (word for word in self.substitutes(slot, targets) if form_of(slot, word))
            row = self._rows[key] = np.array(sorted(index[word] for word in words), np.int64)
        return row
