"""Samples: a pair with its image bytes and the kept texts made for it, as members of a shard.

In a shard a sample is ``{key}.jpg`` (or png, webp, or no image), ``{key}.txt`` (the caption) and ``{key}.json``, with the
schema in `sample_schema.py`. This module converts records to members and back. A sample of a conversation about several
images has the others as ``{key}.1.jpg``, ``{key}.2.jpg``; the marks ``<image>`` in its questions say where each one is.

Spans of an edit count code points: ``from_span`` in the edited caption, ``to_span`` in ``text``. A negative's
``positive`` is the edited caption, or, for both-sides pairs, the hard positive it is compared with. An image's origin is
stored by its name without the folder, so that a build in another place has equal bytes; URLs are redacted.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.images.loading import (
    publishable_image_name,
    select_further_images,
    select_image_extensions,
)
from pairwright.datasets.records import (
    Annotation,
    Example,
    Origin,
    Pair,
    Turn,
    annotation_id,
    edit_from_dict,
    edit_to_dict,
)
from pairwright.datasets.shards.sample_schema import SAMPLE_SCHEMA, find_schema_mismatch, is_valid_sample

_KEY = re.compile("[0-9a-f]{32}")
_FOREIGN_SHARDS_FIX = "Use other shards as the input of a build."

FROM_SHARD = "shard"
"""Generator of annotations read back from a sample with several makers."""


@dataclass(frozen=True, slots=True)
class SampleImage:
    """An image of a sample: locator, and bytes and extension if they were read."""

    locator: str
    data: bytes | None = None
    ext: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """The contents of one sample of a shard.

    Attributes:
        pair: the pair.
        annotations: its kept annotations, in output order.
        examples: its kept rationale rows.
        image: bytes of the image file; None for a text-only sample.
        image_ext: ``jpg``, ``png`` or ``webp``; empty for a text-only sample.
        makers: makers of its texts as stored in a shard; empty if the texts name them (see `list_makers`).
        stored_image_name: name of the source image as stored in a shard; empty if the pair has it.
        further_images: of a conversation about several images, all after the pair's, in order.
    """

    pair: Pair
    annotations: tuple[Annotation, ...] = ()
    examples: tuple[Example, ...] = ()
    image: bytes | None = None
    image_ext: str = ""
    makers: tuple[Origin, ...] = ()
    stored_image_name: str = ""
    further_images: tuple[SampleImage, ...] = ()

    @property
    def images(self) -> tuple[SampleImage, ...]:
        """All images, in order; empty for a text-only sample."""
        first = SampleImage(self.pair.image, self.image, self.image_ext)
        return (first, *self.further_images) if self.pair.image else ()

    @property
    def locators(self) -> tuple[str, ...]:
        """Locators of all images, in order; empty for a text-only sample."""
        return tuple(image.locator for image in self.images)


def list_makers(sample: Sample) -> list[Origin]:
    """Return the makers of the sample's texts, each once (without requests), sorted."""
    made = [a.origin for a in sample.annotations] + [e.origin for e in sample.examples]
    origins = sample.makers or made
    return [Origin(*maker) for maker in sorted({(o.generator, o.version, o.seed, o.model, o.prompt) for o in origins})]


def encode_members(sample: Sample) -> Iterator[tuple[str, bytes]]:
    """Yield the file extensions and contents of a sample: images (if any), txt, json.

    Raises:
        InputError: if a text cannot be encoded as UTF-8, or a score is not finite.
    """
    if sample.image is not None:
        yield sample.image_ext, sample.image
    for number, further in enumerate(sample.further_images, 1):
        yield f"{number}.{further.ext}", further.data or b""
    try:
        yield "txt", sample.pair.caption.encode()
        yield "json", orjson.dumps(encode_sample_json(sample))
    except (UnicodeEncodeError, TypeError) as error:
        raise InputError(
            f"a text that cannot be written as UTF-8 ({error})",
            where=f"sample {sample.pair.key}",
            fix="Fix or remove the row.",
        ) from None


def encode_sample_json(sample: Sample) -> dict[str, Any]:
    """Return the JSON object of a sample, with the members and types of `SAMPLE_SCHEMA`."""
    pair = sample.pair
    text_of = {annotation.id: annotation.text for annotation in sample.annotations}
    of_kind: dict[str, list[Annotation]] = {"hard_negative": [], "hard_positive": [], "": []}
    for annotation in sample.annotations:
        of_kind[annotation.kind if annotation.kind in of_kind else ""].append(annotation)
    return {
        "key": pair.key,
        "caption": pair.caption,
        "hard_negatives": [
            {"text": a.text, "positive": text_of.get(a.positive_id) or a.source_text or pair.caption, **_edited(a)}
            for a in of_kind["hard_negative"]
        ],
        "hard_positives": [
            {"text": a.text, "source": a.source_text or pair.caption, **_edited(a)} for a in of_kind["hard_positive"]
        ],
        "conversations": [
            {"type": a.kind, "turns": [{"role": turn.role, "text": turn.text} for turn in a.turns]} for a in of_kind[""]
        ],
        "rationales": [
            {"task": e.task, "input": e.input, "label": e.label, "rationale": e.rationale, "split": e.split}
            for e in sample.examples
        ],
        "provenance": _provenance(sample),
    }


def _edited(annotation: Annotation) -> dict[str, Any]:
    for name, value in annotation.scores.items():
        if not math.isfinite(value):
            raise InputError(
                f"the score {name!r} is {value}",
                where=f"annotation {annotation.id}",
                fix="Give a finite number or omit the score.",
            )
    return {
        "form": annotation.form,
        "target": annotation.target,
        "edit": [edit_to_dict(edit) for edit in annotation.edits],
        "scores": [{"name": name, "value": float(value)} for name, value in sorted(annotation.scores.items())],
    }


def _provenance(sample: Sample) -> dict[str, Any]:
    pair = sample.pair
    return {
        "source": pair.source,
        "source_id": pair.source_id,
        "image": sample.stored_image_name or publishable_image_name(pair.image),
        "license": pair.license,
        "width": pair.width,
        "height": pair.height,
        "captions": list(pair.captions),
        "made_by": [
            {"generator": o.generator, "version": o.version, "seed": o.seed, "model": o.model, "prompt": o.prompt}
            for o in list_makers(sample)
        ],
    }


def decode_members(key: str, members: dict[str, bytes], where: str) -> Sample:
    """Return the sample that `encode_members` wrote.

    Texts, edits, turns, scores and provenance are restored. A shard stores only the set of makers of a sample; so an
    annotation's origin is that maker if there is one, else ``shard``, and ids are new.

    Args:
        key: of the sample.
        members: extension to contents.
        where: name of the shard; the image's locator becomes ``where::key.ext``.

    Raises:
        StorageError: if the JSON is missing, broken or does not match the schema.
    """
    if "json" not in members:
        raise StorageError(
            f"{where}: sample {key} has no .json, unlike those that pairwright writes. {_FOREIGN_SHARDS_FIX}"
        )
    try:
        body = orjson.loads(members["json"])
    except orjson.JSONDecodeError as error:
        raise StorageError(f"{where}: {key}.json is broken JSON ({error.msg}). Write the shard again.") from None
    images = select_image_extensions(members)
    if len(images) > 1:
        raise StorageError(
            f"{where}: sample {key} has {len(images)} images: {', '.join(images)}. {_FOREIGN_SHARDS_FIX}"
        )
    image_ext = images[0] if images else ""
    problem = ("" if is_valid_sample(body) else find_schema_mismatch(body, SAMPLE_SCHEMA)) or describe_bad_key(
        key, body["key"]
    )
    if problem:
        raise StorageError(
            f"{where}: {key}.json does not match the schema of pairwright's shards: {problem}. {_FOREIGN_SHARDS_FIX}"
        )
    source = body["provenance"]
    pair = Pair(
        key=key,
        caption=body["caption"],
        captions=tuple(source["captions"]),
        image=f"{where}::{key}.{image_ext}" if image_ext else "",
        **{name: source[name] for name in ("source_id", "width", "height", "source", "license")},
    )
    makers = tuple(Origin(**maker) for maker in source["made_by"])
    texts, rationales = tuple(_annotations(body)), tuple(_examples(body))
    further = tuple(
        SampleImage(f"{where}::{key}.{ext}", members[ext], ext.partition(".")[2])
        for ext in (select_further_images(members) if image_ext else ())
    )
    return Sample(pair, texts, rationales, members.get(image_ext), image_ext, makers, source["image"], further)


def describe_bad_key(key: str, said: str) -> str:
    """Return what is wrong with the key in a member's name; it may become a file name, so it must be safe."""
    if not _KEY.fullmatch(key):
        return f"the key {key!r} is not 32 hex digits"
    return "" if key == said else f"its JSON says the key {said!r}"


def _origin(body: dict[str, Any]) -> Origin:
    makers = body["provenance"]["made_by"]
    return Origin(**makers[0]) if len(makers) == 1 else Origin(FROM_SHARD, 1)


def _annotations(body: dict[str, Any]) -> Iterator[Annotation]:
    key, origin = body["key"], _origin(body)
    positive_ids: dict[str, str] = {}
    for kind, source in (("hard_positive", "source"), ("hard_negative", "positive")):
        for ordinal, row in enumerate(body[kind + "s"]):
            id_ = annotation_id(key, kind, origin, str(ordinal), row["text"])
            if kind == "hard_positive":
                positive_ids[row["text"]] = id_
            yield Annotation(
                id=id_,
                key=key,
                kind=kind,
                origin=origin,
                form=row["form"],
                target=row["target"],
                text=row["text"],
                source_text=row[source],
                edits=tuple(edit_from_dict(edit) for edit in row["edit"]),
                positive_id=positive_ids.get(row["positive"], "") if kind == "hard_negative" else "",
                scores={score["name"]: score["value"] for score in row["scores"]},
            )
    for ordinal, row in enumerate(body["conversations"]):
        id_ = annotation_id(key, row["type"], origin, str(ordinal), "")
        turns = tuple(Turn(turn["role"], turn["text"]) for turn in row["turns"])
        yield Annotation(id=id_, key=key, kind=row["type"], origin=origin, turns=turns)


def _examples(body: dict[str, Any]) -> Iterator[Example]:
    origin = _origin(body)
    for ordinal, row in enumerate(body["rationales"]):
        id_ = annotation_id(body["key"], row["task"], origin, str(ordinal), row["rationale"])
        yield Example(id=id_, key=body["key"], origin=origin, **row)


def group_members(files: Iterator[tuple[str, bytes]], where: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield key and contents by extension of each sample: members of one sample are adjacent."""
    key, members = "", dict[str, bytes]()
    for name, data in files:
        stem, _, ext = name.partition(".")
        if stem != key and members:
            yield key, members
            members = {}
        key = stem
        if not stem or not ext or ext in members:
            raise StorageError(f"{where}: {name!r} is not a member of a sample, or a duplicate. Write the shard again.")
        members[ext] = data
    if members:
        yield key, members
