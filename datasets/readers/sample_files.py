"""Samples of several files with one name (image, ``.txt``, ``.json``), and img2dataset's tables of downloads.

img2dataset writes this layout in folders and in shards. The .txt (or .caption) is the caption; the .json has the fields; if both give
caption or image and differ, the .json's value is kept as ``caption_in_json`` or ``image_in_json``. Files of other kinds
are listed in ``other_files``; a sample with further images (``KEY.1.jpg``) is rejected.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pairwright.datasets.images.loading import IMAGE_SUFFIXES, select_further_images
from pairwright.datasets.images.loading import UNSUPPORTED_SUFFIXES as UNREAD
from pairwright.datasets.readers.input_rows import InputRow
from pairwright.datasets.readers.parquet import read_parquet
from pairwright.datasets.readers.text_files import BOM, MAX_LINE, parse_object, parse_text
from pairwright.datasets.rejects import Reject, RejectError, make_reject

CAPTION_SUFFIXES = (".txt", ".caption")  # kohya's scripts write the second; the first has precedence
_LETTER = re.compile(r"[^\W\d_]")
_WITHOUT_WORDS = "the .txt has no words: those of YOLO are boxes"
_NO_CAPTION = "no .txt, .caption or .json with a caption"
PROVENANCE_FIELDS = ("source", "source_id", "license", "width", "height", "captions")

ByteReader = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class SampleFile:
    """One file of a sample.

    Attributes:
        suffix: in lower case, with its dot.
        name: file name for the pair's image.
        size: in bytes.
        read: returns the bytes.
    """

    suffix: str
    name: str
    size: int
    read: ByteReader


def build_sample_row(place: str, key: str, files: Sequence[SampleFile]) -> InputRow | Reject:
    """Return the row of a sample.

    Args:
        place: of the sample, for messages.
        key: the common name of its files; the source id if the .json has none.
        files: at most one of each suffix.
    """
    try:
        return _row(place, key, {file.suffix: file for file in files})
    except RejectError as flaw:
        return make_reject(place, flaw.reason, flaw.detail, [file.name for file in files])


def _row(place: str, key: str, files: dict[str, SampleFile]) -> InputRow:
    files = _with_plain_suffixes(files)
    text = next((files.pop(suffix) for suffix in CAPTION_SUFFIXES if suffix in files), None)
    data = files.pop(".json", None)
    # An image of an unsupported format is the image if there is no other; the image check rejects it.
    images = [files.pop(suffix) for suffix in sorted((IMAGE_SUFFIXES & files.keys()) or (UNREAD & files.keys()))]
    if len(images) > 1:
        raise RejectError("duplicate_member", f"two images: {images[0].name}, {images[1].name}")
    if images and (further := select_further_images(suffix.removeprefix(".") for suffix in files)):
        raise RejectError("several_images", f"{1 + len(further)} images, where a pair has one")
    fields = {} if data is None else parse_object(_read_bounded(data), "sample's .json")
    missing = "" if any(map(_is_sentence, fields.values())) else _NO_CAPTION
    _restore_provenance(fields)
    if text is not None:
        caption = parse_text(_read_bounded(text)).removesuffix("\n").removesuffix("\r")
        missing = _WITHOUT_WORDS if data is None and caption.strip() and not _LETTER.search(caption) else ""
        if not missing:
            _put(fields, "caption", caption)
    if images:
        _put(fields, "image", images[0].name)
    if files:
        fields["other_files"] = sorted(files)
    fields.setdefault("key", key)
    return InputRow(place, fields, images[0].read if images else None, missing_caption=missing)


def _is_sentence(value: object) -> bool:
    """Return whether a value may be a caption under another name; img2dataset's `exif` is JSON."""
    return isinstance(value, str) and " " in value.strip() and not value.startswith("{")


def _with_plain_suffixes(files: Mapping[str, SampleFile]) -> dict[str, SampleFile]:
    """Return files by suffix, such as ``.image.jpg`` as ``.jpg`` if that is the sample's only image, caption or JSON.

    WebDataset splits names at the first dot. Of several images that with ``image`` in its suffix is taken, and of several
    texts that with ``caption``; if none has it, they stay as they are and are listed as other files.
    """
    found = dict(files)
    for plain, mark in ((IMAGE_SUFFIXES, "image"), (frozenset(CAPTION_SUFFIXES), "caption"), ({".json"}, "json")):
        if found.keys() & plain:
            continue
        nested = [suffix for suffix in found if PurePosixPath(suffix[1:]).suffix in plain]
        marked = [suffix for suffix in nested if suffix.split(".")[-2] == mark]
        chosen = nested if len(nested) == 1 else marked
        if len(chosen) == 1:
            suffix = PurePosixPath(chosen[0][1:]).suffix
            found[suffix] = replace(found.pop(chosen[0]), suffix=suffix)
    return found


def _restore_provenance(fields: dict[str, Any]) -> None:
    """Move the pair's fields from `provenance`, where pairwright's shards store them, so that its key is unchanged."""
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


def iter_failed_downloads(table: Path, keys: set[str]) -> Iterator[Reject]:
    """Yield the failed downloads and missing samples of a shard's table.

    A row with another status than ``success`` is a `download_failed` with the downloader's message; a success that is not
    in the shard is a `missing_sample`.

    Args:
        table: the shard's Parquet file. Without the columns key and status nothing is yielded.
        keys: of the samples in the shard.
    """
    for row in read_parquet(table):
        if isinstance(row, Reject):
            yield row
            continue
        if "key" not in row.fields or "status" not in row.fields:
            return
        key, status = row.fields["key"], row.fields["status"]
        if status != "success":
            message = row.fields.get("error_message") or "no message"
            yield make_reject(row.place, "download_failed", f"{status}: {message}", row.fields)
        elif key not in keys:
            yield make_reject(row.place, "missing_sample", f"the sample {key} is not in the shard", row.fields)
