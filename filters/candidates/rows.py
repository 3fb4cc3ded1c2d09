"""Candidate rows: a caption, a hard negative, and the status of the row.

`refine` and `audit` work on such rows, whatever wrote them. A row has the columns below; only ``caption`` and
``negative`` (or ``negative_caption``) are required. All other data of a row is kept in ``extra`` and written back.
Files: `files.py`. An invalid row stops the reading, or is counted and skipped: `invalid_rows.py`.

The *positive* of a row is the text that the negative is compared with: ``positive`` (a hard positive, in both-sides
pairs) where there is one, else the caption. A row that is already rejected stays unchanged. SHUFFLE is for training
only: such rows are read as rejected, with the reason ``for_training``.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.progress import track
from pairwright.datasets.readers.field_values import parse_identifier
from pairwright.datasets.record_tables import EDIT, SCORE, STATUSES, make_column
from pairwright.datasets.records import TRAINING_ONLY_FORMS, compact_json
from pairwright.datasets.rejects import RejectError
from pairwright.filters.candidates.invalid_rows import InvalidRow, InvalidRowPolicy
from pairwright.filters.candidates.source_rows import image_path

SCHEMA = pl.Schema(
    {
        "id": pl.String(),
        "key": pl.String(),
        "image": pl.String(),
        "caption": pl.String(),
        "negative": pl.String(),
        "positive": pl.String(),
        "form": pl.String(),
        "target": pl.String(),
        "edit": pl.List(EDIT),
        "scores": pl.List(SCORE),
        "status": pl.String(),
        "reason": pl.String(),
        "extra": pl.String(),
    }
)
FOR_TRAINING = "for_training"  # reason of rows whose type no benchmark contains
_TEXTS = ("id", "key", "image", "positive", "form", "target", "reason")
_ALIASES = {"negative_caption": "negative", "positive_caption": "positive", "filename": "image"}


def candidate_frame(
    rows: Iterable[tuple[str, Mapping[str, Any] | InvalidRow]], screening: InvalidRowPolicy | None = None
) -> pl.DataFrame:
    """Return rows as a checked frame with ``SCHEMA``, in the given order, without nulls.

    Args:
        rows: (place for messages, row as a mapping, or the error of an invalid row). A row without an id gets one from
            its
            content.
        screening: policy for invalid rows; without, the first is raised.

    Raises:
        InputError: a row lacks a text, has a value of the wrong type, or repeats an id.
    """
    seen: dict[str, str] = {}
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA}
    for place, given in track(rows, "reading rows"):
        try:
            row = _with_unique_id(given, place, seen)
        except InvalidRow as flaw:
            if screening is None:
                raise
            screening.judge(flaw)
            continue
        seen[row["id"]] = place
        for name, values in columns.items():
            values.append(row[name])
    return pl.DataFrame([_column(name, values) for name, values in columns.items()])


def candidate_rows(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows of a candidate frame as JSON-ready mappings: scores as name to number, without ``extra``."""
    for row in frame.drop("extra").iter_rows(named=True):
        yield row | {"scores": {score["name"]: score["value"] for score in row["scores"]}}


def complete_rows(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows of `candidate_rows`, each with the fields of its input that have no column (``extra``)."""
    for extra, row in zip(frame["extra"], candidate_rows(frame), strict=True):
        yield orjson.loads(extra) | row


def edit_type_name(form: str, target: str) -> str:
    """Return the name of an edit type in reports: ``replace-object``; ``other`` when unknown."""
    return "-".join(part for part in (form, target) if part) or "other"


def _column(name: str, values: list[Any]) -> pl.Series:
    return make_column(name, values, SCHEMA[name])


def _with_unique_id(given: Mapping[str, Any] | InvalidRow, place: str, seen: Mapping[str, str]) -> dict[str, Any]:
    """Return a checked row with an id that no earlier row has."""
    if isinstance(given, InvalidRow):
        raise given
    row = _check_row(given, place)
    row["id"] = row["id"] or _content_id(row, seen)
    if row["id"] in seen:
        what = f"id {row['id']!r} is also that of {seen[row['id']]}"
        raise InvalidRow("duplicate_key", what, where=place, fix="Give each row its own id.")
    return row


def _check_row(given: Mapping[str, Any], place: str) -> dict[str, Any]:
    known = {_ALIASES.get(name, name): value for name, value in given.items() if value is not None}
    known |= {"image": _only_image(known["image"])} if "image" in known else {}
    row: dict[str, Any] = {name: _text(known.pop(name, ""), name, place) for name in _TEXTS}
    row["status"] = _text(known.pop("status", "kept"), "status", place) or "kept"
    if row["status"] not in STATUSES:
        raise _row_error(f"status {row['status']!r}", place, f"It is one of: {', '.join(STATUSES)}.")
    if row["form"] in TRAINING_ONLY_FORMS and row["status"] == "kept":
        row |= {"status": "rejected", "reason": FOR_TRAINING}
    for name in ("caption", "negative"):
        row[name] = _text(known.pop(name, ""), name, place)
        may_be_empty = name == "negative" and row["status"] == "rejected"
        if not row[name].strip() and not may_be_empty:
            columns = ", ".join(sorted(filter(None, given))) or "none"
            empty = [each for each in given if _ALIASES.get(each, each) == name]
            raise InvalidRow(
                f"empty_{name}",
                f"no {name}" + (f" ({empty[0]} is empty)" if empty else ""),
                where=place,
                fix=f"Each row needs the texts 'caption' and 'negative' (or 'negative_caption', or a list 'negatives'); it has: {columns[:200]}.",
            )
    row["edit"] = _edits(known.pop("edit", []), place)
    row["scores"] = _scores(known.pop("scores", {}), place)
    try:
        row["extra"] = compact_json(known)
    except (TypeError, ValueError) as error:
        raise _row_error(
            f"a value is not JSON ({error})", place, f"Remove it; it is in one of: {', '.join(known)}."
        ) from None
    return row


def _text(value: Any, name: str, place: str) -> str:
    if isinstance(value, str):
        return value
    if not (_is_number(value) and name in {"id", "key", "image"}):
        raise _row_error(f"{name} is {type(value).__name__}, not text", place, "Write it as a string.")
    try:
        return parse_identifier(value, name)
    except RejectError as flaw:
        raise _row_error(flaw.detail, place, "Write it as a string.") from None


def _only_image(value: Any) -> Any:
    """Return an image, of a list of one or an object with its path; another value unchanged, empty for an empty list."""
    one = next(iter(value), "") if isinstance(value, list) and len(value) < 2 else value
    return image_path(one)


def _edits(value: Any, place: str) -> list[dict[str, Any]]:
    valid = isinstance(value, list) and all(
        isinstance(edit, Mapping)
        and all(isinstance(edit.get(name), str) for name in ("from", "to"))
        and all(_is_span(edit.get(name)) for name in ("from_span", "to_span"))
        for edit in value
    )
    if not valid:
        raise _row_error(
            "edit is not a list of edits", place, "An edit has the texts from, to and the spans from_span, to_span."
        )
    return [{name: edit[name] for name in ("from", "to", "from_span", "to_span")} for edit in value]


def _is_span(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) in {0, 2} and all(type(end) is int and 0 <= end < 2**31 for end in value)
    )


def _scores(value: Any, place: str) -> list[dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(score, Mapping) for score in value):  # Parquet layout
        value = {score.get("name"): score.get("value") for score in value}
    if isinstance(value, Mapping):
        value = {name: number for name, number in value.items() if number is not None}  # null: there is no score
    if not isinstance(value, Mapping) or not all(isinstance(n, str) and _is_number(x) for n, x in value.items()):
        raise _row_error("scores is not an object of numbers", place, 'Write it as {"name": 0.5}.')
    return [{"name": name, "value": float(number)} for name, number in sorted(value.items())]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _content_id(row: Mapping[str, Any], seen: Mapping[str, str]) -> str:
    # From the content of the row, so that the order of the rows does not matter; equal rows are numbered.
    content = compact_json([row[name] for name in ("key", "image", "caption", "negative", "form", "target")])
    ordinal = 0
    while True:
        name = hashlib.blake2b(f"{ordinal} {content}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        if name not in seen:
            return name
        ordinal += 1


def _row_error(what: str, place: str, fix: str) -> InvalidRow:
    return InvalidRow("wrong_type", what, where=place, fix=fix)
