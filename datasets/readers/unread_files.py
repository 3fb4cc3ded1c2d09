"""Kinds of files that hold data and are not read, by their ending: what they are, and how to convert them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pairwright.datasets.readers.text_files import strip_compression

_ARROW_FILE = b"ARROW1"  # the first bytes of the file format; those of Hugging Face are streams


@dataclass(frozen=True, slots=True)
class UnreadKind:
    """A kind of file.

    Attributes:
        about: what it is, with its article.
        convert: returns the fix for a file, a sentence.
    """

    about: str
    convert: Callable[[Path], str]


def arrow_conversion(path: Path) -> str:
    """Return the command that converts an Arrow file to Parquet: one of Hugging Face's datasets, or of Arrow's file format."""
    with path.open("rb") as handle:
        if handle.read(len(_ARROW_FILE)) == _ARROW_FILE:
            return f"""python -c "import polars; polars.read_ipc('{path}').write_parquet('rows.parquet')\""""
    return python_conversion("Dataset", f"Dataset.from_file('{path}')")


def python_conversion(name: str, call: str, out: str = "rows.parquet") -> str:
    """Return the command that writes a dataset of Hugging Face's library as Parquet."""
    return f"""python -c "from datasets import {name}; {call}.to_parquet('{out}')\""""


def _pickle_conversion(path: Path) -> str:
    command = f"""python -c "import pandas; pandas.read_pickle('{path}').to_parquet('rows.parquet')\""""
    return f"If you trust it and it is a table, convert it: {command}."


_COMPRESSED = UnreadKind(
    "a compressed file",
    lambda _: "Unpack it first. Only .json, .jsonl, .csv and .tsv files may be compressed (.gz, .bz2, .xz, .zst).",
)
_ARROW = UnreadKind("an Arrow file", lambda path: f"Convert it: {arrow_conversion(path)}.")
_SPREADSHEET = UnreadKind("a spreadsheet", lambda _: "Save it as CSV.")
_PICKLE = UnreadKind("a pickle file", _pickle_conversion)
_BY_SUFFIX = {
    **dict.fromkeys((".zip", ".7z", ".rar", ".tgz"), _COMPRESSED),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), _ARROW),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _SPREADSHEET),
    **dict.fromkeys((".pkl", ".pickle"), _PICKLE),
}


def find_unread_kind(path: Path) -> UnreadKind | None:
    """Return the kind of a file that no reader reads; None for another file."""
    name = path.name.lower()
    return _COMPRESSED if strip_compression(name) != name else _BY_SUFFIX.get(path.suffix.lower())
