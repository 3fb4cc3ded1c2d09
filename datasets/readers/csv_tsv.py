"""Readers of CSV and TSV with a header line, RFC 4180 quoting, any line ends. Blank lines are skipped.

Column names are stripped of surrounding spaces; fields are not.

Many TSV files are written without quoting, so that a caption may start with a quote that is never closed. All rows up to
a line that ends in a quote then look like one field. A field whose lines have as many tabs as rows is therefore rejected
in TSV.

Limits: a field has at most 131,072 characters (the csv module's limit).
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.text_files import iter_lines
from pairwright.datasets.rejects import Reject, is_utf8_encodable, make_reject


def read_csv(path: Path) -> InputRowIterator:
    """Yield the rows of a comma-separated file; places are ``file:line`` of the row's first line."""
    return _read(path, ",")


def read_tsv(path: Path) -> InputRowIterator:
    """Yield the rows of a tab-separated file; places are ``file:line`` of the row's first line."""
    return _read(path, "\t")


def _read(path: Path, delimiter: str) -> InputRowIterator:
    # Strict: a lenient parser would silently read the rest of the file into one field after a stray quote.
    lines = _DecodedLines(path)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header = _header(path, reader)
    while True:
        place, lines.first = f"{path}:{reader.line_num + 1}", ""
        try:
            fields = next(reader, None)
        except csv.Error as error:
            reason = "field_too_long" if "larger than field limit" in str(error) else "broken_csv"
            end = f"{path}:{reader.line_num}"
            what = f"{error}; a quote is open from this row to line {reader.line_num}" if end != place else str(error)
            yield make_reject(place, reason, what, lines.first)
            continue
        if fields is None:
            return
        if fields:
            yield _row(place, header, fields, swallowed=delimiter == "\t" and contains_swallowed_rows(fields))


class _DecodedLines:
    """The decoded lines of a file; ``first`` is the first one since it was emptied."""

    def __init__(self, path: Path) -> None:
        self._lines = iter_lines(path)
        self.first = ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        # Undecodable bytes become surrogates, so that only their row is rejected.
        line = next(self._lines)[1].decode("utf-8", "surrogateescape")
        self.first = self.first or line
        return line


def _header(path: Path, reader: Iterator[list[str]]) -> list[str]:
    try:
        header = [name.strip() for name in next(reader, [])]  # "id, caption": the space is invisible
    except csv.Error as error:
        raise InputError(f"the header cannot be read ({error})", where=f"{path}:1", fix="Correct line 1.") from None
    if not header:
        raise InputError("the file is empty", where=f"{path}:1", fix="Give a header line with the columns' names.")
    if not all(map(is_utf8_encodable, header)):
        raise InputError("the header is not UTF-8", where=f"{path}:1", fix="Save the file as UTF-8.")
    if len(header) == 1 and any(sign in header[0] for sign in ";|\t,"):
        what = f"the header is one column, {header[0][:80]!r}"
        raise InputError(what, where=f"{path}:1", fix="Separate columns by commas in .csv files, by tabs in .tsv.")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"columns named twice: {', '.join(twice)}", where=f"{path}:1", fix="Rename one of them.")
    return header


def contains_swallowed_rows(fields: list[str]) -> bool:
    """Return whether the lines of a field have the tabs of a row's end, of whole rows, and of a row's start."""
    last = len(fields) - 1
    for place, field in enumerate(fields):
        tabs = [line.count("\t") for line in field.split("\n")]
        if last and len(tabs) > 1 and tabs == [last - place, *[last] * (len(tabs) - 2), place]:
            return True
    return False


def _row(place: str, header: list[str], fields: list[str], *, swallowed: bool) -> InputRow | Reject:
    if swallowed:
        return make_reject(
            place, "broken_csv", "a field between quotes holds line ends and tabs, as of rows", str(fields)
        )
    if len(fields) != len(header):
        return make_reject(place, "ragged_row", f"{len(fields)} fields where the header has {len(header)}", str(fields))
    if not all(map(is_utf8_encodable, fields)):
        return make_reject(place, "not_utf8", "a field is not UTF-8", str(fields))
    return InputRow(place, dict(zip(header, fields, strict=True)))
