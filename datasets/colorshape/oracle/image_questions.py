"""Verdicts on questions about the image as a whole or several objects, and questions with answer formats.

These are outside the scene grammar. Each form is a pattern of the question, patterns of the answer, and its truth in the
scene's geometry. Forms: the half of the image with an object (or the largest of several), which of two exists, whether one
covers more than some part of the width or height, more of one than of another, which of three is furthest to a side or the
largest, the arrangement of two of a kind and which of them is larger, the nearest edge, the number of a kind in a half,
which of two covers more of the height or width, whether one of a kind reaches an edge, "the circle" as the answer to which
of two is larger, and "0".

A question may have the prompt for a short answer on its last line, or lettered options; then the letter is right if its
option is true and every other one is false.
"""

import re
from collections.abc import Callable, Sequence

from pairwright.datasets.colorshape.scenes import Scene, SceneObject

_PROMPT = re.compile(r"\n(?:Answer|Please answer|Respond)[^\n]*$")
_OPTION = re.compile(r"^([A-Z])[.)] (.+)$", re.MULTILINE)
_PARTS = {"a fifth": 0.2, "a quarter": 0.25, "a third": 1 / 3, "half": 0.5, "two thirds": 2 / 3, "three quarters": 0.75}
_COUNTS = {"": 1, "two ": 2, "three ": 3, "four ": 4}
_IMAGE = r"(?:image|picture)"
_THING = r"the (?P<count>(?:two |three |four )?)(?P<noun>[a-z]+)"
_SIDES = r"(?P<low>left|upper) or the (?P<high>right|lower)"
_HALVES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:is|are) {_THING} in the {_SIDES} half of the {_IMAGE}",
        rf"in which half of the {_IMAGE} (?:is|are) {_THING}, the {_SIDES} one",
        rf"which half of the {_IMAGE} (?:is|are) {_THING} in, the {_SIDES} one",
    )
)
_IN_HALF = re.compile(r"(?:the [a-z ]+ (?:is|are) in the )?(left|right|upper|lower)(?: half of the image)?")
_IN_BOTH = re.compile(
    r"both|the [a-z ]+ (?:extends|are spread) over both the (?:left|upper) and the (?:right|lower) half of the image"
)
_LARGEST_OF = tuple(
    re.compile(pattern)
    for pattern in (
        rf"is the largest of the (?P<noun>[a-z]+) in the {_SIDES} half of the {_IMAGE}",
        rf"in which half of the {_IMAGE} is the largest of the (?P<noun>[a-z]+), the {_SIDES} one",
    )
)
_EITHER = tuple(
    re.compile(pattern)
    for pattern in (
        rf"does the {_IMAGE} show (?P<one>[a-z ]+?) or (?P<two>[a-z ]+)",
        rf"which can be seen in the {_IMAGE}, (?P<one>[a-z ]+?) or (?P<two>[a-z ]+)",
        rf"which of the two does the {_IMAGE} show, (?P<one>[a-z ]+?) or (?P<two>[a-z ]+)",
    )
)
_SHOWS = re.compile(r"(?:the image shows )?([a-z ]+)")
_PART = re.compile(
    rf"(?:in the {_IMAGE}, )?does the (?P<noun>[a-z]+) (?:take up|extend over) more than (?P<part>[a-z ]+?) of the "
    rf"(?P<extent>height|width)(?: of the {_IMAGE})?"
)
_TAKES = re.compile(
    r"(yes|no)(?:, the ([a-z]+) takes up (more|less) than ([a-z ]+?) of the (height|width) of the image)?"
)
_MORE = re.compile(
    rf"(?:are there|does the {_IMAGE} show|can you see) more (?P<one>[a-z]+) than (?P<two>[a-z]+)(?: in the {_IMAGE})?"
)
_THERE_ARE = re.compile(r"(yes|no)(?:, there are (more|fewer) ([a-z]+) than ([a-z]+))?")
_THREE = r"the (?P<one>[a-z]+), the (?P<two>[a-z]+) or the (?P<three>[a-z]+)"
_FURTHEST = re.compile(rf"which (?:of these )?is furthest to the (?P<side>left|right) in the {_IMAGE}: {_THREE}")
_IS_FURTHEST = re.compile(r"the ([a-z]+)(?: is furthest to the (left|right))?")
_LARGEST = re.compile(rf"which (?:of these )?is the largest in the {_IMAGE}: {_THREE}")
_IS_LARGEST = re.compile(r"(?:in the image, )?the ([a-z]+)(?: is the largest)?")
_ARRANGED = re.compile(
    rf"(?:are the two (?P<one>[a-z]+) side by side or one above the other in the {_IMAGE}"
    rf"|how are the two (?P<two>[a-z]+) arranged in the {_IMAGE}, side by side or one above the other)"
)
_IS_ARRANGED = re.compile(r"(?:in the image, the two [a-z]+ are )?(side by side|one above the other)")
_TWIN = re.compile(
    rf"(?:which (?P<one>[a-z]+) is|of the two (?P<two>[a-z]+), which one is) (?P<size>larger|smaller) in the {_IMAGE}, "
    r"the (?P<low>left|upper) or the (?:right|lower) one"
)
_IS_TWIN = re.compile(r"(?:in the image, )?the (left|right|upper|lower) (?:one|[a-z]+ is (larger|smaller))")
_COMPARE = re.compile(rf"which (?:one )?is (?P<size>larger|smaller) in the {_IMAGE}, the ([a-z]+) or the ([a-z]+)")
_NEARER = re.compile(
    rf"(?:is the (?P<one>[a-z]+) nearer to the (?P<low>left|top) or the (?:right|bottom) edge of the {_IMAGE}"
    rf"|which edge of the {_IMAGE} is the (?P<two>[a-z]+) nearer to, the (?P<low2>left|top) or the (?:right|bottom) one)"
)
_IS_NEARER = re.compile(r"(?:the ([a-z]+) is nearer to the )?(left|right|top|bottom)(?: edge of the image)?")
_IN_A_HALF = re.compile(
    rf"(?:how many of the (?P<size>[a-z]+) (?P<nouns>[a-z]+)|of the (?P<size2>[a-z]+) (?P<nouns2>[a-z]+), how many) are "
    rf"entirely in the (?P<half>left|right|upper|lower) half of the {_IMAGE}"
)
_ARE_IN_HALF = re.compile(
    r"(none|neither|[a-z]+) of the ([a-z]+) ([a-z]+) (is|are) entirely in the ([a-z]+) half of the image|(\d)"
)
_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_EXTENDS = re.compile(
    rf"which (?:takes up|of the two extends over) more of the (?P<extent>height|width) of the {_IMAGE}, "
    r"the (?P<one>[a-z]+) or the (?P<two>[a-z]+)"
)
_EXTENDS_MORE = re.compile(r"the ([a-z]+)(?: takes up more of the (height|width) of the image)?")
_ANY_EDGE = re.compile(
    rf"(?:do|does) (?:any of the (?P<one>[a-z]+) reach|one of the (?P<two>[a-z]+) extend to) the (?P<edge>[a-z]+) edge of the {_IMAGE}"
)
_AT_EDGE = re.compile(r"(yes|no)(?:, (?:at least one|none) of the ([a-z]+) reaches the ([a-z]+) edge of the image)?")
_IS_THE = re.compile(r"the ([a-z]+)")
_NUMBER = re.compile(r"(?:how many|what is the number of) (?P<nouns>[a-z]+)\b.*")
_WHICH_THERE = re.compile(rf"which of these (?:can be seen in the {_IMAGE}|does the {_IMAGE} show|is in the {_IMAGE})")


def split_question(question: str) -> tuple[str, dict[str, str]]:
    """Return a question without its format instructions, and its options by letter."""
    bare = _PROMPT.sub("", question)
    options = dict(_OPTION.findall(bare))
    return (_OPTION.sub("", bare).strip() if options else bare), options


def judge_image_question(question: str, answer: str, scene: Scene) -> bool | None:
    """Return whether a turn of these forms is true; None for other turns."""
    asked, said = (text.strip().lower().rstrip("?.").strip() for text in (question, answer))
    for pattern, truth in _FORMS:
        found = pattern.fullmatch(asked)
        if found is not None:
            return truth(found, said, scene)
    return None


def _objects_of_shape(noun: str, scene: Scene) -> list[SceneObject]:
    return [item for item in scene.objects if noun in (item.shape, f"{item.shape}s", f"{item.shape}es")]


def _find_unique_object(noun: str, scene: Scene) -> SceneObject | None:
    found = _objects_of_shape(noun, scene)
    return found[0] if len(found) == 1 and found[0].shape == noun else None


def _judge_half(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    items = _objects_of_shape(found["noun"], scene)
    if len(items) != _COUNTS[found["count"]]:
        return None
    axis = 0 if found["low"] == "left" else 1
    low, high = min(item.box[axis] for item in items), max(item.box[axis + 2] for item in items)
    if _IN_BOTH.fullmatch(said):
        return low < 0.5 < high
    half = _IN_HALF.fullmatch(said)
    if half is None or half[1] not in (found["low"], found["high"]):
        return None
    return high <= 0.5 if half[1] == found["low"] else low >= 0.5


def _judge_largest_in_half(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    items = sorted(_objects_of_shape(found["noun"], scene), key=lambda item: item.area)
    half = _IN_HALF.fullmatch(said)
    if len(items) < 2 or half is None or half[1] not in (found["low"], found["high"]):
        return None
    box, axis = items[-1].box, 0 if found["low"] == "left" else 1
    return items[-2].area < items[-1].area and (box[axis + 2] <= 0.5 if half[1] == found["low"] else box[axis] >= 0.5)


def _judge_either(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    stated = _SHOWS.fullmatch(said)
    if stated is None or stated[1] not in (found["one"], found["two"]):
        return None
    other = found["two"] if stated[1] == found["one"] else found["one"]
    one, two = (_objects_of_shape(name.split()[-1], scene) for name in (stated[1], other))
    return bool(one) and not two and (len(one) > 1 or stated[1].startswith(("a ", "an ")))


def _judge_extent(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    item, takes = _find_unique_object(found["noun"], scene), _TAKES.fullmatch(said)
    if item is None or takes is None or found["part"] not in _PARTS:
        return None
    if takes[2] and (takes[2], takes[4], takes[5]) != (found["noun"], found["part"], found["extent"]):
        return None
    start = 0 if found["extent"] == "width" else 1
    more = item.box[start + 2] - item.box[start] > _PARTS[found["part"]]
    return (takes[1] == "yes") is more and (not takes[3] or (takes[3] == "more") is more)


def _judge_more(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    stated = _THERE_ARE.fullmatch(said)
    one, two = (len(_objects_of_shape(found[name], scene)) for name in ("one", "two"))
    if stated is None or not one or not two or (stated[3] and (stated[3], stated[4]) != (found["one"], found["two"])):
        return None
    if stated[2] == "fewer" and one >= two:
        return False
    return (stated[1] == "yes") is (one > two) and (stated[2] != "more" or one > two)


def _parse_three_objects(found: re.Match[str], scene: Scene) -> list[SceneObject]:
    return [
        item
        for item in (_find_unique_object(found[name], scene) for name in ("one", "two", "three"))
        if item is not None
    ]


def _judge_furthest(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    items, stated = _parse_three_objects(found, scene), _IS_FURTHEST.fullmatch(said)
    if len(items) != 3 or stated is None or (stated[2] or found["side"]) != found["side"]:
        return None
    ends = sorted(items, key=lambda item: item.centre[0])
    return ends[0 if found["side"] == "left" else -1].shape == stated[1]


def _judge_largest(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    items, stated = _parse_three_objects(found, scene), _IS_LARGEST.fullmatch(said)
    if len(items) != 3 or stated is None:
        return None
    return max(items, key=lambda item: item.area).shape == stated[1]


def _judge_arrangement(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    items, stated = _objects_of_shape(found["one"] or found["two"], scene), _IS_ARRANGED.fullmatch(said)
    if len(items) != 2 or stated is None:
        return None
    across, down = (abs(items[0].centre[axis] - items[1].centre[axis]) for axis in (0, 1))
    return (stated[1] == "side by side") is (across > down)


def _judge_twin(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    items, stated = _objects_of_shape(found["one"] or found["two"], scene), _IS_TWIN.fullmatch(said)
    if len(items) != 2 or stated is None or (stated[2] or found["size"]) != found["size"]:
        return None
    first, last = sorted(items, key=lambda item: item.centre[0 if found["low"] == "left" else 1])
    chosen, other = (first, last) if stated[1] == found["low"] else (last, first)
    return chosen.area > other.area if found["size"] == "larger" else chosen.area < other.area


def _judge_comparison(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    stated = _IS_THE.fullmatch(said)
    items = [_find_unique_object(found[at], scene) for at in (2, 3)]
    if stated is None or None in items or stated[1] not in (found[2], found[3]):
        return None
    one, two = (item for item in items if item is not None)
    chosen, other = (one, two) if stated[1] == found[2] else (two, one)
    return chosen.area > other.area if found["size"] == "larger" else chosen.area < other.area


def _judge_nearer_edge(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    name = found["one"] or found["two"]
    item, stated = _find_unique_object(name, scene), _IS_NEARER.fullmatch(said)
    if item is None or stated is None or (stated[1] or name) != name:
        return None
    low = found["low"] or found["low2"]
    axis = 0 if low == "left" else 1
    before, behind = item.box[axis], 1 - item.box[axis + 2]
    return before < behind if stated[2] == low else before > behind


def _judge_count_in_half(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    items, stated = _objects_of_shape(found["nouns"] or found["nouns2"], scene), _ARE_IN_HALF.fullmatch(said)
    if stated is None or len(items) != _WORDS.index(found["size"] or found["size2"]):
        return None
    if stated[5] and stated[5] != found["half"]:
        return None
    axis = 0 if found["half"] in {"left", "right"} else 1
    first = found["half"] in {"left", "upper"}
    count = sum(item.box[axis + 2] <= 0.5 if first else item.box[axis] >= 0.5 for item in items)
    return count == (
        int(stated[6]) if stated[6] else _WORDS.index("none" if stated[1] == "neither" else stated[1])
    ) and (not stated[4] or (stated[4] == "are") is (count > 1))


def _judge_larger_extent(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    stated, items = (
        _EXTENDS_MORE.fullmatch(said),
        {name: _find_unique_object(found[name], scene) for name in ("one", "two")},
    )
    if (
        stated is None
        or (stated[2] or found["extent"]) != found["extent"]
        or stated[1] not in (found["one"], found["two"])
    ):
        return None
    start = 0 if found["extent"] == "width" else 1
    sizes = {item.shape: item.box[start + 2] - item.box[start] for item in items.values() if item is not None}
    return len(sizes) == 2 and max(sizes, key=lambda shape: sizes[shape]) == stated[1]


def _judge_edge_contact(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    items, stated = _objects_of_shape(found["one"] or found["two"], scene), _AT_EDGE.fullmatch(said)
    if not items or stated is None or (stated[3] or found["edge"]) != found["edge"]:
        return None
    at = ("left", "top", "right", "bottom").index(found["edge"])
    gaps = [item.box[at] if at < 2 else 1 - item.box[at] for item in items]
    return (stated[1] == "yes") is (min(gaps) <= 0.005)


def _judge_absence(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    return not _objects_of_shape(found["nouns"], scene) if said == "0" else None


def _judge_presence(found: re.Match[str], said: str, scene: Scene) -> bool | None:
    del found
    return bool(_objects_of_shape(said, scene))


_FORMS: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str], str, Scene], bool | None]]] = (
    *((pattern, _judge_half) for pattern in _HALVES),
    *((pattern, _judge_largest_in_half) for pattern in _LARGEST_OF),
    *((pattern, _judge_either) for pattern in _EITHER),
    (_PART, _judge_extent),
    (_MORE, _judge_more),
    (_FURTHEST, _judge_furthest),
    (_LARGEST, _judge_largest),
    (_ARRANGED, _judge_arrangement),
    (_TWIN, _judge_twin),
    (_COMPARE, _judge_comparison),
    (_NEARER, _judge_nearer_edge),
    (_IN_A_HALF, _judge_count_in_half),
    (_EXTENDS, _judge_larger_extent),
    (_ANY_EDGE, _judge_edge_contact),
    (_NUMBER, _judge_absence),
    (_WHICH_THERE, _judge_presence),
)
