"""Extraction of prepositional links from captions: (noun or verb, preposition, governed noun).

"A cat sitting on the table" links "cat" and "sit" with "on table". Prepositions may have several words
(`COMPLEX_PREPOSITIONS`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pairwright.generators.language.tokens import Token

COMPLEX_PREPOSITIONS: Final = tuple(
    tuple(wording.split())
    for wording in (
        "in front of", "on top of", "in back of", "next to", "close to", "far from", "away from", "inside of",
        "outside of", "out of", "off of", "full of", "in the middle of", "on the side of", "on the edge of",
    )
)  # fmt: skip
LAST_WORDS_OF_PREPOSITIONS: Final = frozenset(words[-1] for words in COMPLEX_PREPOSITIONS)
_LAST_TWO_WORDS: Final = frozenset(words[-2:] for words in COMPLEX_PREPOSITIONS)
_MAX_DISTANCE = 4  # tokens between a preposition and its governor
_BETWEEN: Final = frozenset(("AUX", "ADV"))
_BETWEEN_TAGS: Final = frozenset(("WDT", "WP", "RP"))

PrepositionalLink = tuple[str, str, str]


def find_links(tokens: Sequence[Token]) -> Iterator[PrepositionalLink]:
    """Yield the links of a caption: lemma of a noun or verb, preposition, lemma of the noun that it governs."""
    nouns = head_nouns(tokens)
    for at, token in enumerate(tokens):
        if token.tag not in {"IN", "TO"}:
            continue
        noun = nouns[at + 1]
        if noun:
            start, preposition = preposition_ending_at(tokens, at)
            for left in _governors(tokens, start):
                yield left, preposition, noun


def _governors(tokens: Sequence[Token], start: int) -> Iterator[str]:
    """Yield the verbs right before a preposition and the noun before those."""
    for token in reversed(tokens[max(0, start - _MAX_DISTANCE) : start]):
        if token.pos in {"NOUN", "PROPN"}:
            yield token.lemma
            return
        if token.pos == "VERB":
            yield token.lemma
        elif token.pos not in _BETWEEN and token.tag not in _BETWEEN_TAGS:
            return


def preposition_ending_at(tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """Return the first token index and the text ("in front of") of the preposition that ends with token ``at``."""
    if at and (tokens[at - 1].lemma, tokens[at].lemma) in _LAST_TWO_WORDS:
        for words in COMPLEX_PREPOSITIONS:
            start = at + 1 - len(words)
            if start >= 0 and tuple(token.lemma for token in tokens[start : at + 1]) == words:
                return start, " ".join(words)
    return at, tokens[at].lemma


def head_nouns(tokens: Sequence[Token]) -> list[str]:
    """Return for each token, and for the end, the head of the noun phrase that continues there; empty if there is none.

    The head is the last noun of a run of them. In one pass from the end, as a phrase may be as long as its caption.
    """
    heads, following = [""], False
    for token in reversed(tokens):
        is_noun = token.pos in {"NOUN", "PROPN"}
        if is_noun and not following:
            heads.append(token.lemma)
        else:
            heads.append(heads[-1] if is_noun or token.pos in {"DET", "ADJ", "NUM"} else "")
        following = is_noun
    heads.reverse()
    return heads
