"""ColorShape corpus: image-text pairs with known truth, in file formats that users have.

A sample is made from (seed, index) only. With images the corpus is a folder of WebDataset shards in img2dataset's layout:
``00000.tar`` with ``000000000.jpg``, ``.txt`` and ``.json``, and so on. Without images it is ``captions.jsonl``, one object
per line: the same JSON, for runs where only text and scale matter. The JSON has ``key, caption, captions, boxes, width,
height, license, scene``; boxes are fractions and every shape has one, so a shape without a box is not in the image. Equal
arguments give equal bytes.

Memory does not grow with the number of pairs: one shard is open at a time.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.colorshape.captions import generate_captions
from pairwright.datasets.colorshape.rendering import encode_jpeg
from pairwright.datasets.colorshape.scenes import IMAGE_SIZE, SHAPES, Scene, make_scene, scene_from_dict, scene_to_dict
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.progress import track
from pairwright.datasets.records import Box, Pair, compact_json, pair_key
from pairwright.datasets.shards.ustar import END_MARKER, encode_member

SOURCE = "colorshape"
LICENSE = "CC0-1.0"
TEXT_FILE = "captions.jsonl"

_BUFFER = 1 << 20

SampleRow = tuple[Scene, dict[str, Any]]
_DRAWING = "drawing scenes"


@dataclass(frozen=True, slots=True)
class CorpusSpec:
    """Parameters of a corpus.

    Attributes:
        pairs: number of samples, one image and its captions each.
        seed: of the corpus.
        shard_size: samples per shard.
        images: shards with images; otherwise one JSONL file.
        pixels: width and height of the images, at least 32.
        captions: target number of captions per image.

    Raises:
        UsageError: if a number is too small.
    """

    pairs: int
    seed: int = 0
    shard_size: int = 1000
    images: bool = True
    pixels: int = IMAGE_SIZE
    captions: int = 4

    def __post_init__(self) -> None:
        for name, least in (("pairs", 1), ("shard_size", 1), ("pixels", 32), ("captions", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} is {getattr(self, name)}: give at least {least}.")


@dataclass(frozen=True, slots=True)
class ColorShapeSample:
    """A scene with its captions, and the key that names its files."""

    key: str
    scene: Scene
    caption: str
    captions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ColorShapeCorpus:
    """A written corpus: the folder, its files in order, and the number of pairs."""

    folder: Path
    files: tuple[Path, ...]
    pairs: int


def list_box_labels() -> tuple[str, ...]:
    """Return the box labels, all of which are annotated in every image: the shape nouns, singular."""
    return SHAPES


def make_sample(seed: int, index: int, *, captions: int = 4, pixels: int = IMAGE_SIZE) -> ColorShapeSample:
    """Return sample ``index`` of the corpus ``seed``.

    Args:
        seed: of the corpus.
        index: 0 or more.
        captions: target number of captions, the first of them being the caption.
        pixels: width and height of the image.
    """
    scene = make_scene(seed, index, pixels)
    caption, *others = generate_captions(scene, seed, index, captions)
    return ColorShapeSample(f"{index:09d}", scene, caption, tuple(others))


def sample_to_json(sample: ColorShapeSample) -> dict[str, Any]:
    """Return the JSON members of a sample, in their order."""
    return {
        "key": sample.key,
        "caption": sample.caption,
        "captions": list(sample.captions),
        "boxes": [
            {"label": o.shape, "x1": o.box[0], "y1": o.box[1], "x2": o.box[2], "y2": o.box[3]}
            for o in sample.scene.objects
        ],
        "width": sample.scene.width,
        "height": sample.scene.height,
        "license": LICENSE,
        "scene": scene_to_dict(sample.scene),
    }


def sample_to_pair(sample: ColorShapeSample) -> Pair:
    """Return a sample as a text-only pair with the scene in ``meta``: a corpus without files."""
    return Pair(
        key=pair_key(SOURCE, sample.key, sample.caption),
        caption=sample.caption,
        source_id=sample.key,
        captions=sample.captions,
        boxes=tuple(Box(o.shape, *o.box) for o in sample.scene.objects),
        width=sample.scene.width,
        height=sample.scene.height,
        source=SOURCE,
        license=LICENSE,
        meta=compact_json({"scene": scene_to_dict(sample.scene)}),
    )


def read_scene(pair: Pair) -> Scene:
    """Return the scene in the ``meta`` of a pair of this corpus.

    Raises:
        InputError: if there is none.
    """
    scene = json.loads(pair.meta).get("scene")
    if scene is None:
        raise InputError(
            "no ColorShape scene in its meta", where=f"pair {pair.key}", fix="Use pairs read from a ColorShape corpus."
        )
    return scene_from_dict(scene)


def write_corpus(folder: Path, spec: CorpusSpec) -> ColorShapeCorpus:
    """Write the samples of ``spec`` into ``folder``.

    Args:
        folder: created if missing; an earlier corpus with the same number of files is replaced.
        spec: parameters of the corpus.

    Raises:
        UsageError: if the folder has shards or lines that this corpus would not replace.
    """
    if spec.images:
        return write_image_shards(folder, _rows(spec), spec.pairs, spec.shard_size)
    path = folder / TEXT_FILE
    _reject_foreign_files(folder, (path,))
    with replace_atomically(path) as temporary, temporary.open("wb", buffering=_BUFFER) as out:
        rows = track(_rows(spec), _DRAWING, spec.pairs, "scenes")
        out.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for _, row in rows)
    return ColorShapeCorpus(folder, (path,), spec.pairs)


def write_image_shards(folder: Path, rows: Iterable[SampleRow], count: int, shard_size: int) -> ColorShapeCorpus:
    """Write ``count`` rows as shards with images; arguments and errors as in `write_corpus`."""
    files = tuple(folder / f"{number:05d}.tar" for number in range(-(-count // shard_size)))
    _reject_foreign_files(folder, files)
    drawn = track(rows, _DRAWING, count, "scenes")
    for path in files:
        with replace_atomically(path) as temporary, temporary.open("wb", buffering=_BUFFER) as out:
            for scene, row in islice(drawn, shard_size):
                out.writelines(_members(scene, row))
            out.write(END_MARKER)
    return ColorShapeCorpus(folder, files, count)


def _rows(spec: CorpusSpec) -> Iterator[SampleRow]:
    for index in range(spec.pairs):
        sample = make_sample(spec.seed, index, captions=spec.captions, pixels=spec.pixels)
        yield sample.scene, sample_to_json(sample)


def _members(scene: Scene, row: dict[str, Any]) -> Iterator[bytes]:
    key = row["key"]
    yield from encode_member(f"{key}.jpg", encode_jpeg(scene))
    yield from encode_member(f"{key}.txt", row["caption"].encode())
    yield from encode_member(f"{key}.json", orjson.dumps(row))


def _reject_foreign_files(folder: Path, files: tuple[Path, ...]) -> None:
    # Readers read every shard of a folder, also one left over from a longer corpus.
    present = {*folder.glob("*.tar"), *folder.glob("*.jsonl")} if folder.is_dir() else set()
    strangers = sorted(path.name for path in present - set(files))
    if strangers:
        raise UsageError(f"{folder} already holds {', '.join(strangers[:3])}: choose an empty folder or delete them.")
