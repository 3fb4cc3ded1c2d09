"""Own layouts of candidate rows, which `refine` and `generate` write: .jsonl, .parquet, SugarCrepe's .json, NegCLIP's .tsv.

Readers yield (place, row) or (place, error of an invalid row); writers take a frame with the schema of `rows.py`.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.atomic_files import replace_atomically, write_bytes, write_text
from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.csv_tsv import contains_swallowed_rows
from pairwright.datasets.readers.text_files import read_text_bytes
from pairwright.datasets.records import compact_json
from pairwright.filters.candidates.invalid_rows import InvalidRow
from pairwright.filters.candidates.rows import SCHEMA, candidate_rows, complete_rows
from pairwright.filters.candidates.source_rows import (
    LocatedReading,
    Source,
    parse_json,
    parse_text_list,
    row_or_error,
)

_SUGARCREPE_TARGETS = {"obj": "object", "att": "attribute", "rel": "relation"}
SUGARCREPE_FILES = frozenset(
    f"{form}_{short}.json" for form in ("replace", "swap", "add") for short in _SUGARCREPE_TARGETS
)
_NEGCLIP = {"title": "caption", "filepath": "image"}
_COVERED_COLUMNS = {"caption", "image", "negative", "extra"}


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        what = f"{type(value).__name__} instead of an object"
        raise InvalidRow("wrong_type", what, where=place, fix="Each row is a JSON object.")
    return value


def read_rows(source: Source) -> Iterator[LocatedReading]:
    """Yield the rows of JSON Lines, CSV or TSV."""
    for row in source.rows():
        yield (
            (row.where, row)
            if isinstance(row, InvalidRow)
            else row_or_error(row.place, partial(_object, row.value, row.place))
        )


def write_jsonl(frame: pl.DataFrame, path: Path) -> None:
    """Write rows as JSON Lines."""
    write_text(path, "".join(compact_json(row) + "\n" for row in complete_rows(frame)))


def edit_type_of_file(stem: str) -> dict[str, str]:
    """Return form and target that SugarCrepe's file names give: ``swap_att``; empty for other names."""
    form, _, short = stem.partition("_")
    return {"form": form, "target": _SUGARCREPE_TARGETS[short]} if short in _SUGARCREPE_TARGETS else {}


def read_sugarcrepe(source: Source) -> Iterator[LocatedReading]:
    """Yield the rows of SugarCrepe's layout; a list of such rows is read too, as users pass them on."""
    known = edit_type_of_file(source.stem)
    for item in source.rows():
        if isinstance(item, InvalidRow):
            yield item.where, item
            continue
        held, row = row_or_error(item.place, partial(_object, item.value, item.place))
        yield held, row if isinstance(row, InvalidRow) else {"id": item.index, **known, **row}


def write_sugarcrepe(frame: pl.DataFrame, path: Path) -> None:
    """Write rows as SugarCrepe's layout."""
    rows: dict[str, Any] = {}
    for extra, row in zip(frame["extra"], candidate_rows(frame), strict=True):
        theirs = {"filename": row.pop("image"), "caption": row.pop("caption"), "negative_caption": row.pop("negative")}
        if positive := row.pop("positive"):
            theirs["positive_caption"] = positive
        ours = {name: value for name, value in row.items() if value and name != "id"}
        rows[row["id"]] = theirs | orjson.loads(extra) | ours
    write_bytes(path, orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")


def read_negclip(source: Source) -> Iterator[LocatedReading]:
    """Yield the lines of NegCLIP's layout, each with a list of negatives."""
    path = source.path
    try:
        text = read_text_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", where=str(path), fix="Save it as UTF-8.") from None
    delimiter = "," if source.suffix == ".csv" else "\t"
    table = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    missing = {"title", "neg_caption"} - set(table.fieldnames or ())
    if missing:
        raise InputError(
            f"no column {', '.join(sorted(missing))} (it has {', '.join(table.fieldnames or ())})",
            where=str(path),
            fix="Name the columns caption and negative, or as NegCLIP does title and neg_caption.",
        )
    while True:
        try:
            line = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            where = f"{path}:{table.reader.line_num}"  # table.line_num is the number of the previous row
            yield where, InvalidRow("broken_csv", f"invalid TSV ({error})", where=where, fix="Fix its quotes.")
            continue
        place = f"{path}:{table.line_num}"
        yield row_or_error(place, partial(_negclip_row, line, place))


def _negclip_row(line: dict[str | Any, Any], place: str) -> Mapping[str, Any]:
    """Return a line as a row with a list of negatives, which `source_rows.split_negatives` divides."""
    if None in line:
        fix = "Quote fields that contain tabs."
        raise InvalidRow("ragged_row", "more fields than columns", where=place, fix=fix)
    if contains_swallowed_rows([value or "" for value in line.values()]):
        what = "a quoted field contains line breaks and tabs, as of other rows"
        raise InvalidRow("broken_csv", what, where=place, fix="Fix its quotes.")
    negatives = parse_text_list(line.pop("neg_caption"), "neg_caption", place)
    row: dict[str, Any] = {_NEGCLIP.get(name, name): value for name, value in line.items() if value}
    row |= {name: parse_json(row[name].encode(), place) for name in ("edit", "scores") if name in row}
    return row | {"negative": negatives}


class _LineCollector(list[str]):
    # csv quotes only the characters of its line terminator: with "\r\n" it quotes both, and lines are written with
    # "\n".
    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def write_negclip(frame: pl.DataFrame, path: Path) -> None:
    """Write rows as NegCLIP's layout, one line per negative."""
    extras = [orjson.loads(extra) for extra in frame["extra"]]
    others = list(dict.fromkeys(name for extra in extras for name in extra))
    names = ["title", "filepath", "neg_caption", *(name for name in SCHEMA if name not in _COVERED_COLUMNS)]
    lines = _LineCollector()
    table = csv.DictWriter(lines, [*names, *others], restval="", delimiter="\t", lineterminator="\r\n")
    table.writeheader()
    for extra, row in zip(extras, candidate_rows(frame), strict=True):
        row |= {
            "title": row["caption"],
            "filepath": row["image"],
            "neg_caption": repr([text] if (text := row["negative"]) else []),
        }
        cells = extra | {name: row[name] for name in names}
        table.writerow({name: cell if isinstance(cell, str) else compact_json(cell) for name, cell in cells.items()})
    write_text(path, "".join(lines))


def read_parquet(source: Source) -> Iterator[LocatedReading]:
    """Yield the rows of a Parquet file."""
    for one in source.rows():
        if isinstance(one, InvalidRow):
            yield one.where, one
            continue
        row = dict(one.value)
        extra = row.pop("extra", None)
        held, others = row_or_error(one.place, partial(_extra, str(extra or "{}").encode(), one.place))
        yield held, others if isinstance(others, InvalidRow) else {**others, **row}


def _extra(text: bytes, place: str) -> Mapping[str, Any]:
    return _object(parse_json(text, place), place)


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write rows as Parquet."""
    with replace_atomically(path) as temporary:
        frame.select(list(SCHEMA)).write_parquet(temporary)
