"""Captions with their slots and what the cloze model predicts in each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.slots import Slot, context_of, find_slots
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.lexicon.sources import Thesaurus

FloatArray = npt.NDArray[np.float32]


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
