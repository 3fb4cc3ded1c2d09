"""Tar files as random-access stores: where each member lies, and nothing trusted.

A shard is scanned header by header; nothing is ever unpacked. A member that a careless unpacker would
write elsewhere (absolute name, ``..``), and one that is no plain file (link, device, sparse), is a
`Reject`; folders are passed over. The standard library stops without a word at a damaged header and at a
missing end, so the scan checks both: a tar ends with a block of zeros, else rows are missing.

`read_member` finds a member through an index of the tar, kept for the few tars used last.

Limits: uncompressed tars only, since a compressed one has no random access.
"""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from pairwright.datasets.errors import InputError
from pairwright.datasets.rejects import Reject, is_storable, reject

BLOCK = 512
TARS_INDEXED = 4


@dataclass(frozen=True, slots=True)
class Member:
    """A plain file in a tar: its name, and where its bytes lie."""

    name: str
    offset: int
    size: int


def scan_tar(path: Path) -> Iterator[Member | Reject]:
    """Yield the members of an uncompressed tar in order; flaws are yielded where they are met.

    Raises:
        InputError: when the file cannot be opened as a tar at all.
    """
    with _opened(path) as archive:
        length = path.stat().st_size
        reached = -1
        while True:
            try:
                info = archive.next()
            except (tarfile.TarError, OSError, ValueError, OverflowError) as error:
                yield reject(str(path), "truncated_tar", f"the tar breaks off ({error})")
                return
            if info is None:
                break
            archive.members = []  # type: ignore[attr-defined]  # it collects every header; a scan needs none again
            if info.size < 0 or archive.offset <= reached:
                yield reject(f"{path}::{info.name}", "broken_tar", "the header gives an impossible size")
                return
            reached = archive.offset
            if info.isreg() and info.offset_data + info.size > length:
                yield reject(f"{path}::{info.name}", "truncated_tar", "the tar breaks off inside this member")
                return
            if not info.isdir():
                yield _member(path, info)
        yield from _check_end(path, archive.offset)


def _opened(path: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(path, "r:", encoding="utf-8")
    except (tarfile.TarError, OSError, ValueError) as error:
        raise InputError(
            f"not an uncompressed tar ({error})",
            where=str(path),
            mend="Copy the shard again; unpack .tar.gz to .tar first.",
        ) from None


def open_tar(path: Path) -> BinaryIO:
    """Return the tar ``path`` opened for reading at offsets.

    Raises:
        InputError: when it cannot be opened.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), mend="Check path and rights.") from None


def _member(path: Path, info: tarfile.TarInfo) -> Member | Reject:
    place = f"{path}::{info.name}"
    if not is_storable(info.name):
        return reject(place, "not_utf8", "the member's name is not UTF-8")
    if info.name.startswith("/") or ".." in PurePosixPath(info.name).parts:
        return reject(place, "outside_root", "the member's name leads outside the tar")
    if not info.isreg() or info.issparse():
        return reject(place, "not_a_file", "the member is a link, a device or sparse")
    return Member(info.name, info.offset_data, info.size)


def _check_end(path: Path, offset: int) -> Iterator[Reject]:
    with path.open("rb") as handle:
        handle.seek(offset)
        block = handle.read(BLOCK)
    if len(block) < BLOCK:
        yield reject(str(path), "truncated_tar", "the tar has no end mark; members may be missing")
    elif block.strip(b"\0"):
        yield reject(str(path), "broken_tar", f"the header at byte {offset} is damaged; what follows is lost")


@lru_cache(maxsize=TARS_INDEXED)
def _index(path: str, _changed: int, _length: int) -> dict[str, Member]:
    return {found.name: found for found in scan_tar(Path(path)) if isinstance(found, Member)}


def find_member(path: Path, name: str) -> Member | None:
    """Return where the safe, plain member ``name`` of the tar ``path`` lies, or None when it has none.

    Raises:
        InputError: when the file is not a tar.
        OSError: when there is no such file.
    """
    status = path.stat()
    return _index(str(path), status.st_mtime_ns, status.st_size).get(name)
