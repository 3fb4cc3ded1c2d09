"""What is said of an output before the work begins: that it takes the place of something, or stands in a new folder.

Commands replace their output without a question, since to run one again is how it is mended and gone on with. So what
is there shall be told while it still is: a file is whole until its successor is, and Ctrl-C in between leaves it.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pairwright.cli.output.console import note
from pairwright.datasets.errors import StorageError


def check_outputs(*outs: Path | None, reads: Sequence[str | tuple[str, ...]] = ()) -> None:
    """Say on stderr what outputs replace, and which folders they make. Nothing of those that are new, or not asked for.

    Args:
        outs: the outputs; None for one that is not asked for.
        reads: what is read, which no output may replace.

    Raises:
        UsageError: for one that is read, or that a build or an index is made of.
        StorageError: for one in a folder that cannot be written, or below a file; without this check the command would
            fail after all its work.
    """
    from pairwright.flows.state.overwrite_checks import refuse_overwriting, refuse_replacing_build_files

    for out in outs:
        if out is not None:
            _refuse_unwritable(out)
            refuse_overwriting(out, *reads)
            refuse_replacing_build_files(out)
            if told := _overwrite_message(out):
                note(f"{out}: {told}.")


def _refuse_unwritable(out: Path) -> None:
    there = next((folder for folder in (*([out] if out.is_dir() else ()), *out.parents) if folder.exists()), None)
    if there is not None and not there.is_dir():
        raise StorageError(f"{out}: {there} is a file, not a folder. Choose another place.")
    if there is not None and not os.access(there, os.W_OK | os.X_OK):
        raise StorageError(f"{out}: nothing may be written in {there}. Choose another place, or mend its rights.")


def _overwrite_message(out: Path) -> str:
    if out.is_file():
        return f"replaces a file of {out.stat().st_size:,} bytes, {_modified(out)}, when all is done"
    if out.is_dir():
        return "holds files already; those of the same names are replaced" if any(out.iterdir()) else ""
    return "" if out.parent.is_dir() else f"makes the folder {out.parent}"


def check_index_output(folder: Path) -> None:
    """Say on stderr that an index takes the place of another, which is gone as soon as the new one begins."""
    from pairwright.indexes.hnsw.metadata import METADATA_FILE

    _refuse_unwritable(folder)
    if (folder / METADATA_FILE).is_file():
        note(f"{folder}: replaces an index {_modified(folder / METADATA_FILE)}.")
    elif not folder.exists():
        check_outputs(folder)


def _modified(path: Path) -> str:
    return f"written {datetime.fromtimestamp(path.stat().st_mtime, UTC).astimezone():%Y-%m-%d %H:%M}"
