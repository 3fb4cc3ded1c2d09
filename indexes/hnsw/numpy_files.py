"""The NumPy files of an index, read and written with errors that say what is wrong."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an ``.npy``, whole or not at all.

    Raises:
        StorageError: when the disk does not take it.
    """
    try:
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.save(handle, array, allow_pickle=False)
    except OSError as error:
        raise StorageError(f"{path}: not written ({error.strerror}). Is the disk full?") from None


def map_array(path: Path) -> NDArray[Any]:
    """Open an ``.npy`` by memory map.

    Raises:
        StorageError: when it is damaged.
    """
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError) as error:
        raise StorageError(f"{path}: damaged ({error}). Build the index again.") from None
    return array
