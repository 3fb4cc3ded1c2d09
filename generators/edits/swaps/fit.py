"""Scores of swaps by a cloze model: the probability of all words of a caption after a swap, relative to before.

The sum of the log-probabilities of all slots, each given the rest, is the pseudo-log-likelihood of a caption (Salazar
et al. 2020). A swap keeps all words, so the difference of two such sums does not depend on word frequency, and slots
with unchanged context cancel out.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from pairwright.generators.captions.caption import ParsedText
from pairwright.generators.edits.floors import SWAP_FLOOR
from pairwright.generators.edits.slots import context_of, find_slots
from pairwright.generators.edits.swaps.proposal import Span, SwapProposal
from pairwright.generators.language.cloze.context import SLOT_KINDS, ClozeContext
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.lexicon.protocols import Thesaurus

_MAX_LOG_RATIO: Final = 3.0  # clipped, so that an odd original does not dominate


class SpanSwap(NamedTuple):
    """Two spans of tokens of a text, in order of position, that are exchanged."""

    text: ParsedText
    first: Span
    second: Span


class SwapFit(Protocol):
    """A language model that compares captions before and after swaps."""

    def ratios(self, exchanges: Sequence[SpanSwap]) -> list[float]:
        """Return the probability of the words of each text after a swap, relative to before."""
        ...


class _ReadSlot(NamedTuple):
    """A slot with its context, as the model reads it."""

    kind: str
    key: str
    context: ClozeContext


class _ReadText(NamedTuple):
    """The slots of a text: sorted kinds and keys, and slot numbers."""

    words: list[tuple[str, str]]
    slots: list[int]


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
        numbers: dict[_ReadSlot, int] = {}
        before = {id(each.text): self._read(each.text, numbers) for each in _first_of_each_text(exchanges)}
        after = [self._read(_exchanged(each), numbers) for each in exchanges]
        changes = [_change(before[id(each.text)], read) for each, read in zip(exchanges, after, strict=True)]
        slots = [*numbers]
        scores = self._score({number: slots[number] for change in changes if change for number in change})
        return [
            0.0
            if change is None
            else math.exp(min(sum(times * scores[at] for at, times in change.items()), _MAX_LOG_RATIO))
            for change in changes
        ]

    def _read(self, text: ParsedText, numbers: dict[_ReadSlot, int]) -> _ReadText:
        """Return the slots of a text whose words the model knows, numbered in ``numbers``."""
        words, found = [], []
        for slot in find_slots(text, self.thesaurus):
            if slot.key in self.model.index(slot.kind):
                words.append((slot.kind, slot.key))
                read = context_of(text, slot.start, slot.end, slot.before, slot.after)
                found.append(numbers.setdefault(_ReadSlot(slot.kind, slot.key, read), len(numbers)))
        return _ReadText(sorted(words), found)

    def _score(self, slots: Mapping[int, _ReadSlot]) -> dict[int, float]:
        """Return the log-probability of the word of each slot in its context."""
        found: dict[int, float] = {}
        for kind in SLOT_KINDS:
            index = self.model.index(kind)
            of_kind = {number: slot for number, slot in slots.items() if slot.kind == kind}
            rows = self.model.log_probs(kind, [slot.context for slot in of_kind.values()])
            columns = [index[slot.key] for slot in of_kind.values()]
            found |= zip(of_kind, rows[range(len(of_kind)), columns].tolist(), strict=True)
        return found


def _first_of_each_text(exchanges: Sequence[SpanSwap]) -> Iterable[SpanSwap]:
    return {id(each.text): each for each in exchanges}.values()


def _exchanged(exchange: SpanSwap) -> ParsedText:
    tokens = exchange.text.tokens
    return ParsedText([tokens[at] for at in exchanged_order(len(tokens), exchange.first, exchange.second)])


def _change(before: _ReadText, after: _ReadText) -> dict[int, int] | None:
    """Return the changes of slot counts by a swap, by slot number; None if the words of the slots differ."""
    if before.words != after.words:
        return None
    times = dict.fromkeys([*after.slots, *before.slots], 0)
    for number in after.slots:
        times[number] += 1
    for number in before.slots:
        times[number] -= 1
    return {number: more for number, more in times.items() if more}


def weigh_swaps(
    fit: SwapFit, texts: Sequence[ParsedText], proposed: Sequence[Sequence[SwapProposal | str]]
) -> list[list[SwapProposal | str]]:
    """Return the proposed swaps of each text with their weights; `no_candidate` instead of those below the floor."""
    exchanges = [
        SpanSwap(text, *each.spans)
        for text, found in zip(texts, proposed, strict=True)
        for each in found
        if not isinstance(each, str) and each.spans is not None
    ]
    ratios = iter(fit.ratios(exchanges))
    return [[*_weighed(found, ratios)] for found in proposed]


def _weighed(proposed: Iterable[SwapProposal | str], ratios: Iterator[float]) -> Iterator[SwapProposal | str]:
    for each in proposed:
        if isinstance(each, str) or each.spans is None:
            yield each
        else:
            weight = next(ratios)
            yield replace(each, weight=weight) if weight >= SWAP_FLOOR else "no_candidate"


def exchanged_order(length: int, first: Span, second: Span) -> list[int]:
    """Return the indices of tokens after the exchange of two spans, in order of position."""
    return [
        *range(first[0]),
        *range(*second),
        *range(first[1], second[0]),
        *range(*first),
        *range(second[1], length),
    ]
