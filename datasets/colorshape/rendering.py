"""JPEG rendering of ColorShape scenes: flat shapes with smooth edges on a light, uniform background.

Each shape is drawn once per size in pixels, four times too large, and scaled down to a soft mask; images are made by
pasting colours through these masks, so that most of their time is JPEG encoding. Objects are aligned to whole pixels: the
drawn box differs from the scene's by at most half a pixel. Equal scenes give equal bytes under one version of Pillow.
"""

import io
import math
from functools import lru_cache

from PIL import Image, ImageDraw

from pairwright.datasets.colorshape.scenes import Scene, SceneObject, Shape

SUPERSAMPLING = 4
QUALITY = 90

Outline = tuple[tuple[float, float], ...]


def render_scene(scene: Scene) -> Image.Image:
    """Return the image of ``scene``: RGB, ``scene.width`` by ``scene.height`` pixels."""
    picture = Image.new("RGB", (scene.width, scene.height), scene.background)
    for item in scene.objects:
        left, top, width, height = _pixels(item, scene)
        picture.paste(item.rgb, (left, top, left + width, top + height), _mask(item.shape, width, height))
    return picture


def encode_jpeg(scene: Scene) -> bytes:
    """Return the image of ``scene`` as JPEG (quality 90, no chroma subsampling)."""
    buffer = io.BytesIO()
    render_scene(scene).save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return buffer.getvalue()


def _pixels(item: SceneObject, scene: Scene) -> tuple[int, int, int, int]:
    x1, y1, x2, y2 = item.box
    left, top = round(x1 * scene.width), round(y1 * scene.height)
    return left, top, max(1, round(x2 * scene.width) - left), max(1, round(y2 * scene.height) - top)


@lru_cache(maxsize=2048)
def _mask(shape: Shape, width: int, height: int) -> Image.Image:
    """Return the coverage of each pixel of a box by ``shape``, 0-255."""
    large = (width * SUPERSAMPLING, height * SUPERSAMPLING)
    mask = Image.new("L", large, 0)
    ImageDraw.Draw(mask).polygon([(x * (large[0] - 1), y * (large[1] - 1)) for x, y in OUTLINES[shape]], fill=255)
    return mask.resize((width, height), Image.Resampling.BOX)


def _fitted(points: list[tuple[float, float]]) -> Outline:
    """Return the outline stretched to touch all four sides of the unit square."""
    (left, top), (right, bottom) = map(min, zip(*points, strict=True)), map(max, zip(*points, strict=True))
    return tuple(((x - left) / (right - left), (y - top) / (bottom - top)) for x, y in points)


def _circle() -> list[tuple[float, float]]:
    turns = (2 * math.pi * step / 90 for step in range(90))
    return [(math.cos(turn), math.sin(turn)) for turn in turns]


def _star() -> list[tuple[float, float]]:
    # Ten corners, alternately on the outer circle and on one 0.42 as wide, the first one pointing up.
    corners = ((1.0 if step % 2 == 0 else 0.42, math.pi * step / 5) for step in range(10))
    return [(radius * math.sin(turn), -radius * math.cos(turn)) for radius, turn in corners]


def _heart() -> list[tuple[float, float]]:
    turns = (2 * math.pi * step / 90 for step in range(90))
    return [
        (
            math.sin(turn) ** 3,
            -(13 * math.cos(turn) - 5 * math.cos(2 * turn) - 2 * math.cos(3 * turn) - math.cos(4 * turn)) / 16,
        )
        for turn in turns
    ]


def _cross() -> list[tuple[float, float]]:
    near, far = 0.34, 0.66
    return [
        (near, 0.0), (far, 0.0), (far, near), (1.0, near), (1.0, far), (far, far),
        (far, 1.0), (near, 1.0), (near, far), (0.0, far), (0.0, near), (near, near),
    ]  # fmt: skip


OUTLINES: dict[Shape, Outline] = {
    "circle": _fitted(_circle()),
    "square": _fitted([(0, 0), (1, 0), (1, 1), (0, 1)]),
    "triangle": _fitted([(0.5, 0), (1, 1), (0, 1)]),
    "star": _fitted(_star()),
    "heart": _fitted(_heart()),
    "cross": _fitted(_cross()),
}
