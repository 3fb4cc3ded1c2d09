"""Readers of CSV and TSV with a header line, RFC 4180 quoting, any line ends. Blank lines are skipped.

Column names are stripped of surrounding spaces; fields are not. A header whose columns are separated by ``|``, ``;`` or
tabs, in place of what the name of the file says, is read by these; spaces around ``|`` belong to it (Flickr30k's
results.csv). A line ``sep=;`` before the header, which tells Excel the separator, is obeyed.

A first line of two fields of which one is an image (a URL, or a file name) is a row: the file has no header, and the
columns are image and caption (Conceptual Captions, Flickr30k's results_20130124.token). So is one of five, those of
Conceptual Captions with image labels: caption, image, labels, their ids, and confidences. Such a TSV is read without
quoting, as it was written. ``#0`` after a file name numbers the captions of an image and is not part of the name.

Many TSV files are written without quoting, so that a caption may start with a quote that is never closed. All rows up to
a line that ends in a quote then look like one field. A field whose lines have as many tabs as rows is therefore rejected
in TSV.

Limits: a field has at most 131,072 characters (the csv module's limit).
"""

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES, is_url
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.text_files import (
    LIKELY_ENCODING,
    NO_TRANSCODING,
    Transcoder,
    describe_undecodable,
    iter_lines,
)
from pairwright.datasets.rejects import Reject, is_utf8_encodable, make_reject

_OTHER_DELIMITERS = "|;\t"
_NUMBER = re.compile(r"\s*(?:[\d.]+|[0-9a-f]{16,})\s*")  # or a hash, as in the list of YFCC's subset
_LABELLED = ("caption", "image", "labels", "label_ids", "confidences")  # of Conceptual Captions with image labels
_MACHINE_ID = re.compile(r"\s*/[a-z]/\w+\s*")  # of Google's Knowledge Graph
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*", re.IGNORECASE)
_NUMBERED = re.compile(r"(?P<image>.*)#(?P<number>\d+)")


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How the lines of a file are read.

    Attributes:
        delimiter: one character.
        names: columns of a file without a header; empty for a file with one.
    """

    delimiter: str
    names: tuple[str, ...] = ()

    @property
    def quoting(self) -> Literal[0, 3]:
        """Constant of the csv module."""
        return csv.QUOTE_NONE if self.delimiter == "\t" and self.names else csv.QUOTE_MINIMAL


def read_csv(path: Path, transcoder: Transcoder = NO_TRANSCODING) -> InputRowIterator:
    """Yield the rows of a comma-separated file; places are ``file:line`` of the row's first line."""
    return _read(path, ",", transcoder)


def read_tsv(path: Path, transcoder: Transcoder = NO_TRANSCODING) -> InputRowIterator:
    """Yield the rows of a tab-separated file; places are ``file:line`` of the row's first line."""
    return _read(path, "\t", transcoder)


def guess_table(line: str, caption_names: frozenset[str]) -> str:
    """Return ``csv`` or ``tsv`` for the first line of a table in a file with another ending; empty if it is none.

    Args:
        line: first line of the file.
        caption_names: names of columns with captions, of which a header has one.
    """
    delimiter = next((sign for sign in f"\t,{_OTHER_DELIMITERS}" if sign in line), "\t")
    format_ = "tsv" if delimiter == "\t" else "csv"
    fields = [field.strip(' "') for field in _split(line, delimiter)]
    is_header = any(field in caption_names for field in fields) and not any(" " in field for field in fields)
    images = [at for at, field in enumerate(fields) if is_image_name(field)]
    return format_ if is_header or _names_without_header(fields, images) else ""


def decode_header(path: Path) -> str:
    """Return the first line of a table in the likely encoding if it is not UTF-8; empty if it is, or is in neither.

    Raises:
        InputError: if the file cannot be read.
    """
    _, line = next(iter_lines(path), (0, b""))
    with suppress(UnicodeDecodeError):
        line.decode()
        return ""
    with suppress(UnicodeDecodeError):
        return line.decode(LIKELY_ENCODING).rstrip("\r\n")
    return ""


def is_image_name(text: str) -> bool:
    """Return whether a text is a URL, or the name of an image file, possibly with the number of a caption."""
    if is_url(text):
        return " " not in text
    return PurePosixPath(_split_number(text)[0]).suffix.lower() in IMAGE_SUFFIXES


def _read(path: Path, delimiter: str, transcoder: Transcoder) -> InputRowIterator:
    # Strict: a lenient parser would silently read the rest of the file into one field after a stray quote.
    lines = _DecodedLines(path, transcoder)
    if separator := _SEPARATOR_LINE.fullmatch(lines.peek()):
        next(lines)
        delimiter = separator[1]
    dialect = _detect_dialect(path, lines.peek(), delimiter)
    reader = csv.reader(lines, delimiter=dialect.delimiter, quoting=dialect.quoting, strict=True)
    header = list(dialect.names) or _header(path, reader)
    while True:
        place, lines.first = f"{path}:{reader.line_num + 1 + bool(separator)}", ""
        try:
            fields = next(reader, None)
        except csv.Error as error:
            reason = "field_too_long" if "larger than field limit" in str(error) else "broken_csv"
            last = reader.line_num + bool(separator)
            end = f"{path}:{last}"
            what = f"{error}; a quote is open from this row to line {last}" if end != place else _flaw(error)
            yield make_reject(place, reason, what, lines.first)
            continue
        if fields is None:
            return
        if fields:
            swallowed = dialect.delimiter == "\t" and contains_swallowed_rows(fields)
            row = _row(place, header, _stripped(fields, dialect.delimiter), swallowed=swallowed)
            yield _with_number(row) if dialect.names and isinstance(row, InputRow) else row


def _detect_dialect(path: Path, line: str, delimiter: str) -> _Dialect:
    """Return how to read a file by its first line.

    Raises:
        InputError: the line is a row, and what its columns are is unknown.
    """
    if delimiter not in line:
        delimiter = next((other for other in _OTHER_DELIMITERS if other in line), delimiter)
    fields = _split(line, delimiter)
    images = [at for at, field in enumerate(fields) if is_image_name(field.strip())]
    if names := _names_without_header(fields, images):
        return _Dialect(delimiter, names)
    what = f"{fields[images[0]].strip()[:80]} is an image" if images else "it has numbers only"
    if images or (len(fields) > 1 and all(_NUMBER.fullmatch(field) for field in fields)):
        fix = "Add a header line, such as image,caption."
        raise InputError(f"the first line is a row, not a header: {what}", where=f"{path}:1", fix=fix)
    return _Dialect(delimiter)


def _names_without_header(fields: list[str], images: list[int]) -> tuple[str, ...]:
    """Return the columns of a file whose first line is a row of a known shape; ``images`` are the indices of images."""
    if len(fields) == 2 and len(images) == 1:
        return ("image", "caption") if images[0] == 0 else ("caption", "image")
    if len(fields) == len(_LABELLED) and images == [1] and all(map(_MACHINE_ID.fullmatch, fields[3].split(","))):
        return _LABELLED
    return ()


def _split(line: str, delimiter: str) -> list[str]:
    """Return the fields of a first line; a quote in a TSV may be any character."""
    line = line.rstrip("\r\n")
    if delimiter == "\t":
        return line.split("\t")
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # reported when it is read
        return []


def _stripped(fields: list[str], delimiter: str) -> list[str]:
    return [field.strip() for field in fields] if delimiter == "|" else fields


def _with_number(row: InputRow) -> InputRow:
    """Return the row of a file without a header, the number of the caption apart from the name of the image."""
    image, number = _split_number(row.fields["image"])
    return InputRow(row.place, {**row.fields, "image": image, "caption_number": number}) if number else row


def _split_number(image: str) -> tuple[str, str]:
    found = None if is_url(image) else _NUMBERED.fullmatch(image)
    return (found["image"], found["number"]) if found else (image, "")


class _DecodedLines:
    """The decoded lines of a file; ``first`` is the first one since it was emptied."""

    def __init__(self, path: Path, transcoder: Transcoder) -> None:
        self._lines = iter_lines(path)
        self._transcoder = transcoder
        self._peeked: list[str] = []
        self.first = ""

    def peek(self) -> str:
        """Return the next line, which stays the next one; empty at the end."""
        self._peeked = [] if (line := next(self, None)) is None else [line]
        return line or ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        # Undecodable bytes become surrogates, so that only their row is rejected.
        line = self._peeked.pop() if self._peeked else self._decode(next(self._lines)[1])
        self.first = self.first or line
        return line

    def _decode(self, line: bytes) -> str:
        return self._transcoder.convert(line).decode("utf-8", "surrogateescape")


def _flaw(error: csv.Error) -> str:
    """Return what is wrong with a row, in terms of the file: Python's message on CR is about how it was opened."""
    return "a CR without LF, outside of quotes" if "new-line character" in str(error) else str(error)


def _header(path: Path, reader: Iterator[list[str]]) -> list[str]:
    try:
        header = [name.strip() for name in next(reader, [])]  # "id, caption": the space is invisible
    except csv.Error as error:
        fix = f"Correct line 1. If lines end in CR alone: tr '\\r' '\\n' < {path.name} > NEW{path.suffix}."
        raise InputError(f"the header cannot be read ({_flaw(error)})", where=f"{path}:1", fix=fix) from None
    if not header:
        raise InputError("the file is empty", where=f"{path}:1", fix="Give a header line with the columns' names.")
    if not all(map(is_utf8_encodable, header)):
        what = f"the header is not UTF-8: {_describe_undecodable(header)}"
        fix = f"Save the file as UTF-8, or name its encoding (option or key `encoding`, such as {LIKELY_ENCODING})."
        raise InputError(what, where=f"{path}:1", fix=fix)
    if len(header) == 1 and any(sign in header[0] for sign in ";|\t,"):
        what = f"the header is one column, {header[0][:80]!r}"
        raise InputError(what, where=f"{path}:1", fix="Separate columns by commas in .csv files, by tabs in .tsv.")
    if header.count("") > 1:  # spreadsheets write empty columns at the end
        header = [name or f"column {number}" for number, name in enumerate(header, 1)]
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
        return make_reject(place, "not_utf8", _describe_undecodable(fields), str(fields))
    return InputRow(place, dict(zip(header, fields, strict=True)))


def _describe_undecodable(fields: list[str]) -> str:
    """Return which of decoded fields is not UTF-8, and how it reads in the likely encoding."""
    for number, field in enumerate(fields, 1):
        data = field.encode("utf-8", "surrogateescape")
        try:
            data.decode()
        except UnicodeDecodeError as error:
            return f"field {number}: {describe_undecodable(data, error)}"
    return "a field is not UTF-8"
