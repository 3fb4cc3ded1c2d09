"""LLaVA JSON: one conversation a row, as LLaVA's and LLaVA-1.5's training code reads it.

A row is ``id``, ``image`` and ``conversations`` of ``{"from": "human" | "gpt", "value"}``. The mark ``<image>``
stands exactly once, in the first human turn, before or after the question at random (a function of seed, key and
place). A text-only pair gives rows with neither ``image`` nor mark. A mark that stood in a text by itself is written
``< image >``, since a trainer would take it for another picture. `check_llava` is the validator.

Rows whose image file is not there are written, and told as ``missing_images``; pairs that have no conversation have no
row, and are told as ``without_conversations``.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.exports.writing import (
    ExportOptions,
    ExportResult,
    ImageNames,
    list_conversations,
    write_json_list,
)
from pairwright.datasets.images.loading import is_table_cell, split_locator
from pairwright.datasets.readers.text_files import read_text_bytes
from pairwright.datasets.records import IMAGE_TOKEN, Annotation
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample

VERSION = 1
_ROLE_NAMES = {"human": "human", "assistant": "gpt"}


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the conversations of ``source`` to the JSON file ``out``; told of it: ``missing_images``, ``without_conversations``."""
    rows = _LlavaRows(source, options)
    written = write_json_list(rows.each(), out)
    return replace(written, told={"missing_images": len(rows.missing), "without_conversations": rows.without})


@dataclass
class _LlavaRows:
    source: SampleSource
    options: ExportOptions
    missing: set[str] = field(default_factory=set)
    without: int = 0

    def each(self) -> Iterator[dict[str, Any]]:
        names = ImageNames(self.options)
        for sample in self.source.samples():
            found = list_conversations(sample)
            self.without += not found
            image = names.name(sample) if found else ""
            if image and self._is_missing(sample):
                self.missing.add(sample.pair.image)
            for ordinal, annotation in enumerate(found):
                row: dict[str, Any] = {"id": f"{sample.pair.key}-{ordinal}"}
                if image:
                    row["image"] = image
                before = make_rng(self.options.seed, 0, "llava", VERSION, sample.pair.key, ordinal).random() < 0.5
                row["conversations"] = list(_turns(annotation, bool(image), before=before))
                yield row

    def _is_missing(self, sample: Sample) -> bool:
        """Whether the image is no file, or one that is not there; what a URL leads to is not looked at."""
        if sample.image is not None or self.options.images is not None or "://" in sample.pair.image:
            return False
        if is_table_cell(sample.pair.image):
            return True
        path, _ = split_locator(sample.pair.image)
        return not (self.options.image_root or Path()).joinpath(path).is_file()


def _turns(annotation: Annotation, has_image: bool, *, before: bool) -> Iterator[dict[str, str]]:  # noqa: FBT001
    for number, turn in enumerate(annotation.turns):
        value = turn.text.replace(IMAGE_TOKEN, "< image >")
        if number == 0 and has_image:
            value = f"{IMAGE_TOKEN}\n{value}" if before else f"{value}\n{IMAGE_TOKEN}"
        yield {"from": _ROLE_NAMES[turn.role], "value": value}


def check_llava(path: Path, image_root: Path | None = None) -> list[str]:
    """Return what is wrong with a LLaVA JSON file: ids, order of turns, number of marks, missing images.

    Args:
        path: of the JSON file.
        image_root: folder of the images; None does not look for them.

    Raises:
        StorageError: when the file is not a JSON list.
    """
    try:
        rows = json.loads(read_text_bytes(path))
    except InputError as error:
        raise StorageError(str(error)) from None
    except ValueError as error:
        raise StorageError(f"{path}: not a readable JSON file ({error}). Export it again.") from None
    if not isinstance(rows, list):
        raise StorageError(f"{path}: not a JSON list. Export it again.")
    problems, seen = [], set[str]()
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            problems.append(f"row {number}: no object, but {type(row).__name__}")
            continue
        row_id = str(row.get("id", ""))
        name = f"row {row_id!r}" if row_id else f"row {number}"
        problems += [f"{name}: {fault}" for fault in _row_problems(row, image_root)]
        if not row_id or row_id in seen:
            problems.append(f"{name}: the id is empty or stands twice")
        seen.add(row_id)
    return problems


def _row_problems(row: dict[str, Any], image_root: Path | None) -> Iterator[str]:
    turns = row.get("conversations") or []
    if not isinstance(turns, list) or not all(
        isinstance(turn, dict) and isinstance(turn.get("value"), str) for turn in turns
    ):
        yield "its conversations are no list of turns with from and value"
        return
    speakers = [turn.get("from") for turn in turns]
    if not turns or speakers != ["human", "gpt"] * (len(turns) // 2):
        yield f"turns by {speakers} instead of human, gpt, human, gpt ..."
        return
    if not all(turn["value"].replace(IMAGE_TOKEN, "").strip() for turn in turns):
        yield "a turn says nothing"
    marks = [turn["value"].count(IMAGE_TOKEN) for turn in turns]
    if marks[0] != int("image" in row) or any(marks[1:]):
        yield f"{IMAGE_TOKEN} stands {marks} times in its turns"
    if "image" in row and image_root is not None and not (image_root / str(row["image"])).is_file():
        yield f"no image {row['image']} in {image_root}"
