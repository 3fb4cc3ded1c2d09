"""What boxes prove besides places and sizes: which edge is nearer, how many are in a half, what is taller or wider.

Only what `box_facts` does not say in other words. Stated margins, in parts of the picture:

- nearer to one edge than to the opposite one: by 0.1; only of a thing that lies in both halves and reaches neither edge;
- entirely in a half: the box ends 0.02 before the middle; in neither: it goes 0.02 beyond it on both sides;
- taking up more of the height or width: by 0.1; only of two of which none is clearly larger;
- one of several reaches an edge: a box does, to 0.004; none does: each is clear of it by 0.1.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import combinations

from pairwright.datasets.records import Box
from pairwright.generators.captions.context import plural_of
from pairwright.generators.captions.phrases import NUMBER_WORDS
from pairwright.generators.conversations import question_templates
from pairwright.generators.conversations.box_facts import (
    AT_EDGE,
    HALF,
    MAX_PAIRS,
    MIN_AREA_RATIO,
    MIN_EDGE_DISTANCE,
    Boxes,
    area,
    edge_distances,
)
from pairwright.generators.conversations.facts import Fact

MIN_DISTANCE_DIFFERENCE = 0.1
MIN_EXTENT_DIFFERENCE = 0.1
MIDDLE_MARGIN = 0.02

_AXES = (("left", "right", "left", "right"), ("upper", "lower", "top", "bottom"))  # halves, edges


def measurement_facts(
    things: Sequence[str], groups: Sequence[str], boxes: Boxes, rng: random.Random
) -> list[list[Fact]]:
    """Return what can be asked, one list a kind; arguments as of `box_facts.box_facts`."""
    return [
        list(_nearer_edge_facts(things, boxes)),
        list(_count_in_half_facts(groups, boxes, rng)),
        list(_extent_comparison_facts(things, boxes, rng)),
        list(_any_at_edge_facts(groups, boxes, rng)),
    ]


def _span(box: Box, axis: int) -> tuple[float, float]:
    return (box.x1, box.x2) if axis == 0 else (box.y1, box.y2)


def _nearer_edge_facts(things: Sequence[str], boxes: Boxes) -> Iterator[Fact]:
    for thing in things:
        for axis, (*_, first, second) in enumerate(_AXES):
            low, high = _span(boxes[thing][0], axis)
            gaps = (low, 1 - high)
            if not low < HALF < high or min(gaps) <= AT_EDGE or abs(gaps[0] - gaps[1]) < MIN_DISTANCE_DIFFERENCE:
                continue
            side = first if gaps[0] < gaps[1] else second
            fields = {"thing": thing, "first": first, "second": second, "side": side}
            yield Fact(
                question_templates.NEARER_EDGE, question_templates.IS_NEARER, fields, short="{side}", about=(thing,)
            )


def _count_in_half_facts(groups: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    """Ask how many of several are in a half, where it is clear of each and not the same of all."""
    for label in groups:
        for axis, (first, second, *_) in enumerate(_AXES):
            found = [_half_of(*_span(box, axis)) for box in boxes[label]]
            if None in found or len(set(found)) == 1:
                continue
            half = rng.choice((0, 1))
            count, size = found.count(half), len(found)
            fields = {
                "nouns": plural_of(label),
                "size": NUMBER_WORDS[size - 1],
                "half": (first, second)[half],
                "count": NUMBER_WORDS[count - 1].capitalize() if count else "Neither" if size == 2 else "None",
                "verb": "are" if count > 1 else "is",
                "number": str(count),
            }
            yield Fact(
                question_templates.HOW_MANY_IN_HALF,
                question_templates.ARE_IN_HALF,
                fields,
                short="{number}",
                about=(label,),
            )


def _half_of(low: float, high: float) -> int | None:
    """Return 0 or 1 for a half, 2 for what lies in both; None where that is not clear."""
    if high <= HALF - MIDDLE_MARGIN:
        return 0
    if low >= HALF + MIDDLE_MARGIN:
        return 1
    return 2 if low <= HALF - MIDDLE_MARGIN and high >= HALF + MIDDLE_MARGIN else None


def _extent_comparison_facts(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    pairs = list(combinations(things, 2))
    for two in rng.sample(pairs, min(len(pairs), MAX_PAIRS)):
        sizes = sorted(area(boxes[label][0]) for label in two)
        if sizes[1] >= MIN_AREA_RATIO * sizes[0]:
            continue
        for axis, extent in rng.sample([(0, "width"), (1, "height")], 2):
            one, other = (high - low for low, high in (_span(boxes[label][0], axis) for label in two))
            if abs(one - other) < MIN_EXTENT_DIFFERENCE:
                continue
            thing, against = rng.sample(two, 2)
            fields = {"thing": thing, "other": against, "extent": extent, "first": two[0] if one > other else two[1]}
            yield Fact(
                question_templates.WHICH_EXTENDS,
                question_templates.EXTENDS_MORE,
                fields,
                short="the {first}",
                about=two,
            )
            break


def _any_at_edge_facts(groups: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    for label in groups:
        rooms = [edge_distances(box) for box in boxes[label]]
        least = {edge: min(room[edge] for room in rooms) for edge in rooms[0]}
        reached = [edge for edge, gap in least.items() if gap <= AT_EDGE]
        clear = [edge for edge, gap in least.items() if gap >= MIN_EDGE_DISTANCE]
        if not reached or not clear:
            continue
        yes = rng.random() < 0.5
        fields = {"nouns": plural_of(label), "edge": rng.choice(reached if yes else clear)}
        answer = question_templates.ONE_AT_EDGE if yes else question_templates.NONE_AT_EDGE
        yield Fact(question_templates.IS_ANY_AT_EDGE, answer, fields, "yes" if yes else "no", about=(label,))
