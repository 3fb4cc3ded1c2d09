"""Reader of COCO captions JSON, with COCO instances JSON for the boxes of the same images.

One row per image, in the order of `images`, with all its captions. Boxes (x, y, width, height in pixels) become corners
as fractions. A crowd region is not one object: it is listed in `meta` under ``crowd``, not in the boxes. Licences are
given by name. Boxes of images without captions are not used, nor those of an image with a bad one (`normaliser.py`).
Ids are compared as text, so that 123, 123.0 and "123" are equal: tools write each, and a pair's source id is a text.

A caption that VizWiz marks as spam or as ready-made (``is_rejected``, ``is_precanned``) is rejected, as its challenge does.

Limits: both files are held in memory.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.brace_patterns import expand_braces
from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.boxes import CROWD, read_boxes
from pairwright.datasets.readers.field_values import parse_pixel_size
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.text_files import json_type_name, parse_object, read_text_bytes
from pairwright.datasets.rejects import FLAGGED_CAPTION, Reject, RejectError, make_reject

_FLAGS = ("is_rejected", "is_precanned")  # of captions in VizWiz
AnnotationsByImage = dict[str, list[dict[str, Any]]]


def read_coco(path: Path, instances: Path | None = None) -> InputRowIterator:
    """Yield a row per image; places are ``file:image ID`` and ``file:annotation ID``.

    Args:
        path: captions JSON.
        instances: instances JSON of the same images.

    Raises:
        InputError: if a file is no COCO JSON, or the instances are of other images.
    """
    data = _load(path)
    known = {_id_text(image["id"]) for image in data["images"] if _has_id(image)}
    captions: AnnotationsByImage = defaultdict(list)
    flagged: dict[str, list[Reject]] = defaultdict(list)
    for number, annotation in enumerate(data["annotations"], 1):
        flaw = _annotation_flaw(path, number, annotation, known)
        if flaw and flaw.reason == FLAGGED_CAPTION:
            flagged[_id_text(annotation["image_id"])].append(flaw)
        elif flaw:
            yield flaw
        else:
            captions[_id_text(annotation["image_id"])].append(annotation.get("caption"))
    boxes = _InstanceBoxes(instances) if instances else None
    if boxes and known and boxes.images and known.isdisjoint(boxes.images):
        fix = "Give the instances of the same images, in the order of the captions files."
        raise InputError(f"none of its images is in {path}", where=str(instances), fix=fix)
    yield from boxes.flaws if boxes else ()
    licenses = _names_by_id(data.get("licenses"))
    for number, image in enumerate(data["images"], 1):
        if not _has_id(image):
            yield make_reject(
                f"{path}:image number {number}", "wrong_type", "an image is an object with an id", str(image)
            )
            continue
        id_ = _id_text(image["id"])
        place = f"{path}:image {id_}"
        if id_ not in known:
            yield make_reject(place, "duplicate_key", "an image of this id came before", image)
            continue
        known.remove(id_)
        if id_ in flagged and id_ not in captions:
            yield replace(flagged[id_][0], place=place, part="row")
            continue
        yield from flagged.get(id_, ())
        yield _row(place, image, captions.pop(id_, []), boxes, licenses)


def list_instance_files(written: str) -> list[Path]:
    """Return the instances files that a user named: none, a path, or those of a brace pattern, one per captions file."""
    if not written:
        return []
    is_pattern = "{" in written and not Path(written).exists()
    return list(map(Path, expand_braces(written) if is_pattern else [written]))


def read_categories(path: Path) -> tuple[str, ...]:
    """Return the categories that an instances file annotates in every image; empty if it states exceptions.

    Files in LVIS's layout list, for each image, categories that are not annotated exhaustively.

    Raises:
        InputError: if it is not COCO JSON.
    """
    data = _load(path)
    if any(isinstance(image, dict) and "not_exhaustive_category_ids" in image for image in data["images"]):
        return ()
    names = (name.strip().lower() for name in _names_by_id(data.get("categories")).values() if isinstance(name, str))
    return tuple(dict.fromkeys(filter(None, names)))


def _load(path: Path) -> dict[str, Any]:
    try:
        data = parse_object(read_text_bytes(path), "file")
    except RejectError as flaw:
        raise InputError(f"not COCO JSON: {flaw.detail}", where=str(path), fix="Correct the file.") from None
    for name in ("images", "annotations"):
        if not isinstance(data.get(name), list):
            raise InputError(f"not COCO JSON: no list {name!r}", where=str(path), fix="Give the captions file.")
    return data


def _is_id(value: Any) -> bool:
    if isinstance(value, float):  # pandas writes whole numbers so if others are missing
        return value.is_integer()
    return isinstance(value, int | str) and not isinstance(value, bool)


def _id_text(value: Any) -> str:
    return str(int(value) if isinstance(value, float) else value)


def _has_id(value: Any, name: str = "id") -> bool:
    return isinstance(value, dict) and _is_id(value.get(name))


def _annotation_flaw(path: Path, number: int, annotation: Any, known: set[str]) -> Reject | None:
    if not _has_id(annotation, "image_id"):
        place = f"{path}:annotation number {number}"
        what = "an annotation is an object with an image_id"
        return make_reject(place, "wrong_type", what, str(annotation), part="caption")
    place = f"{path}:annotation {annotation.get('id', f'number {number}')}"
    id_ = _id_text(annotation["image_id"])
    if id_ not in known:
        what = f"no image has the id {id_}"
        return make_reject(place, "unknown_image", what, annotation, part="caption")
    if "caption" not in annotation:
        return make_reject(place, "empty_caption", "the annotation has no caption", annotation, part="caption")
    flags = [name for name in _FLAGS if annotation.get(name) is True]
    if flags:
        return make_reject(place, FLAGGED_CAPTION, f"{' and '.join(flags)} in the dataset", annotation, part="caption")
    return None


def _row(
    place: str, image: Mapping[str, Any], captions: list[Any], boxes: "_InstanceBoxes | None", licenses: dict[str, str]
) -> InputRow:
    fields = {name: value for name, value in image.items() if name != "id"}
    fields |= {"image_id": image["id"], "captions": captions}
    if "file_name" not in fields and "coco_url" in fields:
        fields["url"] = fields["coco_url"]
    if "license" in fields and _is_id(fields["license"]):
        fields["license"] = licenses.get(str(fields["license"]), fields["license"])
    bad_box = ""
    if boxes:
        try:
            fields |= boxes.box_fields(image)
        except RejectError as flaw:
            bad_box = flaw.detail
    return InputRow(place, fields, bad_box=bad_box)


def _names_by_id(entries: Any) -> dict[str, str]:
    entries = entries if isinstance(entries, list) else []
    return {_id_text(entry["id"]): entry["name"] for entry in entries if _has_id(entry) and "name" in entry}


class _InstanceBoxes:
    """The instances of each image; ``images`` are ids, ``flaws`` rejects without an image."""

    def __init__(self, path: Path) -> None:
        data = _load(path)
        self._labels = _names_by_id(data.get("categories"))
        self._sizes = {_id_text(image["id"]): image for image in data["images"] if _has_id(image)}
        self.flaws: list[Reject] = []
        self._instances: AnnotationsByImage = defaultdict(list)
        for number, instance in enumerate(data["annotations"], 1):
            if _has_id(instance, "image_id"):
                self._instances[_id_text(instance["image_id"])].append(instance)
            else:
                what = "an instance is an object with image_id, category_id and bbox"
                self.flaws.append(
                    make_reject(f"{path}:annotation number {number}", "wrong_type", what, str(instance)[:500])
                )

        self.images = {*self._sizes, *self._instances}

    def box_fields(self, image: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields `boxes` and, if there are crowds, `crowd` of an image, both as fractions."""
        other = self._sizes.get(_id_text(image["id"]), {})
        size = [image.get(name) or other.get(name) for name in ("width", "height")]
        crowds, single = list[Any](), list[Any]()
        for instance in self._instances.get(_id_text(image["id"]), []):
            (crowds if instance.get("iscrowd") else single).append(self._box(instance))
        fields = {"boxes": _in_fractions(single, *size)}
        return fields | ({CROWD: _in_fractions(crowds, *size)} if crowds else {})

    def _box(self, instance: Mapping[str, Any]) -> dict[str, Any]:
        label = self._labels.get(_id_text(instance["category_id"])) if _has_id(instance, "category_id") else None
        if label is None:
            raise RejectError("bad_box", f"no category has the id {instance.get('category_id')}")
        box = instance.get("bbox")
        if not isinstance(box, list) or len(box) != 4 or not all(isinstance(n, int | float) for n in box):
            raise RejectError("bad_box", f"a box is {json_type_name(box)}, not four numbers")
        x, y, width, height = box
        return {"label": label, "bbox": [x, y, x + width, y + height]}


def _in_fractions(boxes: list[Any], width: Any, height: Any) -> list[dict[str, Any]]:
    if not boxes:
        return []  # which need no size
    size = parse_pixel_size(width, "width"), parse_pixel_size(height, "height")
    return [asdict(box) for box in read_boxes(boxes, *size, "pixel")]
