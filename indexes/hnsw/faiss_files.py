"""Reading and writing FAISS files, with errors that say what is wrong.

FAISS knows one kind of error for a full disk, a torn file and a file of another kind; here they become `StorageError`.
Opened by memory map, a file costs what is touched of it: `IO_FLAG_MMAP_IFC` maps flat, scalar-quantised, HNSW and IVF
files alike (the older `IO_FLAG_MMAP` reads all but the lists of an IVF into memory). A mapped index cannot be added to.
"""

from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError


def write_faiss(path: Path, index: Any) -> None:
    """Write a FAISS index, whole or not at all.

    Raises:
        StorageError: when it cannot be written.
    """
    import faiss

    try:
        with replace_atomically(path) as temporary:
            faiss.write_index(index, str(temporary))
    except (RuntimeError, OSError) as error:
        why = (isinstance(error, OSError) and error.strerror) or _last_line(error)
        raise StorageError(f"{path}: not written ({why}). Is the disk full?") from None


def read_faiss(path: Path, *, mapped: bool) -> Any:
    """Read a FAISS index, by memory map or into memory, where it can be added to.

    Raises:
        StorageError: when the file is missing, torn, or no FAISS index.
    """
    import faiss

    if not path.is_file():
        raise StorageError(f"{path}: is missing. Copy the index again or build it again.")
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
    except (RuntimeError, MemoryError, OSError, ValueError) as error:  # a torn header may ask for any size
        raise StorageError(f"{path}: damaged ({_last_line(error)}). Build the index again.") from None


def _last_line(error: BaseException) -> str:
    return str(error).strip().rpartition("\n")[2]
