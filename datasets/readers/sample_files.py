"""A sample of several files under one name: image, caption (``.txt``), fields (``.json``).

So img2dataset lays them out, in folders and in shards alike. The .txt is the caption; the .json gives the
fields; where both say caption or image and differ, the .json's word is kept as ``caption_in_json`` or
``image_in_json``. Files of other kinds are named in ``other_files``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pairwright.datasets.images.loading import IMAGE_SUFFIXES
from pairwright.datasets.images.unsupported_formats import UNSUPPORTED_SUFFIXES as UNREAD
from pairwright.datasets.readers.input_rows import InputRow
from pairwright.datasets.readers.text_files import BOM, MAX_LINE, parse_object, parse_text
from pairwright.datasets.rejects import Reject, RejectError, make_reject

PROVENANCE_FIELDS = ("source", "source_id", "license", "width", "height", "captions")

ByteReader = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class SampleFile:
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
    read: ByteReader


def build_sample_row(place: str, key: str, files: Sequence[SampleFile]) -> InputRow | Reject:
    """Return the row of a sample.

    Args:
        place: of the sample, for messages.
        key: the name that its files share; the source id where the .json names none.
        files: at most one of each suffix.
    """
    try:
        return _row(place, key, {file.suffix: file for file in files})
    except RejectError as flaw:
        return make_reject(place, flaw.reason, flaw.detail, [file.name for file in files])


def _row(place: str, key: str, files: dict[str, SampleFile]) -> InputRow:
    text, data = files.pop(".txt", None), files.pop(".json", None)
    # One that cannot be read is the image all the same, where there is no other: who looks at it tells.
    images = [files.pop(suffix) for suffix in sorted((IMAGE_SUFFIXES & files.keys()) or (UNREAD & files.keys()))]
    if len(images) > 1:
        raise RejectError("duplicate_member", f"two images: {images[0].name}, {images[1].name}")
    if text is None and data is None:
        raise RejectError("missing_caption", "no .txt and no .json with a caption")
    fields = {} if data is None else parse_object(_read_bounded(data), "sample's .json")
    _restore_provenance(fields)
    if text is not None:
        _put(fields, "caption", parse_text(_read_bounded(text)).removesuffix("\n").removesuffix("\r"))
    if images:
        _put(fields, "image", images[0].name)
    if files:
        fields["other_files"] = sorted(files)
    fields.setdefault("key", key)
    return InputRow(place, fields, images[0].read if images else None)


def _restore_provenance(fields: dict[str, Any]) -> None:
    """Bring up what pairwright's own shards keep of the pair under `provenance`, so that its key stays."""
    provenance = fields.get("provenance")
    if isinstance(provenance, dict) and {"source", "source_id", "made_by"} <= provenance.keys():
        lifted = {name: provenance[name] for name in PROVENANCE_FIELDS if name in provenance and name not in fields}
        fields.update(lifted)
        fields["provenance"] = {name: value for name, value in provenance.items() if name not in lifted}


def _put(fields: dict[str, Any], name: str, value: str) -> None:
    if fields.get(name) not in (None, value):
        fields[f"{name}_in_json"] = fields[name]
    fields[name] = value


def _read_bounded(file: SampleFile) -> bytes:
    if file.size > MAX_LINE:
        raise RejectError("field_too_long", f"{file.name} is larger than {MAX_LINE} bytes")
    return file.read().removeprefix(BOM)
