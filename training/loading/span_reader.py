"""Files read by position: workers that were forked share the position of a handle, and would race for it."""

import os
from functools import lru_cache
from pathlib import Path

from pairwright.datasets.errors import StorageError

_OPEN_FILES = 64


class _OpenFile:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def read(self, start: int, end: int) -> bytes:
        return os.pread(self._file, end - start, start)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)


def read_span(path: Path, start: int, end: int) -> bytes:
    """Return the bytes of a file from ``start`` to before ``end``; the file stays open for the next call.

    Raises:
        StorageError: the file is gone, or cannot be read.
    """
    try:
        return _open_file(path).read(start, end)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read any more ({error.strerror}). Start again.") from None


@lru_cache(maxsize=_OPEN_FILES)
def _open_file(path: Path) -> _OpenFile:
    return _OpenFile(path)  # closed when it leaves the cache
