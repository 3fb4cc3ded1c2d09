"""Scores of swaps by a cloze model: the probability of all words of a caption after a swap, relative to before.

The sum of the log-probabilities of all slots, each given the rest, is the pseudo-log-likelihood of a caption (Salazar
et al. 2020). A swap keeps all words, so the difference of two such sums does not depend on word frequency, and slots
with unchanged context cancel out.

Of a long text only the part around a swap is compared, so that the time for all its swaps grows with its length, not with
the square.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import ParsedText
from pairwright.generators.edits.slots import slot_examples
from pairwright.generators.edits.swaps.proposal import Span
from pairwright.generators.language.cloze.context import SLOT_KINDS, ClozeExample
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.lexicon.protocols import Thesaurus

_MAX_TOKENS: Final = 256  # of a text that is compared as a whole: a long caption of an image
_MARGIN: Final = 16  # tokens that are read at least on each side of a swap
_MAX_LOG_RATIO: Final = 3.0  # clipped, so that an odd original does not dominate


class SpanSwap(NamedTuple):
    """Two spans of tokens of a text, in order of position, that are exchanged."""

    text: ParsedText
    first: Span
    second: Span


@dataclass(frozen=True, slots=True)
class ClozeFit:
    """Compares captions before and after swaps.

    Attributes:
        model: the cloze model.
        thesaurus: WordNet, which knows the compounds.
    """

    model: ClozeModel
    thesaurus: Thesaurus

    def ratios(self, exchanges: Sequence[SpanSwap]) -> list[float]:
        """Return the probability of the words of each text after a swap, relative to before.

        0 if the slots of the text have other words afterwards. Ratios do not depend on each other.
        """
        parts: dict[tuple[ParsedText, int, int], ParsedText] = {}
        exchanges = [_within_part(each, parts) for each in exchanges]
        before = {text: self._slots(text) for text in dict.fromkeys(each.text for each in exchanges)}
        changes = [_change(before[each.text], self._slots(_exchanged(each))) for each in exchanges]
        scores = self._score(dict.fromkeys(slot for change in changes if change for slot in change))
        return [
            0.0
            if change is None
            else math.exp(min(sum(times * scores[slot] for slot, times in change.items()), _MAX_LOG_RATIO))
            for change in changes
        ]

    def _slots(self, text: ParsedText) -> list[ClozeExample]:
        """Return the slots of a text whose words the model knows."""
        found = slot_examples(text, self.thesaurus)
        return [slot for slot in found if slot.target in self.model.index(slot.kind)]

    def _score(self, slots: Iterable[ClozeExample]) -> dict[ClozeExample, float]:
        """Return the log-probability of the word of each slot in its context."""
        found: dict[ClozeExample, float] = {}
        for kind in SLOT_KINDS:
            index, of_kind = self.model.index(kind), [slot for slot in slots if slot.kind == kind]
            rows = self.model.log_probs(kind, [slot.context for slot in of_kind])
            columns = [index[slot.target] for slot in of_kind]
            found |= zip(of_kind, rows[range(len(of_kind)), columns].tolist(), strict=True)
        return found


def _within_part(exchange: SpanSwap, parts: dict[tuple[ParsedText, int, int], ParsedText]) -> SpanSwap:
    """Return a swap in the part of a long text around it, in whole sentences if they fit; ``parts`` are those so far."""
    text, first, second = exchange
    if len(text.tokens) <= _MAX_TOKENS:
        return exchange
    margin = max(_MARGIN, (_MAX_TOKENS - (second[1] - first[0])) // 2)
    start, end = max(0, first[0] - margin), min(len(text.tokens), second[1] + margin)
    start = next((at + 1 for at in range(start, first[0]) if start and text.tags[at] == "."), start)
    end = next((at for at in range(end, second[1], -1) if text.tags[at - 1] == "."), end)
    part = parts.get((text, start, end))
    if part is None:
        part = parts[text, start, end] = ParsedText(text.tokens[start:end])
    return SpanSwap(part, (first[0] - start, first[1] - start), (second[0] - start, second[1] - start))


def _exchanged(exchange: SpanSwap) -> ParsedText:
    tokens = exchange.text.tokens
    return ParsedText([tokens[at] for at in exchanged_order(len(tokens), exchange.first, exchange.second)])


def _change(before: Sequence[ClozeExample], after: Sequence[ClozeExample]) -> dict[ClozeExample, int] | None:
    """Return how often more each slot occurs after a swap, if it does; None if the words of the slots differ."""
    if sorted(slot[:2] for slot in before) != sorted(slot[:2] for slot in after):
        return None
    times = Counter(after)
    times.subtract(before)
    return {slot: more for slot, more in times.items() if more}


def exchanged_order(length: int, first: Span, second: Span) -> list[int]:
    """Return the indices of tokens after the exchange of two spans, in order of position."""
    return [
        *range(first[0]),
        *range(*second),
        *range(first[1], second[0]),
        *range(*first),
        *range(second[1], length),
    ]
