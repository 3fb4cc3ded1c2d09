"""Tokens with tags and lemmas, and the protocol of taggers.

Only Penn Treebank tags, universal tags and lemmas are used, since dependency labels differ between parsing schemes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pairwright.datasets.progress import open_step

BATCH: Final = 1_024  # texts between progress reports


# Not frozen, which would take four times as long to construct: a caption with its edits has a hundred tokens. Type
# checkers reject assignments to its fields.
@dataclass(slots=True, unsafe_hash=True)
class Token:
    """A token of a text; immutable.

    Attributes:
        text: the token as written, ``source[start:end]``.
        start: offset in the source text, in code points; tokens do not begin or end with invisible characters.
        end: end offset, exclusive.
        tag: Penn Treebank tag (NN, NNS, JJ, IN, VBG, ...).
        pos: universal tag (NOUN, ADJ, ADP, VERB, ...).
        lemma: dictionary form, lower case, without invisible characters.
    """

    text: Final[str]
    start: Final[int]
    end: Final[int]
    tag: Final[str]
    pos: Final[str]
    lemma: Final[str]


class Tagger(Protocol):
    """Splits texts into tagged and lemmatised tokens."""

    @property
    def name(self) -> str:
        """Name and version of the pipeline, used in manifests and cache keys."""
        ...

    def tag(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text; white space is no token."""
        ...


def tag_all(tagger: Tagger, texts: Sequence[str]) -> list[list[Token]]:
    """Return the tokens of each text, and report progress."""
    tokens: list[list[Token]] = []
    with open_step("tagging", len(texts), "captions") as done:
        for start in range(0, len(texts), BATCH):
            tokens += tagger.tag(texts[start : start + BATCH])
            done.reach(len(tokens))
    return tokens
