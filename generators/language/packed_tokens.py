"""Tokens in a compact form in memory: spans and tags only, some 200 bytes instead of 2 KB for each caption.

`unpack` recomputes the rest.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from pairwright.generators.language.lemmas import build_tokens
from pairwright.generators.language.tokens import Token


class PackedTokens(NamedTuple):
    """Packed tokens of a text.

    Attributes:
        spans: alternating start and end of each token in code points, as bytes of an ``array("I")``.
        tags: Penn Treebank tags, separated by spaces.
    """

    spans: bytes
    tags: str


def pack(tokens: Sequence[Token]) -> PackedTokens:
    """Return the packed tokens of a text."""
    spans = array("I", [edge for token in tokens for edge in (token.start, token.end)])
    return PackedTokens(spans.tobytes(), " ".join([token.tag for token in tokens]))


def unpack(text: str, packed: PackedTokens) -> list[Token]:
    """Return the tokens of a text from its packed tokens."""
    spans = array("I", packed.spans)
    starts, ends = spans[::2], spans[1::2]
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return build_tokens(words, starts, packed.tags.split(" ") if packed.tags else [])
