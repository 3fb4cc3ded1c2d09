"""Fit of a swap: how well a cloze model predicts every word of a caption after two of its parts changed places.

The sum of the log-probabilities of all slots, each given the rest, is the pseudo-log-likelihood of a caption (Salazar et
al. 2020). A swap keeps all words, so that the difference of two such sums does not depend on how frequent they are.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pairwright.datasets.records import Pair
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.slots import context_of, find_slots
from pairwright.generators.language.cloze.context import SLOT_KINDS
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.sources import Thesaurus
from pairwright.generators.language.tokens import Token

Span = tuple[int, int]

_MAX_LOG_RATIO: Final = 3.0  # above it a swap is not preferred any more: an odd original must not decide alone


@dataclass(frozen=True, slots=True)
class ClozeFit:
    """Compares captions before and after a swap.

    Attributes:
        model: the cloze model.
        thesaurus: WordNet, which knows the compounds.
    """

    model: ClozeModel
    thesaurus: Thesaurus

    def ratio(self, caption: Caption, first: Span, second: Span) -> float:
        """Return the probability of the words of a caption after two spans of tokens changed places, relative to before.

        0 if other words than before are read as nouns, adjectives or relations then.
        """
        tokens = [caption.tokens[at] for at in exchanged_order(len(caption.tokens), first, second)]
        slots = [
            [(each, slot) for slot in find_slots(each, self.thesaurus) if slot.key in self.model.index(slot.kind)]
            for each in (caption, _caption_of(tokens))
        ]
        before, after = (Counter((slot.kind, slot.key) for _, slot in found) for found in slots)
        if before != after:
            return 0.0
        total = 0.0
        for kind in SLOT_KINDS:
            chosen = [
                (sign, *each)
                for sign, found in zip((-1, 1), slots, strict=True)
                for each in found
                if each[1].kind == kind
            ]
            contexts = [context_of(each, slot.start, slot.end, slot.before, slot.after) for _, each, slot in chosen]
            if chosen:
                scores = self.model.log_probs(kind, contexts)
                index = self.model.index(kind)
                total += sum(sign * float(scores[at, index[slot.key]]) for at, (sign, _, slot) in enumerate(chosen))
        return math.exp(min(total, _MAX_LOG_RATIO))


def _caption_of(tokens: Sequence[Token]) -> Caption:
    """Return a caption of these tokens, single spaces between them."""
    placed, end = [], 0
    for token in tokens:
        placed.append(replace(token, start=end, end=end + len(token.text)))
        end += len(token.text) + 1
    return Caption(Pair("", " ".join(token.text for token in tokens)), placed)


def exchanged_order(length: int, first: Span, second: Span) -> list[int]:
    """Return the indices of tokens after two spans, in order of position, changed places."""
    return [
        *range(first[0]),
        *range(*second),
        *range(first[1], second[0]),
        *range(*first),
        *range(second[1], length),
    ]
