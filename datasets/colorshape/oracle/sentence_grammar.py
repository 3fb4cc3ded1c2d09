"""The grammar of scene sentences: a recursive descent that gives every reading.

This module holds the sentences, `oracle_phrases` what they are made of. Rules, with [optional] and {repeated} parts::

    text      = sentence {"." sentence} ["."]                 each may begin with "yes," or "no,"
    sentence  = [frame] list | there | clause {("and" | "while" | "but" | ",") clause}
    frame     = "a picture of" | "the image shows" | "this is" | "you can see" | ...
    there     = "there" ("is" | "are") ["not"] list
    clause    = list ("is" | "are") predicate {"and" predicate}
    predicate = ["not"] (adjectives | noun phrase | link)
    list      = element {("," | "and" | "with" | "as well as") element}
    element   = noun phrase {["and"] link | "that is" predicate}
    link      = relation phrase, element ["and" element]
    noun phrase = [determiner] {size | colour} noun

Agreement counts: "two circle", "a circles", "a orange star", "there is two stars" are no sentences. Nouns
without an article pass only in captions without any ("red circle above blue square"). "In the image" may
begin or end a sentence. Case, spaces and the final full stop do not matter.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from pairwright.datasets.colorshape.oracle.lexicon import PICTURE_NOUNS, RELATION_PHRASES, takes_article_an
from pairwright.datasets.colorshape.oracle.logical_forms import (
    DescriptionConstraint,
    LogicalClause,
    NounPhraseEntity,
    Reading,
    RelationConstraint,
)
from pairwright.datasets.colorshape.oracle.phrase_grammar import PhraseElement, PhraseParser
from pairwright.datasets.colorshape.oracle.tokenizer import Tokens, has_repeated_word, strip_place_phrase

MAX_LINKS = 6
MAX_READINGS = 400

_PRESENTING = {("this", "is"), ("it", "is"), ("here", "is"), ("here", "are")}
_SHOWING = ("of", "showing", "with", "containing", "depicting", "featuring")
_SHOWS = ("shows", "contains", "has", "features", "depicts", "displays")


@lru_cache(maxsize=65536)
def parse_sentence(tokens: Tokens) -> tuple[Reading, ...]:
    """Return the readings of one sentence without its full stop; none when it is outside the grammar."""
    sentence = strip_place_phrase(tokens)
    if not sentence or has_repeated_word(sentence) or _count_links(sentence) > MAX_LINKS:
        return ()
    found = list(dict.fromkeys(islice(SentenceParser(sentence).sentence(), MAX_READINGS + 1)))
    return () if len(found) > MAX_READINGS else tuple(found)


def _count_links(tokens: Tokens) -> int:
    return sum(
        tokens[place : place + len(words)] == words
        for place, token in enumerate(tokens)
        for words, _ in RELATION_PHRASES.get(token, ())
    )


def compile_clauses(elements: tuple[PhraseElement, ...]) -> Reading:
    """Return the clauses that a list of elements states: one for what is there, one for each "no ..."."""
    clauses = [_flatten_elements((element,), negated=True) for element in elements if element.none]
    present = tuple(element for element in elements if not element.none)
    return ((_flatten_elements(present),) if present else ()) + tuple(clauses)


def _flatten_elements(elements: tuple[PhraseElement, ...], *, negated: bool = False) -> LogicalClause:
    entities: list[NounPhraseEntity] = []
    constraints: list[DescriptionConstraint | RelationConstraint] = []

    def add(element: PhraseElement) -> int:
        place = len(entities)
        entities.append(element.entity)
        for link in element.links:
            if link.relation is not None:
                others = tuple(add(other) for other in link.others)
                constraints.append(RelationConstraint(place, link.relation, others, link.negated))
            elif link.description is not None:
                constraints.append(DescriptionConstraint(place, link.description, link.negated))
        return place

    for element in elements:
        add(element)
    return LogicalClause(tuple(entities), tuple(constraints), negated)


class SentenceParser(PhraseParser):
    """The rules for sentences over one sentence's tokens."""

    def sentence(self) -> Iterator[Reading]:
        """Yield every reading of the whole sentence."""
        end = len(self.tokens)
        rules = (self._caption(), self._there(0), self._clauses(0))
        for rule in rules:
            yield from (reading for reading, place in rule if place == end)

    def _caption(self) -> Iterator[tuple[Reading, int]]:
        for start in {0, *self._frames(0)}:
            for elements, place in self.list_of_elements(start, bare=False):
                yield compile_clauses(elements), place
        for start in {0, *(place for place in self._frames(0) if self.word(place - 1) == "of")}:
            for elements, place in self.list_of_elements(start, bare=True):
                if any(element.bare for element in elements):
                    yield compile_clauses(elements), place

    def _frames(self, place: int) -> Iterator[int]:
        """Yield the places after an opening such as "a picture of" or "you can see"."""
        if (self.word(place), self.word(place + 1)) in _PRESENTING:
            yield place + 2
            yield from self._frames(place + 2)
        if self.word(place) in {"you", "we", "i", "one"}:
            after = place + 1 + (self.word(place + 1) == "can")
            if self.word(after) == "see":
                yield after + 1
        if self.word(place) == "it" and self.word(place + 1) in _SHOWS:
            yield place + 2
        article = self.word(place)
        noun = place + (article in {"a", "an", "the", "this"})
        if self.word(noun) in PICTURE_NOUNS and not (
            article in {"a", "an"} and (article == "an") is not takes_article_an(self.word(noun))
        ):
            if self.word(noun + 1) in _SHOWING or (noun > place and self.word(noun + 1) in _SHOWS):
                yield noun + 2
            if self.at(noun + 1, "that") and self.word(noun + 2) in _SHOWS:
                yield noun + 3

    def _there(self, place: int) -> Iterator[tuple[Reading, int]]:
        verb = self.word(place + 1)
        if self.word(place) != "there" or verb not in {"is", "are"}:
            return
        start = place + 2
        if self.word(start) == "not":
            for element, after in self.element(start + 1, bare=False, denied=True):
                if not element.none and verb_agrees((element,), verb):
                    yield (_flatten_elements((element,), negated=True),), after
            return
        for elements, after in self.list_of_elements(start, bare=False):
            # "There is a circle and a star" and "there are a circle and a star" are both said.
            if verb_agrees(elements[:1], verb) or (verb == "are" and len(elements) > 1 and not elements[0].none):
                yield compile_clauses(elements), after

    def _clauses(self, place: int) -> Iterator[tuple[Reading, int]]:
        for clause, after in self.clause(place):
            yield (clause,), after
            for start in self._clause_breaks(after):
                for rest, last in self._clauses(start):
                    yield (clause, *rest), last

    def _clause_breaks(self, place: int) -> Iterator[int]:
        comma = self.word(place) in {",", ";"}
        if comma:
            yield place + 1
        if self.word(place + comma) in {"and", "while", "but"}:
            yield place + comma + 1

    def clause(self, place: int) -> Iterator[tuple[LogicalClause, int]]:
        """Yield "the circle is red", "a circle and a star are above the square" and the like."""
        for subjects, after in self.list_of_elements(place, bare=False):
            verb = self.word(after)
            if verb in {"is", "are"} and verb_agrees(subjects, verb) and not any(s.none for s in subjects):
                for links, last in self.predicates(after + 1, plural=verb == "are"):
                    yield _flatten_elements(tuple(replace(s, links=s.links + links) for s in subjects)), last


def verb_agrees(subjects: tuple[PhraseElement, ...], verb: str) -> bool:
    """Whether "is" or "are" suits the subjects."""
    plural = len(subjects) > 1 or subjects[0].entity.plural
    return verb == ("are" if plural else "is")
