"""Hash tables of row numbers as chains in plain arrays: 4 bytes a row and table for its link, 2 to 4 for the buckets.

A bucket holds the newest number, and each number leads to the next older one of its bucket. Whole batches are linked
and followed at once, so that no Python object stands for a row. Numbers are below 2**31.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

RowFilter = Callable[[NDArray[np.int64], NDArray[np.int32]], NDArray[np.bool_]]

_MIX = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio's bits: spreads keys that differ in few bits
_MIN_BUCKETS = 4096
_LINKED_ROWS = 2**18  # rows that are linked at a time: sorting takes memory


class GrowableArray:
    """Rows of a NumPy array that grows by an eighth."""

    def __init__(self, dtype: Any, width: int) -> None:
        """Begin with no rows of ``width`` columns."""
        self.count = 0
        self._array: NDArray[Any] = np.zeros((_MIN_BUCKETS, width), dtype)

    @property
    def rows(self) -> NDArray[Any]:
        """The rows so far, (count, width), not copied; forget them before the next `append`."""
        return self._array[: self.count]

    @property
    def bytes(self) -> int:
        """Memory set aside."""
        return self._array.nbytes

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        end = self.count + len(rows)
        if end > len(self._array):
            most = max(end, len(self._array) * 9 // 8)
            self._array.resize((most, self._array.shape[1]), refcheck=False)  # in place where the system can
        self._array[self.count : end] = rows
        self.count = end


class HashChains:
    """Row numbers 0, 1, 2, ... in ``tables`` tables, each by a key of its own."""

    def __init__(self, tables: int) -> None:
        """Begin with no rows."""
        self._links = GrowableArray(np.int32, tables)
        self._buckets = np.full((tables, _MIN_BUCKETS), -1, np.int32)

    @property
    def bytes(self) -> int:
        """Memory set aside."""
        return self._links.bytes + self._buckets.nbytes

    @property
    def crowded(self) -> bool:
        """Whether there are more than two rows a bucket, so that `rebuild` is due."""
        return self._links.count > 2 * self._buckets.shape[1]

    def append(self, keys: NDArray[np.uint64]) -> None:
        """Add the next rows under their keys, (n, tables)."""
        first = self._links.count
        self._links.append(np.zeros(keys.shape, np.int32))
        self._link(keys, first)

    def rebuild(self, keys_of: Callable[[slice], NDArray[np.uint64]]) -> None:
        """Take more buckets; ``keys_of`` gives the keys, (n, tables), of some rows again."""
        size = self._buckets.shape[1]
        while self._links.count > 2 * size:
            size *= 2
        self._buckets = np.full((len(self._buckets), size), -1, np.int32)
        for start in range(0, self._links.count, _LINKED_ROWS):
            self._link(keys_of(slice(start, start + _LINKED_ROWS)), start)

    def find(
        self, keys: NDArray[np.uint64], tables: NDArray[np.int64], alike: RowFilter, steps: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Walk the buckets of some keys, newest rows first.

        Args:
            keys: (m,), what is sought.
            tables: (m,), in which table.
            alike: says of indices of what is sought and of row numbers, (c,) each, which pairs shall be returned.
            steps: to take in a bucket at most.

        Returns:
            Indices of what is sought, and the row numbers found for them. A pair may come twice.
        """
        indices = np.arange(len(keys))
        numbers: NDArray[np.int32] = self._buckets[tables, self._bucket_of(keys)]
        found = [(indices[:0], numbers[:0])]
        for _ in range(steps):
            filled = np.flatnonzero(numbers >= 0)
            if not len(filled):
                break
            indices, numbers = indices[filled], numbers[filled]
            kept = alike(indices, numbers)
            found.append((indices[kept], numbers[kept]))
            numbers = self._links.rows[numbers, tables[indices]]
        return np.concatenate([i for i, _ in found]), np.concatenate([n for _, n in found]).astype(np.int64)

    def _link(self, keys: NDArray[np.uint64], first: int) -> None:
        for table, heads in enumerate(self._buckets):
            buckets = self._bucket_of(keys[:, table])
            order = np.argsort(buckets, kind="stable")
            buckets, numbers = buckets[order], (order + first).astype(np.int32)
            begins = np.ones(len(order), np.bool_)
            begins[1:] = buckets[1:] != buckets[:-1]
            links = np.roll(numbers, 1)
            links[begins] = heads[buckets[begins]]
            self._links.rows[numbers, table] = links
            ends = np.roll(begins, -1)
            heads[buckets[ends]] = numbers[ends]

    def _bucket_of(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        bits = self._buckets.shape[1].bit_length() - 1
        return ((keys * _MIX) >> np.uint64(64 - bits)).astype(np.intp)
