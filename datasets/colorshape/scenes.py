"""ColorShape scenes: two to four coloured shapes of two sizes on a light square, with known truth.

A *scene* is the ground truth of an image: positions, sizes and colours. Scene number i of a seed is a pure function of
(seed, i), so a corpus can be made in any order and by any number of workers. Images (`rendering.py`) and captions
(`captions.py`) are made from scenes; the truth oracle judges sentences by them.

Limits: shapes are upright, filled with one colour, never overlap, and always fill a square box. Coordinates are fractions
of the image's width and height, x to the right and y downwards.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast, get_args

from pairwright.datasets.errors import InputError
from pairwright.datasets.rng import make_rng

Shape = Literal["circle", "square", "triangle", "star", "heart", "cross"]
Size = Literal["small", "medium", "large"]
RGB = tuple[int, int, int]
Corners = tuple[float, float, float, float]
T = TypeVar("T")

SHAPES: tuple[Shape, ...] = get_args(Shape)

COLOURS: dict[str, RGB] = {
    "red": (214, 30, 36),
    "orange": (245, 134, 20),
    "yellow": (242, 206, 8),
    "green": (34, 150, 62),
    "blue": (32, 84, 208),
    "purple": (128, 44, 160),
    "brown": (122, 72, 32),
    "black": (22, 22, 24),
}

BACKGROUNDS: tuple[RGB, ...] = (
    (255, 255, 255),
    (246, 246, 244),
    (236, 240, 244),
    (250, 244, 238),
    (238, 244, 238),
    (246, 238, 244),
    (228, 230, 232),
)

SMALL_UP_TO = 0.16
LARGE_FROM = 0.25
MIN_DISTANCE = 0.03
IMAGE_SIZE = 224

# Box side of an object in a scene, by size word: far apart, so that the word is unambiguous.
_SIDES: dict[Size, tuple[float, float]] = {"small": (0.11, 0.135), "large": (0.27, 0.32)}
_NAMES = tuple(COLOURS)
_OBJECT_COUNTS = (2, 2, 3, 3, 3, 4)
_TWIN_PROBABILITY = 0.18
_MAX_PLACEMENTS = 40
_GRID = 10_000
_EDGE = 200
_COLOUR_JITTER = 7  # of each channel, of 255


@dataclass(frozen=True, slots=True)
class SceneObject:
    """A shape in a scene.

    Attributes:
        colour: a key of `COLOURS`; empty when the colour has no name (continuous colours).
        shape: one of `SHAPES`.
        size: word for the side of the box: small up to 0.16 of the image, large from 0.25, else medium.
        rgb: the fill, 0-255 each.
        box: x1, y1, x2, y2 as fractions; square, and tight around the shape.
    """

    colour: str
    shape: Shape
    size: Size
    rgb: RGB
    box: Corners

    @property
    def centre(self) -> tuple[float, float]:
        """Centre of the box, x and y in 0-1."""
        x1, y1, x2, y2 = self.box
        return (x1 + x2) / 2, (y1 + y2) / 2

    @property
    def area(self) -> float:
        """Area of the box as a fraction of the image."""
        x1, y1, x2, y2 = self.box
        return (x2 - x1) * (y2 - y1)


@dataclass(frozen=True, slots=True)
class Scene:
    """The content of an image: objects that do not overlap, on one background colour; size in pixels."""

    objects: tuple[SceneObject, ...]
    width: int = IMAGE_SIZE
    height: int = IMAGE_SIZE
    background: RGB = (255, 255, 255)


def pick_option(options: Sequence[T], rng: random.Random) -> T:
    """Return one of ``options``, as uniform as ``Random.choice`` for a few options, in a third of its time."""
    return options[int(rng.random() * len(options))]


def size_word(side: float) -> Size:
    """Return the size word for a box side, a fraction of the image."""
    if side <= SMALL_UP_TO:
        return "small"
    return "large" if side >= LARGE_FROM else "medium"


def box_distance(first: SceneObject, second: SceneObject) -> float:
    """Return the distance between the nearest points of two boxes, a fraction of the image; 0 if they touch."""
    a, b = first.box, second.box
    dx = max(b[0] - a[2], a[0] - b[2], 0.0)
    dy = max(b[1] - a[3], a[1] - b[3], 0.0)
    return float((dx * dx + dy * dy) ** 0.5)


def mirror_scene(scene: Scene) -> Scene:
    """Return the mirror image of a scene: left and right swapped."""
    objects = tuple(
        SceneObject(o.colour, o.shape, o.size, o.rgb, (_mirror(o.box[2]), o.box[1], _mirror(o.box[0]), o.box[3]))
        for o in scene.objects
    )
    return Scene(objects, scene.width, scene.height, scene.background)


def _mirror(x: float) -> float:
    return round(1 - x, 4)


def make_scene(seed: int, index: int, pixels: int = IMAGE_SIZE) -> Scene:
    """Return scene ``index`` of ``seed``: a pure function of the two.

    Args:
        seed: of the corpus.
        index: 0 or more.
        pixels: width and height of the image; changes nothing else.
    """
    rng = make_rng(seed, "colorshape", "scene", index)
    background = pick_option(BACKGROUNDS, rng)
    kinds = _choose_kinds(rng)
    while True:
        objects = _place(kinds, rng)
        if objects is not None:
            return Scene(objects, pixels, pixels, background)


def _choose_kinds(rng: random.Random) -> list[tuple[str, Shape, Size]]:
    """Choose colour, shape and size of each object; some repeat an earlier one."""
    number = pick_option(_OBJECT_COUNTS, rng)
    kinds = [_choose_kind(rng)]
    while len(kinds) < number:
        kind = pick_option(kinds, rng) if rng.random() < _TWIN_PROBABILITY else _choose_kind(rng)
        # Not all objects are twins: the last one always differs.
        if len(kinds) < number - 1 or {kind} != set(kinds):
            kinds.append(kind)
    return kinds


def _choose_kind(rng: random.Random) -> tuple[str, Shape, Size]:
    return pick_option(_NAMES, rng), pick_option(SHAPES, rng), "large" if rng.random() < 0.5 else "small"


def _place(kinds: list[tuple[str, Shape, Size]], rng: random.Random) -> tuple[SceneObject, ...] | None:
    """Place the objects one by one without overlap; None if one does not fit."""
    placed: list[SceneObject] = []
    for colour, shape, size in kinds:
        low, high = _SIDES[size]
        side = low + (high - low) * rng.random()
        rgb = jitter_colour(COLOURS[colour], rng)
        for _ in range(_MAX_PLACEMENTS):
            candidate = SceneObject(colour, shape, size, rgb, random_box(side, rng))
            if all(_are_apart(candidate.box, other.box) for other in placed):
                placed.append(candidate)
                break
        else:
            return None
    return tuple(placed)


def random_box(side: float, rng: random.Random) -> Corners:
    """Return a square box of ``side`` at a random position, at least 0.02 from the edges."""
    # On a grid of 1/10000, finer than a pixel: short in JSON, and exact when read back.
    length = int(side * _GRID)
    room = _GRID - 2 * _EDGE - length + 1
    x, y = _EDGE + int(room * rng.random()), _EDGE + int(room * rng.random())
    return x / _GRID, y / _GRID, (x + length) / _GRID, (y + length) / _GRID


def jitter_colour(rgb: RGB, rng: random.Random) -> RGB:
    """Return a colour near ``rgb``: each channel changed by up to 7, within 0-255."""
    red, green, blue = (min(255, max(0, int(channel + (2 * rng.random() - 1) * _COLOUR_JITTER))) for channel in rgb)
    return red, green, blue


def _are_apart(a: Corners, b: Corners) -> bool:
    return (
        a[2] + MIN_DISTANCE <= b[0]
        or b[2] + MIN_DISTANCE <= a[0]
        or a[3] + MIN_DISTANCE <= b[1]
        or b[3] + MIN_DISTANCE <= a[1]
    )


def scene_to_dict(scene: Scene) -> dict[str, Any]:
    """Return a scene as JSON values: width, height, background, objects."""
    return {
        "width": scene.width,
        "height": scene.height,
        "background": list(scene.background),
        "objects": [
            {"colour": o.colour, "shape": o.shape, "size": o.size, "rgb": list(o.rgb), "box": list(o.box)}
            for o in scene.objects
        ],
    }


def scene_from_dict(value: Mapping[str, Any]) -> Scene:
    """Return the scene that `scene_to_dict` wrote.

    Raises:
        InputError: if a member is missing or impossible.
    """
    try:
        objects = tuple(_object_from_dict(item) for item in value["objects"])
        return Scene(objects, int(value["width"]), int(value["height"]), _rgb(value["background"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"not a ColorShape scene ({type(error).__name__}: {error})",
            where="scene",
            fix="Take the `scene` member of a ColorShape sample as it was written.",
        ) from None


def _object_from_dict(item: Mapping[str, Any]) -> SceneObject:
    shape, size, colour = item["shape"], item["size"], item["colour"]
    if shape not in SHAPES or size not in get_args(Size) or (colour and colour not in COLOURS):
        raise ValueError(f"no such object: {colour} {size} {shape}")
    x1, y1, x2, y2 = (float(edge) for edge in item["box"])
    if not (0 <= x1 < x2 <= 1 and 0 <= y1 < y2 <= 1):
        raise ValueError(f"box {item['box']} is not within 0-1")
    return SceneObject(colour, cast("Shape", shape), cast("Size", size), _rgb(item["rgb"]), (x1, y1, x2, y2))


def _rgb(value: Any) -> RGB:
    red, green, blue = (int(channel) for channel in value)
    if not all(0 <= channel <= 255 for channel in (red, green, blue)):
        raise ValueError(f"rgb {value} is not within 0-255")
    return red, green, blue
