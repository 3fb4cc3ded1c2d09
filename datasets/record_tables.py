"""Parquet schemas of the records; all reading and writing of record files goes through this module.

A *table* maps one kind of record to columns and back. Columns are flat where the record is (the origin of an annotation
becomes six columns) and lists of structs where it has lists. Reading checks the columns, their types, that nothing is
null and that keys and statuses are valid. Equal records give equal bytes.

Set operations work on the polars frame (`Table.frame`, `Table.read_frame`) without creating records.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import accumulate, chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import polars as pl
import pyarrow as pa
from polars.datatypes import DataTypeClass

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.datasets.records import Annotation, Box, Edit, Example, Origin, Pair, Turn, edit_to_dict
from pairwright.datasets.rejects import REASONS, Reject
from pairwright.datasets.remote.reading import TABLE_BUFFER, open_file

R = TypeVar("R")

SCHEMA_VERSION = 1

BOX = pl.Struct({"label": pl.String, "x1": pl.Float64, "y1": pl.Float64, "x2": pl.Float64, "y2": pl.Float64})
EDIT = pl.Struct({"from": pl.String, "to": pl.String, "from_span": pl.List(pl.Int32), "to_span": pl.List(pl.Int32)})
TURN = pl.Struct({"role": pl.String, "text": pl.String})
SCORE = pl.Struct({"name": pl.String, "value": pl.Float64})
ORIGIN: dict[str, pl.DataType] = {
    "generator": pl.String(),
    "version": pl.Int32(),
    "seed": pl.Int64(),
    "model": pl.String(),
    "prompt": pl.String(),
    "request": pl.String(),
}
STATUSES = ["kept", "rejected"]

_FIELDS = {
    "edit": "edits",
    **{name: f"origin.{name}" for name in ORIGIN},
}  # of columns with another name than their field
_ENCODERS: dict[str, Callable[[Any], Any]] = {  # of columns that a record holds in another form
    "captions": list,
    "boxes": lambda boxes: [{"label": b.label, "x1": b.x1, "y1": b.y1, "x2": b.x2, "y2": b.y2} for b in boxes],
    "edit": lambda edits: [edit_to_dict(edit) for edit in edits],
    "turns": lambda turns: [{"role": turn.role, "text": turn.text} for turn in turns],
    "scores": lambda scores: [{"name": name, "value": float(value)} for name, value in sorted(scores.items())],
}


def _edits(column: pl.Series) -> Iterator[tuple[Edit, ...]]:
    """Return the edits of each row, read from flat columns: a dictionary for each edit takes four times as long."""
    counts = column.list.len()
    flat = column.filter(counts > 0).explode().struct.unnest()
    spans = (
        zip(*(flat[name].list.get(at).to_list() for at in (0, 1)), strict=True) for name in ("from_span", "to_span")
    )
    edits = map(Edit, flat["from"].to_list(), flat["to"].to_list(), *spans)
    return (tuple(islice(edits, count)) for count in counts.to_list())


_DECODERS: dict[str, Callable[[pl.Series], Iterable[Any]]] = {
    "captions": lambda column: map(tuple, column.to_list()),
    "boxes": lambda column: (tuple(Box(**box) for box in row) for row in column.to_list()),
    "edit": _edits,
    "turns": lambda column: (tuple(Turn(**turn) for turn in row) for row in column.to_list()),
    "scores": lambda column: ({score["name"]: score["value"] for score in row} for row in column.to_list()),
}


@dataclass(frozen=True, eq=False)
class Table(Generic[R]):
    """Storage of one kind of record.

    Attributes:
        name: of the record, for messages.
        record: its class; each of its fields is a column, but for the origin, whose fields are the last six columns.
        schema: column name to polars type, in order.
        checks: reason to an expression that is true for invalid rows.
    """

    name: str
    record: type[R]
    schema: pl.Schema
    checks: dict[str, pl.Expr]

    def _encoder(self) -> Callable[[R], list[Any]]:
        """Return a function from a record to one value per column, in order."""
        values_of = attrgetter(*(_FIELDS.get(column, column) for column in self.schema))
        encoders = [(at, _ENCODERS[column]) for at, column in enumerate(self.schema) if column in _ENCODERS]

        def encode(record: R) -> list[Any]:
            row = list(values_of(record))
            for at, convert in encoders:
                row[at] = convert(row[at])
            return row

        return encode

    def frame(self, records: Sequence[R]) -> pl.DataFrame:
        """Return ``records`` as a frame with this table's schema, in the given order."""
        columns = list(zip(*map(self._encoder(), records), strict=True)) or [()] * len(self.schema)
        named = zip(self.schema.items(), columns, strict=True)
        return pl.DataFrame([make_column(name, values, dtype) for (name, dtype), values in named])

    def records(self, frame: pl.DataFrame) -> list[R]:
        """Return the rows of ``frame`` as records, in order."""
        columns: dict[str, Iterable[Any]] = {
            _FIELDS.get(name, name): _DECODERS.get(name, pl.Series.to_list)(frame[name]) for name in self.schema
        }
        if "generator" in self.schema:
            columns["origin"] = map(Origin, *(columns[f"origin.{name}"] for name in ORIGIN))
        names = [each.name for each in fields(cast("Any", self.record))]
        return list(map(self.record, *(columns[name] for name in names if name in columns)))

    def write(self, records: Sequence[R], path: Path) -> None:
        """Write ``records`` to the Parquet file ``path`` atomically."""
        self.write_frame(self.frame(records), path)

    def write_frame(self, frame: pl.DataFrame, path: Path) -> None:
        """Write a frame with this table's schema to ``path`` atomically.

        Raises:
            StorageError: if the frame does not fit the schema (an error of the caller).
        """
        self._check(frame, path)
        with replace_atomically(path) as temporary:
            frame.write_parquet(temporary, metadata={"pairwright.table": f"{self.name}/{SCHEMA_VERSION}"})

    def read(self, path: Path) -> list[R]:
        """Return the records of a Parquet file that `write` made.

        Raises:
            StorageError: if the file is missing, damaged, or has another kind of record.
        """
        return self.records(self.read_frame(path))

    def read_frame(self, path: Path, columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the checked frame of a Parquet file that `write` made, or some columns of it; errors as in `read`."""
        try:
            with open_file(path, TABLE_BUFFER) as file:  # of a path, polars starts threads that wait: twice the time
                frame = pl.read_parquet(file, columns=list(columns) or None)
        except FileNotFoundError:
            raise StorageError(f"{path}: no such file. Run the stage that writes it first.") from None
        except (pl.exceptions.PolarsError, OSError) as error:
            raise StorageError(
                f"{path}: not a whole Parquet file ({_first_line(error)}). Delete it and run again."
            ) from None
        self._check(frame, path, columns)
        return frame

    def _check(self, frame: pl.DataFrame, path: Path, columns: Sequence[str] = ()) -> None:
        schema = pl.Schema({name: self.schema[name] for name in columns}) if columns else self.schema
        if frame.schema != schema:
            differing = sorted(set(frame.schema.items()) ^ set(schema.items()), key=str)
            named = ", ".join(dict.fromkeys(name for name, _ in differing)) or "order of columns"
            raise StorageError(
                f"{path}: not a table of {self.name} records (differs in: {named}). "
                "It was written by another version or program: run its build again."
            )
        bad = frame.select(_invalid_rows(self, tuple(schema))).row(0, named=True)
        for reason, found in bad.items():
            if found:
                raise StorageError(f"{path}: {self.name} records with {reason}. Rebuild the file.")


@cache
def _invalid_rows(table: Table[Any], columns: tuple[str, ...]) -> list[pl.Expr]:
    """Return an expression for each way in which rows of these columns can be invalid, named by its reason."""
    nulls = [pl.col(name).has_nulls().alias(f"null in {name}") for name in columns]
    checks = table.checks.items()
    return nulls + [check.any().alias(reason) for reason, check in checks if {*check.meta.root_names()} <= {*columns}]


def make_column(name: str, values: Sequence[Any], dtype: pl.DataType | DataTypeClass) -> pl.Series:
    """Return Python values as a column; of lists and mappings, each field becomes a flat column first.

    Of nested values, polars makes a series for each row, 0.01 to 0.06 ms.
    """
    if isinstance(dtype, pl.List):
        flat = make_column("", list(chain.from_iterable(values)), dtype.inner)
        return make_list_column(name, map(len, values), flat)
    if isinstance(dtype, pl.Struct):
        fields = [make_column(each.name, [value[each.name] for value in values], each.dtype) for each in dtype.fields]
        return pl.DataFrame(fields).to_struct(name)
    return pl.Series(name, values, dtype)


def make_list_column(name: str, lengths: Iterable[int], flat: pl.Series) -> pl.Series:
    """Return a column of lists of these lengths, which are consecutive stretches of a flat column."""
    offsets = pl.Series([0, *accumulate(lengths)], dtype=pl.Int64).to_arrow()
    lists = pa.LargeListArray.from_arrays(offsets, flat.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return pl.Series(name, pl.from_arrow(lists), pl.List(flat.dtype))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _is_not_hex128(column: str) -> pl.Expr:
    return ~pl.col(column).str.contains("^[0-9a-f]{32}$")


def _strings(*names: str) -> dict[str, pl.DataType]:
    return dict.fromkeys(names, pl.String())


PAIRS = Table(
    name="pair",
    record=Pair,
    schema=pl.Schema(
        {
            **_strings("key", "source_id", "image", "caption"),
            "captions": pl.List(pl.String()),
            "boxes": pl.List(BOX),
            "width": pl.Int32(),
            "height": pl.Int32(),
            **_strings("source", "license", "meta"),
        }
    ),
    checks={
        "a key that is not 32 hex digits": _is_not_hex128("key"),
        "an empty caption": pl.col("caption") == "",
        "a negative size": (pl.col("width") < 0) | (pl.col("height") < 0),
    },
)

_STATUS_CHECKS: dict[str, pl.Expr] = {
    "a status that is neither kept nor rejected": ~pl.col("status").is_in(STATUSES),
    "a rejection without a reason": (pl.col("status") == "rejected") & (pl.col("reason") == ""),
    "a reason on a kept row": (pl.col("status") == "kept") & (pl.col("reason") != ""),
}

ANNOTATIONS = Table(
    name="annotation",
    record=Annotation,
    schema=pl.Schema(
        {
            **_strings("id", "key", "kind", "form", "target", "text", "source_text"),
            "edit": pl.List(EDIT),
            **_strings("positive_id", "image_shows"),
            "turns": pl.List(TURN),
            "scores": pl.List(SCORE),
            **_strings("status", "reason"),
            **ORIGIN,
        }
    ),
    checks={
        "an id that is not 32 hex digits": _is_not_hex128("id"),
        "a key that is not 32 hex digits": _is_not_hex128("key"),
        **_STATUS_CHECKS,
    },
)

EXAMPLES = Table(
    name="example",
    record=Example,
    schema=pl.Schema(
        {
            **_strings("id", "task", "input", "label", "label_source", "rationale", "split", "key", "status", "reason"),
            **ORIGIN,
        }
    ),
    checks={
        "an id that is not 32 hex digits": _is_not_hex128("id"),
        "a split that is neither train nor validation": ~pl.col("split").is_in(["train", "validation"]),
        **_STATUS_CHECKS,
    },
)

REJECTS = Table(
    name="reject",
    record=Reject,
    schema=pl.Schema(_strings("place", "reason", "detail", "excerpt", "source")),
    checks={"an unknown reason": ~pl.col("reason").is_in(sorted(REASONS))},
)
