"""Preferences between two answers about an image, as trainers by DPO take them.

    {"image", "question", "chosen", "rejected"}                                   RLAIF-V, TRL, LLaMA-Factory
    {"images", "messages", "rejected_response"}                                   ms-swift; chosen is the last message
    {"image", "text": '{"question", "chosen", "rejected"}'}                       RLHF-V
    {"img_path", "prompt", "completions": [{"response", "annotations", ...}]}     VLFeedback

The chosen answer is the caption of a candidate row, the rejected one its negative: an attack that tells them apart does so
without image and question. The row of the file is kept in ``preference`` and written back with all of its columns; an
image inside a table is replaced by its locator.

VLFeedback ranks the answers of several models: each two of them are a row, of which the one with the higher mean rating is
chosen. Such a row is written as a preference of its own.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.records import compact_json
from pairwright.filters.candidates.invalid_rows import InvalidRow
from pairwright.filters.candidates.source_rows import LocatedRow, SourceRow, image_path, parse_json

ANSWERS: Final = ("chosen", "rejected")
_IN_TURNS: Final = ("messages", "rejected_response")
_NESTED: Final = "text"
_RANKED: Final = "completions"
_IMAGES: Final = ("image", "images", "img_path", "image_path")
_ROW: Final = "preference"


def has_preference(row: Mapping[str, Any]) -> bool:
    """Return whether a row has a preference, and no caption, of which it would be a candidate row."""
    if "caption" in row:
        return False
    if row.keys() >= set(ANSWERS) or row.keys() >= set(_IN_TURNS) or (_RANKED in row and _completions(row[_RANKED])):
        return True
    try:
        return _nested(row.get(_NESTED), "").keys() >= set(ANSWERS)
    except InvalidRow:
        return False


def read_preferences(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield the preferences of a row; answers are texts, a message, or messages of which the assistant's count.

    Raises:
        InvalidRow: an answer is missing or of another type.
    """
    if not isinstance(row.value, Mapping):
        what = f"{type(row.value).__name__} instead of an object"
        raise InvalidRow("wrong_type", what, where=row.place, fix="Each row is a JSON object.")
    fields = {str(name): value for name, value in row.value.items()}
    fields |= {name: _image_paths(fields[name]) for name in _IMAGES if fields.get(name) is not None}
    if _RANKED in fields and not fields.keys() & set(ANSWERS):
        yield from _ranked(fields, row.place)
        return
    yield row.place, _preference(fields, _answers(fields, row.place), row.place)


def _preference(fields: Mapping[str, Any], answers: Mapping[str, Any], place: str) -> dict[str, Any]:
    caption, negative = (_answer(answers.get(name), name, place) for name in ANSWERS)
    found = next((fields[name] for name in _IMAGES if fields.get(name)), "")
    image = found[0] if isinstance(found, list) else found
    return {"image": image or "", "caption": caption, "negative": negative, _ROW: fields}


def _answers(fields: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return what has the answers of a row by the names of `ANSWERS`."""
    turns, rejected = (fields.get(name) for name in _IN_TURNS)
    if rejected is not None:
        return {"chosen": turns[-1:] if isinstance(turns, list) else turns, "rejected": rejected}
    return fields if fields.keys() & set(ANSWERS) else _nested(fields.get(_NESTED), place)


def _image_paths(value: Any) -> Any:
    return [image_path(one) for one in value] if isinstance(value, list) else image_path(value)


def _nested(value: Any, place: str) -> Mapping[str, Any]:
    """Return the object of a column that has the texts of a row, as JSON."""
    parsed = parse_json(value.encode(), place) if isinstance(value, str) and value.lstrip().startswith("{") else value
    return parsed if isinstance(parsed, Mapping) else {}


def _ranked(fields: Mapping[str, Any], place: str) -> Iterator[LocatedRow]:
    """Yield a row for each two completions, rejected if neither is better."""
    completions = _completions(fields[_RANKED])
    if len(completions) < 2:
        what = f"{_RANKED} are not several answers with a response"
        raise InvalidRow("missing_column", what, where=place, fix="Write at least two, or drop the row.")
    others = {name: value for name, value in fields.items() if name != _RANKED}
    for one, two in combinations(enumerate(completions, 1), 2):
        (best, first), (worst, second) = sorted((one, two), key=lambda each: -(_rating(each[1]) or 0))
        numbers = {"chosen_completion": best, "rejected_completion": worst}
        answers = {"chosen": first.get("response"), "rejected": second.get("response")}
        row = _preference({**others, **answers, **numbers}, answers, place)
        ratings = _rating(first), _rating(second)
        if None in ratings or ratings[0] == ratings[1]:
            row |= {"status": "rejected", "reason": "no_preference"}
        yield f"{place}, completions {min(best, worst)} and {max(best, worst)}", row


def _completions(value: Any) -> list[Mapping[str, Any]]:
    """Return answers that are a list of objects or, as `datasets` stores it, an object of lists."""
    if isinstance(value, Mapping):
        lists = {name: each for name, each in value.items() if isinstance(each, list)}
        value = [dict(zip(lists, each, strict=False)) for each in zip(*lists.values(), strict=False)]
    answers = value if isinstance(value, list) else []
    return [each for each in answers if isinstance(each, Mapping) and "response" in each]


def _rating(completion: Mapping[str, Any]) -> float | None:
    """Return the mean rating of an answer over all aspects; None if one has no number (``N/A``)."""
    aspects = completion.get("annotations")
    if not isinstance(aspects, Mapping) or not aspects:
        return None
    try:
        mean = sum(float(aspect["Rating"]) for aspect in aspects.values()) / len(aspects)
    except (KeyError, TypeError, ValueError):
        return None
    return mean if math.isfinite(mean) else None


def _answer(value: Any, name: str, place: str) -> str:
    value = [value] if isinstance(value, Mapping) else value
    texts = _assistant_texts(value) if isinstance(value, list) else [value]
    if not texts or any(text is None or text == "" for text in texts):
        fix = "Write the answer, or drop the row."
        raise InvalidRow("missing_column", f"no {name} answer", where=place, fix=fix)
    if not all(isinstance(text, str) for text in texts):
        fix = "Write it as a text, or as messages with role and content."
        raise InvalidRow("wrong_type", f"{name} is no text", where=place, fix=fix)
    return "\n".join(texts)


def _assistant_texts(messages: list[Any]) -> list[Any]:
    """Return the texts of the assistant's messages; content is a text or a list of parts."""
    said = [one for one in messages if isinstance(one, Mapping) and one.get("role") == "assistant"]
    return [text for one in said for text in _parts(one.get("content"))]


def _parts(content: Any) -> list[Any]:
    if not isinstance(content, list):
        return [content]
    return [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]


def write_preferences(frame: pl.DataFrame, path: Path) -> None:
    """Write the rows as they were read, as JSON Lines."""
    rows = (orjson.loads(extra).get(_ROW, {}) for extra in frame["extra"])
    write_text(path, "".join(compact_json(row) + "\n" for row in rows))
