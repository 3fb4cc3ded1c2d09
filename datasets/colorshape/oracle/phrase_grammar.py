"""The lower half of the grammar: noun phrases, what hangs on them, lists of them, predicates.

Every rule is a generator over (what was read, index of the next token) and yields all that fits, so that
structures which English leaves open all come out: "a circle above a square and a star" is a circle above both,
and also a circle above a square, and a star. The rules, and what they refuse, are listed in `oracle_grammar`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pairwright.datasets.colorshape.oracle.lexicon import (
    COLOUR_WORDS,
    NOUNS,
    NUMBERS,
    RELATION_PHRASES,
    SIZE_WORDS,
    takes_article_an,
)
from pairwright.datasets.colorshape.oracle.logical_forms import (
    NounPhraseEntity,
    ObjectDescription,
    ObjectRelation,
    Quantity,
    WordSense,
)
from pairwright.datasets.colorshape.oracle.tokenizer import Tokens

_SINGULAR_DETERMINERS = {"a": Quantity.SOME, "an": Quantity.SOME, "another": Quantity.SOME, "the": Quantity.THE}


@dataclass(frozen=True, slots=True)
class PhraseLink:
    """A relation or an "is" that hangs on an element."""

    negated: bool
    relation: ObjectRelation | None = None
    others: tuple["PhraseElement", ...] = ()
    description: ObjectDescription | None = None


@dataclass(frozen=True, slots=True)
class PhraseElement:
    """A noun phrase with what hangs on it. ``none``: "no circle"; ``bare``: without a determiner."""

    entity: NounPhraseEntity
    links: tuple[PhraseLink, ...] = ()
    none: bool = False
    bare: bool = False


class PhraseParser:
    """The rules for phrases over one sentence's tokens; ``asking`` lets "any" stand in for "a"."""

    def __init__(self, tokens: Tokens, *, asking: bool = False) -> None:
        self.tokens = tokens
        self.asking = asking

    def at(self, place: int, *words: str) -> bool:
        """Whether ``words`` stand at ``place``."""
        return self.tokens[place : place + len(words)] == words

    def word(self, place: int) -> str:
        """Return the token at ``place``, empty past the end."""
        return self.tokens[place] if place < len(self.tokens) else ""

    def list_of_elements(self, place: int, *, bare: bool) -> Iterator[tuple[tuple[PhraseElement, ...], int]]:
        """Yield lists as English writes them: commas and one last "and", or the same joint throughout."""
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
        """Yield (quantity or None when the noun's number decides, count, whether "no", next place)."""
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
        """Return the entity if quantity and grammatical number go together."""
        if quantity is None:  # "no circle", "no circles", "any circles": at least one is denied or asked for
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
        """Whether "a" or "an" at ``place`` does not suit the next word, or stands before a plural."""
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
