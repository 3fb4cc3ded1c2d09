"""Files of candidate rows: readers and writers, chosen by the extension of the path.

- ``.jsonl``: one object per line, with the columns of `rows.py`.
- ``.json``: SugarCrepe's layout, ``{"0": {"filename", "caption", "negative_caption"}, ...}``; the indices may have gaps
  and become the ids. SugarCrepe's file names (``swap_att.json``) give form and target. A row with a hard positive also
  has a ``positive_caption``.
- ``.tsv``: NegCLIP's layout, columns ``title`` (caption), ``filepath`` (image) and ``neg_caption``, a Python list of
  texts, each of which is a row here. Written with one row per negative, so that each has a status.
- ``.parquet``: the columns of `rows.py`, typed.
- A folder of SugarCrepe files, such as `export` writes: ``swap_att.json`` gives ids such as ``swap_att-0``.

``.jsonl`` and ``.parquet`` contain all rows, rejected ones with their reason, unless only kept rows are requested. The
layouts of other tools (``.json``, ``.tsv``) contain kept rows only: their readers ignore a ``status``. A file is read
into memory as a whole.
"""

import ast
import codecs
import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.atomic_files import replace_atomically, write_bytes, write_text
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.readers.csv_tsv import contains_swallowed_rows
from pairwright.datasets.readers.text_files import iter_lines, read_text_bytes
from pairwright.datasets.records import compact_json
from pairwright.filters.candidates.invalid_rows import InvalidRow, InvalidRowPolicy
from pairwright.filters.candidates.rows import SCHEMA, candidate_frame, candidate_rows

LocatedRow = tuple[str, Mapping[str, Any]]
LocatedReading = tuple[str, Mapping[str, Any] | InvalidRow]

_SUGARCREPE_TARGETS = {"obj": "object", "att": "attribute", "rel": "relation"}
_SUGARCREPE_FILES = frozenset(
    f"{form}_{short}.json" for form in ("replace", "swap", "add") for short in _SUGARCREPE_TARGETS
)
_NEGCLIP = {"title": "caption", "filepath": "image"}
_NO_LIST = 'SugarCrepe\'s .json is one object of rows, {"0": {...}, "1": {...}}; write a list of rows as .jsonl.'
_COVERED_COLUMNS = {"caption", "image", "negative", "extra"}
_KEPT_ONLY = frozenset({".json", ".tsv"})  # layouts of other tools, whose readers ignore a status


def read_candidates(path: Path, screening: InvalidRowPolicy | None = None) -> pl.DataFrame:
    """Return the candidate rows of a file, in its order.

    Args:
        path: of the file.
        screening: policy for invalid rows; without, the first is raised.

    Raises:
        InputError: the file is missing or invalid, a row is invalid, or no row is left.
        UsageError: the extension of ``path`` has no format.
    """
    frame = candidate_frame(_read(path), screening)
    if screening is not None:
        screening.refuse_none_left(frame.height)
    return frame


def read_raw_rows(path: Path) -> Iterator[LocatedRow]:
    """Yield the rows of a file unchecked, each with its place for messages; errors as of `read_candidates`."""
    for place, row in _read(path):
        if isinstance(row, InvalidRow):
            raise row
        yield place, row


def _read(path: Path) -> Iterator[LocatedReading]:
    if not path.exists():
        raise InputError("no such file", where=str(path), fix="Check the path.")
    if files := find_sugarcrepe_files(path):
        return _read_several(files)
    read, _ = _format_of(path.with_suffix("") if path.suffix == ".gz" else path)
    if not path.is_file():
        raise InputError("not a file", where=str(path), fix="Check the path.")
    return read(path)


def find_sugarcrepe_files(folder: Path) -> list[Path]:
    """Return the ``.json`` files of a folder with at least one SugarCrepe file name; none for any other path."""
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    return files if any(path.name in _SUGARCREPE_FILES for path in files) else []


def _read_several(files: Sequence[Path]) -> Iterator[LocatedReading]:
    for path in files:
        for place, row in _read_sugarcrepe(path):
            yield place, row if isinstance(row, InvalidRow) else {**row, "id": f"{path.stem}-{row['id']}"}


def _row_or_error(place: str, read: Callable[[], Mapping[str, Any]]) -> LocatedReading:
    """Return a row or the error of an invalid one: a generator cannot continue after raising."""
    try:
        return place, read()
    except InvalidRow as flaw:
        return place, flaw


def write_candidates(frame: pl.DataFrame, path: Path, *, only_kept: bool = False) -> int:
    """Write candidate rows to ``path`` atomically, and return their number.

    Args:
        frame: with the schema of `rows.py`.
        path: its extension selects the format.
        only_kept: skip rejected rows; the layouts of other tools never contain them.

    Raises:
        UsageError: the extension of ``path`` has no format.
    """
    _, write = _format_of(path)
    rows = frame.filter(pl.col("status") == "kept") if only_kept or stores_only_kept(path) else frame
    write(rows, path)
    return len(rows)


def stores_only_kept(path: Path) -> bool:
    """Return whether ``path`` has the layout of another tool, which contains kept rows only."""
    return path.suffix.lower() in _KEPT_ONLY


def check_extension(path: Path) -> None:
    """Check that candidate rows can be written to a file of this name.

    Raises:
        UsageError: the extension of ``path`` has no format.
    """
    _format_of(path)


def _format_of(path: Path) -> tuple[Callable[[Path], Iterator[LocatedReading]], Callable[[pl.DataFrame, Path], None]]:
    formats = {
        ".jsonl": (_read_jsonl, _write_jsonl),
        ".json": (_read_sugarcrepe, _write_sugarcrepe),
        ".tsv": (_read_negclip, _write_negclip),
        ".parquet": (_read_parquet, _write_parquet),
    }
    if path.suffix.lower() not in formats:
        raise UsageError(f"{path}: candidate rows are in {', '.join(formats)} files. Rename or convert it.")
    return formats[path.suffix.lower()]


def _parse_json(data: bytes, place: str) -> Any:
    try:
        return orjson.loads(data.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError as error:
        raise InvalidRow("broken_json", f"invalid JSON ({error.msg})", where=place, fix="Fix or delete it.") from None


def _object(value: Any, place: str, fix: str = "Each row is a JSON object.") -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidRow("wrong_type", f"{type(value).__name__} instead of an object", where=place, fix=fix)
    return value


def _read_jsonl(path: Path) -> Iterator[LocatedReading]:
    for number, line in iter_lines(path):
        place = f"{path}:{number}"
        if line.strip():
            yield _row_or_error(place, partial(_json_row, line, place))


def _json_row(line: bytes, place: str) -> Mapping[str, Any]:
    return _object(_parse_json(line, place), place)


def _write_jsonl(frame: pl.DataFrame, path: Path) -> None:
    lines = [
        compact_json(orjson.loads(extra) | row)
        for extra, row in zip(frame["extra"], candidate_rows(frame), strict=True)
    ]
    write_text(path, "".join(line + "\n" for line in lines))


def _read_sugarcrepe(path: Path) -> Iterator[LocatedReading]:
    form, _, short = path.name.partition(".")[0].partition("_")
    known = {"form": form, "target": _SUGARCREPE_TARGETS[short]} if short in _SUGARCREPE_TARGETS else {}
    for index, value in _object(_parse_json(read_text_bytes(path), str(path)), str(path), _NO_LIST).items():
        place = f"{path}: row {index!r}"
        held, row = _row_or_error(place, partial(_object, value, place))
        yield held, row if isinstance(row, InvalidRow) else {"id": index, **known, **row}


def _write_sugarcrepe(frame: pl.DataFrame, path: Path) -> None:
    rows: dict[str, Any] = {}
    for extra, row in zip(frame["extra"], candidate_rows(frame), strict=True):
        theirs = {"filename": row.pop("image"), "caption": row.pop("caption"), "negative_caption": row.pop("negative")}
        if positive := row.pop("positive"):
            theirs["positive_caption"] = positive
        ours = {name: value for name, value in row.items() if value and name != "id"}
        rows[row["id"]] = theirs | orjson.loads(extra) | ours
    write_bytes(path, orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")


def _read_negclip(path: Path) -> Iterator[LocatedReading]:
    try:
        text = read_text_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", where=str(path), fix="Save it as UTF-8.") from None
    table = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
    missing = {"title", "neg_caption"} - set(table.fieldnames or ())
    if missing:
        raise InputError(
            f"no column {', '.join(sorted(missing))}", where=str(path), fix="Add the columns title and neg_caption."
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
        try:
            rows = list(_negclip_rows(line, place))
        except InvalidRow as flaw:
            yield place, flaw
        else:
            yield from rows


def _negclip_rows(line: dict[str | Any, Any], place: str) -> Iterator[LocatedRow]:
    if None in line:
        fix = "Quote fields that contain tabs."
        raise InvalidRow("ragged_row", "more fields than columns", where=place, fix=fix)
    if contains_swallowed_rows([value or "" for value in line.values()]):
        what = "a quoted field contains line breaks and tabs, as of other rows"
        raise InvalidRow("broken_csv", what, where=place, fix="Fix its quotes.")
    negatives = _parse_list(line.pop("neg_caption"), place)
    row: dict[str, Any] = {_NEGCLIP.get(name, name): value for name, value in line.items() if value}
    row |= {name: _parse_json(row[name].encode(), place) for name in ("edit", "scores") if name in row}
    if not negatives:  # keeps the row in the counts
        yield place, row | {"negative": "", "status": "rejected", "reason": row.get("reason") or "no_candidate"}
    for number, negative in enumerate(negatives):
        one = {"negative": negative}
        if "id" in row and len(negatives) > 1:
            one["id"] = f"{row['id']}-{number}"
        yield f"{place}, negative {number + 1}", row | one


def _parse_list(value: str | None, place: str) -> list[str]:
    try:
        texts = ast.literal_eval(value or "")
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two: deep nesting
        texts = None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        fix = "Write it as ['first text', 'second text']."
        raise InvalidRow("wrong_type", "neg_caption is not a list of texts", where=place, fix=fix)
    return texts


class _LineCollector(list[str]):
    # csv quotes only the characters of its line terminator: with "\r\n" it quotes both, and lines are written with
    # "\n".
    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _write_negclip(frame: pl.DataFrame, path: Path) -> None:
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


def _read_parquet(path: Path) -> Iterator[LocatedReading]:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"invalid Parquet file ({str(error).partition(chr(10))[0]})"
        raise InputError(what, where=str(path), fix="Write it again.") from None
    for number, row in enumerate(frame.iter_rows(named=True), 1):
        place = f"{path}: row {number}"
        extra = row.pop("extra", None)
        held, others = _row_or_error(place, partial(_json_row, str(extra or "{}").encode(), place))
        yield held, others if isinstance(others, InvalidRow) else {**others, **row}


def _write_parquet(frame: pl.DataFrame, path: Path) -> None:
    with replace_atomically(path) as temporary:
        frame.select(list(SCHEMA)).write_parquet(temporary)
