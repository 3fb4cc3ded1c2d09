"""Parser of questions about a scene, in many wordings.

`parse_question` returns every reading of a question: as a yes-no question (with the statement whose truth it asks for), how
many, which colour, shape or size, where, which of two is larger, what is somewhere, or an open request to describe.
Definite objects ("the circle") are kept as an entity and as words, so that "it" and short answers can be completed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pairwright.datasets.colorshape.oracle.grammar import PhraseElement, SentenceParser, compile_clauses, parse_sentence
from pairwright.datasets.colorshape.oracle.lexicon import PICTURE_NOUNS
from pairwright.datasets.colorshape.oracle.logical_forms import (
    NounPhraseEntity,
    ObjectDescription,
    ObjectRelation,
    Quantity,
    Reading,
)
from pairwright.datasets.colorshape.oracle.tokenizer import Tokens, tokenise

Attribute = Literal["colour", "shape", "size"]


@dataclass(frozen=True, slots=True)
class PolarQuestion:
    """A yes-no question; ``statement`` in every reading."""

    statement: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class CountQuestion:
    """How many of a kind are there?"""

    description: ObjectDescription


@dataclass(frozen=True, slots=True)
class AttributeQuestion:
    """Which colour, shape or size has the thing?"""

    attribute: Attribute
    thing: NounPhraseEntity
    words: Tokens


@dataclass(frozen=True, slots=True)
class LocationQuestion:
    """Where is the thing, relative to ``reference`` (None: to anything)?"""

    thing: NounPhraseEntity
    words: Tokens
    reference: NounPhraseEntity | None


@dataclass(frozen=True, slots=True)
class ComparisonQuestion:
    """Which of two things is larger (or smaller)?"""

    things: tuple[NounPhraseEntity, NounPhraseEntity]


@dataclass(frozen=True, slots=True)
class RelationQuestion:
    """What is in this relation to the reference?"""

    relation: ObjectRelation
    reference: NounPhraseEntity


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """Describe the picture."""


Question = (
    PolarQuestion
    | CountQuestion
    | AttributeQuestion
    | LocationQuestion
    | ComparisonQuestion
    | RelationQuestion
    | OpenQuestion
)

_COURTESY = re.compile(
    r"^(?:(?:please|can you(?! see)|could you(?! see)|would you|do you know|tell me|say|i wonder|looking at the \w+|"
    r"based on the \w+|according to the \w+),? )+(?:please )?(?:tell me |say )?(?:if |whether )?"
)
_PLACE = re.compile(rf",? ?\b(?:in|within|of|on|from) (?:the|this) (?:{'|'.join(sorted(PICTURE_NOUNS))})\b,?")
_VISIBLE = re.compile(r" (?:visible|present|shown|depicted|displayed|pictured)(?: here)?$")
_RELATIVE = re.compile(r"\b(?:in relation to|with respect to|compared (?:to|with)|relative to)\b")
_DESCRIBE = re.compile(
    r"\b(?:describe|caption|summari[sz]e|description|overview|summary|account|depict(?:ed)?|portrayed)\b"
    r"|^(?:please )?(?:write|give|provide|explain|list|name|share|offer|compose|generate|tell me (?:about|what))\b"
    r"|^what(?:'s| is| are| does| do| can)\b.*\b(?:see|show|shown|contain|happening|going on|visible|in th\w+ \w+)\b"
)
_SHOW_VERBS = {"show", "contain", "include", "have", "feature", "depict", "display"}
_ATTRIBUTES: dict[str, Attribute] = {"color": "colour", "colour": "colour", "shape": "shape", "size": "size"}
_COUNT_ENDS = {
    (), ("are",), ("are", "there"), ("there", "are"), ("appear",), ("can", "you", "see"), ("do", "you", "see"),
    ("you", "can", "see"), ("you", "see"), ("can", "be", "seen"),
}  # fmt: skip


def parse_question(question: str) -> list[Question]:
    """Return every reading of ``question``; empty if it is outside the grammar."""
    text = " ".join(question.replace("<image>", " ").replace(":", ",").replace("’", "'").lower().split()).rstrip(" ?.!")
    bare = _PLACE.sub("", _COURTESY.sub("", text)).strip(" ,")
    visible = _VISIBLE.search(bare) is not None
    tokens = tokenise(_RELATIVE.sub("relative to", _VISIBLE.sub("", bare)))
    found = list(dict.fromkeys(_asked(tokens, visible=visible))) if tokens else []
    return found or ([OpenQuestion()] if _DESCRIBE.search(text) else [])


def _asked(tokens: Tokens, *, visible: bool) -> Iterator[Question]:
    statement = tuple(_polar(tokens, visible=visible))
    if statement:
        yield PolarQuestion(statement)
    yield from _how_many(tokens)
    yield from _which(tokens)
    yield from _where(tokens)
    yield from _compare(tokens)
    yield from _what_stands(tokens)


def _polar(tokens: Tokens, *, visible: bool) -> Iterator[Reading]:
    parser = SentenceParser(tokens, asking=True)
    end = len(tokens)
    if tokens[:4] in {("is", "it", "true", "that"), ("is", "it", "correct", "that")}:
        yield from parse_sentence(tokens[4:])
    if tokens[0] == "there":  # "(tell me whether) there is ..."
        yield from SentenceParser(tokens, asking=True).sentence()
    if tokens[0] in {"is", "are"} and tokens[1:2] == ("there",):
        yield from SentenceParser(("there", tokens[0], *tokens[2:]), asking=True).sentence()
    elif tokens[0] in {"is", "are"}:
        yield from _polar_clause(parser, tokens[0], visible=visible)
    start = 3 if tokens[:3] in {("can", "you", "see"), ("do", "you", "see")} else 0
    if tokens[0] == "does" and tokens[2:3] and tokens[2] in PICTURE_NOUNS and set(tokens[3:4]) <= _SHOW_VERBS:
        start = 4
    if start:
        yield from (
            compile_clauses(elements) for elements, last in parser.list_of_elements(start, bare=False) if last == end
        )


def _polar_clause(parser: SentenceParser, verb: str, *, visible: bool) -> Iterator[Reading]:
    """Read "is the circle red" as "the circle is red", and "is a circle (visible)" as "there is a circle"."""
    end = len(parser.tokens)
    for subjects, after in parser.list_of_elements(1, bare=False):
        if visible and after == end:
            yield compile_clauses(subjects)
        statement = (*parser.tokens[1:after], verb, *parser.tokens[after:])
        yield from ((clause,) for clause, last in SentenceParser(statement, asking=True).clause(0) if last == end)


def _how_many(tokens: Tokens) -> Iterator[CountQuestion]:
    openings = (
        ("how", "many"),
        ("what", "is", "the", "number", "of"),
        ("count", "the"),
        ("count", "all", "the"),
        ("count",),
    )
    parser = SentenceParser(tokens)
    for opening in openings:
        if tokens[: len(opening)] != opening:
            continue
        for element, after in parser.noun_phrase(len(opening), bare=True):
            ending = tokens[after:]
            shown = (
                ending[:1] == ("does",) and len(ending) == 4 and ending[2] in PICTURE_NOUNS and ending[3] in _SHOW_VERBS
            )
            if element.entity.quantity is Quantity.PLURAL and (ending in _COUNT_ENDS or shown):
                yield CountQuestion(element.entity.description)


def _things(tokens: Tokens, start: int) -> Iterator[tuple[NounPhraseEntity, Tokens, int]]:
    """Yield single definite objects at ``start``: entity, its words, the place after it."""
    for element, after in SentenceParser(tokens).noun_phrase(start, bare=False):
        if _is_thing(element):
            yield element.entity, tokens[start:after], after


def _is_thing(element: PhraseElement) -> bool:
    return element.entity.quantity is Quantity.THE and not element.links


def _which(tokens: Tokens) -> Iterator[AttributeQuestion]:
    for attribute, start, ending in _which_openings(tokens):
        for thing, words, after in _things(tokens, start):
            if tokens[after:] == ending:
                yield AttributeQuestion(attribute, thing, words)


def _which_openings(tokens: Tokens) -> Iterator[tuple[Attribute, int, Tokens]]:
    """Yield (attribute, place of the object, required following words) of each matching wording."""
    first, second = tokens[0], tokens[1] if len(tokens) > 1 else ""
    if first in {"what", "which"} and second in _ATTRIBUTES:
        if tokens[2:3] == ("is",):
            yield _ATTRIBUTES[second], 3, ()
        yield _ATTRIBUTES[second], 2, ("is",)
        yield _ATTRIBUTES[second], 3, ("have",)
    if tokens[:3] == ("what", "is", "the") and tokens[3:4] and tokens[3] in _ATTRIBUTES and tokens[4:5] == ("of",):
        yield _ATTRIBUTES[tokens[3]], 5, ()
    if first == "what" and second in {"kind", "type", "sort"} and tokens[2:3] == ("of",) and tokens[4:5] == ("is",):
        yield "shape", 5, ()
    if tokens[:2] == ("what", "is"):
        yield "shape", 2, ()
    if first == "how" and second in {"large", "big", "small"} and tokens[2:3] == ("is",):
        yield "size", 3, ()


def _where(tokens: Tokens) -> Iterator[LocationQuestion]:
    openings: tuple[Tokens, ...] = (
        ("where", "is"), ("how", "is"), ("what", "is", "the", "position", "of"), ("what", "is", "the", "location", "of"),
    )  # fmt: skip
    for opening in openings:
        if tokens[: len(opening)] != opening:
            continue
        for thing, words, after in _things(tokens, len(opening)):
            next_word = after + (tokens[after : after + 1] in {("located",), ("positioned",), ("placed",), ("found",)})
            if next_word == len(tokens):
                yield LocationQuestion(thing, words, None)
            if tokens[next_word : next_word + 2] == ("relative", "to"):
                yield from (
                    LocationQuestion(thing, words, other)
                    for other, _, last in _things(tokens, next_word + 2)
                    if last == len(tokens)
                )
    if tokens[:4] in {("on", "which", "side", "of"), ("on", "what", "side", "of")}:
        for reference, _, after in _things(tokens, 4):
            for thing, words, last in _things(tokens, after + 1):
                if tokens[after] == "is" and last == len(tokens):
                    yield LocationQuestion(thing, words, reference)


def _compare(tokens: Tokens) -> Iterator[ComparisonQuestion]:
    start = 1 + (tokens[1:2] in {("one",), ("shape",), ("object",), ("thing",)})
    if tokens[0] not in {"which", "what"} or tokens[start : start + 1] != ("is",):
        return
    if tokens[start + 1 : start + 2] not in {("larger",), ("bigger",), ("smaller",)}:
        return
    place = start + 2 + (tokens[start + 2 : start + 3] == (",",))
    for first, _, after in _things(tokens, place):
        either = after + (tokens[after : after + 1] == (",",))
        if tokens[either : either + 1] == ("or",):
            yield from (
                ComparisonQuestion((first, second))
                for second, _, last in _things(tokens, either + 1)
                if last == len(tokens)
            )


def _what_stands(tokens: Tokens) -> Iterator[RelationQuestion]:
    start = 1 + (tokens[1:2] in {("shape",), ("object",), ("thing",)})
    if tokens[0] not in {"which", "what"} or tokens[start : start + 1] != ("is",):
        return
    for link, last in SentenceParser(tokens).link(start + 1, bare=False):
        if last == len(tokens) and link.relation is not None and len(link.others) == 1 and _is_thing(link.others[0]):
            yield RelationQuestion(link.relation, link.others[0].entity)


def mentioned_shapes(reading: Reading) -> frozenset[str]:
    """Return the shapes that the noun phrases of a reading could name."""
    return frozenset(
        shape for clause in reading for entity in clause.entities for shape in entity.description.shape.maybe
    )
