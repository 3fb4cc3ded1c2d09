"""Arrays that one step of the refinement leaves for another, each set of them in one file of a folder.

Files are mapped into memory, so that a job which needs a slice of each of many files reads no more than that.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.atomic_files import replace_atomically

Array = npt.NDArray[Any]


def save_array(folder: Path, name: str, array: Array) -> Path:
    """Write ``name.npy`` and return its path."""
    path = folder / f"{name}.npy"
    with replace_atomically(path) as temporary, temporary.open("wb") as handle:
        np.save(handle, array)
    return path


def map_array(folder: Path, name: str) -> Array:
    """Return the array of ``name.npy``, which stays on disk."""
    found: Array = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    return found


def save_mapped(path: Path, columns: Mapping[str, Array | pl.Series]) -> Path:
    """Write arrays of numbers and columns of strings, of any lengths, to an Arrow file; return its path."""
    import pyarrow as pa

    lists = {
        name: pa.LargeListArray.from_arrays(
            pa.array([0, len(column)], pa.int64()),
            column.to_arrow() if isinstance(column, pl.Series) else pa.array(column),
        )
        for name, column in columns.items()
    }
    table = pa.table(lists)  # one row of lists
    with replace_atomically(path) as temporary, pa.ipc.new_file(str(temporary), table.schema) as file:
        file.write_table(table)
    return path


def map_table(path: Path) -> Any:
    """Return the table of an Arrow file without compression, which stays on disk."""
    import pyarrow as pa

    # As a buffer: a file is read in another thread of Arrow's, for which this one waits longer than the reading takes.
    return pa.ipc.open_file(pa.memory_map(str(path)).read_buffer()).read_all()


def map_columns(path: Path) -> dict[str, Any]:
    """Return the columns that `save_mapped` wrote, as Arrow arrays that stay on disk."""
    table = map_table(path)
    return {name: table[name].chunk(0).values for name in table.column_names}


def map_arrays(path: Path, wanted: Sequence[str] = ()) -> dict[str, Array]:
    """Return the arrays of numbers that `save_mapped` wrote, by default all; they stay on disk."""
    columns = map_columns(path)
    return {name: columns[name].to_numpy() for name in wanted or columns}


def read_strings(column: Any) -> pl.Series:
    """Return a column of strings of `map_columns`, or a slice of one."""
    return pl.Series(pl.from_arrow(column), dtype=pl.String)


@contextmanager
def scratch_array(folder: Path, dtype: npt.DTypeLike, size: int) -> Iterator[Array]:
    """Provide an array on disk, in a file without a name that no killed process leaves behind."""
    with tempfile.TemporaryFile(dir=folder) as handle:
        yield np.memmap(handle, dtype, "w+", shape=max(size, 1))[:size]


class DiskArrays:
    """Arrays by name that grow on disk, in files without names that no killed process leaves behind.

    Args:
        folder: of the files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, tuple[IO[bytes], np.dtype[Any]]] = {}

    def append(self, name: str, values: Array) -> None:
        """Append to an array; all values have the type of the first ones."""
        if name not in self._files:
            self._files[name] = tempfile.TemporaryFile(dir=self._folder), values.dtype  # noqa: SIM115 - closed by `close`
        handle, dtype = self._files[name]
        handle.write(values.astype(dtype, copy=False).tobytes())

    def read(self) -> dict[str, Array]:
        """Return all arrays, which stay on disk."""
        arrays: dict[str, Array] = {}
        for name, (handle, dtype) in self._files.items():
            handle.flush()
            size = handle.tell() // dtype.itemsize
            arrays[name] = np.memmap(handle, dtype, "r", shape=size) if size else np.zeros(0, dtype)
        return arrays

    def close(self) -> None:
        """Close the files."""
        for handle, _ in self._files.values():
            handle.close()
