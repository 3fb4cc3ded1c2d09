"""Drawn pictures of coloured shapes with captions and edited captions, and the tiny models that read them.

A *kind* is a colour and a shape. A picture shows one to four things, each in a quarter of its own, so that every
statement of a caption is visible. There are ten shapes and twelve colours, more than ColorShape's, and captions are
written here, so each text is true or false by construction. Everything is a pure function of a seed.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from PIL import Image, ImageDraw

from pairwright.datasets.colorshape.rendering import OUTLINES, SUPERSAMPLING
from pairwright.datasets.colorshape.scenes import jitter_colour
from pairwright.datasets.records import Annotation, Origin, Pair, Turn, annotation_id, pair_key
from pairwright.datasets.shards.samples import Sample
from pairwright.training.tiny_clip import ClipSizes

ORIGIN = Origin("claims", 1)
RGB = tuple[int, int, int]

COLOURS: Mapping[str, RGB] = {
    "red": (214, 30, 36),
    "orange": (245, 134, 20),
    "yellow": (242, 206, 8),
    "green": (34, 150, 62),
    "blue": (32, 84, 208),
    "purple": (128, 44, 160),
    "brown": (122, 72, 32),
    "black": (22, 22, 24),
    "pink": (250, 130, 180),
    "cyan": (60, 205, 215),
    "grey": (140, 140, 146),
    "olive": (130, 135, 30),
}
BACKGROUNDS: Mapping[str, RGB] = {"white": (255, 255, 255), "cream": (250, 234, 205), "silver": (208, 214, 222)}
_POLYGONS: Mapping[str, Sequence[tuple[float, float]]] = {
    "diamond": [(0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)],
    "bar": [(0, 0.3), (1, 0.3), (1, 0.7), (0, 0.7)],
    "pillar": [(0.3, 0), (0.7, 0), (0.7, 1), (0.3, 1)],
    "arrow": [(0, 0.35), (0.5, 0.35), (0.5, 0), (1, 0.5), (0.5, 1), (0.5, 0.65), (0, 0.65)],
}
SHAPES: Mapping[str, Sequence[tuple[float, float]]] = {
    **{str(name): outline for name, outline in OUTLINES.items()},
    **_POLYGONS,
}
_QUARTERS = ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5))
_SIDES = (0.36, 0.43)  # of the picture
_MARGIN, _SHIFT = 0.01, 0.06


class Kind(NamedTuple):
    """A colour and a shape."""

    colour: str
    shape: str


@dataclass(frozen=True, slots=True)
class Edited:
    """A text made from a caption: a hard negative (false of the picture) or a hard positive (true of it)."""

    text: str
    form: str
    target: str
    true: bool = False


def small_clip(pixels: int = 32, patch: int = 16) -> ClipSizes:
    """Return the sizes of the tiny CLIP of all claims: two layers of width 48 a tower."""
    return ClipSizes(image=pixels, patch=patch, width=48, layers=2, heads=4, dim=32, context=32)


def draw(things: Sequence[Kind], rng: Random, *, pixels: int = 32, background: RGB = (255, 255, 255)) -> bytes:
    """Return a PNG of one to four things, each at a random position in a quarter of its own.

    Args:
        things: kinds, with repetitions.
        rng: of positions, sizes and shades.
        pixels: side of the picture.
        background: its colour.
    """
    large = pixels * SUPERSAMPLING
    picture = Image.new("RGB", (large, large), background)
    pen = ImageDraw.Draw(picture)
    for kind, (left, top) in zip(things, rng.sample(_QUARTERS, len(things)), strict=True):
        side = rng.uniform(*_SIDES)
        x, y = (start + _MARGIN + _SHIFT * rng.random() for start in (left, top))
        corners = [(large * (x + side * dx), large * (y + side * dy)) for dx, dy in SHAPES[kind.shape]]
        pen.polygon(corners, fill=jitter_colour(COLOURS[kind.colour], rng))
    return png(picture.resize((pixels, pixels), Image.Resampling.BOX))


def png(picture: Image.Image) -> bytes:
    """Return a picture as PNG, compressed fast."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def two_kinds(rng: Random, colours: Sequence[str], shapes: Sequence[str]) -> tuple[Kind, Kind]:
    """Return two kinds that differ in colour and in shape."""
    first, second = (Kind(*each) for each in zip(rng.sample(colours, 2), rng.sample(shapes, 2), strict=True))
    return first, second


def phrase(colour: str, shape: str) -> str:
    """Return "a red circle" or "an orange circle"."""
    return f"{'an' if colour[0] in 'aeiou' else 'a'} {colour} {shape}"


def caption_of(*kinds: tuple[str, str]) -> str:
    """Return "a red circle and a blue square"."""
    return " and ".join(phrase(*kind) for kind in kinds)


def hard_negatives(
    kinds: tuple[Kind, Kind], rng: Random, colours: Sequence[str], shapes: Sequence[str]
) -> list[Edited]:
    """Return three false captions of two kinds: exchanged colours, a replaced shape, and a replaced colour.

    Args:
        kinds: that the picture shows.
        rng: of what is replaced, and by what.
        colours: that may replace one.
        shapes: likewise.
    """
    first, second = kinds
    swapped = caption_of((second.colour, first.shape), (first.colour, second.shape))
    found = [Edited(swapped, "swap", "attribute")]
    for target, part, options in (("object", "shape", shapes), ("attribute", "colour", colours)):
        shown = {getattr(kind, part) for kind in kinds}
        other, place = rng.choice([one for one in options if one not in shown]), rng.randrange(2)
        changed = [kind._replace(**{part: other}) if place == n else kind for n, kind in enumerate(kinds)]
        found.append(Edited(caption_of(*changed), "replace", target))
    return found


def make_sample(
    name: str, caption: str, image: bytes | None, edits: Iterable[Edited] = (), turns: Sequence[tuple[str, str]] = ()
) -> Sample:
    """Return a sample of a shard.

    Args:
        name: unique in the shards.
        caption: of the picture.
        image: PNG bytes.
        edits: edited captions.
        turns: questions and answers about the picture.
    """
    key = pair_key("claims", name, caption)
    made: list[Annotation] = []
    for edit in dict.fromkeys(edits):
        kind = "hard_positive" if edit.true else "hard_negative"
        made.append(
            Annotation(
                id=annotation_id(key, kind, ORIGIN, str(len(made)), edit.text),
                key=key,
                kind=kind,
                origin=ORIGIN,
                text=edit.text,
                form=edit.form,
                target=edit.target,
                source_text=caption,
            )
        )
    if turns:
        said = tuple(turn for asked, answer in turns for turn in (Turn("human", asked), Turn("assistant", answer)))
        name_of = annotation_id(key, "conversation", ORIGIN, "0", "")
        made.append(Annotation(id=name_of, key=key, kind="conversation", origin=ORIGIN, turns=said))
    pair = Pair(key=key, caption=caption, source_id=name, source="claims")
    return Sample(pair, tuple(made), image=image, image_ext="png" if image else "")
