"""What claims that a thing is in the picture, and nothing more: the words around it, at either end of a caption."""

import re
from collections.abc import Sequence

from pairwright.generators.wordlists import word_set

CLAIMS = (", with {} in view", ", with {} in the scene", ", and {} can be seen")
NAMED_FIRST = "{} and "  # before what is named: "a bench and | a man riding a horse"
SEEN_FIRST = "{} can be seen while "  # before what is told: "a bench can be seen while | a man rides a horse"
SAID_BY_CLAIMS = frozenset({"view", "scene", "seen"})
_FINITE = frozenset({"VBZ", "VBP", "VBD", "MD"})
_OPENING = word_set("a an the this these two three four five six seven eight several some many")
_TAILS = tuple(claim.partition("{}")[2] for claim in CLAIMS)
_FIRST = re.compile(r"(.+?) (?:and|can be seen while) \S+$")


def claimed(words: str) -> str:
    """Return what is claimed, of words that end as a claim does; other words as they are.

    Args:
        words: lower case; those of a claim at the front have the first word of the caption behind them.
    """
    first = _FIRST.match(words)
    if first is not None:
        return first[1]
    return next((words.removesuffix(tail) for tail in _TAILS if words.endswith(tail)), words)


def front_claims(words: Sequence[str], tags: Sequence[str], end: int) -> tuple[str, ...]:
    """Return the claims that may stand before a caption that begins with a noun phrase.

    Args:
        words: tokens of the caption, lower case.
        tags: of the tokens, Penn Treebank.
        end: one past the last token of the phrase.

    Returns:
        `NAMED_FIRST` for a caption that only names ("a man riding a horse"), `SEEN_FIRST` for a sentence ("a man rides a
        horse"); nothing where neither would read well.
    """
    after, finite = tags[end : end + 1], [tag in _FINITE for tag in tags]
    if not after or words[0] not in _OPENING:
        return ()
    if not any(finite) and words[0] not in {"the", "this", "these"} and after[0] in {"IN", "VBG", "VBN"}:
        return (NAMED_FIRST,)
    if finite[end] and sum(finite) == 1 and {"as", "while"}.isdisjoint(words) and SAID_BY_CLAIMS.isdisjoint(words):
        return (SEEN_FIRST,)
    return ()
