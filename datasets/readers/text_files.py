"""Text input: decompression, bounded lines, strict UTF-8 and JSON.

Lines are bounded, so that a file without line ends cannot fill memory. A byte order mark is skipped; UTF-16 is an error.
JSON may have NaN and Infinity, as Python writes them, but no lone surrogates, which do not survive Parquet. Gzip is
recognised by the first bytes, not by name.

Limits: `MAX_LINE` bytes per line (16 MiB).
"""

import gzip
import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.input_rows import TableImage
from pairwright.datasets.rejects import RejectError, is_utf8_encodable

MAX_LINE = 16 * 2**20
_BLOCK = 2**16
BOM = b"\xef\xbb\xbf"
_INT64 = 2**63  # whole numbers beyond it, and beyond 64 bits without sign, are read as floats, as by orjson
_GZIP = b"\x1f\x8b"
_ARCHIVES = {
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
}


def iter_lines(path: Path, stretch: tuple[int, int, int] = (0, 0, 0)) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line with its end) of a file that may be gzipped.

    A line longer than `MAX_LINE` is cut to its first `MAX_LINE` + 1 bytes; the rest is skipped.

    Args:
        path: of the file.
        stretch: of a file that is not gzipped, only the lines that begin at a byte from ``start`` to before ``stop``,
            and the number of lines before; a ``stop`` of 0 is the end of the file.

    Raises:
        InputError: if the file cannot be read to its end, or is UTF-16.
    """
    start, stop, number = stretch
    try:
        with open_text(path) as handle:
            if start:
                handle.seek(start - 1)
                _skip_line(handle)
            while (not stop or handle.tell() < stop) and (line := handle.readline(MAX_LINE + 1)):
                number += 1
                if len(line) > MAX_LINE and not line.endswith(b"\n"):
                    _skip_line(handle)
                yield number, strip_bom(line, path) if number == 1 else line
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"cannot be read ({getattr(error, 'strerror', None) or error})",
            where=f"{path}:{number + 1}",
            fix="Copy the file again.",
        ) from None


def _skip_line(handle: BinaryIO) -> None:
    """Skip the rest of a line, which may be longer than memory."""
    while (piece := handle.readline(MAX_LINE + 1)) and not piece.endswith(b"\n"):
        pass


def count_line_starts(path: Path, start: int, stop: int) -> int:
    """Return how many lines begin at a byte from ``start`` to before ``stop`` of a file that is not compressed.

    Raises:
        InputError: if the file cannot be read.
    """
    count = int(start == 0)
    try:
        with path.open("rb") as handle:
            handle.seek(max(0, start - 1))
            left = stop - 1 - max(0, start - 1)
            while left > 0 and (data := handle.read(min(left, MAX_LINE))):
                count += data.count(b"\n")
                left -= len(data)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), fix="Copy the file again.") from None
    return count


def find_earlier_line(path: Path, start: int, lines: int) -> int:
    """Return a byte from which at least ``lines`` lines begin before ``start``; 0 if there are not as many.

    Raises:
        InputError: if the file cannot be read.
    """
    try:
        with path.open("rb") as handle:
            while start > 0 and lines >= 0:
                size = min(start, _BLOCK)
                start -= size
                handle.seek(start)
                lines -= handle.read(size).count(b"\n")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), fix="Copy the file again.") from None
    return start


def open_text(path: Path) -> BinaryIO:
    """Open a text file for reading bytes, gzipped or not, regardless of its name.

    Raises:
        InputError: for another kind of archive (zip, bzip2, xz, zstd, 7z).
        OSError: if the file cannot be opened.
    """
    handle = path.open("rb")
    head = handle.read(max(map(len, _ARCHIVES)))
    handle.seek(0)
    if head.startswith(_GZIP):
        handle.close()
        return cast("BinaryIO", gzip.open(path.open("rb"), "rb"))
    for magic, kind in _ARCHIVES.items():
        if head.startswith(magic):
            handle.close()
            raise InputError(f"a {kind} file", where=str(path), fix="Unpack it first, or compress it with gzip.")
    return handle


def read_text_bytes(path: Path) -> bytes:
    """Return the bytes of a file that may be gzipped, without a byte order mark; errors as in `iter_lines`."""
    try:
        with open_text(path) as handle:
            return strip_bom(handle.read(), path)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read ({why})", where=str(path), fix="Check the path, or copy it again.") from None


def strip_bom(data: bytes, path: Path) -> bytes:
    """Return ``data``, the start of a file, without its UTF-8 byte order mark; UTF-16 is an `InputError`."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("the text is UTF-16", where=str(path), fix="Save the file as UTF-8.")
    return data.removeprefix(BOM)


def parse_text(data: bytes) -> str:
    """Return bytes as text.

    Raises:
        RejectError: not_utf8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RejectError("not_utf8", f"byte {error.start + 1} is not UTF-8") from None


def parse_json(data: bytes | str) -> Any:
    """Return the value of a JSON text, in which numbers may be NaN and Infinity, as Python writes missing values.

    Raises:
        RejectError: broken_json, not_utf8, not_finite (a number too large) or not_unicode.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _parse_python_json(data, error)


def _parse_python_json(data: bytes | str, error: orjson.JSONDecodeError) -> Any:
    """Return the value of JSON that the strict parser refused for NaN or Infinity, else raise its flaw."""
    text = data if isinstance(data, str) else parse_text(data)
    constants: list[str] = []

    def read_constant(name: str) -> float:
        constants.append(name)
        return float(name)

    try:
        value = json.loads(text, parse_constant=read_constant, parse_float=_parse_float, parse_int=_parse_int)
        if not is_utf8_encodable(json.dumps(value, ensure_ascii=False)):
            raise RejectError("not_unicode", "a text holds half of a surrogate pair")
        if constants:
            return value
    except (ValueError, RecursionError):  # the second is not raised by Python 3.13 and later
        pass
    raise RejectError("broken_json", f"{error.msg} at character {error.pos + 1}")


def _parse_float(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise RejectError("not_finite", f"the number {number[:20]} is too large")
    return value


def _parse_int(number: str) -> int | float:
    value = _parse_float(number)
    whole = int(number)
    return whole if -_INT64 <= whole < 2 * _INT64 else value


def parse_object(data: bytes | str, what: str = "row") -> dict[str, Any]:
    """Return the object of a JSON text; anything else is rejected as wrong_type."""
    value = parse_json(data)
    if not isinstance(value, dict):
        raise RejectError("wrong_type", f"the {what} is {json_type_name(value)}, not an object")
    return value


def json_type_name(value: Any) -> str:
    """Return the name of a JSON value's type for messages."""
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a text"}
    names |= {bytes: "bytes", TableImage: "bytes"}
    return names.get(type(value), "a list" if isinstance(value, list | tuple) else f"of type {type(value).__name__}")
