"""Checks of LLaVA JSON files: ids, order of turns, image tokens, image files."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.readers.text_files import read_text_bytes
from pairwright.datasets.records import IMAGE_TOKEN

_ID_NAMES = ("id", "sample_id", "question_id")  # the second is LLaVA-Interleave's (M4-Instruct)


def check_llava(path: Path, image_root: Path | None = None) -> list[str]:
    """Return the problems of a LLaVA JSON file: ids, order of turns, number of image tokens, missing images.

    Ids may be missing in all rows, but not in some of them.

    Args:
        path: of the JSON file.
        image_root: folder of the images; None skips them.

    Raises:
        StorageError: if the file is not a JSON list.
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
    with_ids = any(_row_id(row) for row in rows if isinstance(row, dict))  # no trainer reads them
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            problems.append(f"row {number}: not an object, but {type(row).__name__}")
            continue
        row_id = _row_id(row)
        name = f"row {row_id!r}" if row_id else f"row {number}"
        problems += [f"{name}: {fault}" for fault in _row_problems(row, image_root)]
        if with_ids and (not row_id or row_id in seen):
            problems.append(f"{name}: the id is empty or repeated")
        seen.add(row_id)
    return problems


def _row_id(row: Mapping[str, Any]) -> str:
    """Return the id of a row, under the name of LLaVA or of another tool; empty if it has none."""
    return next((str(row[name]) for name in _ID_NAMES if row.get(name) not in (None, "")), "")


def _row_problems(row: dict[str, Any], image_root: Path | None) -> Iterator[str]:
    if "conversations" not in row:
        yield f"no conversations; it has: {', '.join(row)[:200] or 'nothing'}"
        return
    turns = row["conversations"] or []
    if not isinstance(turns, list) or not all(
        isinstance(turn, dict) and isinstance(turn.get("value"), str) for turn in turns
    ):
        yield "its conversations are not a list of turns with from and value"
        return
    speakers = [turn.get("from") for turn in turns]
    if not turns or speakers != ["human", "gpt"] * (len(turns) // 2):
        yield f"turns by {speakers} instead of human, gpt, human, gpt ..."
        return
    if not all(turn["value"].strip() for turn in turns):
        yield "a turn is empty"
    images = row["image"] if isinstance(row.get("image"), list) else [row["image"]] if "image" in row else []
    marks = [turn["value"].count(IMAGE_TOKEN) for turn in turns]
    # Several images may be spread over the questions, as in LLaVA-NeXT-Interleave.
    questions = marks[::2] if len(images) > 1 else marks[:1]
    if sum(questions) != len(images) or sum(marks) != len(images):
        yield f"{IMAGE_TOKEN} occurs {marks} times in its turns, for {count_phrase(len(images), 'image')}"
    if image_root is not None:
        missing = (image for image in images if not (image_root / str(image)).is_file())
        yield from (f"no image {image} in {image_root}" for image in missing)
