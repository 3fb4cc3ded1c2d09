"""How probable replacements are under a cloze model of captions of other images.

The model is trained as the rules train theirs, on captions that they did not learn from. A slot of the caption whose
text an edit changes is scored with both words: ln p(new | context) - ln p(old | context). Edits of no slot, or with a
word that the model does not know, have no score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.learning import sample_slots
from pairwright.generators.edits.slots import Slot, context_of, find_slots
from pairwright.generators.language.cloze.context import ClozeContext
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.cloze.training import train_cloze_model
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.wordnet import load_wordnet

SLOT_KIND: Final = {"replace-object": "noun", "replace-attribute": "adjective", "replace-relation": "relation"}
_Place = tuple[Slot, int, int, ClozeContext]  # with the offsets of the slot in the caption
IMPROBABLE: Final = 0.03  # times the probability of the word that stands there


class EditedPair(NamedTuple):
    """A pair with the tokens of its caption, and an edit of it."""

    pair: Pair
    tokens: Sequence[Token]
    annotation: Annotation


@dataclass(frozen=True, eq=False)
class HeldOutCloze:
    """A cloze model that scores replacements."""

    model: ClozeModel
    _slots: dict[str, list[_Place]] = field(default_factory=dict)
    _targets: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def fit(cls, captions: Sequence[str]) -> "HeldOutCloze":
        """Return the model of the captions."""
        tokens = load_tagger().tag(captions)
        return cls(train_cloze_model(sample_slots(captions, tokens, load_wordnet())))

    def describe(self, kind: str, edits: Sequence[EditedPair]) -> dict[str, float]:
        """Return the median of the log-ratios of edits of a type, and the share below that of `IMPROBABLE`.

        Args:
            kind: type of the edits; nothing is returned for types without slots.
            edits: all edits of the type.
        """
        ratios = self.log_ratios(SLOT_KIND[kind], edits) if kind in SLOT_KIND else np.empty(0)
        known = ratios[np.isfinite(ratios)]
        if not len(known):
            return {}
        return {
            "improbable": round(float(np.mean(known < np.log(IMPROBABLE))), 4),
            "cloze_median": round(float(np.median(known)), 3),
            "cloze_known": round(len(known) / len(ratios), 4),
        }

    def log_ratios(self, slot_kind: str, edits: Sequence[EditedPair]) -> npt.NDArray[np.float64]:
        """Return ln p(new) - ln p(old) of each edit, float64 (n,), NaN without a score."""
        index = self.model.index(slot_kind)
        found = np.full(len(edits), np.nan)
        contexts, scored = [], []
        for number, edit in enumerate(edits):
            for slot, start, end, context in self._slots_of(edit.pair, edit.tokens):
                written = _text_between(edit.annotation, start, end).lower()
                new = self._targets_by_form(slot).get(written) if slot.kind == slot_kind else None
                if new and new != slot.key and slot.key in index:
                    contexts.append(context)
                    scored.append((number, index[slot.key], index[new]))
                    break
        if scored:
            numbers, old, new_words = np.array(scored).T
            log_probs = self.model.log_probs(slot_kind, contexts)
            rows = np.arange(len(contexts))
            found[numbers] = log_probs[rows, new_words] - log_probs[rows, old]
        return found

    def _slots_of(self, pair: Pair, tokens: Sequence[Token]) -> list[_Place]:
        if pair.key not in self._slots:
            caption = Caption(pair, tokens)
            self._slots[pair.key] = [
                (
                    slot,
                    tokens[slot.start].start,
                    tokens[slot.end - 1].end,
                    context_of(caption, slot.start, slot.end, slot.before, slot.after),
                )
                for slot in find_slots(caption, load_wordnet())
            ]
        return self._slots[pair.key]

    def _targets_by_form(self, slot: Slot) -> Mapping[str, str]:
        key = (slot.kind, slot.tag)
        if key not in self._targets:
            self._targets[key] = {slot.form(target): target for target in self.model.targets(slot.kind)}
        return self._targets[key]


def _text_between(annotation: Annotation, start: int, end: int) -> str:
    """Return what an edited text has in place of ``source_text[start:end]``."""

    def moved(offset: int) -> int:
        shifts = (len(edit.after) - len(edit.before) for edit in annotation.edits if edit.before_span[1] <= offset)
        return offset + sum(shifts)

    return annotation.text[moved(start) : moved(end)]
