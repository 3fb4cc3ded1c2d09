"""Reader of Parquet files, streamed by row group.

A table of img2dataset with images has a row of each failed download too, which is rejected as such.

Times and decimals are converted to text, as a pair's `meta` is JSON. Invalid UTF-8 in a text column rejects the rows with
it, not the file. Columns of bytes are not read, except texts; for these and for images see `image_columns.py`.

If pages of a file are damaged, the rows before them are read, followed by one reject, `broken_parquet`; if the footer is
damaged or missing, there is only the reject.

Limits: a failing disk or lack of memory is an error under any policy, as the file may be intact.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.image_columns import TableColumns, classify_columns
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.rejects import make_reject
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.remote.reading import open_table

BATCH_ROWS = 4096


def read_parquet(path: Path, stretch: tuple[int, int, int] = (0, 0, 0)) -> InputRowIterator:
    """Yield the rows of a Parquet file; places are ``file:row N``, from 1.

    Args:
        path: of the file.
        stretch: only the row groups from ``start`` to before ``stop`` (0 for all), and the number of rows before.

    Raises:
        InputError: two columns have one name, or the file could not be read for an external reason.
    """
    import pyarrow as pa
    from pyarrow import parquet

    start, stop, number = stretch
    rows = 0
    try:
        with parquet.ParquetFile(open_table(path)) as file:
            columns, rows = classify_columns(path, file), file.metadata.num_rows
            groups = range(start, stop or file.num_row_groups)
            for batch in _batches(file, columns, groups, threads=not is_remote(path)):
                for values in batch:
                    number += 1
                    place = f"{path}:row {number}"
                    if values is None:
                        yield make_reject(place, "not_utf8", "a text is not UTF-8")
                    elif columns.pictures and (failure := describe_failed_download(values)):
                        yield make_reject(place, "download_failed", failure, values)
                    else:
                        yield InputRow(place, columns.filled(values, number), pictures=columns.pictures)
    except (pa.ArrowException, OSError, ValueError) as error:
        what = f"not a whole Parquet file ({str(error).partition(chr(10))[0]})"
        place = f"{path}:row {number + 1}" if rows else str(path)
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            raise InputError(what, where=place, fix="Copy or write it again.") from None
        left = f"; {number:,} of {rows:,} rows were read" if rows else ""
        yield make_reject(place, "broken_parquet", what + left)


def _batches(
    file: Any, columns: TableColumns, groups: range, *, threads: bool
) -> Iterator[Iterable[dict[str, Any] | None]]:
    """Yield the rows of row groups; Arrow's ``threads`` must not read a Python file: they may abort the exit."""
    read = columns.read
    if not read:  # image columns only: there would be no batch
        yield ({} for group in groups for _ in range(file.metadata.row_group(group).num_rows))
        return
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=read, row_groups=list(groups), use_threads=threads):
        yield _values(_stringify_dates(batch, columns.texts))


def _stringify_dates(batch: Any, texts: Collection[str] = ()) -> Any:
    """Return the batch with times, decimals, and the bytes of columns of ``texts``, as text."""
    import pyarrow as pa

    def is_plain(kind: Any) -> bool:
        return not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)) or pa.types.is_duration(kind)

    columns = [
        column if is_plain(column.type) else column.cast(pa.string())
        for column in (_stringify_column(column) for column in batch.columns)
    ]
    columns = [
        _as_texts(column) if name in texts else column for name, column in zip(batch.schema.names, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _stringify_column(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.int64()) if pa.types.is_duration(column.type) else column


def _as_texts(column: Any) -> Any:
    """Return a column of bytes, or of lists of bytes, as texts, whose values may be no UTF-8."""
    import pyarrow as pa

    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    in_lists = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    return column.cast(pa.large_list(pa.large_string()) if in_lists else pa.large_string(), safe=False)


def _values(batch: Any) -> Iterator[dict[str, Any] | None]:
    """Yield each row's fields, or None if a text does not decode."""
    names = batch.schema.names
    try:
        columns = [column.to_pylist() for column in batch.columns]
    except UnicodeDecodeError:
        for index in range(batch.num_rows):
            yield _decode_row(batch, index)
        return
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _decode_row(batch: Any, index: int) -> dict[str, Any] | None:
    try:
        (fields,) = batch.slice(index, 1).to_pylist()
    except UnicodeDecodeError:
        return None
    return dict(fields)


def describe_failed_download(fields: Mapping[str, Any]) -> str:
    """Return why img2dataset could not download the image of a row of its table; empty if it could, or for other tables."""
    status = fields.get("status")
    if "key" not in fields or "error_message" not in fields or status in (None, "success"):
        return ""
    return f"{status}: {fields['error_message'] or 'no message'}"


def find_earlier_group(path: Path, start: int, rows: int) -> int:
    """Return the last row group such that the groups from it to before ``start`` have ``rows`` rows; 0 if none has."""
    from pyarrow import parquet

    footer = parquet.read_metadata(open_table(path))
    while start and rows > 0:
        start -= 1
        rows -= footer.row_group(start).num_rows
    return start


def count_parquet_rows(path: Path) -> int:
    """Return the number of rows in a Parquet footer; errors as in `read_parquet`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(open_table(path)).num_rows)
    except (pa.ArrowException, OSError) as error:
        what = str(error).partition("\n")[0]
        raise InputError(f"not a whole Parquet file ({what})", where=str(path), fix="Copy or write it again.") from None
