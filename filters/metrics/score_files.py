"""Reader of image-text scores that were computed elsewhere.

A row has the score of the image with its caption (``s_caption``) and with the hard negative (``s_negative``), and
optionally with the hard positive (``s_positive``). Its type is ``type``, or ``form`` and ``target``.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.readers.text_files import iter_lines, read_text_bytes, strip_compression
from pairwright.datasets.suggestions import require_known, suggest_alternatives

SCORES = ("s_caption", "s_negative", "s_positive")
NO_TYPE = "untyped"
SCHEMA = {"type": pl.String(), **dict.fromkeys(SCORES, pl.Float64())}
_COLUMNS = {*SCORES, "type", "form", "target"}


def read_scores(path: Path, columns: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Return the scores of a file: ``type`` and the three scores as float64, null where a row has none.

    A value that is not a finite number (a text, NaN, an infinity) is null as well: such a row is counted as unscored.

    Args:
        path: .jsonl, .csv, .tsv or .parquet.
        columns: name here to name in the file, such as ``{"s_caption": "score_pos"}``.

    Raises:
        InputError: the file is missing, invalid, or lacks one of the two scores.
        UsageError: the extension has no format, or ``columns`` has an unknown name.
    """
    columns = columns or {}
    require_known("--columns: no such column here:", columns, sorted(_COLUMNS))
    frame = read_table(path)
    for ours, theirs in columns.items():
        if theirs not in frame.columns:
            raise InputError(
                f"no column {theirs}", where=str(path), fix=f"{suggest_alternatives([theirs], frame.columns)}."
            )
        frame = frame.with_columns(pl.col(theirs).alias(ours))
    for name in SCORES[:2]:
        if name not in frame.columns:
            fix = f"Name it by --columns {name}=YOURS; there are {', '.join(frame.columns)}."
            raise InputError(f"no column {name}", where=str(path), fix=fix)
    return frame.select(_type_of(frame), *(_number(frame, name) for name in SCORES))


def read_table(path: Path) -> pl.DataFrame:
    """Return the rows of a .jsonl, .csv, .tsv or .parquet file; JSON Lines keep texts and numbers only.

    Raises:
        InputError: the file is missing, invalid or empty.
        UsageError: the extension has no format.
    """
    ending = Path(strip_compression(path.name.lower())).suffix
    if not path.exists():
        raise InputError("no such file", where=str(path), fix="Check the path.")
    if ending not in {".jsonl", ".csv", ".tsv", ".parquet"}:
        raise UsageError(f"{path}: rows are in .jsonl, .csv, .tsv, .parquet files. Rename or convert it.")
    if not path.is_file():
        raise InputError("not a file", where=str(path), fix="Check the path.")
    try:
        if ending == ".jsonl":
            frame = pl.DataFrame(list(_lines(path)), infer_schema_length=None, strict=False)
        elif ending == ".parquet":
            frame = pl.read_parquet(path)
        else:
            frame = _table(path, "\t" if ending == ".tsv" else ",")
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"cannot be read ({str(error).partition(chr(10))[0]})"
        raise InputError(what, where=str(path), fix="Write it again.") from None
    if frame.is_empty():
        raise InputError("no rows", where=str(path), fix="Write one row per example.")
    return frame


def _table(path: Path, separator: str) -> pl.DataFrame:
    data = read_text_bytes(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("not UTF-8", where=f"{path}:{line}", fix="Save the file as UTF-8.") from None
    try:
        return pl.read_csv(text.encode(), separator=separator, infer_schema=False)
    except pl.exceptions.ComputeError:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        columns = len(next(rows, ()))
        for row in rows:
            if len(row) > columns:
                what, fix = (
                    f"{len(row)} fields under {columns} columns",
                    "Quote fields that contain the separator.",
                )
                raise InputError(what, where=f"{path}:{rows.line_num}", fix=fix) from None
        raise


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in iter_lines(path):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            row = json.loads(line)  # json.dumps writes NaN, which only json.loads reads
        except UnicodeDecodeError:
            raise InputError("not UTF-8", where=place, fix="Save the file as UTF-8.") from None
        except ValueError:
            raise InputError("invalid JSON", where=place, fix="Fix or delete the line.") from None
        if not isinstance(row, dict):
            raise InputError("not a JSON object", where=place, fix="Each row is an object.")
        # Lists and objects are not used here, and differ in type between rows.
        yield {name: value for name, value in row.items() if not isinstance(value, list | dict)}


_CASTABLE_TYPES = (pl.String, pl.Boolean, pl.Null)


def _number(frame: pl.DataFrame, name: str) -> pl.Expr:
    if name not in frame.columns:
        return pl.lit(None, pl.Float64).alias(name)
    if not (frame.schema[name].is_numeric() or frame.schema[name] in _CASTABLE_TYPES):
        return pl.lit(None, pl.Float64).alias(name)  # lists and other nested types contain no number
    column = pl.col(name).cast(pl.Float64, strict=False)
    return pl.when(column.is_finite()).then(column).alias(name)


def _type_of(frame: pl.DataFrame) -> pl.Expr:
    name = pl.lit("")
    if "type" in frame.columns and not frame.schema["type"].is_nested():
        name = pl.col("type").cast(pl.String).fill_null("")
    elif {"form", "target"} <= set(frame.columns):
        form, target = (pl.col(part).cast(pl.String).fill_null("") for part in ("form", "target"))
        name = pl.concat_str(form, pl.when(target != "").then(pl.lit("-")).otherwise(pl.lit("")), target)
    # An expression of literals only would have one row.
    full = pl.concat_str(name, pl.int_range(pl.len()).cast(pl.String).str.slice(0, 0))
    return pl.when(full == "").then(pl.lit(NO_TYPE)).otherwise(full).alias("type")
