"""Parquet schemas of the records; all reading and writing of record files goes through this module.

A *table* maps one kind of record to columns and back. Columns are flat where the record is (the origin of an annotation
becomes six columns) and lists of structs where it has lists. Reading checks the columns, their types, that nothing is
null and that keys and statuses are valid. Equal records give equal bytes.

Set operations work on the polars frame (`Table.frame`, `Table.read_frame`) without creating records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
import pyarrow as pa

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.datasets.records import Annotation, Box, Example, Origin, Pair, Turn, edit_from_dict, edit_to_dict
from pairwright.datasets.rejects import REASONS, Reject
from pairwright.datasets.remote.reading import open_table

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


@dataclass(frozen=True)
class Table(Generic[R]):
    """Storage of one kind of record.

    Attributes:
        name: of the record, for messages.
        schema: column name to polars type, in order.
        to_row: maps a record to one value per column, in order.
        from_row: the inverse.
        checks: reason to an expression that is true for invalid rows.
    """

    name: str
    schema: pl.Schema
    to_row: Callable[[R], tuple[Any, ...]]
    from_row: Callable[[tuple[Any, ...]], R]
    checks: dict[str, pl.Expr]

    def frame(self, records: Sequence[R]) -> pl.DataFrame:
        """Return ``records`` as a frame with this table's schema, in the given order."""
        columns = list(zip(*map(self.to_row, records), strict=True)) or [()] * len(self.schema)
        named = zip(self.schema.items(), columns, strict=True)
        return pl.DataFrame([make_column(name, values, dtype) for (name, dtype), values in named])

    def records(self, frame: pl.DataFrame) -> list[R]:
        """Return the rows of ``frame`` as records, in order."""
        return [self.from_row(row) for row in frame.iter_rows()]

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
            frame = pl.read_parquet(open_table(path), columns=list(columns) or None)
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
                "It was written by another version or program; rebuild it."
            )
        bad = frame.select(
            [pl.col(name).has_nulls().alias(f"null in {name}") for name in schema]
            + [
                expression.any().alias(reason)
                for reason, expression in self.checks.items()
                if set(expression.meta.root_names()) <= schema.keys()
            ]
        ).row(0, named=True)
        for reason, found in bad.items():
            if found:
                raise StorageError(f"{path}: {self.name} records with {reason}. Rebuild the file.")


def make_column(name: str, values: Sequence[Any], dtype: pl.DataType) -> pl.Series:
    """Return Python values as a column; lists of mappings become lists of structs.

    Polars makes a frame for each list of structs, 0.06 ms per row; Arrow makes the whole column in one call.
    """
    return pl.Series(name, pl.from_arrow(pa.array(values, type=_arrow_type(dtype))), dtype=dtype)


@lru_cache(maxsize=64)
def _arrow_type(dtype: pl.DataType) -> Any:
    return pl.Series([], dtype=dtype).to_arrow().type


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _is_not_hex128(column: str) -> pl.Expr:
    return ~pl.col(column).str.contains("^[0-9a-f]{32}$")


def _pair_to_row(pair: Pair) -> tuple[Any, ...]:
    boxes = [{"label": b.label, "x1": b.x1, "y1": b.y1, "x2": b.x2, "y2": b.y2} for b in pair.boxes]
    return (
        pair.key,
        pair.source_id,
        pair.image,
        pair.caption,
        list(pair.captions),
        boxes,
        pair.width,
        pair.height,
        pair.source,
        pair.license,
        pair.meta,
    )


def _pair_from_row(row: tuple[Any, ...]) -> Pair:
    key, source_id, image, caption, captions, boxes, width, height, source, license_, meta = row
    return Pair(
        key=key,
        caption=caption,
        source_id=source_id,
        image=image,
        captions=tuple(captions),
        boxes=tuple(Box(**box) for box in boxes),
        width=width,
        height=height,
        source=source,
        license=license_,
        meta=meta,
    )


PAIRS: Table[Pair] = Table(
    name="pair",
    schema=pl.Schema(
        {
            "key": pl.String(),
            "source_id": pl.String(),
            "image": pl.String(),
            "caption": pl.String(),
            "captions": pl.List(pl.String()),
            "boxes": pl.List(BOX),
            "width": pl.Int32(),
            "height": pl.Int32(),
            "source": pl.String(),
            "license": pl.String(),
            "meta": pl.String(),
        }
    ),
    to_row=_pair_to_row,
    from_row=_pair_from_row,
    checks={
        "a key that is not 32 hex digits": _is_not_hex128("key"),
        "an empty caption": pl.col("caption") == "",
        "a negative size": (pl.col("width") < 0) | (pl.col("height") < 0),
    },
)


def origin_to_row(origin: Origin) -> tuple[Any, ...]:
    """Return an origin as its six columns: generator, version, seed, model, prompt, request."""
    return (origin.generator, origin.version, origin.seed, origin.model, origin.prompt, origin.request)


def _annotation_to_row(a: Annotation) -> tuple[Any, ...]:
    return (
        a.id,
        a.key,
        a.kind,
        a.form,
        a.target,
        a.text,
        a.source_text,
        [edit_to_dict(edit) for edit in a.edits],
        a.positive_id,
        a.image_shows,
        [{"role": turn.role, "text": turn.text} for turn in a.turns],
        [{"name": name, "value": float(value)} for name, value in sorted(a.scores.items())],
        a.status,
        a.reason,
        *origin_to_row(a.origin),
    )


def _annotation_from_row(row: tuple[Any, ...]) -> Annotation:
    id_, key, kind, form, target, text, source_text, edits, positive_id, image_shows, turns, scores, status, reason = (
        row[:14]
    )
    return Annotation(
        id=id_,
        key=key,
        kind=kind,
        origin=Origin(*row[14:]),
        form=form,
        target=target,
        text=text,
        source_text=source_text,
        edits=tuple(edit_from_dict(edit) for edit in edits),
        positive_id=positive_id,
        image_shows=image_shows,
        turns=tuple(Turn(**turn) for turn in turns),
        scores={score["name"]: score["value"] for score in scores},
        status=status,
        reason=reason,
    )


_STATUS_CHECKS: dict[str, pl.Expr] = {
    "a status that is neither kept nor rejected": ~pl.col("status").is_in(STATUSES),
    "a rejection without a reason": (pl.col("status") == "rejected") & (pl.col("reason") == ""),
    "a reason on a kept row": (pl.col("status") == "kept") & (pl.col("reason") != ""),
}

ANNOTATIONS: Table[Annotation] = Table(
    name="annotation",
    schema=pl.Schema(
        {
            "id": pl.String(),
            "key": pl.String(),
            "kind": pl.String(),
            "form": pl.String(),
            "target": pl.String(),
            "text": pl.String(),
            "source_text": pl.String(),
            "edit": pl.List(EDIT),
            "positive_id": pl.String(),
            "image_shows": pl.String(),
            "turns": pl.List(TURN),
            "scores": pl.List(SCORE),
            "status": pl.String(),
            "reason": pl.String(),
            **ORIGIN,
        }
    ),
    to_row=_annotation_to_row,
    from_row=_annotation_from_row,
    checks={
        "an id that is not 32 hex digits": _is_not_hex128("id"),
        "a key that is not 32 hex digits": _is_not_hex128("key"),
        **_STATUS_CHECKS,
    },
)


def _example_to_row(e: Example) -> tuple[Any, ...]:
    return (
        e.id,
        e.task,
        e.input,
        e.label,
        e.label_source,
        e.rationale,
        e.split,
        e.key,
        e.status,
        e.reason,
        *origin_to_row(e.origin),
    )


def _example_from_row(row: tuple[Any, ...]) -> Example:
    id_, task, input_, label, label_source, rationale, split, key, status, reason = row[:10]
    return Example(
        id=id_,
        task=task,
        input=input_,
        origin=Origin(*row[10:]),
        label=label,
        label_source=label_source,
        rationale=rationale,
        split=split,
        key=key,
        status=status,
        reason=reason,
    )


EXAMPLES: Table[Example] = Table(
    name="example",
    schema=pl.Schema(
        {
            "id": pl.String(),
            "task": pl.String(),
            "input": pl.String(),
            "label": pl.String(),
            "label_source": pl.String(),
            "rationale": pl.String(),
            "split": pl.String(),
            "key": pl.String(),
            "status": pl.String(),
            "reason": pl.String(),
            **ORIGIN,
        }
    ),
    to_row=_example_to_row,
    from_row=_example_from_row,
    checks={
        "an id that is not 32 hex digits": _is_not_hex128("id"),
        "a split that is neither train nor validation": ~pl.col("split").is_in(["train", "validation"]),
        **_STATUS_CHECKS,
    },
)


def _reject_to_row(r: Reject) -> tuple[Any, ...]:
    return (r.place, r.reason, r.detail, r.excerpt, r.source)


def _reject_from_row(row: tuple[Any, ...]) -> Reject:
    return Reject(*row)


REJECTS: Table[Reject] = Table(
    name="reject",
    schema=pl.Schema(dict.fromkeys(("place", "reason", "detail", "excerpt", "source"), pl.String())),
    to_row=_reject_to_row,
    from_row=_reject_from_row,
    checks={"an unknown reason": ~pl.col("reason").is_in(sorted(REASONS))},
)
