"""Noun phrases of a caption, read off its tags.

A *noun phrase* here is the flat kind that captions are made of: determiner, count, adjectives, nouns; the last noun
is its head ("two small red fire hydrants": count *two*, adjectives *small red*, nouns *fire hydrants*, head
*hydrants*). Prepositional and relative tails are not part of it. Participles count as adjectives only between a
determiner and a noun ("a parked car", not "a man parked"). What something is covered or filled with is part of its
phrase and none of its nouns ("a snow covered slope").

Limits: tags come from a small tagger and are wrong now and then, so callers ask for the shape they need and leave
the rest alone. All positions are token indices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with

NOUNS = frozenset({"NN", "NNS"})
PROPER = frozenset({"NNP", "NNPS"})
ADJECTIVES = frozenset({"JJ"})
PARTICIPLES = frozenset({"VBN", "VBG"})
DETERMINERS = frozenset({"DT", "PRP$", "WP$", "PDT"})
PLURAL = frozenset({"NNS", "NNPS"})
ARTICLES = frozenset({"a", "an"})
_ANY_NOUN = NOUNS | PROPER
_MODIFIED = NOUNS | ADJECTIVES
_OPENING = DETERMINERS | {"CD"} | ADJECTIVES | _ANY_NOUN  # a phrase starts with one of these
_NO_NOUNS, _COLOURS, _COVERED = words_with("no_noun"), words_with("colour_noun"), words_with("covered")

NUMBER_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


# Not frozen, as `language.tokens.Token`.
@dataclass(slots=True, unsafe_hash=True)
class NounPhrase:
    """A flat noun phrase; immutable; see the module for what its parts are.

    Attributes:
        start: index of its first token.
        end: one past its last token (the head).
        determiner: index of the article, demonstrative or possessive, or -1.
        count: index of the number, or -1.
        adjectives: indices of single adjectives.
        nouns: indices of all its nouns; more than one make a compound.
        joined: adjectives are joined by "and" or a comma ("black and white"), so none of them stands alone.
        head: index of the head noun, the last.
    """

    start: Final[int]
    end: Final[int]
    determiner: Final[int]
    count: Final[int]
    adjectives: Final[tuple[int, ...]]
    nouns: Final[tuple[int, ...]]
    joined: Final[bool]
    head: Final[int]

    @property
    def is_bare(self) -> bool:
        """Whether it has neither a determiner nor a number."""
        return self.determiner < 0 and self.count < 0


def noun_phrases(tokens: Sequence[Token]) -> tuple[NounPhrase, ...]:
    """Return the noun phrases of a caption, from left to right, without overlap."""
    found: list[NounPhrase] = []
    index = 0
    while index < len(tokens):
        phrase = _phrase_at(tokens, index) if tokens[index].tag in _OPENING else None
        if phrase is None:
            index += 1
        else:
            found.append(phrase)
            index = phrase.end
    return tuple(found)


def span(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int]:
    """Return the code points that the tokens ``start`` up to ``end`` cover."""
    return tokens[start].start, tokens[end - 1].end


def _phrase_at(tokens: Sequence[Token], start: int) -> NounPhrase | None:
    index, determiner, count = start, -1, -1
    while index < len(tokens) and tokens[index].tag in DETERMINERS:
        determiner, index = index, index + 1
    if index < len(tokens) and tokens[index].tag == "CD":
        count, index = index, index + 1
    adjectives, index, joined = _adjectives(tokens, index, opened=index > start)
    if _is_covered(tokens, index):
        more, index, both = _adjectives(tokens, index + 2, opened=True)
        adjectives, joined = adjectives + more, joined or both
    nouns: list[int] = []
    while index < len(tokens) and tokens[index].tag in _ANY_NOUN and not _is_side(tokens, index, nouns):
        nouns.append(index)
        index += 1
    if not nouns:
        return None
    return NounPhrase(start, index, determiner, count, tuple(adjectives), tuple(nouns), joined, nouns[-1])


def _adjectives(tokens: Sequence[Token], index: int, *, opened: bool) -> tuple[list[int], int, bool]:
    found: list[int] = []
    joined = False
    while index < len(tokens):
        token = tokens[index]
        if (
            token.tag in ADJECTIVES
            or _is_taken_for_noun(tokens, index)
            or (token.tag in PARTICIPLES and (opened or found) and _modifies(tokens, index))
        ):
            found.append(index)
        elif token.tag in {"CC", ","} and found and index + 1 < len(tokens) and tokens[index + 1].tag in ADJECTIVES:
            joined = True
        elif token.tag not in {"RB", "RBS", "JJS", "JJR", "HYPH"} or not (opened or found):
            break
        else:
            joined = joined or token.tag == "HYPH"
        index += 1
    return found, index, joined


def _is_taken_for_noun(tokens: Sequence[Token], index: int) -> bool:
    """Whether the tagger took an adjective for a noun: "a | lush | green field", "an | orange | and white kite"."""
    if tokens[index].tag not in NOUNS:
        return False
    word = tokens[index].text.lower()
    if word in _COLOURS:
        beyond = [token.tag for token in tokens[index + 1 : index + 4]]
        return beyond[:2] == ["CC", "JJ"] and not NOUNS.isdisjoint(beyond[2:])
    return word in _NO_NOUNS and _modifies(tokens, index)


def _is_covered(tokens: Sequence[Token], index: int) -> bool:
    """Whether a noun and a participle say together what something is like: "a | snow covered | slope"."""
    return (
        index + 2 < len(tokens)
        and tokens[index].tag in NOUNS
        and tokens[index + 1].text.lower() in _COVERED
        and tokens[index + 2].tag in _MODIFIED | PROPER
    )


def _is_side(tokens: Sequence[Token], index: int, nouns: list[int]) -> bool:
    """Whether a noun after others is the "left" of "a star left of a circle", which taggers take for a noun."""
    side = tokens[index].text.lower() in {"left", "right"}
    return side and bool(nouns) and index + 1 < len(tokens) and tokens[index + 1].text.lower() == "of"


def _modifies(tokens: Sequence[Token], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index + 1].tag in _MODIFIED
