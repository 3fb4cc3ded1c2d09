"""Writer and strict reader of minimal USTAR tars.

The bytes of a shard depend on its contents only. Python's tarfile adds a PAX header of 1 KiB to a member whose time is a
float, and spends most of its time on constant fields: this writer is 8 to 12 times as fast (`benchmarks/shards.py`, ready
members: 72,000 against 9,400 samples/s with images of 28 kB, 140,000 against 11,800 with images of 3 kB). Every member is
one header block (name, size, checksum; time 0, owner 0, mode 0644), the data, and zeros up to a multiple of 512.

Limits: plain files only; names of 1-100 ASCII bytes; members under 8 GiB. The reader accepts nothing else, so a damaged or
foreign file fails at the first header that does not match. Two zero blocks end the archive, without padding to records
of 10 KiB, which every reader accepts.
"""

import os
from collections.abc import Iterator
from typing import Protocol

from pairwright.datasets.errors import StorageError

BLOCK_SIZE = 512
END_MARKER = bytes(2 * BLOCK_SIZE)
MAX_NAME = 100
MAX_SIZE = 8**11 - 1
_RECORDS = 2**16

_SIZE = slice(124, 136)
_CHECKSUM = slice(148, 156)


def _blank_header() -> bytearray:
    header = bytearray(BLOCK_SIZE)
    header[100:108] = b"0000644\0"  # mode
    header[108:116] = b"0000000\0"  # uid
    header[116:124] = b"0000000\0"  # gid
    header[136:148] = b"00000000000\0"  # mtime
    header[_CHECKSUM] = b" " * 8  # spaces in the sum of the header itself
    header[156:157] = b"0"  # a plain file
    header[257:265] = b"ustar\x0000"
    return header


_BLANK = _blank_header()
_BLANK_SUM = sum(_BLANK)
_AFTER_SIZE = bytes(_BLANK[136:148])
_TAIL = bytes(_BLANK[156:])
_MIDDLE = bytes(_BLANK[100:124])


def encode_member(name: str, data: bytes) -> list[bytes]:
    """Return a member as the chunks to write: header, data, padding.

    Args:
        name: 1-100 printable ASCII characters.
        data: the contents.

    Raises:
        StorageError: if the name or the size does not fit the format.
    """
    raw = name.encode("ascii", "replace")
    if not raw or len(raw) > MAX_NAME or not (name.isascii() and name.isprintable()):
        raise StorageError(f"tar member {name!r}: a name needs 1 to {MAX_NAME} printable ASCII characters. Rename it.")
    if len(data) > MAX_SIZE:
        raise StorageError(f"tar member {name!r}: {len(data)} bytes are too many for USTAR (8 GiB). Remove it.")
    size = b"%011o\0" % len(data)
    check = _BLANK_SUM + sum(raw) + sum(size)
    header = raw.ljust(MAX_NAME, b"\0") + _MIDDLE + size + _AFTER_SIZE + b"%06o\0 " % check + _TAIL
    return [header, data, bytes(-len(data) % BLOCK_SIZE)]


class Readable(Protocol):
    """What members are read from: a seekable binary file."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to another byte."""


def iter_members(handle: Readable, where: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and contents of each member of a tar that `encode_member` wrote, in order; read are all bytes, once.

    Args:
        handle: open at the start of the archive; must be seekable.
        where: name of the archive, for messages.

    Raises:
        StorageError: if the archive is truncated, damaged, or not of this kind.
    """
    whole = handle.seek(0, os.SEEK_END)
    offset = handle.seek(0)
    while True:
        header = handle.read(BLOCK_SIZE)
        if header == END_MARKER[:BLOCK_SIZE]:
            _check_end(handle, where, offset)
            return
        name, size = _parse(header, where, offset)
        padded = size + -size % BLOCK_SIZE
        if offset + BLOCK_SIZE + padded > whole:  # checked before reading: a damaged size may say 8 GiB
            raise _damage_error(where, offset, f"ends inside the member {name!r}")
        yield name, handle.read(padded)[:size]
        offset += BLOCK_SIZE + padded


def _check_end(handle: Readable, where: str, offset: int) -> None:
    rest = handle.read(BLOCK_SIZE)
    whole = len(rest) == BLOCK_SIZE
    while rest:  # other writers pad to records of 10 KiB with zeros
        if rest.strip(b"\0"):
            raise _damage_error(where, offset, "continues after its end")
        rest = handle.read(_RECORDS)
    if not whole:
        raise _damage_error(where, offset, "does not end with two zero blocks")


def _parse(header: bytes, where: str, offset: int) -> tuple[str, int]:
    if len(header) != BLOCK_SIZE:
        raise _damage_error(where, offset, "ends without its two zero blocks")
    if header[257:265] != b"ustar\x0000" or header[156:157] != b"0":
        raise _damage_error(where, offset, "has something other than a plain USTAR file (a PAX header, a link, ...)")
    try:
        size, check = _octal(header[_SIZE][:11]), _octal(header[_CHECKSUM][:6])
        name = header[:MAX_NAME].rstrip(b"\0").decode("ascii")
    except ValueError:
        raise _damage_error(where, offset, "has an unreadable header") from None
    if check != sum(header) - sum(header[_CHECKSUM]) + 8 * ord(" "):
        raise _damage_error(where, offset, "has a header with a wrong checksum")
    return name, size


def _octal(digits: bytes) -> int:
    if not digits.isdigit():  # int() accepts signs and spaces too
        raise ValueError(digits)
    return int(digits, 8)


def _damage_error(where: str, offset: int, what: str) -> StorageError:
    return StorageError(f"{where}: the tar {what} (at byte {offset}). Write the shard again.")
