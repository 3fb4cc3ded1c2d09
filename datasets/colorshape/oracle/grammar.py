"""Grammar of scene sentences: a recursive descent parser that returns every reading.

Rules, with [optional] and {repeated} parts::

    text      = sentence {"." sentence} ["."]                 each may start with "yes," or "no,"
    sentence  = ([frame] list | there | clause {("and" | "while" | "but" | ",") clause}) [lack]
    lack      = [","] (("with" | "and" | "but") "no" noun phrase | "without" noun phrase | "and" there)
    frame     = "a picture of" | "the image shows" | "this is" | "you can see" | ...
    there     = "there" ("is" | "are") ["not"] list
    clause    = list ("is" | "are") predicate {"and" predicate}
    predicate = ["not"] (adjectives | noun phrase | link)
    list      = element {("," | "and" | "with" | "as well as") element}
    element   = noun phrase {["and"] link | "that is" predicate}
    link      = relation phrase, element ["and" element]
    noun phrase = [determiner] {size | colour} noun

Every rule is a generator over (parsed part, index of the next token) and yields all matches, so that ambiguous structures
give several readings: "a circle above a square and a star" is a circle above both, and also a circle above a square, and a
star.

Agreement is required: "two circle", "a circles", "a orange star", "there is two stars" are not sentences. Nouns without an
article are allowed only in captions without any ("red circle above blue square"). "In the image" may start or end a
sentence. Case, spaces and the final full stop are ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from pairwright.datasets.colorshape.oracle.lexicon import (
    COLOUR_WORDS,
    NOUNS,
    NUMBERS,
    PICTURE_NOUNS,
    RELATION_PHRASES,
    SIZE_WORDS,
    takes_article_an,
)
from pairwright.datasets.colorshape.oracle.logical_forms import (
    DescriptionConstraint,
    LogicalClause,
    NounPhraseEntity,
    ObjectDescription,
    ObjectRelation,
    Quantity,
    Reading,
    RelationConstraint,
    WordSense,
)
from pairwright.datasets.colorshape.oracle.tokenizer import Tokens, has_repeated_word, strip_place_phrase

MAX_LINKS = 6
MAX_READINGS = 400
_PRESENTING = {("this", "is"), ("it", "is"), ("here", "is"), ("here", "are")}
_SHOWING = ("of", "showing", "with", "containing", "depicting", "featuring")
_SHOWS = ("shows", "contains", "has", "features", "depicts", "displays")

_SINGULAR_DETERMINERS = {"a": Quantity.SOME, "an": Quantity.SOME, "another": Quantity.SOME, "the": Quantity.THE}


@dataclass(frozen=True, slots=True)
class PhraseLink:
    """A relation or an "is" attached to an element."""

    negated: bool
    relation: ObjectRelation | None = None
    others: tuple["PhraseElement", ...] = ()
    description: ObjectDescription | None = None


@dataclass(frozen=True, slots=True)
class PhraseElement:
    """A noun phrase with its links. ``none``: "no circle"; ``bare``: without a determiner."""

    entity: NounPhraseEntity
    links: tuple[PhraseLink, ...] = ()
    none: bool = False
    bare: bool = False


class PhraseParser:
    """The rules for phrases over one sentence's tokens; ``asking`` allows "any" in place of "a"."""

    def __init__(self, tokens: Tokens, *, asking: bool = False) -> None:
        self.tokens = tokens
        self.asking = asking

    def at(self, place: int, *words: str) -> bool:
        """Return whether ``words`` are at ``place``."""
        return self.tokens[place : place + len(words)] == words

    def word(self, place: int) -> str:
        """Return the token at ``place``, empty past the end."""
        return self.tokens[place] if place < len(self.tokens) else ""

    def list_of_elements(self, place: int, *, bare: bool) -> Iterator[tuple[tuple[PhraseElement, ...], int]]:
        """Yield lists in English style: commas and one last "and", or the same conjunction throughout."""
        for elements, joints, after in self._joined(place, bare=bare):
            early = set(joints[:-1])
            if early <= {","} or (early | set(joints[-1:])) == {"and"}:
                yield elements, after

    def _joined(self, place: int, *, bare: bool) -> Iterator[tuple[tuple[PhraseElement, ...], tuple[str, ...], int]]:
        for element, after in self.element(place, bare=bare):
            yield (element,), (), after
            for joint, start in self._joints(after):
                for rest, joints, last in self._joined(start, bare=bare):
                    yield (element, *rest), (joint, *joints), last

    def _joints(self, place: int) -> Iterator[tuple[str, int]]:
        comma = self.word(place) == ","
        if comma:
            yield ",", place + 1
        start = place + comma
        for words in (("and",), ("with",), ("as", "well", "as"), ("along", "with"), ("together", "with")):
            if self.at(start, *words):
                yield ", and" if comma else words[0], start + len(words)

    def element(self, place: int, *, bare: bool, denied: bool = False) -> Iterator[tuple[PhraseElement, int]]:
        """Yield a noun phrase alone, and with the links that follow it."""
        for element, after in self.noun_phrase(place, bare=bare, denied=denied):
            yield from self._linked(element, after, bare=bare)

    def _linked(self, element: PhraseElement, place: int, *, bare: bool) -> Iterator[tuple[PhraseElement, int]]:
        yield element, place
        verb = "are" if element.entity.plural else "is"
        if self.word(place) in {"that", "which"} and self.word(place + 1) == verb:
            for links, after in self.predicates(place + 2, plural=verb == "are"):
                yield replace(element, links=element.links + links), after
        start = place + (self.word(place) == "and" and bool(element.links))
        for link, after in self.link(start, bare=bare):
            yield from self._linked(replace(element, links=(*element.links, link)), after, bare=bare)

    def link(self, place: int, *, bare: bool) -> Iterator[tuple[PhraseLink, int]]:
        """Yield a relation phrase with its object or its two objects."""
        for words, relation in RELATION_PHRASES.get(self.word(place), ()):
            if not self.at(place, *words):
                continue
            for first, after in self.element(place + len(words), bare=bare):
                if first.none:
                    continue
                if relation is not ObjectRelation.BETWEEN or first.entity.plural:
                    yield PhraseLink(negated=False, relation=relation, others=(first,)), after
                if self.word(after) == "and":
                    for second, last in self.element(after + 1, bare=bare):
                        if not second.none:
                            yield PhraseLink(negated=False, relation=relation, others=(first, second)), last

    def noun_phrase(self, place: int, *, bare: bool, denied: bool = False) -> Iterator[tuple[PhraseElement, int]]:
        """Yield the noun phrase at ``place``, if its determiner, article and number agree."""
        for quantity, number, none, start in self._determiners(place, bare=bare, denied=denied or self.asking):
            for description, noun in self.adjectives(start):
                if self.word(noun) not in NOUNS or self._wrong_article(place):
                    continue
                shape, plural = NOUNS[self.word(noun)]
                entity = self._entity(replace(description, shape=shape), quantity, number, plural=plural)
                without = start == place and not plural
                if entity is not None and (bare or not without):
                    yield PhraseElement(entity, none=none, bare=without), noun + 1

    def _determiners(self, place: int, *, bare: bool, denied: bool) -> Iterator[tuple[Quantity | None, int, bool, int]]:
        """Yield (quantity, or None if the noun's number decides; count; whether "no"; next place)."""
        word = self.word(place)
        if word in NOUNS or word in COLOUR_WORDS or word in SIZE_WORDS:
            yield Quantity.SOME, 0, False, place
        if bare:
            return
        if word in _SINGULAR_DETERMINERS:
            yield _SINGULAR_DETERMINERS[word], int(word != "the"), False, place + 1
        if word == "the" and self.word(place + 1) in NUMBERS:
            yield Quantity.THE_PLURAL, NUMBERS[self.word(place + 1)], False, place + 2
        if (word, self.word(place + 1)) == ("a", "single"):
            yield Quantity.EXACTLY, 1, False, place + 2
        counted = place + (word in {"exactly", "only"})
        if self.word(counted) in NUMBERS:
            yield Quantity.EXACTLY, NUMBERS[self.word(counted)], False, counted + 1
        if word == "no" or (denied and word == "any"):
            yield None, 0, word == "no", place + 1
        if word in {"every", "each", "all", "some"}:
            the = word == "all" and self.word(place + 1) == "the"
            yield Quantity.PLURAL if word in {"some", "all"} else Quantity.EVERY, 0, False, place + 1 + the

    def _entity(
        self, kind: ObjectDescription, quantity: Quantity | None, number: int, *, plural: bool
    ) -> NounPhraseEntity | None:
        """Return the entity if quantity and grammatical number agree."""
        if quantity is None:  # "no circle", "no circles", "any circles": at least one is negated or asked for
            return NounPhraseEntity(kind, Quantity.SOME, 2 if plural else 0)
        if number:
            if (number > 1) is not plural or (quantity is Quantity.THE_PLURAL and number == 1):
                return None
            return NounPhraseEntity(kind, quantity, 0 if quantity is Quantity.SOME else number)
        if not plural:
            return None if quantity is Quantity.PLURAL else NounPhraseEntity(kind, quantity)
        plurals = {Quantity.THE: Quantity.THE_PLURAL, Quantity.SOME: Quantity.PLURAL, Quantity.PLURAL: Quantity.PLURAL}
        return NounPhraseEntity(kind, plurals[quantity]) if quantity in plurals else None

    def adjectives(self, place: int) -> Iterator[tuple[ObjectDescription, int]]:
        """Yield the sizes and colours at ``place``: at most one of each, in either order."""
        size: WordSense | None = None
        colour: WordSense | None = None
        yield ObjectDescription(), place
        while True:
            start = place + (self.word(place) == "," and (size is not None or colour is not None))
            word = self.word(start)
            if word in SIZE_WORDS and size is None:
                size = SIZE_WORDS[word]
            elif word in COLOUR_WORDS and colour is None:
                colour = COLOUR_WORDS[word]
            else:
                return
            place = start + 1
            yield ObjectDescription(colour=colour, size=size), place

    def _wrong_article(self, place: int) -> bool:
        """Return whether "a" or "an" at ``place`` does not match the next word, or precedes a plural."""
        article = self.word(place)
        return article in {"a", "an"} and takes_article_an(self.word(place + 1)) is not (article == "an")

    def predicates(self, place: int, *, plural: bool) -> Iterator[tuple[tuple[PhraseLink, ...], int]]:
        """Yield one or more predicates joined by "and"."""
        for link, after in self._predicate(place, plural=plural):
            yield (link,), after
            if self.word(after) == "and":
                for rest, last in self.predicates(after + 1, plural=plural):
                    yield (link, *rest), last

    def _predicate(self, place: int, *, plural: bool) -> Iterator[tuple[PhraseLink, int]]:
        negated = self.word(place) == "not"
        start = place + negated
        for description, after in self.adjectives(start):
            if after > start:
                yield PhraseLink(negated, description=description), after
        for element, after in self.noun_phrase(start, bare=False):
            said_of = Quantity.PLURAL if plural else Quantity.SOME
            if element.entity.quantity is said_of and not element.none and self.word(start) not in {"another", "some"}:
                yield PhraseLink(negated, description=element.entity.description), after
        if self.word(start) in {"located", "placed", "positioned"}:
            start += 1
        for link, after in self.link(start, bare=False):
            yield replace(link, negated=negated), after


@lru_cache(maxsize=65536)
def parse_sentence(tokens: Tokens) -> tuple[Reading, ...]:
    """Return the readings of one sentence without its full stop; empty if it is outside the grammar."""
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
    """Return the clauses of a list of elements: one for existing objects, one for each "no ..."."""
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
            for reading, place in rule:
                if place == end:
                    yield reading
                else:
                    yield from ((*reading, *more) for more, after in self._lack(place) if after == end)

    def _lack(self, place: int) -> Iterator[tuple[Reading, int]]:
        """Yield what a sentence denies at its end: "without a star", "with no stars", "and there are no stars"."""
        start = place + (self.word(place) == ",")
        if self.word(start) == "and":
            yield from self._there(start + 1)
        joined = self.word(start) in {"with", "and", "but"} and self.word(start + 1) == "no"
        if joined or self.word(start) == "without":
            for element, after in self.noun_phrase(start + 1, bare=False, denied=True):
                if element.none is joined:
                    yield (_flatten_elements((element,), negated=True),), after

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
            # Both "there is a circle and a star" and "there are a circle and a star" are accepted.
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
    """Return whether "is" or "are" agrees with the subjects."""
    plural = len(subjects) > 1 or subjects[0].entity.plural
    return verb == ("are" if plural else "is")
