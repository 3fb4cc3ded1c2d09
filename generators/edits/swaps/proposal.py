"""Proposals of swaps: two parts of a caption that may change places, with a weight for sampling."""

from dataclasses import dataclass
from typing import Final, Protocol

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import span
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import find_violation
from pairwright.generators.edits.realisation import Change, lowercase_span
from pairwright.generators.language.sources import Pool
from pairwright.generators.lexicon.nouns import NounLexicon

Span = tuple[int, int]

DEFAULT_FLOOR: Final = 0.003  # see benchmarks/RESULTS.md for the trade-off
MIN_COUNT = 2  # captions of the pool that show that two words go together
SMOOTHING = 0.5  # added to counts before their ratio is taken


@dataclass(frozen=True, slots=True)
class SwapProposal:
    """An exchange of two parts of a caption that makes it false.

    Attributes:
        changes: of the caption's text.
        weight: probability of the caption's words after the exchange, relative to before.
    """

    changes: tuple[Change, ...]
    weight: float


class SwapFit(Protocol):
    """A language model that compares a caption before and after a swap (`fit.ClozeFit`)."""

    def ratio(self, caption: Caption, first: Span, second: Span) -> float:
        """Return the probability of a caption's words after two spans of tokens changed places, relative to before."""
        ...


@dataclass(frozen=True, slots=True)
class SwapMaterials:
    """What proposers of swaps look up.

    Attributes:
        knowledge: what constraints read.
        nouns: classes of nouns.
        fit: compares captions before and after a swap; without it only word pairs that the pool has are written.
        floor: minimum weight of a proposal.
        skip: ids of constraints that are not applied.
    """

    knowledge: Knowledge
    nouns: NounLexicon
    fit: SwapFit | None = None
    floor: float = DEFAULT_FLOOR
    skip: frozenset[str] = frozenset()

    @property
    def pool(self) -> Pool:
        """Statistics of the user's captions."""
        return self.knowledge.pool

    def violation(self, edit: ProposedEdit) -> str:
        """Return the reason of the first constraint that an edit violates, or an empty string."""
        violated = find_violation(edit, self.knowledge, skip=self.skip)
        return violated.reason if violated is not None else ""

    def weigh(self, caption: Caption, first: Span, second: Span, counted: float) -> float:
        """Return the weight of an exchange of two spans of tokens, 0 below the floor.

        Args:
            caption: the parsed caption.
            first: start and end of a span of tokens.
            second: of a later one.
            counted: what the pool's counts say, used if there is no language model.
        """
        weight = self.fit.ratio(caption, first, second) if self.fit is not None else counted
        return weight if weight >= self.floor else 0.0


def exchange_spans(caption: Caption, first: Span, second: Span) -> tuple[Change, Change]:
    """Return the changes by which two spans of tokens, in order of position, exchange their words."""
    source = caption.pair.caption
    (start, end), (second_start, second_end) = span(caption.tokens, *first), span(caption.tokens, *second)
    moved = lowercase_span(source, start, end, proper=caption.tag(first[0]).startswith("NNP"))
    return Change(start, end, source[second_start:second_end]), Change(second_start, second_end, moved)
