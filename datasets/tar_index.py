"""Tar files as random-access stores: safe listing of members and their offsets.

A shard is scanned header by header (USTAR, with GNU and PAX extensions for long names and sizes); nothing is unpacked.
Members with an unsafe name (absolute, ``..``) and members that are not plain files (link, device, sparse) are rejects;
folders are skipped. The standard library's reader stops silently at a damaged header, a missing end, or zeros in the
middle, and takes ten times as long; here each of these is reported: a tar ends with a block of zeros, else members are
missing, followed by nothing but zeros. A file shorter than one header, even an empty one, is a truncated tar.

`find_member` finds a member through an index, cached for the most recently used tars.

Tars in an object store are read by byte ranges (`remote/reading.py`).

Limits: uncompressed tars only, as compressed ones have no random access.
"""

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import orjson

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.errors import InputError
from pairwright.datasets.rejects import Reject, RejectError, is_utf8_encodable, make_reject
from pairwright.datasets.remote.cache import cache_folder, cache_key
from pairwright.datasets.remote.reading import open_file
from pairwright.datasets.remote.store_path import StorePath

BLOCK_SIZE = 512
MAX_INDEXED_TARS = 4
_READ_BYTES = 2**20
_MEMBER_BUFFER = 2**20  # of requests for images inside tars of a store, which are mostly read in order
LONG_NAME_LIMIT = 2**20  # bytes of a GNU or PAX extension; real ones have a few hundred

REGULAR_FILE_TYPES = frozenset({b"0", b"\0", b"7"})
FOLDER_TYPE = b"5"
EXTENSION_HEADER_TYPES = frozenset({b"L", b"K", b"x", b"g"})


@dataclass(frozen=True, slots=True)
class TarMember:
    """A plain file in a tar: its name, offset and size, and the offset of its first header."""

    name: str
    offset: int
    size: int
    start: int


@dataclass(frozen=True, slots=True)
class _TarEntry:
    """A header with its extensions applied: name, type, offset and size of the member, offset of the first header."""

    name: str
    kind: bytes
    offset: int
    size: int
    start: int


def iter_tar_members(path: str | Path) -> Iterator[TarMember | Reject]:
    """Yield the members of an uncompressed tar (a path or a URL) in order, and rejects where the tar is damaged.

    Raises:
        InputError: if the file cannot be opened, or does not start as a tar.
        StorageError: if a store fails.
    """
    with open_tar(path) as handle:
        yield from iter_open_tar(handle, path)


def iter_open_tar(handle: BinaryIO, path: str | Path) -> Iterator[TarMember | Reject]:
    """Yield what `iter_tar_members` does; between two members, ``handle`` may be read elsewhere."""
    length = handle.seek(0, io.SEEK_END)
    offset = 0
    while True:
        try:
            entry = _next_entry(handle, offset, length)
        except RejectError as flaw:
            if offset == 0 and flaw.reason != "truncated_tar":
                fix = "Copy the shard again; unpack .tar.gz to .tar first."
                raise InputError("not an uncompressed tar", where=str(path), fix=fix) from None
            yield make_reject(str(path), flaw.reason, flaw.detail)
            return
        if entry is None:
            if _has_data_after_end(handle):
                detail = f"members follow the end mark at byte {offset}: overwritten with zeros, or two tars joined"
                yield make_reject(str(path), "broken_tar", detail)
            return
        if entry.offset + entry.size > length:
            place = f"{path}::{entry.name}"
            yield make_reject(place, "truncated_tar", "the tar breaks off inside this member")
            return
        if entry.kind != FOLDER_TYPE:
            yield _member(path, entry)
        offset = entry.offset + _padded_size(entry.size)


def _has_data_after_end(handle: BinaryIO) -> bool:
    """Return whether anything but zeros (the padding of a record) follows the end marker."""
    return any(rest.strip(b"\0") for rest in iter(lambda: handle.read(_READ_BYTES), b""))


def open_tar(path: str | Path) -> BinaryIO:
    """Return the tar ``path`` opened for reading at offsets.

    Raises:
        InputError: if it cannot be opened.
    """
    try:
        return open_file(path)
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror})", where=str(path), fix="Check the path and its permissions."
        ) from None


def _member(path: str | Path, entry: _TarEntry) -> TarMember | Reject:
    place = f"{path}::{entry.name}"
    if not is_utf8_encodable(entry.name):
        return make_reject(place, "not_utf8", "the member's name is not UTF-8")
    if entry.name.startswith("/") or ".." in entry.name.split("/"):
        return make_reject(place, "unsafe_member_path", "the member's name leads outside the tar")
    if entry.kind not in REGULAR_FILE_TYPES:
        return make_reject(place, "not_a_file", "the member is a link, a device or sparse")
    return TarMember(entry.name, entry.offset, entry.size, entry.start)


def _next_entry(handle: BinaryIO, offset: int, length: int) -> _TarEntry | None:
    """Return the entry whose headers start at ``offset``; None at the end marker.

    Raises:
        RejectError: truncated_tar or broken_tar.
    """
    extended: dict[str, str] = {}
    start = offset
    while True:
        handle.seek(offset)
        header = handle.read(BLOCK_SIZE)
        if len(header) < BLOCK_SIZE:
            if offset == 0:
                raise RejectError("truncated_tar", f"the file ends within the tar's first header, at byte {length}")
            raise RejectError("truncated_tar", "the tar has no end mark; members may be missing")
        if not header.strip(b"\0"):
            return None
        size = _checked_size(header, offset)
        kind = header[156:157]
        offset += BLOCK_SIZE
        if kind not in EXTENSION_HEADER_TYPES:
            name = extended.get("path") or _name(header)
            size = _pax_size(extended, size)
            return _TarEntry(name, b"S" if _is_sparse(extended) else kind, offset, size, start)
        if size > LONG_NAME_LIMIT or offset + size > length:
            raise RejectError("truncated_tar", f"the tar breaks off in the extended header at byte {offset}")
        if kind == b"L":
            extended["path"] = _text(handle.read(size))
        elif kind == b"x":
            extended |= _pax_fields(handle.read(size), offset)
        offset += _padded_size(size)


def _checked_size(header: bytes, offset: int) -> int:
    """Return the size in a header, after checking the checksum."""
    if _number(header[148:156], offset) != sum(header) - sum(header[148:156]) + 8 * ord(" "):
        raise RejectError("broken_tar", f"the header at byte {offset} is damaged; what follows is lost")
    return _number(header[124:136], offset)


def _number(field: bytes, offset: int) -> int:
    """Return a number of a header: octal digits, or base 256 if the first bit is set (GNU, for large numbers)."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    try:
        number = int(digits or b"0", 8)
    except ValueError:
        number = -1
    if number < 0:
        raise RejectError("broken_tar", f"the header at byte {offset} is damaged; what follows is lost")
    return number


def _name(header: bytes) -> str:
    name, prefix = _text(header[:100]), _text(header[345:500])
    # Only POSIX headers have a prefix; GNU stores times there.
    return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _pax_fields(data: bytes, offset: int) -> dict[str, str]:
    """Return the records of a PAX header, each written as ``length key=value`` and a newline."""
    fields: dict[str, str] = {}
    while data.strip(b"\0"):
        digits, _, rest = data.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 10 else 0
        record = rest[: length - len(digits) - 1]
        key, equals, value = record.partition(b"=")
        if length <= len(digits) + 1 or not equals or not value.endswith(b"\n"):
            raise RejectError("broken_tar", f"the extended header at byte {offset} is damaged; what follows is lost")
        fields[_text(key)] = value[:-1].decode("utf-8", "surrogateescape")
        data = data[length:]
    return fields


def _pax_size(extended: dict[str, str], size: int) -> int:
    written = extended.get("size", "")
    return int(written) if written.isascii() and written.isdigit() and len(written) < 20 else size


def _is_sparse(extended: dict[str, str]) -> bool:
    return any(key.startswith("GNU.sparse.") for key in extended)


def _padded_size(size: int) -> int:
    return -(-size // BLOCK_SIZE) * BLOCK_SIZE


@lru_cache(maxsize=MAX_INDEXED_TARS)
def _index_tar(path: str, _changed: int, _length: int) -> dict[str, TarMember]:
    return {found.name: found for found in iter_tar_members(path) if isinstance(found, TarMember)}


class _StoredTar:
    """A tar in a store: its members, and the open file, which fails if the tar is replaced meanwhile."""

    def __init__(self, path: str) -> None:
        self.members = _stored_members(StorePath(path))
        self._handle = open_file(path, buffer=_MEMBER_BUFFER)
        self._lock = Lock()  # images are opened in threads

    def read(self, member: TarMember) -> bytes:
        with self._lock:
            self._handle.seek(member.offset)
            return self._handle.read(member.size)


@lru_cache(maxsize=MAX_INDEXED_TARS)
def _open_stored(path: str, _process: int) -> _StoredTar:
    return _StoredTar(path)


def _stored_members(path: StorePath) -> dict[str, TarMember]:
    """Return the members of a tar in a store: those that were kept, else by streaming it once."""
    with suppress(OSError, ValueError, TypeError):
        return {name: TarMember(name, *numbers) for name, *numbers in orjson.loads(_place(path).read_bytes())}
    members = [each for each in iter_tar_members(path) if isinstance(each, TarMember)]
    keep_members(path, members)
    return {each.name: each for each in members}


def keep_members(path: Path, members: Iterable[TarMember]) -> None:
    """Keep the members of a whole tar in a store, so that `find_member` does not stream it; nothing for a local tar."""
    if isinstance(path, StorePath):
        rows = [[each.name, each.offset, each.size, each.start] for each in members]
        with suppress(OSError):  # a read-only home
            write_bytes(_place(path), orjson.dumps(rows))


def _place(path: StorePath) -> Path:
    found = path.look_up()
    return cache_folder("tar-index") / f"{cache_key(str(path), found.size, found.time_ns, found.version)}.json"


def find_member(path: Path, name: str) -> TarMember | None:
    """Return the plain member ``name`` of the tar ``path``, or None if it has no such member with a safe name.

    Raises:
        InputError: if the file is not a tar.
        OSError: if there is no such file.
    """
    if isinstance(path, StorePath):
        return _open_stored(str(path), os.getpid()).members.get(name)
    status = path.stat()
    return _index_tar(str(path), status.st_mtime_ns, status.st_size).get(name)


def read_member(path: Path, member: TarMember) -> bytes:
    """Return the bytes of a member that `find_member` found.

    Raises:
        OSError: a local file cannot be read.
        StorageError: a store fails, or the tar was replaced since its members were listed.
    """
    if isinstance(path, StorePath):
        return _open_stored(str(path), os.getpid()).read(member)
    with path.open("rb") as handle:
        handle.seek(member.offset)
        return handle.read(member.size)
