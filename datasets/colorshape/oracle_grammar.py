"""The grammar of scene sentences: a tokeniser and a recursive descent that gives every reading.

Each rule is a generator over (what was read, where the next token is), so that structures which English
leaves open all come out: "a circle above a square and a star" is a circle above both, and also a circle
above a square, and a star. Rules, with [optional] and {repeated} parts::

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
without an article pass only in captions that use none ("red circle above blue square"). "In the image" may
begin or end a sentence. Case, spaces and the final full stop do not matter.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from pairwright.datasets.colorshape.oracle_forms import (
    Clause,
    Description,
    Entity,
    Is,
    Quantity,
    Reading,
    Relation,
    Sense,
    Stands,
)
from pairwright.datasets.colorshape.oracle_words import (
    COLOUR_WORDS,
    NOUNS,
    NUMBERS,
    PICTURE_NOUNS,
    RELATION_PHRASES,
    SIZE_WORDS,
    takes_an,
)

MOST_TOKENS = 60
MOST_LINKS = 6
MOST_READINGS = 400

_TOKEN = re.compile(r"\s*([a-z]+(?:-[a-z]+)*|\d+|[.,;?])")
_CONTRACTIONS = {
    **{f"{word}'s": f"{word} is" for word in ("there", "that", "here", "it", "what", "where")},
    "isn't": "is not",
    "aren't": "are not",
}
_SINGULAR_DETERMINERS = {"a": Quantity.SOME, "an": Quantity.SOME, "another": Quantity.SOME, "the": Quantity.THE}
_PRESENTING = {("this", "is"), ("it", "is"), ("here", "is"), ("here", "are")}
_SHOWING = ("of", "showing", "with", "containing", "depicting", "featuring")
_SHOWS = ("shows", "contains", "has", "features", "depicts", "displays")

Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A relation or an "is" that hangs on an element."""

    negated: bool
    relation: Relation | None = None
    others: tuple["Element", ...] = ()
    description: Description | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """A noun phrase with what hangs on it. ``none``: "no circle"; ``bare``: without a determiner."""

    entity: Entity
    links: tuple[Link, ...] = ()
    none: bool = False
    bare: bool = False


def tokenise(text: str) -> Tokens | None:
    """Return the lower-case words and marks of ``text``; None when it holds anything else."""
    text = text.lower().replace("’", "'").strip()
    for short, full in _CONTRACTIONS.items():
        text = re.sub(rf"\b{short}(?=\W|$)", full, text)
    tokens: list[str] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or len(tokens) == MOST_TOKENS:
            return None
        tokens.append(match[1])
        place = match.end()
    return tuple(tokens)


@lru_cache(maxsize=65536)
def readings(tokens: Tokens) -> tuple[Reading, ...]:
    """Return the readings of one sentence without its full stop; none when it is outside the grammar."""
    sentence = without_place(tokens)
    if not sentence or _count_links(sentence) > MOST_LINKS:
        return ()
    found = list(dict.fromkeys(islice(Parser(sentence).sentence(), MOST_READINGS + 1)))
    return () if len(found) > MOST_READINGS else tuple(found)


def without_place(tokens: Tokens) -> Tokens:
    """Return the sentence without "in the image" at its beginning or end."""
    for size in (4, 3):
        if _is_place(tokens[:size]) or (tokens[size - 1 : size] == (",",) and _is_place(tokens[: size - 1])):
            tokens = tokens[size:]
            break
    return tokens[:-3] if _is_place(tokens[-3:]) else tokens


def _is_place(tokens: Tokens) -> bool:
    return (
        len(tokens) == 3
        and tokens[0] in {"in", "within"}
        and tokens[1] in {"the", "this"}
        and tokens[2] in PICTURE_NOUNS
    )


def _count_links(tokens: Tokens) -> int:
    return sum(
        tokens[place : place + len(words)] == words
        for place, token in enumerate(tokens)
        for words, _ in RELATION_PHRASES.get(token, ())
    )


def compiled(elements: tuple[Element, ...]) -> Reading:
    """Return the clauses that a list of elements states: one for what is there, one for each "no ..."."""
    clauses = [_flat((element,), negated=True) for element in elements if element.none]
    present = tuple(element for element in elements if not element.none)
    return ((_flat(present),) if present else ()) + tuple(clauses)


def _flat(elements: tuple[Element, ...], *, negated: bool = False) -> Clause:
    entities: list[Entity] = []
    constraints: list[Is | Stands] = []

    def add(element: Element) -> int:
        place = len(entities)
        entities.append(element.entity)
        for link in element.links:
            if link.relation is not None:
                others = tuple(add(other) for other in link.others)
                constraints.append(Stands(place, link.relation, others, link.negated))
            elif link.description is not None:
                constraints.append(Is(place, link.description, link.negated))
        return place

    for element in elements:
        add(element)
    return Clause(tuple(entities), tuple(constraints), negated)


class Parser:
    """The rules over one sentence's tokens; every rule yields (what was read, index of the next token)."""

    def __init__(self, tokens: Tokens, *, asking: bool = False) -> None:
        self.tokens = tokens
        self.asking = asking

    def at(self, place: int, *words: str) -> bool:
        """Whether ``words`` stand at ``place``."""
        return self.tokens[place : place + len(words)] == words

    def word(self, place: int) -> str:
        """Return the token at ``place``, empty past the end."""
        return self.tokens[place] if place < len(self.tokens) else ""

    # ---- sentences

    def sentence(self) -> Iterator[Reading]:
        """Yield every reading of the whole sentence."""
        end = len(self.tokens)
        rules = (self._caption(), self._there(0), self._clauses(0))
        for rule in rules:
            yield from (reading for reading, place in rule if place == end)

    def _caption(self) -> Iterator[tuple[Reading, int]]:
        for start in {0, *self._frames(0)}:
            for elements, place in self.list_of_elements(start, bare=False):
                yield compiled(elements), place
        for start in {0, *(place for place in self._frames(0) if self.word(place - 1) == "of")}:
            for elements, place in self.list_of_elements(start, bare=True):
                if any(element.bare for element in elements):
                    yield compiled(elements), place

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
            article in {"a", "an"} and (article == "an") is not takes_an(self.word(noun))
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
                if not element.none and agrees((element,), verb):
                    yield (_flat((element,), negated=True),), after
            return
        for elements, after in self.list_of_elements(start, bare=False):
            # "There is a circle and a star" and "there are a circle and a star" are both said.
            if agrees(elements[:1], verb) or (verb == "are" and len(elements) > 1 and not elements[0].none):
                yield compiled(elements), after

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

    def clause(self, place: int) -> Iterator[tuple[Clause, int]]:
        """Yield "the circle is red", "a circle and a star are above the square" and the like."""
        for subjects, after in self.list_of_elements(place, bare=False):
            verb = self.word(after)
            if verb in {"is", "are"} and agrees(subjects, verb) and not any(s.none for s in subjects):
                for links, last in self.predicates(after + 1, plural=verb == "are"):
                    yield _flat(tuple(replace(s, links=s.links + links) for s in subjects)), last

    def predicates(self, place: int, *, plural: bool) -> Iterator[tuple[tuple[Link, ...], int]]:
        """Yield one or more predicates joined by "and"."""
        for link, after in self._predicate(place, plural=plural):
            yield (link,), after
            if self.word(after) == "and":
                for rest, last in self.predicates(after + 1, plural=plural):
                    yield (link, *rest), last

    def _predicate(self, place: int, *, plural: bool) -> Iterator[tuple[Link, int]]:
        negated = self.word(place) == "not"
        start = place + negated
        for description, after in self.adjectives(start):
            if after > start:
                yield Link(negated, description=description), after
        for element, after in self.noun_phrase(start, bare=False):
            said_of = Quantity.PLURAL if plural else Quantity.SOME
            if element.entity.quantity is said_of and not element.none and self.word(start) not in {"another", "some"}:
                yield Link(negated, description=element.entity.description), after
        if self.word(start) in {"located", "placed", "positioned"}:
            start += 1
        for link, after in self.link(start, bare=False):
            yield replace(link, negated=negated), after

    # ---- lists and noun phrases

    def list_of_elements(self, place: int, *, bare: bool) -> Iterator[tuple[tuple[Element, ...], int]]:
        """Yield lists as English writes them: commas and one last "and", or the same joint throughout."""
        for elements, joints, after in self._joined(place, bare=bare):
            early = set(joints[:-1])
            if early <= {","} or (early | set(joints[-1:])) == {"and"}:
                yield elements, after

    def _joined(self, place: int, *, bare: bool) -> Iterator[tuple[tuple[Element, ...], tuple[str, ...], int]]:
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

    def element(self, place: int, *, bare: bool, denied: bool = False) -> Iterator[tuple[Element, int]]:
        """Yield a noun phrase alone, and with the links that follow it."""
        for element, after in self.noun_phrase(place, bare=bare, denied=denied):
            yield from self._linked(element, after, bare=bare)

    def _linked(self, element: Element, place: int, *, bare: bool) -> Iterator[tuple[Element, int]]:
        yield element, place
        verb = "are" if element.entity.plural else "is"
        if self.word(place) in {"that", "which"} and self.word(place + 1) == verb:
            for links, after in self.predicates(place + 2, plural=verb == "are"):
                yield replace(element, links=element.links + links), after
        start = place + (self.word(place) == "and" and bool(element.links))
        for link, after in self.link(start, bare=bare):
            yield from self._linked(replace(element, links=(*element.links, link)), after, bare=bare)

    def link(self, place: int, *, bare: bool) -> Iterator[tuple[Link, int]]:
        """Yield a relation phrase with its object or its two objects."""
        for words, relation in RELATION_PHRASES.get(self.word(place), ()):
            if not self.at(place, *words):
                continue
            for first, after in self.element(place + len(words), bare=bare):
                if first.none:
                    continue
                if relation is not Relation.BETWEEN or first.entity.plural:
                    yield Link(negated=False, relation=relation, others=(first,)), after
                if self.word(after) == "and":
                    for second, last in self.element(after + 1, bare=bare):
                        if not second.none:
                            yield Link(negated=False, relation=relation, others=(first, second)), last

    def noun_phrase(self, place: int, *, bare: bool, denied: bool = False) -> Iterator[tuple[Element, int]]:
        """Yield the noun phrase at ``place``, if its determiner, article and number agree."""
        for quantity, number, none, start in self._determiners(place, bare=bare, denied=denied or self.asking):
            for description, noun in self.adjectives(start):
                if self.word(noun) not in NOUNS or self._wrong_article(place):
                    continue
                shape, plural = NOUNS[self.word(noun)]
                entity = self._entity(replace(description, shape=shape), quantity, number, plural=plural)
                without = start == place and not plural
                if entity is not None and (bare or not without):
                    yield Element(entity, none=none, bare=without), noun + 1

    def _determiners(self, place: int, *, bare: bool, denied: bool) -> Iterator[tuple[Quantity | None, int, bool, int]]:
        """Yield (quantity or None when the noun's number decides, count, whether "no", next place)."""
        word = self.word(place)
        if word in _SINGULAR_DETERMINERS and not bare:
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
        if word in NOUNS or word in COLOUR_WORDS or word in SIZE_WORDS:
            yield Quantity.SOME, 0, False, place

    def _entity(self, kind: Description, quantity: Quantity | None, number: int, *, plural: bool) -> Entity | None:
        """Return the entity if quantity and grammatical number go together."""
        if quantity is None:  # "no circle", "no circles", "any circles": at least one is denied or asked for
            return Entity(kind, Quantity.SOME, 2 if plural else 0)
        if number:
            if (number > 1) is not plural or (quantity is Quantity.THE_PLURAL and number == 1):
                return None
            return Entity(kind, quantity, 0 if quantity is Quantity.SOME else number)
        if not plural:
            return None if quantity is Quantity.PLURAL else Entity(kind, quantity)
        plurals = {Quantity.THE: Quantity.THE_PLURAL, Quantity.SOME: Quantity.PLURAL, Quantity.PLURAL: Quantity.PLURAL}
        return Entity(kind, plurals[quantity]) if quantity in plurals else None

    def adjectives(self, place: int) -> Iterator[tuple[Description, int]]:
        """Yield the sizes and colours at ``place``: at most one of each, in either order."""
        size: Sense | None = None
        colour: Sense | None = None
        yield Description(), place
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
            yield Description(colour=colour, size=size), place

    def _wrong_article(self, place: int) -> bool:
        """Whether "a" or "an" at ``place`` does not suit the next word, or stands before a plural."""
        article = self.word(place)
        return article in {"a", "an"} and takes_an(self.word(place + 1)) is not (article == "an")


def agrees(subjects: tuple[Element, ...], verb: str) -> bool:
    """Whether "is" or "are" suits the subjects."""
    plural = len(subjects) > 1 or subjects[0].entity.plural
    return verb == ("are" if plural else "is")
