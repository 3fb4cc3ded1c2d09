"""Truth of a sentence's reading in a scene.

Relations use box centres, x to the right and y downwards, as fractions of the image:

- left, right, above, below: the centres differ by at least 0.05 along that axis; otherwise both are false.
- near: a gap of at most 0.15 between the boxes; above 0.25 certainly not. Far: at least 0.40; under 0.25 certainly not.
- larger, smaller: box areas differ by a factor of at least 1.25; under 1.10 certainly not. Same size: a factor of at most
  1.10; certainly not from 1.60 on.
- between: the centre is at most 0.15 off the line of the two others, within the middle four fifths.
- touching, inside and the like: never, as objects are apart; boxes nearer than 0.06 could be said to touch, and an object
  above and near another could be said to be on top.

Values between "certainly" and "certainly not" are border cases. A sentence is evaluated several times: with border cases
excluded and included, and with counts before a predicate read as "there are exactly that many" and as "that many of them
do". Only a verdict that is the same each time counts.
"""

import math
from collections.abc import Iterator
from itertools import combinations

from pairwright.datasets.colorshape.oracle.logical_forms import (
    DEFINITE,
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
from pairwright.datasets.colorshape.scenes import Scene, SceneObject, box_distance

AXIS_MARGIN = 0.05
NEAR_SURE, NEAR_MAYBE = 0.15, 0.25
FAR_SURE, FAR_MAYBE = 0.40, 0.25
LARGER_SURE, LARGER_MAYBE = 1.25, 1.10
SAME_SIZE_SURE, SAME_SIZE_MAYBE = 1.10, 1.60
TOUCH_MAYBE = 0.06
BETWEEN_SURE, BETWEEN_MAYBE = (0.15, 0.1), (0.30, 0.0)

_DIGITS = 6  # comparisons must not depend on rounding of floats

Group = tuple[int, ...]


def possible_truth_values(reading: Reading, scene: Scene) -> set[bool]:
    """Return every truth value that ``reading`` can have in ``scene``: one of them, or both."""
    counting = any(e.quantity is Quantity.EXACTLY for clause in reading if clause.constraints for e in clause.entities)
    return {
        all(_TruthEvaluation(scene, generous=generous, loose=loose).holds(clause) for clause in reading)
        for generous in (False, True)
        for loose in ((False, True) if counting else (False,))
    }


def find_referent(entity: NounPhraseEntity, scene: Scene) -> SceneObject | None:
    """Return the one object that certainly fits the description of ``entity``; None for none or several."""
    fitting = [item for item in scene.objects if matches_description(item, entity.description, generous=True)]
    sure = [item for item in fitting if matches_description(item, entity.description, generous=False)]
    return sure[0] if len(fitting) == len(sure) == 1 else None


def matches_description(item: SceneObject, description: ObjectDescription, *, generous: bool) -> bool:
    """Return whether an object is of a kind; ``generous`` includes border cases."""
    return (
        _within(item.shape, description.shape, generous)
        and _within(item.colour, description.colour, generous)
        and _within(item.size, description.size, generous)
    )


def _within(value: str, sense: WordSense | None, generous: bool) -> bool:  # noqa: FBT001 - an inner loop
    if sense is None:
        return True
    if not value:  # a colour without a name could be called anything
        return generous
    return value in (sense.maybe if generous else sense.sure)


class _TruthEvaluation:
    """One interpretation of a sentence: border cases in or out, counts loose or strict."""

    def __init__(self, scene: Scene, *, generous: bool, loose: bool) -> None:
        self.objects = scene.objects
        self.generous = generous
        self.loose = loose

    def holds(self, clause: LogicalClause) -> bool:
        """Return whether the clause is true. A definite phrase without a referent makes even a negation false."""
        groups = [list(self._groups(entity, constrained=bool(clause.constraints))) for entity in clause.entities]
        for entity, candidates in zip(clause.entities, groups, strict=True):
            if entity.quantity in DEFINITE and not candidates:
                return False
        return self._assignable(clause, groups, ()) is not clause.negated

    def _assignable(self, clause: LogicalClause, groups: list[list[Group]], chosen: tuple[Group, ...]) -> bool:
        place = len(chosen)
        if place == len(groups):
            return all(self._met(constraint, chosen) for constraint in clause.constraints)
        return any(
            self._assignable(clause, groups, (*chosen, group))
            for group in groups[place]
            if not any(_share_object(clause, place, group, other, chosen[other]) for other in range(place))
        )

    def _groups(self, entity: NounPhraseEntity, *, constrained: bool) -> Iterator[Group]:
        """Yield the groups of objects that an entity may denote."""
        sure = {
            i for i, item in enumerate(self.objects) if matches_description(item, entity.description, generous=False)
        }
        fitting = [
            i
            for i, item in enumerate(self.objects)
            if matches_description(item, entity.description, generous=self.generous)
        ]
        if entity.quantity is Quantity.SOME:
            yield from ((i,) for i in fitting)
            return
        for size in _sizes(entity, len(fitting)):
            for group in combinations(fitting, size):
                # A group is all objects of its kind; border cases may be in or out, and
                # "two circles are red" may be true of two among three.
                if sure <= set(group) or (self.loose and constrained and entity.quantity is Quantity.EXACTLY):
                    yield group

    def _met(self, constraint: DescriptionConstraint | RelationConstraint, chosen: tuple[Group, ...]) -> bool:
        subjects = chosen[constraint.subject]
        if isinstance(constraint, DescriptionConstraint):
            met = all(
                matches_description(self.objects[i], constraint.description, generous=self.generous) for i in subjects
            )
        elif constraint.relation is ObjectRelation.BETWEEN:
            ends = [j for other in constraint.others for j in chosen[other]]
            met = len(ends) == 2 and all(self._between(i, ends[0], ends[1]) for i in subjects)
        else:
            met = all(
                i != j and is_related(constraint.relation, self.objects[i], self.objects[j], generous=self.generous)
                for i in subjects
                for other in constraint.others
                for j in chosen[other]
            )
        return met is not constraint.negated

    def _between(self, subject: int, first: int, second: int) -> bool:
        if subject in (first, second):
            return False
        (x, y), (ax, ay), (bx, by) = (self.objects[i].centre for i in (subject, first, second))
        length = math.hypot(bx - ax, by - ay)
        along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length**2
        across = abs((x - ax) * (by - ay) - (y - ay) * (bx - ax)) / length
        widest, ends = BETWEEN_MAYBE if self.generous else BETWEEN_SURE
        return across <= widest and ends <= along <= 1 - ends


def _share_object(clause: LogicalClause, place: int, group: Group, other: int, other_group: Group) -> bool:
    """Return whether two entities share an object though they must not; only two definite ones may."""
    both_definite = {clause.entities[place].quantity, clause.entities[other].quantity} <= DEFINITE
    return not both_definite and not set(group).isdisjoint(other_group)


def _sizes(entity: NounPhraseEntity, available: int) -> range:
    """Return the numbers of objects that an entity can denote."""
    if entity.quantity is Quantity.THE:
        return range(1, min(1, available) + 1)
    if entity.number:
        return range(entity.number, entity.number + 1)
    return range(1 if entity.quantity is Quantity.EVERY else 2, available + 1)


def is_related(relation: ObjectRelation, a: SceneObject, b: SceneObject, *, generous: bool) -> bool:
    """Return whether ``a`` is in ``relation`` to ``b``; ``generous`` includes border cases."""
    if relation in _DIRECTIONS:
        axis, sign = _DIRECTIONS[relation]
        return round(sign * (a.centre[axis] - b.centre[axis]), _DIGITS) >= AXIS_MARGIN
    if relation in {ObjectRelation.LARGER, ObjectRelation.SMALLER, ObjectRelation.SAME_SIZE}:
        return _size_related(relation, round(a.area / b.area, _DIGITS), generous=generous)
    if relation is ObjectRelation.SAME_COLOUR:
        return a.colour == b.colour if a.colour and b.colour else generous
    if relation is ObjectRelation.SAME_SHAPE:
        return a.shape == b.shape
    return _distance_related(relation, a, b, generous=generous)


_DIRECTIONS: dict[ObjectRelation, tuple[int, int]] = {
    ObjectRelation.LEFT: (0, -1),
    ObjectRelation.RIGHT: (0, 1),
    ObjectRelation.ABOVE: (1, -1),
    ObjectRelation.BELOW: (1, 1),
}


def _size_related(relation: ObjectRelation, ratio: float, *, generous: bool) -> bool:
    if relation is ObjectRelation.SAME_SIZE:
        return max(ratio, 1 / ratio) <= (SAME_SIZE_MAYBE if generous else SAME_SIZE_SURE)
    wanted = LARGER_MAYBE if generous else LARGER_SURE
    return (ratio if relation is ObjectRelation.LARGER else round(1 / ratio, _DIGITS)) >= wanted


def _distance_related(relation: ObjectRelation, a: SceneObject, b: SceneObject, *, generous: bool) -> bool:
    gap = round(box_distance(a, b), _DIGITS)
    if relation is ObjectRelation.NEAR:
        return gap <= (NEAR_MAYBE if generous else NEAR_SURE)
    if relation is ObjectRelation.FAR:
        return gap >= (FAR_MAYBE if generous else FAR_SURE)
    if relation is ObjectRelation.TOUCHING:
        return generous and gap <= TOUCH_MAYBE
    if relation is ObjectRelation.ON_TOP:
        return generous and gap <= NEAR_MAYBE and is_related(ObjectRelation.ABOVE, a, b, generous=True)
    return False  # WITHIN: objects never overlap
