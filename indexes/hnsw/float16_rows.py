"""Appendable half-precision rows on disk in a ``.npy`` file, readable while it grows.

The number of rows is known only at the end, so the header has a fixed length and is rewritten when the file is
complete; until then the file has a temporary name. Half precision keeps cosines of unit vectors to about 1e-4.
"""

import os
import shutil
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError
from pairwright.indexes.encoders.protocols import Vectors

_HEADER = 128  # bytes; enough for 2**63 rows, and a multiple of 64 as the format requires


class Float16Rows:
    """Half-precision rows in a ``.npy`` file that may still grow, numbered from 0."""

    def __init__(self, path: Path, dim: int, count: int, growing: BinaryIO | None) -> None:
        """Wrap a file; use `new_float16_rows`, `open_float16_rows` or `extend_float16_rows`."""
        self.dim = dim
        self.count = count
        self._path = path
        self._growing = growing
        self._map: NDArray[np.float16] | None = None

    def append(self, rows: Vectors) -> None:
        """Append ``rows``, float (n, dim).

        Raises:
            StorageError: if they cannot be written.
        """
        if self._growing is None:
            raise ValueError("the file is complete; extend a copy")
        try:
            self._growing.write(np.ascontiguousarray(rows, "<f2").tobytes())
        except OSError as error:
            raise StorageError(f"{self._path}: not written ({error.strerror}). Is the disk full?") from None
        self.count += len(rows)
        self._map = None

    def rows(self, numbers: NDArray[np.int64] | slice) -> Vectors:
        """Return the rows ``numbers``, float32, (*numbers.shape, dim)."""
        return np.asarray(self._mapped()[numbers], np.float32)

    def finish(self) -> str:
        """Complete the file, rename it to its final name, and return that name."""
        if self._growing is not None:
            temporary = Path(self._growing.name)
            try:
                self._growing.seek(0)
                self._growing.write(_npy_header(self.count, self.dim))
                self._growing.flush()
                os.fsync(self._growing.fileno())
                self._growing.close()
            except OSError as error:
                raise StorageError(f"{self._path}: not written ({error.strerror}). Is the disk full?") from None
            temporary.replace(self._path)
            self._growing = None
            self._map = None
        return self._path.name

    def _mapped(self) -> NDArray[np.float16]:
        if self._map is None:
            path: Path = self._path
            if self._growing is not None:
                self._growing.flush()
                path = Path(self._growing.name)
            shape = (self.count, self.dim)
            empty = np.empty(shape, np.float16)  # an empty file cannot be mapped
            self._map = np.memmap(path, "<f2", "r", _HEADER, shape).view(np.ndarray) if self.count else empty
        return self._map


def new_float16_rows(path: Path, dim: int) -> Float16Rows:
    """Create the file ``path``, which appears under that name when `Float16Rows.finish` is called."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _temporary_path(path).open("w+b")
    handle.write(_npy_header(0, dim))
    return Float16Rows(path, dim, 0, handle)


def open_float16_rows(path: Path, count: int) -> Float16Rows:
    """Open a complete file of ``count`` rows memory-mapped.

    Raises:
        StorageError: if it is missing, truncated, or has another number of rows.
    """
    if not path.is_file():
        raise StorageError(f"{path}: is missing. Copy the index again or build it again.")
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise StorageError(f"{path}: damaged ({error}). Build the index again.") from None
    dim = rows.shape[-1] if rows.ndim else 0
    if path.stat().st_size != _HEADER + 2 * count * dim or rows.dtype != "<f2" or rows.shape != (count, dim):
        raise StorageError(f"{path}: damaged, or not {count} rows in half precision. Build the index again.")
    return Float16Rows(path, dim, count, None)


def extend_float16_rows(source: Path, path: Path, count: int) -> Float16Rows:
    """Create ``path`` as a copy of the complete file ``source``, to be appended to."""
    dim = open_float16_rows(source, count).dim
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source, _temporary_path(path))
    except OSError as error:
        raise StorageError(f"{path}: not written ({error.strerror}). Is the disk full?") from None
    handle = _temporary_path(path).open("r+b")
    handle.seek(0, os.SEEK_END)
    return Float16Rows(path, dim, count, handle)


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp-{os.getpid()}")


def _npy_header(count: int, dim: int) -> bytes:
    header: dict[str, Any] = {"descr": "<f2", "fortran_order": False, "shape": (count, dim)}
    start = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
    return start + repr(header).encode().ljust(_HEADER - 11) + b"\n"
