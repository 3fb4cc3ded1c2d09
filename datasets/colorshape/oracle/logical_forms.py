"""Logical forms of sentences: descriptions, entities, constraints, clauses.

A *description* is a conjunction of size, colour and shape senses. An *entity* is a noun phrase: a description and a
quantity. A *clause* requires an assignment of groups of objects to its entities that meets all its constraints; a negated
clause requires that there is none. A sentence is a tuple of clauses, all of which must hold. For ambiguous structures, the
parser returns several such tuples.

A *sense* has two sets, as some words are vague: ``sure``, where the word certainly applies, and ``maybe``, where it could.
A verdict that depends on the difference is OUTSIDE.
"""

from dataclasses import dataclass
from enum import Enum

from pairwright.datasets.colorshape.scenes import SHAPES


class Quantity(Enum):
    """How many objects of its description an entity denotes."""

    SOME = "one of them, any"
    EXACTLY = "all of them, and they are that many"
    PLURAL = "all of them, and they are at least two"
    THE = "the only one"
    THE_PLURAL = "all of them, known to the hearer, at least two"
    EVERY = "all of them, at least one"


DEFINITE = frozenset({Quantity.THE, Quantity.THE_PLURAL})


class ObjectRelation(Enum):
    """Relation of one object to another (BETWEEN: to two others); see `truth_conditions.py`."""

    LEFT = "left"
    RIGHT = "right"
    ABOVE = "above"
    BELOW = "below"
    ON_TOP = "on top"
    NEAR = "near"
    FAR = "far"
    TOUCHING = "touching"
    WITHIN = "within"
    BETWEEN = "between"
    LARGER = "larger"
    SMALLER = "smaller"
    SAME_SIZE = "same size"
    SAME_COLOUR = "same colour"
    SAME_SHAPE = "same shape"


@dataclass(frozen=True, slots=True)
class WordSense:
    """The values of one attribute that a word certainly names, and those that it could name."""

    sure: frozenset[str]
    maybe: frozenset[str]


ANY_SHAPE = WordSense(frozenset(SHAPES), frozenset(SHAPES))


@dataclass(frozen=True, slots=True)
class ObjectDescription:
    """A kind of object; None for attributes that are not named."""

    shape: WordSense = ANY_SHAPE
    colour: WordSense | None = None
    size: WordSense | None = None


@dataclass(frozen=True, slots=True)
class NounPhraseEntity:
    """A noun phrase. ``number`` counts for EXACTLY (any) and THE_PLURAL ("the two ...", else 0)."""

    description: ObjectDescription
    quantity: Quantity
    number: int = 0

    @property
    def plural(self) -> bool:
        """Return whether its verb is "are"."""
        return self.quantity in {Quantity.PLURAL, Quantity.THE_PLURAL} or self.number > 1


@dataclass(frozen=True, slots=True)
class DescriptionConstraint:
    """Every object of entity ``subject`` fits a description (or, negated, not every one does)."""

    subject: int
    description: ObjectDescription
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RelationConstraint:
    """Every object of ``subject`` is in a relation to every object of ``others`` (or, negated, not)."""

    subject: int
    relation: ObjectRelation
    others: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class LogicalClause:
    """Some assignment of objects to the entities meets all constraints; negated: none does."""

    entities: tuple[NounPhraseEntity, ...]
    constraints: tuple[DescriptionConstraint | RelationConstraint, ...] = ()
    negated: bool = False


Reading = tuple[LogicalClause, ...]
