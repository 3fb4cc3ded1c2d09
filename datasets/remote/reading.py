"""Reading of files by byte ranges, on disk or in an object store, without copying them.

`open_file` returns a seekable binary file for a path or a URL; `read_ranges` reads many byte ranges, those of a store
concurrently. A range of a store that comes incomplete, or not at all, is requested again; an object that is replaced
while it is open is an error in S3 (``If-Match``); in Google Cloud Storage it is not noticed. All failures of a store are
`StorageError`, so no reader mistakes one for the end of a file.
"""

import errno
import io
import os
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from pairwright.datasets.errors import StorageError
from pairwright.datasets.remote.object_store import RemoteStore, is_remote, open_store

Range = tuple[str, int, int]
"""Path or URL, first byte, and the byte after the last one."""

_AT_ONCE = (0.0, 0.0, 0.0)  # seconds before each further attempt
_BUFFER = 4 * 2**20
TABLE_BUFFER = 2**18  # of a Parquet file, of which footer and column chunks are read
_OPEN_FILES = 64


def open_file(name: str | Path, buffer: int = _BUFFER) -> BinaryIO:
    """Return a file opened for reading; a URL is read by ranges of at least ``buffer`` bytes.

    Raises:
        OSError: a local file cannot be opened.
        StorageError: the store refuses or cannot be reached, now or while reading; or the object was replaced.
    """
    if not is_remote(name):
        return Path(name).open("rb")
    store, path = open_store(name)
    if store.scheme == "file":
        return Path(path).open("rb")
    return cast("BinaryIO", io.BufferedReader(_StoredFileReader(store, path), buffer))


def open_table(name: str | Path) -> Any:
    """Return what pyarrow opens: a local path as it is, a file of a store by ranges."""
    return open_file(name, buffer=TABLE_BUFFER) if is_remote(name) else name


class _StoredFileReader(io.RawIOBase):
    """A file of a store; each read is one range request, repeated if it fails."""

    def __init__(self, store: RemoteStore, path: str) -> None:
        self._store, self._path, self._at = store, path, 0
        self._file = store.attempt(path, lambda: store.files.open(path, "rb", cache_type="none"), _AT_ONCE)
        self._size = int(self._file.size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = max(0, min(len(buffer), self._size - self._at))
        if wanted:
            buffer[:wanted] = self._store.attempt(self._path, lambda: self._read(wanted), _AT_ONCE)
        self._at += wanted
        return wanted

    def _read(self, wanted: int) -> bytes:
        self._file.seek(self._at)
        return _require_length(self._file.read(wanted), wanted)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def read_file(name: str, limit: int) -> bytes:
    """Return the first ``limit`` bytes of a file of a store, by one request.

    Raises:
        FileNotFoundError: there is no such file.
        StorageError: the store fails.
    """
    store, path = open_store(name)

    def read() -> bytes | None:
        try:
            return bytes(store.files.cat_file(path, start=0, end=limit))
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:  # S3: an empty file has no range
                return b""
            raise

    data = store.attempt(path, read, _AT_ONCE)
    if data is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return data


def read_ranges(ranges: Sequence[Range]) -> list[bytes]:
    """Return the bytes of each range, in order.

    Raises:
        StorageError: a file is gone, shorter, or not readable.
    """
    found: dict[int, bytes] = {}
    remote = defaultdict[str, list[int]](list)
    for number, (name, start, end) in enumerate(ranges):
        if is_remote(name):
            remote[name.partition(":")[0].lower()].append(number)
        else:
            found[number] = _read_local(name, start, end)
    for numbers in remote.values():
        found |= dict(zip(numbers, _read_remote([ranges[each] for each in numbers]), strict=True))
    return [found[number] for number in range(len(ranges))]


def _read_remote(ranges: Sequence[Range]) -> list[bytes]:
    """Return the bytes of ranges of one store: all at once, then one by one those that failed."""
    store = open_store(ranges[0][0])[0]
    places = [(open_store(name)[1], start, end) for name, start, end in ranges]
    answers = store.files.cat_ranges(*map(list, zip(*places, strict=True)), on_error="return")
    made = []
    for (path, start, end), answer in zip(places, answers, strict=True):
        if isinstance(answer, Exception) or len(answer) != end - start:
            answer = store.attempt(path, lambda: _read_range(store, path, start, end), _AT_ONCE)  # noqa: B023, PLW2901 - called at once
        made.append(bytes(answer))
    return made


def _read_range(store: RemoteStore, path: str, start: int, end: int) -> bytes:
    return _require_length(store.files.cat_file(path, start=start, end=end), end - start)


def _require_length(data: bytes, wanted: int) -> bytes:
    if len(data) != wanted:
        raise EOFError(f"{len(data):,} of {wanted:,} bytes received")
    return data


def _read_local(name: str, start: int, end: int) -> bytes:
    try:
        data = _open_local(name).read(start, end)
    except OSError as error:
        raise StorageError(f"{name}: not readable any more ({error.strerror}). Restart the run.") from None
    if len(data) != end - start:
        raise StorageError(f"{name}: ends before byte {end}. Restart the run.")
    return data


class _LocalFile:
    """A file read by position: forked workers share the position of a handle."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def read(self, start: int, end: int) -> bytes:
        return os.pread(self._file, end - start, start)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)


@lru_cache(maxsize=_OPEN_FILES)
def _open_local(path: str) -> _LocalFile:
    return _LocalFile(path)  # closed on eviction
