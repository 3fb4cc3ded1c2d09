"""Proposals: which words may stand in a slot instead, and how well they fit, for a whole caption at once.

The vocabulary is what the cloze model predicts, the words that captions of the pool use. A lexicon says which of them
exclude the word in the slot; the model gives p(new | context). Proposals below a floor are dropped: captions would not say
so. That the word in the slot is as unlikely does not make them natural; the *ratio* p(new | context) / p(old | context)
is for sampling.

Exclusion is symmetric, and a word that the model does not know is not replaced, since it could not be inserted either.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import Constraint, first_violated
from pairwright.generators.edits.slots import ADJECTIVE, NOUN, RELATION, Slot, context_of, lexicon_key, write_slot
from pairwright.generators.language.cloze.model import ClozeModel

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

TARGETS: Final = {NOUN: "object", ADJECTIVE: "attribute", RELATION: "relation"}
_MAX_ROWS: Final = 20_000  # of candidates that are remembered
_MAX_LOG_RATIO = 3.0  # above it a proposal is not preferred any more: an odd original must not decide alone


@dataclass(frozen=True, slots=True)
class Proposals:
    """Proposals of one kind for one caption; the arrays have one entry a proposal.

    Attributes:
        caption: the caption.
        slots: whose words may be replaced.
        targets: the vocabulary.
        slot: index into ``slots``, int64.
        old: index of the word in the slot into ``targets``, int64.
        new: index of the proposed word into ``targets``, int64.
        log_ratio: natural logarithm of p(new | context) / p(old | context), at most 3, float32.
        refused: why words of further slots may not be replaced, whatever is written for them.
    """

    caption: Caption
    slots: Sequence[Slot]
    targets: Sequence[str]
    slot: IntArray
    old: IntArray
    new: IntArray
    log_ratio: FloatArray
    refused: Sequence[str]

    def __len__(self) -> int:
        return len(self.new)

    @property
    def reasons(self) -> Sequence[str]:
        """Why there are not more."""
        return [*self.refused, "no_candidate"] if self.slots and not len(self) else self.refused

    def proposed_edit(self, at: int) -> ProposedEdit:
        """Return proposal ``at`` as constraints see it."""
        return proposed_edit(self.caption, self.slots[self.slot[at]], self.targets[self.new[at]])

    def outcome(self, at: int) -> Outcome:
        """Return the change of proposal ``at``."""
        return (write_slot(self.caption, self.slots[self.slot[at]], self.targets[self.new[at]]),)


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

    def propose(self, captions: Sequence[Caption], slots: Sequence[Sequence[Slot]]) -> list[Proposals]:
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
        fits = np.flatnonzero(log_probs[at, new] >= np.log(self.floor))
        at, new = at[fits], new[fits]
        ratios = np.minimum(log_probs[at, new] - log_probs[np.arange(len(rows)), old][at], _MAX_LOG_RATIO)
        ends = np.cumsum([len(found) for found in by_caption])
        made, first, start = [], 0, 0
        for caption, found, reasons, last, stop in zip(
            captions, by_caption, refused, ends.tolist(), np.searchsorted(at, ends).tolist(), strict=True
        ):
            part = slice(start, stop)
            words = at[part] - first, old[at[part]], new[part]
            made.append(Proposals(caption, found, targets, *words, ratios[part], reasons))
            first, start = last, stop
        return made

    def _open_slots(
        self, captions: Sequence[Caption], slots: Sequence[Sequence[Slot]]
    ) -> tuple[list[list[Slot]], list[list[str]]]:
        """Return the slots of each caption whose word the model knows and may be replaced, and why others may not."""
        index = self.model.index(self.kind)
        opened: list[list[Slot]] = [[] for _ in captions]
        refused: list[list[str]] = [[] for _ in captions]
        for at, (caption, found) in enumerate(zip(captions, slots, strict=True)):
            for slot in found:
                if slot.kind == self.kind and slot.key in index:
                    violated = first_violated(self.by_place, proposed_edit(caption, slot, ""), self.known)
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


def proposed_edit(caption: Caption, slot: Slot, new: str) -> ProposedEdit:
    """Return a proposal as constraints see it."""
    old = slot.key
    if slot.kind == RELATION:
        old, new = lexicon_key(old), lexicon_key(new)
    return ProposedEdit(caption, "replace", TARGETS[slot.kind], old, new, slot.before, slot.after, slot.start, slot.end)
