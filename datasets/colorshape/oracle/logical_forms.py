"""What the oracle makes of a sentence: descriptions, entities, constraints, clauses.

A *description* is a conjunction of size, colour and shape senses. An *entity* is a noun phrase: a
description and a quantity. A *clause* asks for an assignment of groups of objects to its entities that
meets all its constraints; a negated clause asks that there be none. A sentence is a tuple of clauses, all
of which must hold. Where English allows several structures, the parser gives several such tuples.

A *sense* has two sets, since some words have no sharp border: ``sure``, where the word surely fits, and
``maybe``, where one could say so. A verdict that depends on the difference is no verdict (OUTSIDE).
"""

from dataclasses import dataclass
from enum import Enum

from pairwright.datasets.colorshape.scenes import SHAPES


class Quantity(Enum):
    """How many objects of its description an entity speaks of."""

    SOME = "one of them, any"
    EXACTLY = "all of them, and they are that many"
    PLURAL = "all of them, and they are at least two"
    THE = "the only one"
    THE_PLURAL = "all of them, known to the hearer, at least two"
    EVERY = "all of them, at least one"


DEFINITE = frozenset({Quantity.THE, Quantity.THE_PLURAL})


class ObjectRelation(Enum):
    """How one object can stand to another (BETWEEN: to two others); `oracle_truth` says when it does."""

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
    """The values of one attribute that a word surely names, and those that it could be said to name."""

    sure: frozenset[str]
    maybe: frozenset[str]


ANY_SHAPE = WordSense(frozenset(SHAPES), frozenset(SHAPES))


@dataclass(frozen=True, slots=True)
class ObjectDescription:
    """A kind of object; None where an attribute is not spoken of."""

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
        """Whether its verb is "are"."""
        return self.quantity in {Quantity.PLURAL, Quantity.THE_PLURAL} or self.number > 1


@dataclass(frozen=True, slots=True)
class DescriptionConstraint:
    """Every object of entity ``subject`` fits a description (or, negated, not every one does)."""

    subject: int
    description: ObjectDescription
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RelationConstraint:
    """Every object of ``subject`` stands in a relation to every object of ``others`` (or, negated, not)."""

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
