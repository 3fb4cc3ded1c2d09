"""Noun phrases of a caption, derived from part-of-speech tags.

A *noun phrase* is flat: determiner, count, adjectives, nouns; the last noun is its head ("two small red fire hydrants":
count *two*, adjectives *small red*, nouns *fire hydrants*, head *hydrants*). Prepositional phrases and relative clauses
are not part of it. Participles count as adjectives only between a determiner and a noun ("a parked car", not "a man
parked"). The noun of a participial compound ("a snow covered slope") is part of the phrase, but none of its nouns.

Limits: the small tagger makes errors, so callers check for the pattern they need and skip other phrases. All positions
are token indices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.attributes import counts
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.tables import read_rows

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
_ADJECTIVES_TAGGED_AS_NOUNS, _COLOURS = words_with("no_noun"), words_with("colour_noun")
_COMPOUND_PARTICIPLES = words_with("covered")
TWO_WORD_PREPOSITIONS = frozenset(
    words for row in read_rows("prepositions") if len(words := tuple(row["phrase"].split())) == 2
)
"""Whose first word may be tagged as a noun or an adjective: "left of", "next to"."""

_COUNT_WORDS = {value: word for word, value in reversed(counts().items()) if word.isalpha()}
NUMBER_WORDS = tuple(_COUNT_WORDS[number] for number in range(1, 11))


# Not frozen, as `language.tokens.Token`.
@dataclass(slots=True, unsafe_hash=True)
class NounPhrase:
    """A flat noun phrase; immutable; parts as in the module docstring.

    Attributes:
        determiner: index of the article, demonstrative or possessive, or -1.
        count: index of the number, or -1.
        adjectives: indices of single adjectives.
        nouns: indices of all its nouns; more than one make a compound.
        joined: whether adjectives are coordinated ("black and white"), so that none can be edited alone.
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
    for index, token in enumerate(tokens):
        if token.tag in _OPENING and (not found or index >= found[-1].end):
            phrase = _phrase_at(tokens, index)
            found += [phrase] if phrase is not None else []
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
    if _is_participial_compound(tokens, index):
        more, index, both = _adjectives(tokens, index + 2, opened=True)
        adjectives, joined = adjectives + more, joined or both
    nouns: list[int] = []
    while index < len(tokens) and tokens[index].tag in _ANY_NOUN and not _is_preposition(tokens, index, nouns):
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
            or _is_adjective_tagged_as_noun(tokens, index)
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


def _is_adjective_tagged_as_noun(tokens: Sequence[Token], index: int) -> bool:
    """Return whether an adjective is tagged as a noun: "a | lush | green field", "an | orange | and white kite"."""
    if tokens[index].tag not in NOUNS:
        return False
    word = tokens[index].text.lower()
    if word in _COLOURS:
        beyond = [token.tag for token in tokens[index + 1 : index + 4]]
        return beyond[:2] == ["CC", "JJ"] and not NOUNS.isdisjoint(beyond[2:])
    return word in _ADJECTIVES_TAGGED_AS_NOUNS and _modifies(tokens, index)


def _is_participial_compound(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a noun and a participle form a compound modifier: "a | snow covered | slope"."""
    return (
        index + 2 < len(tokens)
        and tokens[index].tag in NOUNS
        and tokens[index + 1].text.lower() in _COMPOUND_PARTICIPLES
        and tokens[index + 2].tag in _MODIFIED | PROPER
    )


def _is_preposition(tokens: Sequence[Token], index: int, nouns: list[int]) -> bool:
    """Return whether a word tagged as a noun begins the preposition of "a star left of a circle"."""
    following = tuple(token.text.lower() for token in tokens[index : index + 2])
    return bool(nouns) and following in TWO_WORD_PREPOSITIONS


def _modifies(tokens: Sequence[Token], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index + 1].tag in _MODIFIED
