"""Facts about positions, sizes and numbers in the image that follow from boxes.

A *thing* is a label with exactly one box, without crowd, that no caption uses in the plural, so "the dog" is
unambiguous; a *group* is a label with two to nine boxes whose number the captions confirm ("the two dogs").

Margins, as fractions of the image's width or height:

- left of (above) another: the boxes do not overlap on that axis, the centres are at least 0.18 apart on it, and at
  least twice as far as on the other axis; for groups, this holds for each member;
- in a half: the whole box is; in both: it extends at least 0.05 into each. For counts in a half the box ends 0.02
  before the middle, and a box in neither half extends 0.02 beyond it on both sides;
- more or less than a part of the height or width: by 0.03;
- furthest to a side: the centre is 0.1 ahead of the next one's, and both edges are ahead;
- larger: at least twice the area of the box. Taking up more of the height or width: by 0.1, only for two things of
  which neither is larger;
- reaching an edge: within 0.004; not reaching it: 0.1 or more away. One of several reaches an edge if any box does;
  none does if every box is 0.1 away;
- nearer to one edge than to the opposite one: by 0.1, only for things that lie in both halves and reach neither edge.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations

from pairwright.datasets.records import Box
from pairwright.generators.captions.image_words import plural_of
from pairwright.generators.captions.phrases import NUMBER_WORDS
from pairwright.generators.conversations import question_templates
from pairwright.generators.conversations.facts import Fact, label_fields

MIN_SEPARATION = 0.18
MIN_AREA_RATIO = 2.0
MIN_LEAD = 0.1
AT_EDGE, MIN_EDGE_DISTANCE = 0.004, 0.1
MAX_LEVEL_OFFSET = 0.04  # centres this close on an axis count as level
HALF = 0.5
MIN_CROSSING = 0.05
PART_MARGIN = 0.03
MIN_LARGEST_RATIO = 1.5  # area of the largest to the second largest of several of a kind
MAX_PAIRS = 30
MAX_TRIPLES = 3

CONVERSE = {"to the left of": "to the right of", "above": "below"}
CONVERSE |= {after: before for before, after in CONVERSE.items()}

_PARTS = {"a fifth": 0.2, "a quarter": 0.25, "a third": 1 / 3, "half": 0.5, "two thirds": 2 / 3, "three quarters": 0.75}

Boxes = Mapping[str, tuple[Box, ...]]


def box_facts(
    things: Sequence[str], groups: Sequence[str], marked: Sequence[str], boxes: Boxes, rng: random.Random
) -> list[list[Fact]]:
    """Return facts about positions and sizes, one list for each kind of question.

    Args:
        things: labels with exactly one instance.
        groups: labels with as many instances as boxes.
        marked: labels with several boxes and no crowd, whether or not the captions confirm the number.
        boxes: boxes by label.
        rng: draws which of several directions is asked about.
    """
    return [
        list(_position_facts([*things, *groups], boxes, rng)),
        list(_half_facts([*things, *groups], boxes)),
        list(_size_facts(things, boxes, rng)),
        list(_extent_facts(things, boxes, rng)),
        list(_edge_facts(things, boxes, rng)),
        list(_extreme_facts(things, boxes, rng)),
        list(_two_of_a_kind_facts(groups, boxes, rng)),
        list(_any_of_several_facts(things, marked, boxes, rng)),
        list(_largest(marked, boxes)),
    ]


def relative_position(one: Box, other: Box) -> str:
    """Return the position of ``one`` relative to ``other`` ("to the left of", ...); empty if it is not clear."""
    across, down = _between(one, other)
    if abs(across) >= MIN_SEPARATION and abs(across) >= 2 * abs(down) and (one.x2 <= other.x1 or other.x2 <= one.x1):
        return "to the left of" if across < 0 else "to the right of"
    if abs(down) >= MIN_SEPARATION and abs(down) >= 2 * abs(across) and (one.y2 <= other.y1 or other.y2 <= one.y1):
        return "above" if down < 0 else "below"
    return ""


def _between(one: Box, other: Box) -> tuple[float, float]:
    return (one.x1 + one.x2 - other.x1 - other.x2) / 2, (one.y1 + one.y2 - other.y1 - other.y2) / 2


def area(box: Box) -> float:
    """Return the area of a box as a fraction of the image, 0-1."""
    return (box.x2 - box.x1) * (box.y2 - box.y1)


def edge_distances(box: Box) -> dict[str, float]:
    """Return the distance of a box from each edge of the image, 0-1."""
    return {"left": box.x1, "top": box.y1, "right": 1 - box.x2, "bottom": 1 - box.y2}


def _label_phrase(label: str, boxes: Boxes) -> tuple[str, str]:
    """Return the phrase for a thing or group that follows "the", and its verb."""
    number = len(boxes[label])
    return (label, "is") if number == 1 else (f"{NUMBER_WORDS[number - 1]} {plural_of(label)}", "are")


def _position_facts(labels: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    for label, against in _some_pairs(list(permutations(labels, 2)), rng):
        found = {relative_position(one, other) for one in boxes[label] for other in boxes[against]}
        relation = found.pop() if len(found) == 1 else ""
        if not relation:
            continue
        (thing, verb), (other, other_verb) = _label_phrase(label, boxes), _label_phrase(against, boxes)
        fields = {"thing": thing, "other": other, "verb": verb, "answer_relation": relation}
        draw = rng.random()
        if draw < 0.5 and verb == other_verb == "is":
            wrong = _wrong_positions(boxes[label][0], boxes[against][0], relation)
            short = "{answer_relation} the {other}"
            yield Fact(
                question_templates.WHERE,
                question_templates.PLACE,
                fields,
                short=short,
                wrong=wrong,
                about=(label, against),
            )
            continue
        asked = relation if rng.random() < 0.5 else CONVERSE[relation]
        says = "yes" if asked == relation else "no"
        answer = question_templates.YES_PLACE if asked == relation else question_templates.NO_PLACE
        fields |= {"asked_relation": asked, "Verb": verb.capitalize()}
        yield Fact(question_templates.IS_IT_THERE, answer, fields, says, about=(label, against))


def _wrong_positions(one: Box, other: Box, relation: str) -> tuple[str, ...]:
    """Return the three other positions; empty unless the two are level on the other axis, so that all are wrong."""
    across, down = _between(one, other)
    if abs(down if relation.startswith("to the") else across) > MAX_LEVEL_OFFSET:
        return ()
    return tuple(f"{place} the {{other}}" for place in CONVERSE if place != relation)


def _half_facts(labels: Sequence[str], boxes: Boxes) -> Iterator[Fact]:
    for label in labels:
        name, verb = _label_phrase(label, boxes)
        for halves, low, high, wordings in (
            (
                ("left", "right"),
                min(box.x1 for box in boxes[label]),
                max(box.x2 for box in boxes[label]),
                question_templates.LEFT_OR_RIGHT,
            ),
            (
                ("upper", "lower"),
                min(box.y1 for box in boxes[label]),
                max(box.y2 for box in boxes[label]),
                question_templates.UPPER_OR_LOWER,
            ),
        ):
            fields = {"thing": name, "verb": verb, "Verb": verb.capitalize(), "first": halves[0], "second": halves[1]}
            if high <= HALF or low >= HALF:
                fields["half"] = halves[0] if high <= HALF else halves[1]
                yield Fact(wordings, question_templates.IN_HALF, fields, short="{half}", about=(label,))
            elif low <= HALF - MIN_CROSSING and high >= HALF + MIN_CROSSING:
                answer = question_templates.ACROSS_HALVES if verb == "is" else question_templates.IN_BOTH_HALVES
                yield Fact(wordings, answer, fields, short="both", about=(label,))


def _extent_facts(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    """Ask how much of the height or width a thing takes up, if a named part is clearly below and one clearly above."""
    for thing in things:
        box = boxes[thing][0]
        for extent, size in (("height", box.y2 - box.y1), ("width", box.x2 - box.x1)):
            under = [name for name, part in _PARTS.items() if size >= part + PART_MARGIN]
            over = [name for name, part in _PARTS.items() if size <= part - PART_MARGIN]
            if not under or not over:
                continue
            yes = rng.random() < 0.5
            fields = {"thing": thing, "part": under[-1] if yes else over[0], "extent": extent}
            answer = question_templates.TAKES_UP if yes else question_templates.TAKES_UP_LESS
            yield Fact(question_templates.DOES_IT_TAKE_UP, answer, fields, "yes" if yes else "no", about=(thing,))


def _size_facts(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    for thing, other in _some_pairs(list(combinations(things, 2)), rng):
        first, second = (area(boxes[label][0]) for label in (thing, other))
        if min(first, second) <= 0 or max(first, second) < MIN_AREA_RATIO * min(first, second):
            continue
        larger, smaller = (thing, other) if first > second else (other, thing)
        if rng.random() < 0.5:
            thing, other = other, thing  # noqa: PLW2901 - the order must not give a hint
        fields = {"thing": thing, "other": other, "larger": larger, "smaller": smaller}
        if rng.random() < 0.5:
            yield Fact(
                question_templates.WHICH_LARGER,
                question_templates.LARGER,
                fields,
                short="the {larger}",
                about=(thing, other),
            )
        else:
            yield Fact(
                question_templates.WHICH_SMALLER,
                question_templates.SMALLER,
                fields,
                short="the {smaller}",
                about=(thing, other),
            )


def _edge_facts(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    """Ask about things that reach one edge and not another; for other things every answer would be no."""
    for thing in things:
        room = edge_distances(boxes[thing][0])
        reached = [edge for edge, gap in room.items() if gap <= AT_EDGE]
        clear = [edge for edge, gap in room.items() if gap >= MIN_EDGE_DISTANCE]
        if not reached or not clear:
            continue
        yes = rng.random() < 0.5
        fields = {"thing": thing, "edge": rng.choice(reached if yes else clear)}
        answer = question_templates.AT_EDGE if yes else question_templates.NOT_AT_EDGE
        yield Fact(question_templates.IS_IT_AT_EDGE, answer, fields, "yes" if yes else "no", about=(thing,))


def _extreme_facts(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    threes = list(combinations(things, 3))
    for three in rng.sample(threes, min(MAX_TRIPLES, len(threes))):
        fields = dict(zip(("one", "two", "three"), rng.sample(three, 3), strict=True))
        for side, sign, edges in (("left", 1, ("x1", "x2")), ("right", -1, ("x1", "x2"))):
            first = min(three, key=lambda label: sign * sum(getattr(boxes[label][0], edge) for edge in edges))
            rest = [boxes[label][0] for label in three if label != first]
            if all(_is_ahead(boxes[first][0], other, sign, edges) for other in rest):
                furthest = fields | {"first": first, "side": side}
                yield Fact(
                    question_templates.FURTHEST,
                    question_templates.IS_FURTHEST,
                    furthest,
                    short="the {first}",
                    about=three,
                )
        largest = max(three, key=lambda label: area(boxes[label][0]))
        if all(area(boxes[largest][0]) >= MIN_AREA_RATIO * area(boxes[o][0]) for o in three if o != largest):
            yield Fact(
                question_templates.LARGEST,
                question_templates.IS_LARGEST,
                fields | {"first": largest},
                short="the {first}",
                about=three,
            )


def _is_ahead(one: Box, other: Box, sign: int, edges: tuple[str, str]) -> bool:
    gaps = [sign * (getattr(other, edge) - getattr(one, edge)) for edge in edges]
    return bool(min(gaps) > 0 and sum(gaps) / 2 >= MIN_LEAD)


def _two_of_a_kind_facts(groups: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    """Ask how two of a kind are arranged, and which of them is larger."""
    for label in groups:
        if len(boxes[label]) != 2:
            continue
        one, other = boxes[label]
        relation = relative_position(one, other)
        fields = {"nouns": plural_of(label), "noun": label}
        if not relation:
            continue
        across = relation.startswith("to the")
        arranged = "side by side" if across else "one above the other"
        yield Fact(
            question_templates.ARRANGED,
            question_templates.IS_ARRANGED,
            fields | {"arranged": arranged},
            short="{arranged}",
            about=(label,),
        )
        first, last = (one, other) if relation in {"to the left of", "above"} else (other, one)
        sides = ("left", "right") if across else ("upper", "lower")
        small, large = sorted((area(first), area(last)))
        if small > 0 and large >= MIN_AREA_RATIO * small:
            larger, smaller = sides if area(first) > area(last) else sides[::-1]
            side = larger if (bigger := rng.random() < 0.5) else smaller
            fields |= {"first": sides[0], "last": sides[1], "side": side, "size": "larger" if bigger else "smaller"}
            yield Fact(
                question_templates.WHICH_TWIN,
                question_templates.THIS_TWIN,
                fields,
                short="the {side} one",
                about=(label,),
            )


def _any_of_several_facts(
    things: Sequence[str], several: Sequence[str], boxes: Boxes, rng: random.Random
) -> Iterator[Fact]:
    """Ask whether one of several is in a position that some but not all have, or that certainly none has."""
    pairs = [(label, thing) for label in several for thing in things if len(boxes[label]) > 1]
    for label, thing in rng.sample(pairs, min(len(pairs), MAX_PAIRS)):
        other = boxes[thing][0]
        places = [relative_position(box, other) for box in boxes[label]]
        found = sorted(set(places) - {""})
        if not found or len(set(places)) == 1:
            continue
        none = [place for place in CONVERSE if all(_is_opposite(place, box, other) for box in boxes[label])]
        yes = rng.random() < 0.5
        if not yes and not none:
            continue
        fields = label_fields(label) | {"relation": rng.choice(found if yes else none), "other": thing}
        answer = question_templates.ONE_IS_THERE if yes else question_templates.NONE_IS_THERE
        yield Fact(question_templates.IS_ONE_THERE, answer, fields, "yes" if yes else "no", about=(label, thing))


def _is_opposite(place: str, one: Box, other: Box) -> bool:
    """Return whether ``one`` is certainly not at ``place``: its centre is beyond that of ``other`` on the other side."""
    across, down = _between(one, other)
    sign = -1 if place in {"to the left of", "above"} else 1
    return sign * (across if place.startswith("to the") else down) <= -MIN_CROSSING


def _largest(several: Sequence[str], boxes: Boxes) -> Iterator[Fact]:
    for label in several:
        ordered = sorted(boxes[label], key=area, reverse=True)
        if label == "person" or len(ordered) < 3 or area(ordered[0]) < MIN_LARGEST_RATIO * area(ordered[1]):
            continue
        box = ordered[0]
        for first, second, low, high in (("left", "right", box.x1, box.x2), ("upper", "lower", box.y1, box.y2)):
            if high <= HALF or low >= HALF:
                half = first if high <= HALF else second
                fields = {"nouns": plural_of(label), "first": first, "second": second, "half": half}
                wordings, answer = question_templates.WHERE_IS_LARGEST, question_templates.LARGEST_IS_IN
                yield Fact(wordings, answer, fields, short="{half}", about=(label,))


def _some_pairs(pairs: list[tuple[str, str]], rng: random.Random) -> list[tuple[str, str]]:
    """Return each unordered pair once, in random order and direction; at most `MAX_PAIRS`."""
    rng.shuffle(pairs)
    seen: dict[frozenset[str], tuple[str, str]] = {}
    for pair in pairs:
        seen.setdefault(frozenset(pair), pair)
    return list(seen.values())[:MAX_PAIRS]


MIN_DISTANCE_DIFFERENCE = 0.1
MIN_EXTENT_DIFFERENCE = 0.1
MIDDLE_MARGIN = 0.02

_AXES = (("left", "right", "left", "right"), ("upper", "lower", "top", "bottom"))  # halves, edges


def measurement_facts(
    things: Sequence[str], groups: Sequence[str], boxes: Boxes, rng: random.Random
) -> list[list[Fact]]:
    """Return facts about nearer edges, counts in halves, extents and edges; arguments as in `box_facts`."""
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
    """Ask how many of several are in a half, if it is clear for each box and not the same for all."""
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
    """Return 0 or 1 for a half, 2 for a box that lies in both; None if it is not clear."""
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
