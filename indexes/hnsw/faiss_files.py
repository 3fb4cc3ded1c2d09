"""FAISS and NumPy files of an index, and the number of FAISS threads.

FAISS raises the same error for a full disk, a truncated file and a file of another kind; here they become `StorageError`.
`IO_FLAG_MMAP_IFC` memory-maps flat, scalar-quantised, HNSW and IVF files (the older `IO_FLAG_MMAP` reads all but the
inverted lists into memory). A mapped index is read-only.

From FAISS 1.15.1 on, an HNSW graph is the same for any number of threads (measured with 1, 2 and 4 threads); up to
1.15.0 only one thread gives the same graph twice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError


def write_faiss(path: Path, index: Any) -> None:
    """Write a FAISS index atomically.

    Raises:
        StorageError: if it cannot be written.
    """
    import faiss

    try:
        with replace_atomically(path) as temporary:
            faiss.write_index(index, str(temporary))
    except (RuntimeError, OSError) as error:
        why = (isinstance(error, OSError) and error.strerror) or _last_line(error)
        raise StorageError(f"{path}: not written ({why}). Is the disk full?") from None


def read_faiss(path: Path, *, mapped: bool) -> Any:
    """Read a FAISS index, memory-mapped (read-only) or into memory.

    Raises:
        StorageError: if the file is missing, truncated, or not a FAISS index.
    """
    import faiss

    if not path.is_file():
        raise StorageError(f"{path}: is missing. Copy the index again or build it again.")
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
    except (RuntimeError, MemoryError, OSError, ValueError) as error:  # a damaged header may request any size
        raise StorageError(f"{path}: damaged ({_last_line(error)}). Build the index again.") from None


def _last_line(error: BaseException) -> str:
    return str(error).strip().rpartition("\n")[2]


_DETERMINISTIC_SINCE = (1, 15, 1)


def choose_build_threads(wanted: int) -> int:
    """Return the number of build threads: ``wanted``, or for 0 the most that give reproducible bytes."""
    import faiss

    if wanted:
        return wanted
    version = tuple(int(part) for part in faiss.__version__.split(".")[:3] if part.isdigit())
    return int(faiss.omp_get_max_threads()) if version >= _DETERMINISTIC_SINCE else 1


@contextmanager
def limit_faiss_threads(count: int) -> Iterator[None]:
    """Limit FAISS to ``count`` threads within the block."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an ``.npy`` file atomically.

    Raises:
        StorageError: if it cannot be written.
    """
    try:
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.save(handle, array, allow_pickle=False)
    except OSError as error:
        raise StorageError(f"{path}: not written ({error.strerror}). Is the disk full?") from None


def map_array(path: Path) -> NDArray[Any]:
    """Open an ``.npy`` file memory-mapped.

    Raises:
        StorageError: if it is damaged.
    """
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError) as error:
        raise StorageError(f"{path}: damaged ({error}). Build the index again.") from None
    return array
