"""Proposals: which words may stand in a slot instead, and how well they fit, for a whole caption at once.

The vocabulary is what the cloze model predicts, the words that captions of the pool use. A lexicon says which of them
exclude the word in the slot; the model gives p(new | context). Proposals below a floor are dropped: captions would not say
so. That the word in the slot is as unlikely does not make them natural; the *ratio* p(new | context) / p(old | context)
is for sampling.

Exclusion is symmetric, and a word that the model does not know is not replaced, since it could not be inserted either.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.screens import Replaced, Screen, Screened
from pairwright.generators.edits.slots import ADJECTIVE, NOUN, RELATION, Slot, context_of, find_slots, lexicon_key
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.lexicon.protocols import Thesaurus

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float32]

TARGETS: Final = {NOUN: "object", ADJECTIVE: "attribute", RELATION: "relation"}
_MAX_ROWS: Final = 20_000  # of candidates that are remembered
_MAX_LOG_RATIO = 3.0  # above it a proposal is not preferred any more: an odd original must not decide alone


@dataclass(frozen=True, slots=True)
class ScoredCaption:
    """A caption, with its slots by kind.

    Attributes:
        caption: the parsed caption.
        slots: of each kind whose words the cloze model knows, from left to right.
        log_probs: of each kind, the natural log-probability of each target in each slot, shape (slots, targets).
    """

    caption: Caption
    slots: dict[str, list[Slot]]
    log_probs: dict[str, FloatArray]


def score_captions(
    captions: Sequence[Caption], thesaurus: Thesaurus, model: ClozeModel, kinds: Collection[str]
) -> list[ScoredCaption]:
    """Return captions with their slots of some kinds, scored together.

    The scores of a caption do not depend on the others.
    """
    slots = [find_slots(caption, thesaurus) for caption in captions]
    by_kind = {
        kind: [[slot for slot in found if slot.kind == kind and slot.key in model.index(kind)] for found in slots]
        for kind in kinds
    }
    scores = {kind: _split(model, kind, captions, by_kind[kind]) for kind in kinds}
    return [
        ScoredCaption(caption, {kind: by_kind[kind][at] for kind in kinds}, {kind: scores[kind][at] for kind in kinds})
        for at, caption in enumerate(captions)
    ]


def _split(
    model: ClozeModel, kind: str, captions: Sequence[Caption], slots: Sequence[Sequence[Slot]]
) -> list[FloatArray]:
    contexts = [
        context_of(caption, slot.start, slot.end, slot.before, slot.after)
        for caption, found in zip(captions, slots, strict=True)
        for slot in found
    ]
    scores = model.log_probs(kind, contexts)
    ends = np.cumsum([len(found) for found in slots])
    return np.split(scores, ends[:-1])


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
        screened: which constraints each violates or may violate.
    """

    slots: Sequence[Slot]
    targets: Sequence[str]
    slot: IntArray
    old: IntArray
    new: IntArray
    log_ratio: FloatArray
    screened: Screened

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
        substitutes: returns the columns of the vocabulary, ascending, that may stand in a slot instead.
        group: what of a slot `substitutes` depends on.
        floor: the least probability of a proposal in its context, above 0.
        screen: of the constraints.
    """

    kind: str
    model: ClozeModel
    substitutes: Callable[[Slot], Sequence[int] | npt.NDArray[Any]]
    group: Callable[[Slot], Hashable]
    floor: float
    screen: Screen
    _rows: dict[Hashable, npt.NDArray[np.int32]] = field(default_factory=dict)

    def propose(self, captions: Sequence[ScoredCaption], *, screened: bool = True) -> list[Proposals]:
        """Return the proposals for each caption, which do not depend on the others.

        Args:
            captions: with the scores of their slots.
            screened: find out at once which constraints all proposals violate; else each is asked when it is drawn.
        """
        if not captions:
            return []
        index, targets = self.model.index(self.kind), self.model.targets(self.kind)
        by_caption = [each.slots[self.kind] for each in captions]
        slots = [*chain.from_iterable(by_caption)]
        rows = [self._candidates(slot) for slot in slots]
        log_probs = np.concatenate([each.log_probs[self.kind] for each in captions])
        old = np.array([index[slot.key] for slot in slots], np.int64)
        at = np.repeat(np.arange(len(slots)), [len(row) for row in rows])
        new = np.concatenate([np.zeros(0, np.int64), *rows])
        fits = np.flatnonzero(log_probs[at, new] >= np.log(self.floor))
        at, new = at[fits], new[fits]
        ratios = np.minimum(log_probs[at, new] - log_probs[np.arange(len(slots)), old][at], _MAX_LOG_RATIO)
        sizes = [len(found) for found in by_caption]
        ends = np.cumsum(sizes)
        if screened:
            asked, violated = self._screen([each.caption for each in captions], slots, sizes, at, new)
        else:
            asked, violated = self.screen.pass_all(len(new))
        found, first, start = [], 0, 0
        for these, last, stop in zip(by_caption, ends.tolist(), np.searchsorted(at, ends).tolist(), strict=True):
            part = slice(start, stop)
            verdicts = Screened(asked[part], violated[part])
            found.append(Proposals(these, targets, at[part] - first, old[at[part]], new[part], ratios[part], verdicts))
            first, start = last, stop
        return found

    def _screen(
        self, captions: Sequence[Caption], slots: Sequence[Slot], sizes: Sequence[int], at: IntArray, new: IntArray
    ) -> Screened:
        used, slot = np.unique(at, return_inverse=True)  # slots without proposals are not looked at
        caption = np.repeat(np.arange(len(captions)), sizes)[used]
        edits = [
            proposed_edit(captions[number], slots[number_of_slot], "")
            for number, number_of_slot in zip(caption.tolist(), used.tolist(), strict=True)
        ]
        return self.screen.screen(Replaced(captions, edits, caption, slot, new))

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
