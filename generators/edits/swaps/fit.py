"""Fit of swaps: how well a cloze model predicts every word of a caption after two of its parts changed places.

The sum of the log-probabilities of all slots, each given the rest, is the pseudo-log-likelihood of a caption (Salazar et
al. 2020). A swap keeps all words, so that the difference of two such sums does not depend on how frequent they are, and
slots that read the same before and after cancel out.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from pairwright.generators.captions.caption import ParsedText
from pairwright.generators.edits.slots import context_of, find_slots
from pairwright.generators.edits.swaps.proposal import Span, SwapProposal
from pairwright.generators.language.cloze.context import SLOT_KINDS, ClozeContext
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.sources import Thesaurus

DEFAULT_FLOOR: Final = 0.003  # of the weight of a swap; see benchmarks/RESULTS.md for the trade-off
_MAX_LOG_RATIO: Final = 3.0  # above it a swap is not preferred any more: an odd original must not decide alone


class Exchange(NamedTuple):
    """Two spans of tokens of a text, in order of position, that change places."""

    text: ParsedText
    first: Span
    second: Span


class SwapFit(Protocol):
    """A language model that compares captions before and after swaps."""

    def ratios(self, exchanges: Sequence[Exchange]) -> list[float]:
        """Return the probability of the words of each text after an exchange, relative to before."""
        ...


class _ReadSlot(NamedTuple):
    """A slot as the model reads it."""

    kind: str
    key: str
    context: ClozeContext


@dataclass(frozen=True, slots=True)
class ClozeFit:
    """Compares captions before and after swaps.

    Attributes:
        model: the cloze model.
        thesaurus: WordNet, which knows the compounds.
    """

    model: ClozeModel
    thesaurus: Thesaurus

    def ratios(self, exchanges: Sequence[Exchange]) -> list[float]:
        """Return the probability of the words of each text after an exchange, relative to before.

        0 if other words than before are read as nouns, adjectives or relations then. No ratio depends on the others.
        """
        before = {id(text): self._slots_of(text) for text in {id(each.text): each.text for each in exchanges}.values()}
        compared = [self._compare(before[id(each.text)], each) for each in exchanges]
        scores = self._score({slot for each in compared if each is not None for slot, _ in each})
        return [0.0 if each is None else _ratio(each, scores) for each in compared]

    def _slots_of(self, text: ParsedText) -> Counter[_ReadSlot]:
        found: Counter[_ReadSlot] = Counter()
        for slot in find_slots(text, self.thesaurus):
            if slot.key in self.model.index(slot.kind):
                read = context_of(text, slot.start, slot.end, slot.before, slot.after)
                found[_ReadSlot(slot.kind, slot.key, read)] += 1
        return found

    def _compare(self, before: Counter[_ReadSlot], exchange: Exchange) -> list[tuple[_ReadSlot, int]] | None:
        """Return the slots that read otherwise after an exchange, how much more often each; None if there are others."""
        order = exchanged_order(len(exchange.text.tokens), exchange.first, exchange.second)
        after = self._slots_of(ParsedText([exchange.text.tokens[at] for at in order]))
        change = Counter(after)
        change.subtract(before)
        balance: Counter[tuple[str, str]] = Counter()
        for slot, count in change.items():
            balance[slot.kind, slot.key] += count
        return None if any(balance.values()) else [(slot, count) for slot, count in change.items() if count]

    def _score(self, slots: Iterable[_ReadSlot]) -> dict[_ReadSlot, float]:
        found: dict[_ReadSlot, float] = {}
        by_kind: dict[str, list[_ReadSlot]] = {kind: [] for kind in SLOT_KINDS}
        for slot in slots:
            by_kind[slot.kind].append(slot)
        for kind, of_kind in by_kind.items():
            index = self.model.index(kind)
            rows = self.model.log_probs(kind, [slot.context for slot in of_kind])
            columns = [index[slot.key] for slot in of_kind]
            found.update(zip(of_kind, rows[range(len(of_kind)), columns].tolist(), strict=True))
        return found


def _ratio(change: Iterable[tuple[_ReadSlot, int]], scores: dict[_ReadSlot, float]) -> float:
    return math.exp(min(sum(count * scores[slot] for slot, count in change), _MAX_LOG_RATIO))


def weigh_swaps(
    fit: SwapFit,
    texts: Sequence[ParsedText],
    proposed: Sequence[Sequence[SwapProposal | str]],
    floor: float = DEFAULT_FLOOR,
) -> list[list[SwapProposal | str]]:
    """Return the proposed swaps of each text with their weights; `no_candidate` instead of those below the floor."""
    exchanges = [
        Exchange(text, *each.spans)
        for text, found in zip(texts, proposed, strict=True)
        for each in found
        if not isinstance(each, str) and each.spans is not None
    ]
    ratios = iter(fit.ratios(exchanges))
    return [[*_weighed(found, ratios, floor)] for found in proposed]


def _weighed(
    proposed: Iterable[SwapProposal | str], ratios: Iterator[float], floor: float
) -> Iterator[SwapProposal | str]:
    for each in proposed:
        if isinstance(each, str) or each.spans is None:
            yield each
        else:
            weight = next(ratios)
            yield replace(each, weight=weight) if weight >= floor else "no_candidate"


def exchanged_order(length: int, first: Span, second: Span) -> list[int]:
    """Return the indices of tokens after two spans, in order of position, changed places."""
    return [
        *range(first[0]),
        *range(*second),
        *range(first[1], second[0]),
        *range(*first),
        *range(second[1], length),
    ]
