"""What boxes prove of where things are and how large they are, in the picture.

A *thing* is a label that has exactly one box, no crowd, and that no caption speaks of in the plural, so "the dog" is
clear; a *group* is a label with two to nine boxes that the captions bear out ("the two dogs").

Stated margins, in parts of the picture:

- one is left of (above) the other when their boxes do not overlap on that axis, the centres are at least 0.18 apart on
  it, and that is at least twice their distance on the other axis; of groups, when this holds for each member;
- in a half: all of the box is; in both: it reaches at least 0.05 into either. More or less than a part of the height or
  width: the box is so by 0.03. Furthest to a side: the centre is 0.1 ahead of the next one's, and both edges are ahead;
- larger: at least twice the area of the box;
- reaching an edge: the box does, to 0.004; clear of it: by 0.1 or more.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations

from pairwright.datasets.records import Box
from pairwright.generators.captions.context import plural_of
from pairwright.generators.captions.phrases import NUMBER_WORDS
from pairwright.generators.facts import questions
from pairwright.generators.facts.fact import Fact, names

CLEARLY_APART = 0.18
CLEARLY_LARGER = 2.0
CLEARLY_AHEAD = 0.1
AT_EDGE, CLEAR_OF_EDGE = 0.004, 0.1
ON_A_LINE = 0.04  # so little apart on an axis is neither before nor behind on it
HALF = 0.5
CLEARLY_ACROSS = 0.05
PART_MARGIN = 0.03
LARGEST_BY = 1.5  # of several of a kind
MOST_PAIRS = 30
MOST_THREES = 3

CONVERSE = {"to the left of": "to the right of", "above": "below"}
CONVERSE |= {after: before for before, after in CONVERSE.items()}

_PARTS = {"a fifth": 0.2, "a quarter": 0.25, "a third": 1 / 3, "half": 0.5, "two thirds": 2 / 3, "three quarters": 0.75}

Boxes = Mapping[str, tuple[Box, ...]]


def box_facts(
    things: Sequence[str], groups: Sequence[str], marked: Sequence[str], boxes: Boxes, rng: random.Random
) -> list[list[Fact]]:
    """Return what can be asked, one list a kind.

    Args:
        things: labels of which there is one.
        groups: labels of which there are as many as boxes.
        marked: labels with several boxes, counted or not, of which there is no crowd.
        boxes: by label.
        rng: draws which of several directions is asked about.
    """
    return [
        list(_places([*things, *groups], boxes, rng)),
        list(_halves([*things, *groups], boxes)),
        list(_sizes(things, boxes, rng)),
        list(_shares(things, boxes, rng)),
        list(_edges(things, boxes, rng)),
        list(_extremes(things, boxes, rng)),
        list(_twins(groups, boxes, rng)),
        list(_some(things, marked, boxes, rng)),
        list(_largest(marked, boxes)),
    ]


def place_of(one: Box, other: Box) -> str:
    """Return where ``one`` clearly is as seen from ``other``: "to the left of", ..., or an empty string."""
    across, down = _between(one, other)
    if abs(across) >= CLEARLY_APART and abs(across) >= 2 * abs(down) and (one.x2 <= other.x1 or other.x2 <= one.x1):
        return "to the left of" if across < 0 else "to the right of"
    if abs(down) >= CLEARLY_APART and abs(down) >= 2 * abs(across) and (one.y2 <= other.y1 or other.y2 <= one.y1):
        return "above" if down < 0 else "below"
    return ""


def _between(one: Box, other: Box) -> tuple[float, float]:
    return (one.x1 + one.x2 - other.x1 - other.x2) / 2, (one.y1 + one.y2 - other.y1 - other.y2) / 2


def area(box: Box) -> float:
    """Return the share of the picture that a box takes up."""
    return (box.x2 - box.x1) * (box.y2 - box.y1)


def room_of(box: Box) -> dict[str, float]:
    """Return how far a box is from each edge of the picture."""
    return {"left": box.x1, "top": box.y1, "right": 1 - box.x2, "bottom": 1 - box.y2}


def _named(label: str, boxes: Boxes) -> tuple[str, str]:
    """Return what a thing or group is called behind "the", and its verb."""
    number = len(boxes[label])
    return (label, "is") if number == 1 else (f"{NUMBER_WORDS[number - 1]} {plural_of(label)}", "are")


def _places(labels: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    for label, against in _some_pairs(list(permutations(labels, 2)), rng):
        found = {place_of(one, other) for one in boxes[label] for other in boxes[against]}
        relation = found.pop() if len(found) == 1 else ""
        if not relation:
            continue
        (thing, verb), (other, other_verb) = _named(label, boxes), _named(against, boxes)
        fields = {"thing": thing, "other": other, "verb": verb, "answer_relation": relation}
        draw = rng.random()
        if draw < 0.5 and verb == other_verb == "is":
            wrong = _other_places(boxes[label][0], boxes[against][0], relation)
            short = "{answer_relation} the {other}"
            yield Fact(questions.WHERE, questions.PLACE, fields, short=short, wrong=wrong, about=(label, against))
            continue
        asked = relation if rng.random() < 0.5 else CONVERSE[relation]
        says = "yes" if asked == relation else "no"
        answer = questions.YES_PLACE if asked == relation else questions.NO_PLACE
        fields |= {"asked_relation": asked, "Verb": verb.capitalize()}
        yield Fact(questions.IS_IT_THERE, answer, fields, says, about=(label, against))


def _other_places(one: Box, other: Box, relation: str) -> tuple[str, ...]:
    """Return the three other places where they are surely wrong: the two are about level on the other axis."""
    across, down = _between(one, other)
    if abs(down if relation.startswith("to the") else across) > ON_A_LINE:
        return ()
    return tuple(f"{place} the {{other}}" for place in CONVERSE if place != relation)


def _halves(labels: Sequence[str], boxes: Boxes) -> Iterator[Fact]:
    for label in labels:
        name, verb = _named(label, boxes)
        for halves, low, high, wordings in (
            (
                ("left", "right"),
                min(box.x1 for box in boxes[label]),
                max(box.x2 for box in boxes[label]),
                questions.LEFT_OR_RIGHT,
            ),
            (
                ("upper", "lower"),
                min(box.y1 for box in boxes[label]),
                max(box.y2 for box in boxes[label]),
                questions.UPPER_OR_LOWER,
            ),
        ):
            fields = {"thing": name, "verb": verb, "Verb": verb.capitalize(), "first": halves[0], "second": halves[1]}
            if high <= HALF or low >= HALF:
                fields["half"] = halves[0] if high <= HALF else halves[1]
                yield Fact(wordings, questions.IN_HALF, fields, short="{half}", about=(label,))
            elif low <= HALF - CLEARLY_ACROSS and high >= HALF + CLEARLY_ACROSS:
                answer = questions.ACROSS_HALVES if verb == "is" else questions.IN_BOTH_HALVES
                yield Fact(wordings, answer, fields, short="both", about=(label,))


def _shares(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    """Ask how much of the height or width a thing takes up, where a part can be named on either side of it."""
    for thing in things:
        box = boxes[thing][0]
        for extent, size in (("height", box.y2 - box.y1), ("width", box.x2 - box.x1)):
            under = [name for name, part in _PARTS.items() if size >= part + PART_MARGIN]
            over = [name for name, part in _PARTS.items() if size <= part - PART_MARGIN]
            if not under or not over:
                continue
            yes = rng.random() < 0.5
            fields = {"thing": thing, "part": under[-1] if yes else over[0], "extent": extent}
            answer = questions.TAKES_UP if yes else questions.TAKES_UP_LESS
            yield Fact(questions.DOES_IT_TAKE_UP, answer, fields, "yes" if yes else "no", about=(thing,))


def _sizes(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    for thing, other in _some_pairs(list(combinations(things, 2)), rng):
        first, second = (area(boxes[label][0]) for label in (thing, other))
        if min(first, second) <= 0 or max(first, second) < CLEARLY_LARGER * min(first, second):
            continue
        larger, smaller = (thing, other) if first > second else (other, thing)
        if rng.random() < 0.5:
            thing, other = other, thing  # noqa: PLW2901 - which one is named first tells nothing
        fields = {"thing": thing, "other": other, "larger": larger, "smaller": smaller}
        if rng.random() < 0.5:
            yield Fact(questions.WHICH_LARGER, questions.LARGER, fields, short="the {larger}", about=(thing, other))
        else:
            yield Fact(questions.WHICH_SMALLER, questions.SMALLER, fields, short="the {smaller}", about=(thing, other))


def _edges(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    """Ask of a thing that is cut off on one side and not on another; of other things every answer would be no."""
    for thing in things:
        room = room_of(boxes[thing][0])
        reached = [edge for edge, gap in room.items() if gap <= AT_EDGE]
        clear = [edge for edge, gap in room.items() if gap >= CLEAR_OF_EDGE]
        if not reached or not clear:
            continue
        yes = rng.random() < 0.5
        fields = {"thing": thing, "edge": rng.choice(reached if yes else clear)}
        answer = questions.AT_EDGE if yes else questions.NOT_AT_EDGE
        yield Fact(questions.IS_IT_AT_EDGE, answer, fields, "yes" if yes else "no", about=(thing,))


def _extremes(things: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    threes = list(combinations(things, 3))
    for three in rng.sample(threes, min(MOST_THREES, len(threes))):
        fields = dict(zip(("one", "two", "three"), rng.sample(three, 3), strict=True))
        for side, sign, edges in (("left", 1, ("x1", "x2")), ("right", -1, ("x1", "x2"))):
            first = min(three, key=lambda label: sign * sum(getattr(boxes[label][0], edge) for edge in edges))
            rest = [boxes[label][0] for label in three if label != first]
            if all(_is_ahead(boxes[first][0], other, sign, edges) for other in rest):
                told = fields | {"first": first, "side": side}
                yield Fact(questions.FURTHEST, questions.IS_FURTHEST, told, short="the {first}", about=three)
        largest = max(three, key=lambda label: area(boxes[label][0]))
        if all(area(boxes[largest][0]) >= CLEARLY_LARGER * area(boxes[o][0]) for o in three if o != largest):
            told = fields | {"first": largest}
            yield Fact(questions.LARGEST, questions.IS_LARGEST, told, short="the {first}", about=three)


def _is_ahead(one: Box, other: Box, sign: int, edges: tuple[str, str]) -> bool:
    gaps = [sign * (getattr(other, edge) - getattr(one, edge)) for edge in edges]
    return bool(min(gaps) > 0 and sum(gaps) / 2 >= CLEARLY_AHEAD)


def _twins(groups: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    """Ask how two of a kind stand to each other, and which of them is larger."""
    for label in groups:
        if len(boxes[label]) != 2:
            continue
        one, other = boxes[label]
        relation = place_of(one, other)
        fields = {"nouns": plural_of(label), "noun": label}
        if not relation:
            continue
        across = relation.startswith("to the")
        arranged = "side by side" if across else "one above the other"
        yield Fact(
            questions.ARRANGED,
            questions.IS_ARRANGED,
            fields | {"arranged": arranged},
            short="{arranged}",
            about=(label,),
        )
        first, last = (one, other) if relation in {"to the left of", "above"} else (other, one)
        sides = ("left", "right") if across else ("upper", "lower")
        small, large = sorted((area(first), area(last)))
        if small > 0 and large >= CLEARLY_LARGER * small:
            larger, smaller = sides if area(first) > area(last) else sides[::-1]
            side = larger if (bigger := rng.random() < 0.5) else smaller
            fields |= {"first": sides[0], "last": sides[1], "side": side, "size": "larger" if bigger else "smaller"}
            yield Fact(questions.WHICH_TWIN, questions.THIS_TWIN, fields, short="the {side} one", about=(label,))


def _some(things: Sequence[str], several: Sequence[str], boxes: Boxes, rng: random.Random) -> Iterator[Fact]:
    """Ask whether one of several stands in a place where not all of them do, or where surely none does."""
    pairs = [(label, thing) for label in several for thing in things if len(boxes[label]) > 1]
    for label, thing in rng.sample(pairs, min(len(pairs), MOST_PAIRS)):
        other = boxes[thing][0]
        places = [place_of(box, other) for box in boxes[label]]
        found = sorted(set(places) - {""})
        if not found or len(set(places)) == 1:
            continue
        none = [place for place in CONVERSE if all(_is_not(place, box, other) for box in boxes[label])]
        yes = rng.random() < 0.5
        if not yes and not none:
            continue
        fields = names(label) | {"relation": rng.choice(found if yes else none), "other": thing}
        answer = questions.ONE_IS_THERE if yes else questions.NONE_IS_THERE
        yield Fact(questions.IS_ONE_THERE, answer, fields, "yes" if yes else "no", about=(label, thing))


def _is_not(place: str, one: Box, other: Box) -> bool:
    """Whether ``one`` surely does not stand there: it begins on the other side of the middle of ``other``."""
    across, down = _between(one, other)
    sign = -1 if place in {"to the left of", "above"} else 1
    return sign * (across if place.startswith("to the") else down) <= -CLEARLY_ACROSS


def _largest(several: Sequence[str], boxes: Boxes) -> Iterator[Fact]:
    for label in several:
        ordered = sorted(boxes[label], key=area, reverse=True)
        if label == "person" or len(ordered) < 3 or area(ordered[0]) < LARGEST_BY * area(ordered[1]):
            continue
        box = ordered[0]
        for first, second, low, high in (("left", "right", box.x1, box.x2), ("upper", "lower", box.y1, box.y2)):
            if high <= HALF or low >= HALF:
                half = first if high <= HALF else second
                fields = {"nouns": plural_of(label), "first": first, "second": second, "half": half}
                wordings, answer = questions.WHERE_IS_LARGEST, questions.LARGEST_IS_IN
                yield Fact(wordings, answer, fields, short="{half}", about=(label,))


def _some_pairs(pairs: list[tuple[str, str]], rng: random.Random) -> list[tuple[str, str]]:
    """Return every unordered pair once, in random order and direction; at most `MOST_PAIRS`."""
    rng.shuffle(pairs)
    seen: dict[frozenset[str], tuple[str, str]] = {}
    for pair in pairs:
        seen.setdefault(frozenset(pair), pair)
    return list(seen.values())[:MOST_PAIRS]
