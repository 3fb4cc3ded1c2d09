"""Readers of existing model outputs: files of texts in the order of their rows.

A file is a JSON list or JSON Lines of texts, of lists of texts (samples of one row), or of objects with a text under
``output``, ``text``, ``response``, ``completion`` or ``generation``. Several files are either consecutive parts
(``train_CoT_0.json`` with 500 and ``train_CoT_1.json`` with 300 outputs of 800 rows), or samples, each for all rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.readers.text_files import read_text_bytes

TEXT_FIELDS = ("output", "text", "response", "completion", "generation")


@dataclass(frozen=True, slots=True)
class RowOutputs:
    """Outputs for one row (one text, or several samples), and the file of the first."""

    texts: tuple[str, ...]
    file: str


def read_outputs(path: Path) -> list[tuple[str, ...]]:
    """Return the outputs of a file in order, each with its samples.

    Raises:
        InputError: the file cannot be read, or an entry is no output.
    """
    return [_texts(value, f"{path}: {place}") for place, value in _values(read_text_bytes(path), path)]


def read_row_outputs(rows: int, paths: Sequence[Path]) -> list[RowOutputs]:
    """Return the outputs of each row.

    Args:
        rows: number of rows.
        paths: the files.

    Raises:
        UsageError: the files match the number of rows neither as parts nor as samples.
        InputError: as in `read_outputs`.
    """
    files = [(path.name, read_outputs(path)) for path in paths]
    counts = [len(outputs) for _, outputs in files]
    if sum(counts) == rows:
        return [RowOutputs(texts, name) for name, outputs in files for texts in outputs]
    if counts and all(count == rows for count in counts):
        samples = zip(*(outputs for _, outputs in files), strict=True)
        return [RowOutputs(tuple(text for texts in row for text in texts), files[0][0]) for row in samples]
    sizes = ", ".join(f"{name} {len(outputs):,}" for name, outputs in files)
    raise UsageError(
        f"{rows:,} rows, but outputs: {sizes}. Give files whose outputs add up to the rows, or files with one output "
        "for each row."
    )


def _values(content: bytes, path: Path) -> list[tuple[str, Any]]:
    try:
        values = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if content.lstrip().startswith(b"["):
            raise InputError(f"invalid JSON ({error})", where=str(path), fix="Correct the file.") from None
        return [
            (f"line {number}", _line(line, path, number))
            for number, line in enumerate(content.splitlines(), 1)
            if line.strip()
        ]
    if not isinstance(values, list):
        values = [values]
    return [(f"output {number}", value) for number, value in enumerate(values)]


def _line(line: bytes, path: Path, number: int) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"invalid JSON ({error})", where=f"{path}:{number}", fix="Correct the line.") from None


def _texts(value: Any, place: str) -> tuple[str, ...]:
    if isinstance(value, dict):
        value = next((value[name] for name in TEXT_FIELDS if name in value), None)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return tuple(value)
    fix = f"Give texts, lists of texts, or objects with a text under one of: {', '.join(TEXT_FIELDS)}."
    raise InputError("not a model output", where=place, fix=fix)
