"""Fit of a swap: how well a cloze model predicts every word of a caption after two of its parts changed places.

The sum of the log-probabilities of all slots, each given the rest, is the pseudo-log-likelihood of a caption (Salazar et
al. 2020). A swap keeps all words, so that the difference of two such sums does not depend on how frequent they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.slots import _CONTENT as CONTENT
from pairwright.generators.edits.slots import Slot, find_slots
from pairwright.generators.knowledge.sources import Thesaurus
from pairwright.generators.language.cloze.context import MAX_BAG, REACH, SLOT_KINDS, ClozeContext
from pairwright.generators.language.cloze.model import ClozeModel

Span = tuple[int, int]


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
        """Return the probability of the words of a caption after two spans of tokens changed places, relative to before."""
        order = exchanged_order(len(caption.tokens), first, second)
        place = {token: at for at, token in enumerate(order)}
        slots = [slot for slot in find_slots(caption, self.thesaurus) if _is_movable(slot, first, second)]
        moved = _moved_nouns(caption, slots, first, second)
        total = 0.0
        for kind in SLOT_KINDS:
            index = self.model.index(kind)
            known = [slot for slot in slots if slot.kind == kind and slot.key in index]
            before = [
                _context(caption, range(len(order)), slot.start, slot.end, (slot.before, slot.after)) for slot in known
            ]
            after = [
                _context(
                    caption,
                    order,
                    place[slot.start],
                    place[slot.end - 1] + 1,
                    moved.get(slot, (slot.before, slot.after)),
                )
                for slot in known
            ]
            if known:
                scores = self.model.log_probs(kind, before + after)
                for at, slot in enumerate(known):
                    column = index[slot.key]
                    total += float(scores[len(known) + at, column] - scores[at, column])
        return math.exp(min(total, 700.0))


def exchanged_order(length: int, first: Span, second: Span) -> list[int]:
    """Return the indices of tokens after two spans, in order of position, changed places."""
    return [
        *range(first[0]),
        *range(*second),
        *range(first[1], second[0]),
        *range(*first),
        *range(second[1], length),
    ]


def _is_movable(slot: Slot, first: Span, second: Span) -> bool:
    """Return whether no end of a span is inside a slot."""
    return not any(slot.start < edge < slot.end for span in (first, second) for edge in span)


def _moved_nouns(caption: Caption, slots: Sequence[Slot], first: Span, second: Span) -> dict[Slot, tuple[str, str]]:
    """Return the nouns that slots join or describe after the exchange: those around it of nouns, its own of attributes."""
    inside = [[slot for slot in slots if span[0] <= slot.start < span[1]] for span in (first, second)]
    named = [next((slot.after for slot in found), "") for found in inside]
    of_nouns = all(caption.tags[span[1] - 1].startswith("NN") for span in (first, second))
    if of_nouns:
        named = [caption.lemmas[span[1] - 1] for span in (first, second)]
    exchanged = {named[0]: named[1], named[1]: named[0]}
    within = {slot for found in inside for slot in found}
    return {
        slot: (exchanged.get(slot.before, slot.before), exchanged.get(slot.after, slot.after))
        for slot in slots
        if (slot in within) is not of_nouns
    }


def _context(caption: Caption, order: Sequence[int], start: int, end: int, heads: tuple[str, str]) -> ClozeContext:
    """Return the context of the tokens ``start`` up to ``end`` of a caption in another order."""
    words = [caption.context_words[at] for at in order]
    left = (*words[max(0, start - REACH) : start][::-1], *("",) * REACH)[:REACH]
    right = (*words[end : end + REACH], *("",) * REACH)[:REACH]
    bag = [
        caption.lemmas[at]
        for place, at in enumerate(order)
        if caption.tokens[at].pos in CONTENT and not start <= place < end
    ]
    return ClozeContext(left, right, heads, tuple(bag[:MAX_BAG]))
