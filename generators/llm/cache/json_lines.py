"""A cache as JSON Lines: for a backup, for a colleague, or to look at with other tools.

The first line tells what the file is: ``{"pairwright_cache": 1}``. Then one answer a line, sorted by key, so that the
same answers always give the same bytes. The raw body is written as text; what is not UTF-8 in it (JSON has to be) is
replaced.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import InputError, UsageError
from pairwright.generators.llm.cache.database import (
    COLUMNS,
    SELECT,
    AnswerRow,
    insert_rows,
    open_database,
    translate_errors,
)

FORMAT_VERSION = 1
_MARK = "pairwright_cache"
_BATCH = 500
_MOST = 2**53
_HOW_TO_FIX = "Give a file that `pairwright cache export` has written."
_TYPES: dict[str, type] = {
    **dict.fromkeys(COLUMNS, str),
    **dict.fromkeys(("answered", "prompt_tokens", "completion_tokens", "cached_tokens"), int),
}


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """How many answers a file had that were new, and how many the cache knew; those stay as they were."""

    added: int
    known: int


def export_cache(path: Path, out: Path) -> int:
    """Write the cache at ``path`` to ``out``, whole or not at all, and return how many answers it holds.

    Raises:
        StorageError: when there is no cache, or it cannot be read.
    """
    with (
        closing(open_database(path, create=False)) as connection,
        translate_errors(path),
        replace_atomically(out) as temporary,
    ):
        count = 0
        with temporary.open("wb") as file:
            file.write(orjson.dumps({_MARK: FORMAT_VERSION}) + b"\n")
            for row in connection.execute(f"{SELECT} ORDER BY key"):
                file.write(_line(row) + b"\n")
                count += 1
        return count


def _line(row: AnswerRow) -> bytes:
    values: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    values["key"], values["raw"] = row[0].hex(), row[-1].decode("utf-8", "replace")
    return orjson.dumps(values)


def import_cache(source: Path, path: Path) -> ImportCounts:
    """Add the answers of an export to the cache at ``path``, which is made when missing.

    A broken line ends the import with what stood before it added; run it again when the file is mended.

    Raises:
        InputError: when the file is missing or no such export; it names the line.
        UsageError: when the export is of a newer pairwright.
        StorageError: when the cache cannot be written.
    """
    try:
        file = source.open("rb")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(source), fix=_HOW_TO_FIX) from None
    with file:
        _check_head(file, source)
        added = known = 0
        with closing(open_database(path, create=True)) as connection:
            rows = _rows(file, source)
            while batch := list(islice(rows, _BATCH)):
                with translate_errors(path):
                    new = insert_rows(connection, batch)
                added, known = added + new, known + len(batch) - new
        return ImportCounts(added, known)


def _check_head(file: BinaryIO, source: Path) -> None:
    head = _object(file.readline(), f"{source}:1")
    version = head.get(_MARK)
    if not isinstance(version, int):
        raise InputError("not an export of a cache", where=f"{source}:1", fix=_HOW_TO_FIX)
    if version > FORMAT_VERSION:
        raise UsageError(f"{source}: written by a newer pairwright (format {version}). Upgrade pairwright.")


def _rows(file: BinaryIO, source: Path) -> Iterator[AnswerRow]:
    for number, line in enumerate(file, 2):
        yield _row(_object(line, f"{source}:{number}"), f"{source}:{number}")


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise InputError("not a JSON object", where=where, fix=_HOW_TO_FIX)
    return value


def _row(values: dict[str, Any], where: str) -> AnswerRow:
    for name, kind in _TYPES.items():
        if type(values.get(name)) is not kind:
            raise InputError(f"{name} is missing or of another type", where=where, fix=_HOW_TO_FIX)
        if kind is int and not 0 <= values[name] < _MOST:
            raise InputError(f"{name} {values[name]} is out of range", where=where, fix=_HOW_TO_FIX)
    try:
        key = bytes.fromhex(values["key"])
    except ValueError:
        key = b""
    if len(key) != 16:
        raise InputError(f"key {values['key']!r} is not 32 hex digits", where=where, fix=_HOW_TO_FIX)
    middle = [values[name] for name in COLUMNS[1:-1]]
    return (key, *middle, values["raw"].encode())
