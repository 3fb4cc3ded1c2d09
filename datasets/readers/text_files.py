"""Text input: decompression, UTF-16 and UTF-32, bounded lines, strict UTF-8 and JSON.

Lines are bounded, so that a file without line ends cannot fill memory. A byte order mark is skipped. Compression (gzip,
bzip2, xz, zstd) and UTF-16 and UTF-32 are recognised by the first bytes, not by name. A line that is not UTF-8 is rejected, or
read in the encoding that the user names (`Transcoder`): which one it is cannot be known from the bytes. JSON may have NaN and Infinity, as Python writes
them, but no lone surrogates, which do not survive Parquet.

Limits: `MAX_LINE` bytes per line (16 MiB).
"""

import bz2
import codecs
import gzip
import io
import json
import lzma
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import orjson

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.readers.input_rows import TableImage
from pairwright.datasets.rejects import RejectError, is_utf8_encodable

MAX_LINE = 16 * 2**20
_BLOCK = 2**16
_T = TypeVar("_T")
BOM = b"\xef\xbb\xbf"
_INT64 = 2**63  # whole numbers beyond it, and beyond 64 bits without sign, are read as floats, as by orjson
_ARCHIVES = {b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7z"}
# Byte order marks; that of UTF-32 begins with that of UTF-16.
_WIDE = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
LIKELY_ENCODING = "cp1252"  # of a text in a European language that is not UTF-8: what Excel on Windows writes
_SHOWN_AROUND = 12  # bytes around one that is not UTF-8
_COMPRESSED_SUFFIXES = frozenset({".gz", ".bz2", ".xz", ".zst"})
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeError)
"""What reading a file of `open_text` may raise."""


def _open_zstd(handle: BinaryIO) -> BinaryIO:
    import pyarrow as pa

    return cast("BinaryIO", pa.CompressedInputStream(handle, "zstd"))


# A text may begin with "BZh" and a digit; these are followed by a block, or by the end of an empty file.
_BZIP2 = [b"BZh%d%b" % (level, mark) for level in range(1, 10) for mark in (b"1AY&SY", b"\x17rE8P\x90")]
_DECOMPRESSORS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    **dict.fromkeys(_BZIP2, bz2.open),
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": _open_zstd,
    # A skippable frame, with which pzstd and other parallel writers begin.
    **dict.fromkeys([bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60)], _open_zstd),
}
_HEAD = max(map(len, (*_DECOMPRESSORS, *_ARCHIVES)))


def strip_compression(name: str) -> str:
    """Return the name of a file without the ending of its compression: ``a.jsonl`` for ``a.jsonl.zst``."""
    base, dot, ending = name.rpartition(".")
    return base if f"{dot}{ending.lower()}" in _COMPRESSED_SUFFIXES else name


def iter_lines(path: Path, stretch: tuple[int, int, int] = (0, 0, 0)) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line with its end in UTF-8) of a file as `open_text` opens it.

    A line longer than `MAX_LINE` is cut to its first `MAX_LINE` + 1 bytes; the rest is skipped.

    Args:
        path: of the file.
        stretch: of a file that `is_plain_text`, only the lines that begin at a byte from ``start`` to before ``stop``,
            and the number of lines before; a ``stop`` of 0 is the end of the file.

    Raises:
        InputError: if the file cannot be read to its end.
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
                yield number, line.removeprefix(BOM)  # files that were joined have one within
    except READ_ERRORS as error:
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
    """Open a text file for reading its bytes, decompressed, and UTF-16 and UTF-32 as UTF-8; regardless of its name.

    Reading may raise `READ_ERRORS`.

    Raises:
        InputError: for an archive (zip, 7z).
        OSError: if the file cannot be opened.
    """
    handle = path.open("rb")
    head = handle.read(_HEAD)
    handle.seek(0)
    if kind := _find_by_magic(_ARCHIVES, head):
        handle.close()
        raise InputError(f"a {kind} file", where=str(path), fix="Unpack it first, or compress it with gzip or zstd.")
    if decompress := _find_by_magic(_DECOMPRESSORS, head):
        handle = io.BufferedReader(decompress(handle))
        head = handle.peek(_HEAD)
    wide = _find_by_magic(_WIDE, head)
    return cast("BinaryIO", io.BufferedReader(_Utf8FromWide(handle, wide)) if wide else handle)


def is_plain_text(path: Path) -> bool:
    """Return whether the bytes of a file are those that `open_text` gives, so that a part of it can be read.

    Raises:
        OSError: if the file cannot be opened.
    """
    with path.open("rb") as handle:
        return handle.seekable() and not handle.read(_HEAD).startswith((*_DECOMPRESSORS, *_ARCHIVES, *_WIDE))


def _find_by_magic(table: Mapping[bytes, _T], head: bytes) -> _T | None:
    return next((value for magic, value in table.items() if head.startswith(magic)), None)


class _Utf8FromWide(io.RawIOBase):
    """Stream of the UTF-8 bytes of a UTF-16 or UTF-32 text with a byte order mark, as Excel saves "Unicode Text"."""

    def __init__(self, handle: BinaryIO, encoding: str) -> None:
        self._text = io.TextIOWrapper(handle, encoding, newline="")
        self._waiting = b""

    def readable(self) -> bool:
        """Return that the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` with the next bytes; return their number, 0 at the end."""
        self._waiting = self._waiting or self._text.read(_BLOCK).encode()
        size = min(len(buffer), len(self._waiting))
        buffer[:size], self._waiting = self._waiting[:size], self._waiting[size:]
        return size

    def close(self) -> None:
        """Close the stream and its file."""
        self._text.close()
        super().close()


def read_text_bytes(path: Path) -> bytes:
    """Return the bytes of a file as `open_text` opens it, without a byte order mark; errors as in `iter_lines`."""
    try:
        with open_text(path) as handle:
            return handle.read().removeprefix(BOM)
    except READ_ERRORS as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read ({why})", where=str(path), fix="Check the path, or copy it again.") from None


@dataclass(frozen=True, slots=True)
class Transcoder:
    """Conversion of lines that are not UTF-8, from an encoding that the user names.

    A line that is UTF-8 stays as it is: files joined of several have lines of both, and a text of another encoding is UTF-8
    by accident in theory only. This needs an encoding of one byte a character.

    Attributes:
        encoding: name of Python's codecs; empty for none.
    """

    encoding: str = ""

    @classmethod
    def of(cls, encoding: str, option_names: OptionNames = COMMAND_LINE) -> "Transcoder":
        """Return the conversion from an encoding; empty or a name of UTF-8 for none.

        Raises:
            UsageError: there is no such encoding, or it has several bytes a character.
        """
        try:
            name = codecs.lookup(encoding).name if encoding else ""
            b" ".decode(name or "ascii")  # rot13 and others are no encodings of texts
        except (LookupError, ValueError):  # a name with NUL
            option = option_names.option("encoding")
            raise UsageError(f"{option} {encoding}: no such encoding. Common ones are cp1252 and latin-1.") from None
        if name in {"", "utf-8", "utf-8-sig", "ascii"}:
            return cls()
        if not _has_one_byte_per_character(name):
            fix = f"Convert the file: iconv -f {encoding} -t utf-8 OLD > NEW"
            what = "only encodings of one byte a character; UTF-16 and UTF-32 are recognised by their byte order mark"
            raise UsageError(f"{option_names.option('encoding')} {encoding}: {what}. {fix}.")
        return cls(name)

    def convert(self, line: bytes) -> bytes:
        """Return a line as UTF-8; unchanged if it is UTF-8, if there is no encoding, or if it is not in the encoding."""
        if not self.encoding or line.isascii():
            return line
        try:
            line.decode()
        except UnicodeDecodeError:
            try:
                return line.decode(self.encoding).encode()
            except UnicodeDecodeError:
                return line
        return line


def _has_one_byte_per_character(encoding: str) -> bool:
    """Return whether each byte is a character or none, and ASCII is itself: a backslash or ``xn--`` begins no code."""
    every = bytes(range(256)) + rb"\u0041"
    with suppress(UnicodeError):  # codecs that do not replace
        texts = [bytes([byte]).decode(encoding, "replace") for byte in every]
        return all(map(_is_itself_in_ascii, every, texts)) and every.decode(encoding, "replace") == "".join(texts)
    return False


def _is_itself_in_ascii(byte: int, text: str) -> bool:
    return len(text) == 1 and (byte >= 128 or ord(text) == byte)


NO_TRANSCODING = Transcoder()


def describe_undecodable(data: bytes, error: UnicodeDecodeError) -> str:
    """Return where bytes are not UTF-8, and how they read in the likely encoding."""
    around = data[max(0, error.start - _SHOWN_AROUND) : error.start + _SHOWN_AROUND]
    shown = around.decode(LIKELY_ENCODING, "replace").replace("\ufffd", "?")
    return f"byte {error.start + 1} is not UTF-8; in {LIKELY_ENCODING} it reads {' '.join(shown.split())!r}"


def parse_text(data: bytes) -> str:
    """Return bytes as text.

    Raises:
        RejectError: not_utf8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RejectError("not_utf8", describe_undecodable(data, error)) from None


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
        wanted = 'an object of named fields, such as {"caption": "a dog"}' if what == "row" else "an object"
        raise RejectError("wrong_type", f"the {what} is {json_type_name(value)}, not {wanted}")
    return value


def json_type_name(value: Any) -> str:
    """Return the name of a JSON value's type for messages."""
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a text"}
    names |= {bytes: "bytes", TableImage: "bytes", dict: "an object"}
    return names.get(type(value), "a list" if isinstance(value, list | tuple) else f"of type {type(value).__name__}")
