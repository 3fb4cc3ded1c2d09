"""Coordinated lists of a caption: which items may change places without changing what is said.

"A sink and a stove with a window" names three things that are there together: a list joined by "and", commas and one
"with". In which order they stand says nothing, and to which of them "with" belongs is unclear, so an exchange of two
of its items is no negative. A second "with" gives each owner its own thing, and so does an owner that is alive ("a man
with a hat and a woman"): there an exchange is another statement.

Words of one class that describe one thing ("white black blue and red stripes") are such a list as well.
"""

from collections.abc import Callable, Iterator, Sequence

from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.attributes import concepts

_INSIDE = frozenset({"DT", "PDT", "PRP$", "CD", "JJ", "JJR", "JJS", "NN", "NNS", "NNP", "NNPS", "HYPH", "POS"})
_JOINS = frozenset({"and", "or", "&", ","})
_HAS = "with"


def is_one_list(
    tokens: Sequence[Token], first: tuple[int, int], second: tuple[int, int], is_alive: Callable[[str], bool]
) -> bool:
    """Return whether two noun phrases are items of one list of things.

    Args:
        tokens: of the caption.
        first: start and end of one phrase.
        second: start and end of a later phrase.
        is_alive: tells by its lemma whether a noun is a person or an animal.
    """
    owned = False
    for start, end in _connectives(tokens, first[1], second[0]):
        words = [token.text.lower() for token in tokens[start:end]]
        if any(word not in _JOINS and word != _HAS for word in words):
            return False
        if _HAS in words:
            owner = tokens[start - 1]
            if owned or is_alive(owner.lemma):
                return False
            owned = True
    return first[1] < second[0]


def is_one_description(tokens: Sequence[Token], first: int, second: int) -> bool:
    """Return whether two words describe one thing: all between them are of their class, "and" or commas."""
    one = tokens[first].text.lower()
    return all(
        token.text.lower() in _JOINS or token.tag == "HYPH" or _are_of_one_class(one, token.text.lower())
        for token in tokens[first + 1 : second]
    )


def _are_of_one_class(one: str, other: str) -> bool:
    return not {group for group, _ in concepts().get(one, ())}.isdisjoint(
        group for group, _ in concepts().get(other, ())
    )


def _connectives(tokens: Sequence[Token], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches between two positions that are no part of a noun phrase."""
    at = start
    while at < end:
        begin = at
        while at < end and tokens[at].tag not in _INSIDE:
            at += 1
        if at > begin:
            yield begin, at
        at += 1
