"""Rows of a file as its container holds them: a JSON object or list, JSON Lines, a table.

What the rows mean is up to a layout (`layouts.py`), which recognises a file by its container and first row.
"""

import ast
import codecs
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import COMMAND_LINE
from pairwright.datasets.readers import text_files
from pairwright.datasets.readers.csv_tsv import read_csv, read_tsv
from pairwright.datasets.readers.field_values import to_json_value
from pairwright.datasets.readers.input_rows import InputRowIterator, TableImage
from pairwright.datasets.readers.json_list import read_first_items
from pairwright.datasets.readers.json_object import is_table, iterate_table
from pairwright.datasets.readers.parquet import read_parquet
from pairwright.datasets.readers.text_files import iter_lines, read_text_bytes, strip_compression
from pairwright.datasets.rejects import Reject, RejectError, fix_for
from pairwright.filters.candidates.invalid_rows import InvalidRow

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

LocatedRow = tuple[str, Mapping[str, Any]]
LocatedReading = tuple[str, Mapping[str, Any] | InvalidRow]

SUFFIXES: Final = (".jsonl", ".json", ".tsv", ".csv", ".parquet")
_TABLES: Final[Mapping[str, Callable[[Path], InputRowIterator]]] = {
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".parquet": read_parquet,
}
NEGATIVE_COLUMNS: Final = ("negative", "negative_caption", "negatives", "negative_captions", "hard_negs")
"""Columns with a negative of the caption, or a list of its negatives (the last is CREPE's); the first with a value counts."""
_LIST_COLUMNS = frozenset({"negatives", "negative_captions", "hard_negs"})


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row as it is in its file.

    Attributes:
        place: for messages.
        index: key in an object of rows, else position from 0.
        value: mapping or list, not checked; JSON values, with locators of images inside a table.
        stem: name of the file without its ending, such as ``swap_att``.
    """

    place: str
    index: str
    value: Any
    stem: str


@dataclass(frozen=True)
class Source:
    """A file of rows; a JSON file is parsed once.

    Attributes:
        path: of the file.
    """

    path: Path

    @cached_property
    def suffix(self) -> str:
        """File name ending in lower case, without that of a compression; ``.jsonl`` for other names of JSON Lines."""
        suffix = Path(strip_compression(self.path.name)).suffix.lower()
        return ".jsonl" if suffix in {".ndjson", ".jsonlines"} else suffix

    @cached_property
    def stem(self) -> str:
        """Name of the file without its endings."""
        return self.path.name.partition(".")[0]

    @cached_property
    def data(self) -> Any:
        """Parsed content of a JSON file.

        Raises:
            InvalidRow: it is not JSON.
        """
        return parse_json(read_text_bytes(self.path), str(self.path))

    @cached_property
    def container(self) -> str:
        """``object``, ``list``, ``lines`` or ``table``."""
        if self.suffix == ".json":
            return "list" if self._first_items or isinstance(self.data, list) else "object"
        return "lines" if self.suffix == ".jsonl" else "table"

    @cached_property
    def _first_items(self) -> list[Any]:
        """The first item of a JSON list: its layout is known without the rest, which may be gigabytes of conversations."""
        try:
            return (self.suffix == ".json" and read_first_items(self.path, 1)) or []
        except InputError:  # reported when the rows are read
            return []

    @cached_property
    def first(self) -> Any:
        """First readable row; of a Parquet file without one, a mapping with its column names; None without any."""
        if self._first_items:
            return self._first_items[0]
        found = next((row.value for row in self.rows() if isinstance(row, SourceRow)), None)
        return dict.fromkeys(_parquet_schema(self.path)) if found is None and self.suffix == ".parquet" else found

    @property
    def fields(self) -> frozenset[str]:
        """Field names of the first row; empty if it is not a mapping."""
        return frozenset(map(str, self.first)) if isinstance(self.first, Mapping) else frozenset()

    def rows(self) -> Iterator[SourceRow | InvalidRow]:
        """Yield the rows, or the errors of invalid ones.

        Raises:
            InputError: the file is not readable.
        """
        if self.suffix == ".json":
            yield from self._json_rows()
        elif self.suffix == ".jsonl":
            yield from self._line_rows()
        else:
            yield from self._table_rows()

    def _table_rows(self) -> Iterator[SourceRow | InvalidRow]:
        schema = _parquet_schema(self.path) if self.suffix == ".parquet" else {}
        others = [name for name, kind in schema.items() if not _is_json(kind)]
        for number, line in enumerate(_TABLES[self.suffix](self.path)):
            if isinstance(line, Reject):
                yield InvalidRow(line.reason, line.detail, where=line.place, fix=fix_for(line.reason, COMMAND_LINE))
            else:
                fields = line.fields | {name: _located(line.fields[name]) for name in line.pictures}
                fields |= {name: to_json_value(fields[name]) for name in others}
                yield SourceRow(line.place, str(number), fields, self.stem)

    def _json_rows(self) -> Iterator[SourceRow]:
        data = self.data
        if not isinstance(data, list | Mapping):
            what = f"{type(data).__name__} instead of a list or an object of rows"
            raise InputError(what, where=str(self.path), fix="Write a list of rows.")
        if isinstance(data, Mapping) and is_table(data):
            for number, (place, value) in enumerate(iterate_table(self.path, data)):
                yield SourceRow(f"{self.path}:{place}", str(number), value, self.stem)
            return
        items = data.items() if isinstance(data, Mapping) else enumerate(data)
        for index, value in items:
            yield SourceRow(f"{self.path}: row {index!r}", str(index), value, self.stem)

    def _line_rows(self) -> Iterator[SourceRow | InvalidRow]:
        for number, line in iter_lines(self.path):
            if line.strip():
                place = f"{self.path}:{number}"
                try:
                    yield SourceRow(place, str(number - 1), parse_json(line, place), self.stem)
                except InvalidRow as flaw:
                    yield flaw


def parse_json(data: bytes, place: str) -> Any:
    """Return parsed JSON, with NaN and infinities, as Python writes missing values, as null.

    Raises:
        InvalidRow: it is not JSON.
    """
    text = data.removeprefix(codecs.BOM_UTF8)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return to_json_value(text_files.parse_json(text))
    except (RejectError, RecursionError) as error:
        what = error.detail if isinstance(error, RejectError) else "nested too deeply"
        raise InvalidRow("broken_json", f"invalid JSON ({what})", where=place, fix="Fix or delete it.") from None


def parse_text_list(value: str | None, name: str, place: str) -> list[str]:
    """Return the texts of a Python list literal, which is parsed and never evaluated.

    Raises:
        InvalidRow: it is none.
    """
    try:
        texts = ast.literal_eval(value or "")
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two: deep nesting
        texts = None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        fix = "Write it as ['first text', 'second text']."
        raise InvalidRow("wrong_type", f"{name} is not a list of texts", where=place, fix=fix)
    return texts


def _parquet_schema(path: Path) -> Mapping[str, pl.DataType]:
    """Return the columns of a Parquet file, with their types.

    Raises:
        InputError: it is not a Parquet file.
    """
    try:
        return pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"invalid Parquet file ({str(error).partition(chr(10))[0]})"
        raise InputError(what, where=str(path), fix="Write it again.") from None


def _is_json(kind: "PolarsDataType") -> bool:
    """Return whether the values of a column are JSON already: no bytes or times, and no numbers that may be NaN."""
    if isinstance(kind, pl.Struct):
        return all(_is_json(field.dtype) for field in kind.fields)
    if isinstance(kind, pl.List):
        return _is_json(kind.inner)
    return kind in {pl.String, pl.Boolean} or kind.is_integer()


def _located(value: Any) -> Any:
    """Return images inside a table, or a list of them, as locators; any other value unchanged."""
    if isinstance(value, list):
        return [_located(item) for item in value]
    return (value.locator or value.name) if isinstance(value, TableImage) else value


def image_path(value: Any) -> Any:
    """Return the path of an image of the Hugging Face Hub's ``{bytes, path}`` in JSON, which holds no bytes; else the value."""
    if not isinstance(value, Mapping):
        return value
    file = str(value.get("path") or "")
    return value if value.get("bytes") and not file else file


def split_negatives(place: str, row: Mapping[str, Any] | InvalidRow) -> Iterator[LocatedReading]:
    """Yield a row for each negative of a row with a list of them, and other rows unchanged.

    A list in a table may be its text. An id gets the number of the negative; a row with an empty list becomes a rejected
    one, so that it is counted.
    """
    column = "" if isinstance(row, InvalidRow) else next((n for n in NEGATIVE_COLUMNS if _has_value(row, n)), "")
    if not column or isinstance(row, InvalidRow):
        yield place, row
        return
    value = row[column]
    if isinstance(value, str) and column not in _LIST_COLUMNS:
        yield place, row
        return
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = parse_text_list(value, column, place)
        except InvalidRow as flaw:
            yield place, flaw
            return
    read = NEGATIVE_COLUMNS[: NEGATIVE_COLUMNS.index(column) + 1]  # those before have no value
    others = {name: cell for name, cell in row.items() if name not in read}
    if not isinstance(value, list):
        yield place, {**others, "negative": value}
    elif not value:
        yield place, {**others, "negative": "", "status": "rejected", "reason": row.get("reason") or "no_candidate"}
    else:
        for number, negative in enumerate(value):
            id_ = {"id": f"{row['id']}-{number}"} if _has_value(row, "id") and len(value) > 1 else {}
            yield f"{place}, negative {number + 1}", {**others, **id_, "negative": negative}


def _has_value(row: Mapping[str, Any], name: str) -> bool:
    return row.get(name) is not None and row[name] != ""


def row_or_error(place: str, read: Callable[[], Mapping[str, Any]]) -> LocatedReading:
    """Return a row or the error of an invalid one: a generator cannot continue after raising."""
    try:
        return place, read()
    except InvalidRow as flaw:
        return place, flaw
