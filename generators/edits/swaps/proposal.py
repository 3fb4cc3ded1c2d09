"""Proposed swaps: two spans of a caption to exchange, with a weight for sampling."""

from dataclasses import dataclass

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import span
from pairwright.generators.captions.realisation import Change, lowercase_span

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SwapProposal:
    """A swap of two spans of a caption that makes it false.

    Attributes:
        changes: of the caption's text.
        spans: exchanged spans of tokens, in order of position; None for numbers, which counts of the pool score alone.
        weight: likelihood of a swap of numbers by counts of the pool; that of others is up to the cloze model (`fit`).
    """

    changes: tuple[Change, ...]
    spans: tuple[Span, Span] | None = None
    weight: float = 1.0


def exchange_spans(caption: Caption, first: Span, second: Span) -> SwapProposal:
    """Return the swap of two spans of tokens, given in order of position."""
    return SwapProposal(exchanged_words(caption, first, second), (first, second))


def exchanged_words(caption: Caption, first: Span, second: Span) -> tuple[Change, Change]:
    """Return the changes that exchange the words of two spans of tokens, given in order of position."""
    source = caption.pair.caption
    (start, end), (second_start, second_end) = span(caption.tokens, *first), span(caption.tokens, *second)
    moved = lowercase_span(source, start, end, proper=caption.tag(first[0]).startswith("NNP"))
    return Change(start, end, source[second_start:second_end]), Change(second_start, second_end, moved)
