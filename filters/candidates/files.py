"""Files of candidate rows: reading and writing by layout (`layouts.py`).

- ``.jsonl``: one object per line, with the columns of `rows.py`. A ``.csv`` or ``.tsv`` with these columns is read too.
- ``.json``: SugarCrepe's layout, ``{"0": {"filename", "caption", "negative_caption"}, ...}``; the indices may have gaps
  and become the ids. A list of such rows, also under a name (``{"data": [...]}``), is read too, and so is an object of
  columns. SugarCrepe's file names (``swap_att.json``) give form and target. A row with a hard positive also
  has a ``positive_caption``.
- ``.tsv``: NegCLIP's layout, columns ``title`` (caption), ``filepath`` (image) and ``neg_caption``, a Python list of
  texts.
- ``.parquet``: the columns of `rows.py`, typed.
- Layouts of other benchmarks are recognised by their content: `benchmark_readers.py`.
- A list of negatives in one row, of any layout, is a row for each here, and written so: each has a status.
- A folder of SugarCrepe, SugarCrepe++ or VALSE files: ``swap_att.json`` gives ids such as ``swap_att-0``.
- A folder of preferences, as the exports for TRL, LLaMA-Factory and ms-swift write it.
- A folder of Parquet files of one of these layouts, or with such a folder ``data``.

``.jsonl`` and ``.parquet`` contain all rows, rejected ones with their reason, unless only kept rows are requested. The
layouts of other tools (``.json``, ``.tsv``) contain kept rows only: their readers ignore a ``status``. A file is read
into memory as a whole.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.filters.candidates.benchmark_writers import complete_questions
from pairwright.filters.candidates.invalid_rows import InvalidRow, InvalidRowPolicy
from pairwright.filters.candidates.layouts import (
    BENCHMARK_FILES,
    PREFERENCES,
    Layout,
    describe_negatives,
    find_layout,
    layout_to_write,
)
from pairwright.filters.candidates.rows import candidate_frame
from pairwright.filters.candidates.source_rows import LocatedReading, LocatedRow, Source, split_negatives

_PREFERENCE_FILES: Final = ("dpo.jsonl", "data/*.parquet")
_TABLES: Final = ("*.parquet", "data/*.parquet")


def read_candidates(path: Path, screening: InvalidRowPolicy | None = None, layout: str = "") -> pl.DataFrame:
    """Return the candidate rows of a file or a folder of such files, in its order.

    Args:
        path: of the file.
        screening: policy for invalid rows; without, the first is raised.
        layout: name of the layout; empty to detect it.

    Raises:
        InputError: the file is missing or invalid, a row is invalid, or no row is left.
        UsageError: the extension of ``path`` has no format, or no such layout.
    """
    frame = candidate_frame(_read(path, layout), screening)
    if screening is not None:
        screening.refuse_none_left(frame.height)
    return frame


def read_raw_rows(path: Path) -> Iterator[LocatedRow]:
    """Yield the rows of a file unchecked, each with its place for messages; errors as of `read_candidates`."""
    for place, row in _read(path):
        if isinstance(row, InvalidRow):
            raise row
        yield place, row


def layout_of(path: Path, layout: str = "") -> Layout:
    """Return the layout of a file, or of the first file of a folder; errors as of `read_candidates`."""
    if not path.exists():
        raise InputError("no such file", where=str(path), fix="Check the path.")
    source = Source((find_row_files(path) or [path])[0])
    found = find_layout(source, layout)
    if not source.path.is_file():
        raise InputError("not a file", where=str(path), fix="Check the path.")
    return found


def _read(path: Path, layout: str = "") -> Iterator[LocatedReading]:
    if files := find_row_files(path):
        for file in files:
            for place, row in _read(file, layout):
                yield place, row if isinstance(row, InvalidRow) or not row.get("id") else _in_file(row, file)
        return
    found = layout_of(path, layout)
    for place, row in found.read(Source(path)):
        yield from split_negatives(place, row)


def _in_file(row: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    return {**row, "id": f"{file.stem}-{row['id']}"}


def find_row_files(folder: Path) -> list[Path]:
    """Return the files of candidate rows in a folder; none for any other path.

    These are ``.json`` files if one is named like a file of a benchmark, else preferences as exports for trainers write
    them (``dpo.jsonl``, or the tables in ``data/``), else tables of captions with negatives, as the Hugging Face Hub has
    them.
    """
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if any(path.name in BENCHMARK_FILES for path in files):
        return files
    found = (sorted(folder.glob(pattern)) for pattern in _PREFERENCE_FILES)
    if preferences := next((files for files in found if files and PREFERENCES.sniff(Source(files[0]))), []):
        return preferences
    tables = (sorted(folder.glob(pattern)) for pattern in _TABLES)
    return next((files for files in tables if files and describe_negatives(files[0])), [])


def write_candidates(
    frame: pl.DataFrame,
    path: Path,
    *,
    only_kept: bool = False,
    like: Layout | None = None,
    note: Callable[[str], object] = lambda _: None,
) -> int:
    """Write candidate rows to ``path`` atomically, and return their number.

    Args:
        frame: with the schema of `rows.py`.
        path: its extension selects the format.
        only_kept: skip rejected rows; the layouts of other tools never contain them.
        like: layout of the input, which is used if it has the extension.
        note: takes a message about kept rows that are not written, because their question or group is incomplete.

    Raises:
        UsageError: the extension of ``path`` has no format.
    """
    layout = layout_to_write(path, like)
    assert layout.write is not None  # `layout_to_write` returns no other
    rows = frame.filter(pl.col("status") == "kept") if only_kept or layout.stores_only_kept else frame
    if layout.joins_rows:
        kept, rows = len(rows), rows.filter(complete_questions(rows))
        if len(rows) < kept:
            what = (
                f"{kept - len(rows):,} kept rows are not written: other rows of their question or group are rejected."
            )
            note(f"{what} A .jsonl file keeps them.")
    layout.write(rows, path)
    return len(rows)


def check_extension(path: Path, like: Layout | None = None) -> None:
    """Check that candidate rows can be written to a file of this name.

    Args:
        path: of the file.
        like: layout of the input; None: the rows have no layout yet.

    Raises:
        UsageError: the extension of ``path`` has no format.
    """
    layout_to_write(path, like)
