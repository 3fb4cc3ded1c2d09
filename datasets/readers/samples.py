"""A sample of several files under one name: image, caption (``.txt``), fields (``.json``).

So img2dataset lays them out, in folders and in shards alike. The .txt is the caption; the .json gives the
fields; where both say caption or image and differ, the .json's word is kept as ``caption_in_json`` or
``image_in_json``. Files of other kinds are named in ``other_files``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pairwright.datasets.images import SUFFIXES
from pairwright.datasets.readers.rows import Row
from pairwright.datasets.readers.text import BOM, MAX_LINE, parse_object, parse_text
from pairwright.datasets.rejects import Refused, Reject, reject
from pairwright.datasets.unread_pictures import SUFFIXES as UNREAD

LIFTED = ("source", "source_id", "license", "width", "height", "captions")

Reader = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class File:
    """One file of a sample.

    Attributes:
        suffix: lower case, with its dot.
        name: file name as the pair's image shall name it.
        size: bytes.
        read: gives the bytes.
    """

    suffix: str
    name: str
    size: int
    read: Reader


def sample_row(place: str, key: str, files: Sequence[File]) -> Row | Reject:
    """Return the row of a sample.

    Args:
        place: of the sample, for messages.
        key: the name that its files share; the source id where the .json names none.
        files: at most one of each suffix.
    """
    try:
        return _row(place, key, {file.suffix: file for file in files})
    except Refused as flaw:
        return reject(place, flaw.reason, flaw.detail, [file.name for file in files])


def _row(place: str, key: str, files: dict[str, File]) -> Row:
    text, data = files.pop(".txt", None), files.pop(".json", None)
    # One that cannot be read is the image all the same, where there is no other: who looks at it tells.
    images = [files.pop(suffix) for suffix in sorted((SUFFIXES & files.keys()) or (UNREAD & files.keys()))]
    if len(images) > 1:
        raise Refused("duplicate_member", f"two images: {images[0].name}, {images[1].name}")
    if text is None and data is None:
        raise Refused("missing_caption", "no .txt and no .json with a caption")
    fields = {} if data is None else parse_object(_bounded(data), "sample's .json")
    _lift(fields)
    if text is not None:
        _put(fields, "caption", parse_text(_bounded(text)).removesuffix("\n").removesuffix("\r"))
    if images:
        _put(fields, "image", images[0].name)
    if files:
        fields["other_files"] = sorted(files)
    fields.setdefault("key", key)
    return Row(place, fields, images[0].read if images else None)


def _lift(fields: dict[str, Any]) -> None:
    """Bring up what pairwright's own shards keep of the pair under `provenance`, so that its key stays."""
    provenance = fields.get("provenance")
    if isinstance(provenance, dict) and {"source", "source_id", "made_by"} <= provenance.keys():
        lifted = {name: provenance[name] for name in LIFTED if name in provenance and name not in fields}
        fields.update(lifted)
        fields["provenance"] = {name: value for name, value in provenance.items() if name not in lifted}


def _put(fields: dict[str, Any], name: str, value: str) -> None:
    if fields.get(name) not in (None, value):
        fields[f"{name}_in_json"] = fields[name]
    fields[name] = value


def _bounded(file: File) -> bytes:
    if file.size > MAX_LINE:
        raise Refused("huge_field", f"{file.name} is larger than {MAX_LINE} bytes")
    return file.read().removeprefix(BOM)
