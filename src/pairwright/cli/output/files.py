"""Output files: checks before the work begins, and tables written in the format of their extension.

Commands overwrite their output without a question: a run is repeated or resumed with the same command. So a line on
stderr says beforehand what will be overwritten; the old file stays until the new one is complete.
"""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pairwright.cli.output.console import note
from pairwright.datasets.errors import StorageError, UsageError

if TYPE_CHECKING:
    import polars as pl

_FILE_ENDINGS = frozenset({".jsonl", ".json", ".parquet", ".csv", ".tsv", ".html", ".md", ".png"})  # never of a folder


def check_outputs(*outs: Path | None, reads: Sequence[str | tuple[str, ...]] = ()) -> None:
    """Check outputs, and say on stderr which files will be overwritten and which folders will be created.

    Args:
        outs: the outputs; None for one that is not wanted.
        reads: inputs, which must not be overwritten.

    Raises:
        UsageError: for an input, or a file of a build or an index.
        StorageError: for one that cannot be written; otherwise the command would fail after all its work.
    """
    from pairwright.flows.state.overwrite_checks import refuse_overwriting, refuse_replacing_build_files

    for out in outs:
        if out is not None:
            _refuse_unwritable(out)
            refuse_overwriting(out, *reads)
            refuse_replacing_build_files(out)
            if message := _overwrite_message(out):
                note(f"{out}: {message}.")


def check_index_output(folder: Path) -> None:
    """Check the folder of an index, and say on stderr that an index in it will be replaced when building begins."""
    from pairwright.indexes.hnsw.metadata import METADATA_FILE

    _refuse_unwritable(folder)
    if (folder / METADATA_FILE).is_file():
        note(f"{folder}: will replace the index in it ({_modified(folder / METADATA_FILE)}).")
    elif not folder.exists():
        check_outputs(folder)


def _refuse_unwritable(out: Path) -> None:
    existing = next((folder for folder in (*([out] if out.is_dir() else ()), *out.parents) if folder.exists()), None)
    if existing is not None and not existing.is_dir():
        raise StorageError(f"{out}: {existing} is a file, not a folder. Choose another --out.")
    if existing == out and out.suffix.lower() in _FILE_ENDINGS:
        raise StorageError(f"{out}: is a folder, not a file. Choose another --out, or remove the folder.")
    if existing is not None and not os.access(existing, os.W_OK | os.X_OK):
        raise StorageError(f"{out}: {existing} is not writable. Check its permissions, or choose another --out.")


def _overwrite_message(out: Path) -> str:
    if out.is_file():
        return f"will overwrite this file ({out.stat().st_size:,} bytes, {_modified(out)}) on success"
    if out.is_dir():
        return "the folder is not empty; files of the same names will be overwritten" if any(out.iterdir()) else ""
    return "" if out.parent.is_dir() else f"will create the folder {out.parent}"


def _modified(path: Path) -> str:
    return f"modified {datetime.fromtimestamp(path.stat().st_mtime, UTC).astimezone():%Y-%m-%d %H:%M}"


def write_table(frame: "pl.DataFrame", path: Path) -> None:
    """Write a frame as .parquet, .jsonl or .csv; the file is complete or absent.

    Raises:
        UsageError: for another extension.
    """
    from pairwright.datasets.atomic_files import replace_atomically

    writers: dict[str, Callable[[Path], object]] = {
        ".parquet": frame.write_parquet,
        ".jsonl": frame.write_ndjson,
        ".csv": frame.write_csv,
    }
    check_extension(path, *writers)
    with replace_atomically(path) as temporary:
        writers[path.suffix.lower()](temporary)


def check_extension(path: Path | None, *extensions: str) -> None:
    """Refuse a path with another extension.

    Raises:
        UsageError: naming the extensions.
    """
    if path is not None and path.suffix.lower() not in extensions:
        raise UsageError(f"{path}: write to a file that ends in {' or '.join(extensions)}.")
