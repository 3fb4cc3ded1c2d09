"""What the rest of pairwright knows of English parsing: tokens with tags and lemmas, and who gives them.

Only Penn Treebank tags, universal tags and lemmas are relied on, since dependency labels differ between
parsing schemes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pairwright.datasets.progress import open_step

BATCH: Final = 1_024  # texts between two reports of progress


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a text.

    Attributes:
        text: as written, ``source[start:end]``.
        start: first code point in the source text. What nobody sees (`language.unseen`) begins and ends no token.
        end: one past the last code point.
        tag: Penn Treebank tag (NN, NNS, JJ, IN, VBG, ...).
        pos: universal tag (NOUN, ADJ, ADP, VERB, ...).
        lemma: dictionary form, lower case, of what one sees.
    """

    text: str
    start: int
    end: int
    tag: str
    pos: str
    lemma: str


class Tagger(Protocol):
    """Splits texts into tagged, lemmatised tokens."""

    @property
    def name(self) -> str:
        """Name and version of the pipeline, as it enters manifests and cache keys."""
        ...

    def tag(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text, in order; spaces are not tokens."""
        ...


def tag_all(tagger: Tagger, texts: Sequence[str]) -> list[list[Token]]:
    """Return the tokens of each text, in order, and report progress."""
    tokens: list[list[Token]] = []
    with open_step("tagging", len(texts), "captions") as done:
        for start in range(0, len(texts), BATCH):
            tokens += tagger.tag(texts[start : start + BATCH])
            done.reach(len(tokens))
    return tokens
