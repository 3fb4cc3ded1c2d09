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
from pairwright.generators.facts import questions
from pairwright.generators.facts.box_facts import (
    AT_EDGE,
    CLEAR_OF_EDGE,
    CLEARLY_LARGER,
    HALF,
    MOST_PAIRS,
    Boxes,
    area,
    room_of,
)
from pairwright.generators.facts.fact import Fact

NEARER_BY = 0.1
MORE_BY = 0.1
BEYOND_MIDDLE = 0.02

_AXES = (("left", "right", "left", "right"), ("upper", "lower", "top", "bottom"))  # halves, edges


def measure_facts(things: Sequence[str], groups: Sequence[str], boxes: Boxes, rng: random.Random) -> list[list[Fact]]:
    """Return what can be asked, one list a kind; arguments as of `box_facts.box_facts`."""
    return [
        list(_nearer(things, boxes)),
        list(_in_half(groups, boxes, rng)),
        list(_extents(things, boxes, rng)),
        list(_any_at_edge(groups, boxes, rng)),
    ]


def _span(box: Box, axis: int) -> tuple[float, float]:
    return (box.x1, box.x2) if axis == 0 else (box.y1, box.y2)


def _nearer(things: Sequence[str], boxes: Boxes) -> Iterator[Fact]:
    for thing in things:
        for axis, (*_, first, second) in enumerate(_AXES):
            low, high = _span(boxes[thing][0], axis)
            gaps = (low, 1 - high)
            if not low < HALF < high or min(gaps) <= AT_EDGE or abs(gaps[0] - gaps[1]) < NEARER_BY:
                continue
            side = first if gaps[0] < gaps[1] else second
            fields = {"thing": thing, "first": first, "second": second, "side": side}
            yield Fact(questions.NEARER_EDGE, questions.IS_NEARER, fields, short="{side}", about=(thing,))


def _in_half(groups: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
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
            yield Fact(questions.HOW_MANY_IN_HALF, questions.ARE_IN_HALF, fields, short="{number}", about=(label,))


def _half_of(low: float, high: float) -> int | None:
    """Return 0 or 1 for a half, 2 for what lies in both; None where that is not clear."""
    if high <= HALF - BEYOND_MIDDLE:
        return 0
    if low >= HALF + BEYOND_MIDDLE:
        return 1
    return 2 if low <= HALF - BEYOND_MIDDLE and high >= HALF + BEYOND_MIDDLE else None


def _extents(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    pairs = list(combinations(things, 2))
    for two in rng.sample(pairs, min(len(pairs), MOST_PAIRS)):
        sizes = sorted(area(boxes[label][0]) for label in two)
        if sizes[1] >= CLEARLY_LARGER * sizes[0]:
            continue
        for axis, extent in rng.sample([(0, "width"), (1, "height")], 2):
            one, other = (high - low for low, high in (_span(boxes[label][0], axis) for label in two))
            if abs(one - other) < MORE_BY:
                continue
            thing, against = rng.sample(two, 2)
            fields = {"thing": thing, "other": against, "extent": extent, "first": two[0] if one > other else two[1]}
            yield Fact(questions.WHICH_EXTENDS, questions.EXTENDS_MORE, fields, short="the {first}", about=two)
            break


def _any_at_edge(groups: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    for label in groups:
        rooms = [room_of(box) for box in boxes[label]]
        least = {edge: min(room[edge] for room in rooms) for edge in rooms[0]}
        reached = [edge for edge, gap in least.items() if gap <= AT_EDGE]
        clear = [edge for edge, gap in least.items() if gap >= CLEAR_OF_EDGE]
        if not reached or not clear:
            continue
        yes = rng.random() < 0.5
        fields = {"nouns": plural_of(label), "edge": rng.choice(reached if yes else clear)}
        answer = questions.ONE_AT_EDGE if yes else questions.NONE_AT_EDGE
        yield Fact(questions.IS_ANY_AT_EDGE, answer, fields, "yes" if yes else "no", about=(label,))
