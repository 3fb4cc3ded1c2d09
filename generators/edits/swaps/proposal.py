"""Proposed swaps: two spans of a caption to exchange, with a weight for sampling."""

from dataclasses import dataclass

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import span
from pairwright.generators.captions.realisation import Change, lowercase_span
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import find_violation
from pairwright.generators.lexicon.protocols import Pool

Span = tuple[int, int]

MIN_COUNT = 2  # captions of the pool that attest two words together
SMOOTHING = 0.5  # added to counts before their ratio is taken


@dataclass(frozen=True, slots=True)
class SwapProposal:
    """A swap of two spans of a caption that makes it false.

    Attributes:
        changes: of the caption's text.
        spans: exchanged spans of tokens, in order of position; None for numbers, which counts of the pool score alone.
        weight: likelihood of the swap by counts of the pool (numbers) or by the cloze model (`fit`).
    """

    changes: tuple[Change, ...]
    spans: tuple[Span, Span] | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class SwapMaterials:
    """Resources of the proposers of swaps.

    Attributes:
        knowledge: WordNet, pool statistics and lexicons.
        skip: ids of constraints that are not applied.
    """

    knowledge: Knowledge
    skip: frozenset[str] = frozenset()

    @property
    def pool(self) -> Pool:
        """Statistics of the user's captions."""
        return self.knowledge.pool

    def violation(self, edit: ProposedEdit) -> str:
        """Return the reason of the first constraint that an edit violates, or an empty string."""
        violated = find_violation(edit, self.knowledge, by_rules=True, skip=self.skip)
        return violated.reason if violated is not None else ""


def exchange_spans(caption: Caption, first: Span, second: Span) -> SwapProposal:
    """Return the swap of two spans of tokens, given in order of position."""
    return SwapProposal(exchanged_words(caption, first, second), (first, second))


def exchanged_words(caption: Caption, first: Span, second: Span) -> tuple[Change, Change]:
    """Return the changes that exchange the words of two spans of tokens, given in order of position."""
    source = caption.pair.caption
    (start, end), (second_start, second_end) = span(caption.tokens, *first), span(caption.tokens, *second)
    moved = lowercase_span(source, start, end, proper=caption.tag(first[0]).startswith("NNP"))
    return Change(start, end, source[second_start:second_end]), Change(second_start, second_end, moved)
