"""Text scorer by a cloze model: how well the nouns, adjectives and relations of a text fit its other words.

The slots are those that rules edit (`generators/edits/slots.py`), so this is the attack that knows most of how edits by
rules are chosen. It is trained on captions that the edits were not made with: cross-fitted as the other scorers are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from pairwright.datasets.records import Pair
from pairwright.filters.scorers.text_scorers import rounded_logistic
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.slots import context_of, find_slots
from pairwright.generators.language.cloze.context import SLOT_KINDS, ClozeExample
from pairwright.generators.language.cloze.examples import ClozeSampler
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.cloze.training import train_cloze_model
from pairwright.generators.language.packed_tokens import PackedTokens, pack, unpack
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import tag_all
from pairwright.generators.language.vocabulary import FloatArray
from pairwright.generators.language.wordnet import load_wordnet

LIMIT: Final = 40_000  # examples of a slot kind to train on; 15 s of CPU for each fold
_UNKNOWN: Final = -10.0  # log-probability of what the training captions have too rarely
_BATCH: Final = 500  # texts


@dataclass(frozen=True, eq=False)
class ClozeScorer:
    """Fit of the slots: their mean natural log-probability m, as 1 / (1 + exp(-(m + 3))); 0.5 without slots."""

    model: ClozeModel

    @classmethod
    def train(cls, captions: Sequence[str]) -> "ClozeScorer":
        """Return the scorer trained on ``captions``."""
        sampler = ClozeSampler(LIMIT)
        for caption, examples in zip(captions, _find_examples(captions), strict=True):
            sampler.add(caption, examples)
        return cls(train_cloze_model(sampler.sample()))

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the score of each text, float64 (n,) in 0-1."""
        examples = list(_find_examples(texts))
        total = np.zeros(len(texts))
        for start in range(0, len(texts), _BATCH):
            for kind in SLOT_KINDS:
                self._add_kind(kind, examples[start : start + _BATCH], total[start : start + _BATCH])
        slots = np.array([len(found) for found in examples])
        mean = np.divide(total, slots, out=np.full(len(texts), -3.0), where=slots > 0)
        return rounded_logistic(mean + 3.0)

    def _add_kind(self, kind: str, examples: Sequence[Sequence[ClozeExample]], total: FloatArray) -> None:
        """Add the log-probabilities of the slots of a kind to the totals of their texts."""
        rows = [(at, each) for at, found in enumerate(examples) for each in found if each.kind == kind]
        scores, index = self.model.log_probs(kind, [each.context for _, each in rows]), self.model.index(kind)
        for (at, each), row in zip(rows, scores, strict=True):
            column = index.get(each.target)
            total[at] += _UNKNOWN if column is None else max(float(row[column]), _UNKNOWN)


def _find_examples(texts: Sequence[str]) -> Iterator[list[ClozeExample]]:
    """Yield the filled slots of each text."""
    thesaurus = load_wordnet()
    for text, packed in zip(texts, _tags().of(texts), strict=True):
        caption = Caption(Pair("", text), unpack(text, packed))
        slots = find_slots(caption, thesaurus)
        yield [
            ClozeExample(slot.kind, slot.key, context_of(caption, slot.start, slot.end, slot.before, slot.after))
            for slot in slots
        ]


class _Tags:
    """Tags of texts, kept since the folds of a cross-fitting share most of their captions."""

    def __init__(self) -> None:
        self._known: dict[str, PackedTokens] = {}

    def of(self, texts: Sequence[str]) -> list[PackedTokens]:
        """Return the packed tokens of each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, map(pack, tag_all(load_tagger(), new)), strict=True))
        return [self._known[text] for text in texts]


@lru_cache(maxsize=1)
def _tags() -> _Tags:
    return _Tags()
