"""Proposals of swaps: two parts of a caption that may change places, with a weight for sampling."""

from dataclasses import dataclass

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import span
from pairwright.generators.captions.realisation import Change, lowercase_span
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import find_violation
from pairwright.generators.lexicon.protocols import Pool

Span = tuple[int, int]

MIN_COUNT = 2  # captions of the pool that show that two words go together
SMOOTHING = 0.5  # added to counts before their ratio is taken


@dataclass(frozen=True, slots=True)
class SwapProposal:
    """An exchange of two parts of a caption that makes it false.

    Attributes:
        changes: of the caption's text.
        spans: of tokens that change places, in order of position; None if numbers do, which `weight` knows all of.
        weight: how likely the exchange is, by counts; that of its words see `fit`.
    """

    changes: tuple[Change, ...]
    spans: tuple[Span, Span] | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class SwapMaterials:
    """What proposers of swaps look up.

    Attributes:
        knowledge: what constraints read.
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
    """Return the exchange of the words of two spans of tokens, in order of position."""
    return SwapProposal(exchanged_words(caption, first, second), (first, second))


def exchanged_words(caption: Caption, first: Span, second: Span) -> tuple[Change, Change]:
    """Return the changes by which two spans of tokens, in order of position, exchange their words."""
    source = caption.pair.caption
    (start, end), (second_start, second_end) = span(caption.tokens, *first), span(caption.tokens, *second)
    moved = lowercase_span(source, start, end, proper=caption.tag(first[0]).startswith("NNP"))
    return Change(start, end, source[second_start:second_end]), Change(second_start, second_end, moved)
