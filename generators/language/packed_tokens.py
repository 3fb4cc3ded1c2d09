"""Tokens in little room: their places and tags; the rest is worked out again from these and the text.

A caption takes some 200 bytes so, and 2 KB as tokens. Whoever tags captions to count words keeps them so, and need not
tag them again.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from pairwright.generators.language.lemmas import build_tokens
from pairwright.generators.language.tokens import Token


class PackedTokens(NamedTuple):
    """The tokens of a text.

    Attributes:
        spans: start and end of each token in turn, in code points, as ``array("I")`` holds them.
        tags: Penn Treebank tags, separated by spaces.
    """

    spans: bytes
    tags: str


def pack(tokens: Sequence[Token]) -> PackedTokens:
    """Return the tokens of a text in little room."""
    spans = array("I", [edge for token in tokens for edge in (token.start, token.end)])
    return PackedTokens(spans.tobytes(), " ".join([token.tag for token in tokens]))


def unpack(text: str, packed: PackedTokens) -> list[Token]:
    """Return the tokens of a text that `pack` was given."""
    spans = array("I", packed.spans)
    starts, ends = spans[::2], spans[1::2]
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return build_tokens(words, starts, packed.tags.split(" ") if packed.tags else [])
