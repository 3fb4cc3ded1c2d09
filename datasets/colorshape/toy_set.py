"""One-object toy set for conditional retrieval, with a variant with continuous colours.

Each image shows one shape of random position and size. Four colours by four shapes, with equal numbers of images per
combination (500 in the FocalLens chapter, section 5.4.1); images match under a condition: the same colour, the same shape,
or both. In the continuous variant the colour is any RGB value without a name, and similarity is distance in RGB; its only
condition is the shape, in addition to ``rgb``.

Image number i is a pure function of (seed, variant, i).
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.colorshape.corpus import ColorShapeCorpus, ColorShapeSample, sample_to_json, write_image_shards
from pairwright.datasets.colorshape.scenes import (
    BACKGROUNDS,
    COLOURS,
    IMAGE_SIZE,
    RGB,
    Scene,
    SceneObject,
    Shape,
    jitter_colour,
    pick_option,
    random_box,
    size_word,
)
from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_rng

TOY_COLOURS = ("red", "green", "blue", "yellow")
TOY_SHAPES: tuple[Shape, ...] = ("circle", "square", "triangle", "star")
PER_COMBINATION = 500
SIDE_RANGE = (0.12, 0.60)
_MIN_CONTRAST = 90
_SHARD_SIZE = 1000


@dataclass(frozen=True, slots=True)
class ToySample:
    """One image of the toy set.

    Attributes:
        key: ten characters, unique in the set and its variant.
        scene: with one object.
        conditions: condition (``colour``, ``shape``, ``both``; continuous: ``shape``) to the image's label.
        rgb: the fill.
    """

    key: str
    scene: Scene
    conditions: dict[str, str]
    rgb: RGB


def generate_toy_set(
    seed: int = 0,
    per_combination: int = PER_COMBINATION,
    *,
    continuous: bool = False,
) -> Iterator[ToySample]:
    """Yield the 16 x ``per_combination`` images; combinations alternate, so any prefix is balanced.

    Args:
        seed: of the set.
        per_combination: images of each colour and shape (continuous: of each shape, times four).
        continuous: any RGB instead of the four colours.

    Raises:
        UsageError: if ``per_combination`` is less than 1.
    """
    if per_combination < 1:
        raise UsageError(f"per_combination is {per_combination}: give at least 1.")
    for index in range(per_combination * len(TOY_COLOURS) * len(TOY_SHAPES)):
        yield _toy_sample(seed, index, continuous=continuous)


def write_toy_set(
    folder: Path,
    seed: int = 0,
    per_combination: int = PER_COMBINATION,
    *,
    continuous: bool = False,
) -> ColorShapeCorpus:
    """Write the set as shards like the corpus's; the JSON holds ``conditions`` and ``rgb`` as well.

    The caption names colour and shape, in the continuous variant the shape only.
    """
    samples = generate_toy_set(seed, per_combination, continuous=continuous)
    count = per_combination * len(TOY_COLOURS) * len(TOY_SHAPES)
    return write_image_shards(folder, ((s.scene, _row(s)) for s in samples), count, _SHARD_SIZE)


def _toy_sample(seed: int, index: int, *, continuous: bool) -> ToySample:
    rng = make_rng(seed, "colorshape", "toy-continuous" if continuous else "toy", index)
    colour = TOY_COLOURS[index % len(TOY_COLOURS)]
    shape = TOY_SHAPES[index // len(TOY_COLOURS) % len(TOY_SHAPES)]
    background = pick_option(BACKGROUNDS, rng)
    rgb = _draw_visible_colour(background, rng) if continuous else jitter_colour(COLOURS[colour], rng)
    side = SIDE_RANGE[0] + (SIDE_RANGE[1] - SIDE_RANGE[0]) * rng.random()
    box = random_box(side, rng)
    item = SceneObject("" if continuous else colour, shape, size_word(box[2] - box[0]), rgb, box)
    conditions: dict[str, str] = {"shape": shape}
    if not continuous:
        conditions |= {"colour": colour, "both": f"{colour} {shape}"}
    key = f"{'c' if continuous else 't'}{index:09d}"
    return ToySample(key, Scene((item,), IMAGE_SIZE, IMAGE_SIZE, background), conditions, rgb)


def _draw_visible_colour(background: RGB, rng: random.Random) -> RGB:
    """Return a random colour that is visible on the background: one channel differs by 90 or more."""
    while True:
        rgb = rng.randrange(256), rng.randrange(256), rng.randrange(256)
        if max(abs(channel - ground) for channel, ground in zip(rgb, background, strict=True)) >= _MIN_CONTRAST:
            return rgb


def _row(sample: ToySample) -> dict[str, Any]:
    words = sample.conditions.get("both", sample.conditions["shape"])
    row = sample_to_json(ColorShapeSample(sample.key, sample.scene, f"a {words}"))
    return {**row, "conditions": sample.conditions, "rgb": list(sample.rgb)}
