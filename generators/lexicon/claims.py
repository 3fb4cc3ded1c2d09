"""What claims that a thing is in the picture, and nothing more: the words around it, at either end of a caption."""

import re
from collections.abc import Sequence

from pairwright.generators.language.word_set import word_set
from pairwright.generators.lexicon.nouns import flagged

IN_VIEW = (", with {} in view", ", and {} can be seen")  # true of whatever is there, wherever
# As captions say it of what may not be there at all; the last one beside a "with" of their own.
BEHIND, NEARBY, NEAR = " with {} in the background", " with {} nearby", " near {}"
NAMED_FIRST = "{} and "  # before what is named: "a bench and | a lamp on a lawn"
SAID_BY_CLAIMS = word_set("view seen background nearby near")
# Large enough to be told of where it is far away.
DISTANT = flagged("distant")
_FINITE = frozenset({"VBZ", "VBP", "VBD", "MD"})
_OPENING = word_set("a an two three four five six seven eight several some many")
_TAILS = tuple(claim.partition("{}")[2] for claim in (*IN_VIEW, BEHIND, NEARBY))
_FIRST = re.compile(r"(.+?) and \S+$")


def claimed(words: str) -> str:
    """Return what is claimed, of words that end as a claim does; other words as they are.

    Args:
        words: lower case; those of a claim at the front have the first word of the caption behind them.
    """
    tail = next((tail for tail in _TAILS if words.endswith(tail)), "")
    first = None if tail else _FIRST.match(words)
    return first[1] if first is not None else words.removesuffix(tail)


def only_names(words: Sequence[str], tags: Sequence[str], end: int) -> bool:
    """Whether a caption names what is there, and tells nothing by a verb, so that another thing may be named first.

    Args:
        words: tokens of the caption, lower case.
        tags: of the tokens, Penn Treebank.
        end: one past the last token of the noun phrase that the caption begins with.
    """
    named = words[0] in _OPENING and tags[end : end + 1] and tags[end] in {"IN", "VBG", "VBN"}
    return bool(named) and _FINITE.isdisjoint(tags)
