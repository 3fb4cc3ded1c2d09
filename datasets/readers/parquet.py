"""Parquet files, streamed by row group.

Times and decimals come as text, since a pair's `meta` is JSON. A text column with bytes that are no UTF-8
costs the rows that hold them, not the file. Columns of bytes (images inside the table) are not read: each value is
empty bytes, which no part of a pair accepts. Of Hugging Face's images (``{bytes, path}``) the names are read.

Limits: a file whose footer or pages are damaged is an error as a whole, whatever the policy: how many rows
are lost cannot be known.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.rows import InTable, Row, Rows
from pairwright.datasets.rejects import reject

ROWS_AT_ONCE = 4096


def read_parquet(path: Path) -> Rows:
    """Yield the rows of a Parquet file; places are ``file:row N``, from 1."""
    import pyarrow as pa
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            read, unread, named = _columns(path, file.schema_arrow)
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=read):
                for values in _values(_plain(batch)):
                    number += 1
                    place = f"{path}:row {number}"
                    if values is None:
                        yield reject(place, "not_utf8", "a text is not UTF-8")
                    else:
                        more = unread | _in_table(values, named) if named else unread
                        yield Row(place, values | more if more else values)
    except (pa.ArrowException, OSError, ValueError) as error:
        what = str(error).partition("\n")[0]
        raise InputError(
            f"not a whole Parquet file ({what})", where=f"{path}:row {number + 1}", mend="Copy or write it again."
        ) from None


def _columns(path: Path, schema: Any) -> tuple[list[str], dict[str, Any], list[str]]:
    """Return what to read, empty bytes for each column of bytes, and the columns of pictures with names."""
    if len(set(schema.names)) < len(schema.names):
        raise InputError("two columns have the same name", where=str(path), mend="Rename one of them.")
    named = [field.name for field in schema if _is_named_picture(field.type)]
    unread = {field.name: b"" for field in schema if _holds_bytes(field.type) and field.name not in named}
    read = [f"{name}.path" if name in named else name for name in schema.names if name not in unread]
    return read, unread, named


def _is_named_picture(kind: Any) -> bool:
    import pyarrow as pa

    if not pa.types.is_struct(kind) or {kind.field(at).name for at in range(kind.num_fields)} != {"bytes", "path"}:
        return False
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return _holds_bytes(kind.field("bytes").type) and any(is_text(kind.field("path").type) for is_text in texts)


def _in_table(values: dict[str, Any], named: list[str]) -> dict[str, InTable]:
    return {name: InTable(values[name]["path"] or "") for name in named if values[name] is not None}


def _holds_bytes(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_nested(kind):
        return any(_holds_bytes(kind.field(index).type) for index in range(kind.num_fields))
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def _plain(batch: Any) -> Any:
    """Return the batch with times and decimals as text."""
    import pyarrow as pa

    def is_plain(kind: Any) -> bool:
        return not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)) or pa.types.is_duration(kind)

    columns = [
        column if is_plain(column.type) else column.cast(pa.string())
        for column in (_undated(column) for column in batch.columns)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _undated(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.int64()) if pa.types.is_duration(column.type) else column


def _values(batch: Any) -> Iterator[dict[str, Any] | None]:
    """Yield each row's fields, or None where a text does not decode."""
    names = batch.schema.names
    try:
        columns = [column.to_pylist() for column in batch.columns]
    except UnicodeDecodeError:
        for index in range(batch.num_rows):
            yield _one(batch, index)
        return
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _one(batch: Any, index: int) -> dict[str, Any] | None:
    try:
        (fields,) = batch.slice(index, 1).to_pylist()
    except UnicodeDecodeError:
        return None
    return dict(fields)


def count_rows(path: Path) -> int:
    """Return how many rows a Parquet file says it holds; errors as in `read_parquet`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        what = str(error).partition("\n")[0]
        raise InputError(
            f"not a whole Parquet file ({what})", where=str(path), mend="Copy or write it again."
        ) from None
