"""CSV and TSV with a header line, RFC 4180 quoting, any line ends. Blank lines are no rows.

Names of columns stand without blanks around them; fields are kept to the letter.

Many TSV files are written without any quoting, so that a caption may begin with a quote that nothing closes. All rows
down to a line that ends in a quote then look like one field. A field whose lines have as many tabs as rows would have
is therefore refused in TSV.

Limits: a field holds at most 131,072 characters (the csv module's own bound).
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.rows import Row, Rows
from pairwright.datasets.readers.text import lines_of
from pairwright.datasets.rejects import Reject, is_storable, reject


def read_csv(path: Path) -> Rows:
    """Yield the rows of a comma-separated file; places are ``file:line`` of the row's last line."""
    return _read(path, ",")


def read_tsv(path: Path) -> Rows:
    """Yield the rows of a tab-separated file; places are ``file:line`` of the row's last line."""
    return _read(path, "\t")


def _read(path: Path, delimiter: str) -> Rows:
    # Strict: a lenient parser would swallow the rest of the file after a stray quote without a word.
    lines = _Lines(path)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header = _header(path, reader)
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            reason = "huge_field" if "larger than field limit" in str(error) else "broken_csv"
            yield reject(f"{path}:{reader.line_num}", reason, str(error), lines.last)
            continue
        if fields is None:
            return
        if fields:
            yield _row(f"{path}:{reader.line_num}", header, fields, swallowed=delimiter == "\t" and holds_rows(fields))


class _Lines:
    """The decoded lines of a file; ``last`` is the one given last."""

    def __init__(self, path: Path) -> None:
        self._lines = lines_of(path)
        self.last = ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        # Undecodable bytes travel as surrogates, so that only the row that holds them is refused.
        self.last = next(self._lines)[1].decode("utf-8", "surrogateescape")
        return self.last


def _header(path: Path, reader: Iterator[list[str]]) -> list[str]:
    try:
        header = [name.strip() for name in next(reader, [])]  # "id, caption": nobody sees, or can name, the blank
    except csv.Error as error:
        raise InputError(f"the header cannot be read ({error})", where=f"{path}:1", mend="Correct line 1.") from None
    if not header:
        raise InputError("the file is empty", where=f"{path}:1", mend="Give a header line with the columns' names.")
    if not all(map(is_storable, header)):
        raise InputError("the header is not UTF-8", where=f"{path}:1", mend="Save the file as UTF-8.")
    if len(header) == 1 and any(sign in header[0] for sign in ";|\t,"):
        what = f"the header is one column, {header[0][:80]!r}"
        raise InputError(what, where=f"{path}:1", mend="Separate columns by commas in .csv files, by tabs in .tsv.")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"columns named twice: {', '.join(twice)}", where=f"{path}:1", mend="Rename one of them.")
    return header


def holds_rows(fields: list[str]) -> bool:
    """Say whether the lines of a field have the tabs of a row's end, of whole rows, and of a row's beginning."""
    last = len(fields) - 1
    for place, field in enumerate(fields):
        tabs = [line.count("\t") for line in field.split("\n")]
        if last and len(tabs) > 1 and tabs == [last - place, *[last] * (len(tabs) - 2), place]:
            return True
    return False


def _row(place: str, header: list[str], fields: list[str], *, swallowed: bool) -> Row | Reject:
    if swallowed:
        return reject(place, "broken_csv", "a field between quotes holds line ends and tabs, as of rows", str(fields))
    if len(fields) != len(header):
        return reject(place, "ragged_row", f"{len(fields)} fields where the header has {len(header)}", str(fields))
    if not all(map(is_storable, fields)):
        return reject(place, "not_utf8", "a field is not UTF-8", str(fields))
    return Row(place, dict(zip(header, fields, strict=True)))
