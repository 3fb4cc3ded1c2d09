"""Frames written to a file by its ending: .parquet, .jsonl or .csv."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    import polars as pl


def write_table(frame: "pl.DataFrame", path: Path) -> None:
    """Write ``frame`` to ``path``, whole or not at all.

    Raises:
        UsageError: when the ending names no format.
    """
    from pairwright.datasets.atomic_files import replace_atomically

    writers: dict[str, Callable[[Path], object]] = {
        ".parquet": frame.write_parquet,
        ".jsonl": frame.write_ndjson,
        ".csv": frame.write_csv,
    }
    if path.suffix not in writers:
        raise UsageError(f"{path}: write to a file that ends in {', '.join(writers)}.")
    with replace_atomically(path) as temporary:
        writers[path.suffix](temporary)
