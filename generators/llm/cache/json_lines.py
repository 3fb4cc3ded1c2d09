"""Export and import of a cache as JSON Lines, for backups and other tools.

The first line is ``{"pairwright_cache": 1}``, then one response per line, sorted by key, so that equal caches give equal
bytes. The raw body is written as text; invalid UTF-8 in it is replaced.
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
_HOW_TO_FIX = "Use a file written by `pairwright cache export`."
_TYPES: dict[str, type] = {
    **dict.fromkeys(COLUMNS, str),
    **dict.fromkeys(("answered", "prompt_tokens", "completion_tokens", "cached_tokens"), int),
}


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """Numbers of imported responses that were new, and that the cache had already (and kept)."""

    added: int
    known: int


def export_cache(path: Path, out: Path) -> int:
    """Write the cache at ``path`` to ``out`` atomically; return the number of responses.

    Raises:
        StorageError: the cache is missing or cannot be read.
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
    """Add the responses of an export to the cache at ``path``, created if missing.

    An invalid line ends the import; the lines before it stay imported. Import again once the file is corrected.

    Raises:
        InputError: the file is missing or not an export; names the line.
        UsageError: the export is from a newer pairwright.
        StorageError: the cache cannot be written.
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
