"""Lookup of near-duplicate vectors: SimHash sketches (Charikar 2002) and hash tables of row numbers.

A sketch is 128 sign bits of a vector: each bit says on which side of a random plane it lies; two vectors at an angle a
differ in a bit with probability a / pi. The vectors of an encoder often fill a narrow cone that most planes would not
split, so the planes go through the centre of the first vectors. Each of four words of 32 bits gives a key of `BITS`
bits; two vectors are candidates if they share a key, or share it except for the least certain bit of the query.

The arithmetic is exact: rows are rounded to multiples of 2**-16 and planes consist of 1 and -1, so a float32 product
sums integers below 2**24. A row has the same bits on any processor and in any batch.

The hash tables are chains in arrays: 4 bytes per row and table for its link, 2 to 4 for the buckets. A bucket holds its
newest row number, and each number links to the next older one. Batches are linked and followed with array operations,
without a Python object per row. Row numbers are below 2**31.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.rng import make_numpy_rng
from pairwright.indexes.encoders.protocols import Vectors

RowFilter = Callable[[NDArray[np.int64], NDArray[np.int32]], NDArray[np.bool_]]

WORDS = 4
BITS = 24  # bits of each 32-bit word that form its key
_SINGLE_THREAD_LIMIT = 2**18  # multiplications that OpenBLAS computes in one thread
_SCALE = np.float32(2**16)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # bits of the golden ratio: spreads keys that differ in few bits
_MIN_BUCKETS = 4096
_LINKED_ROWS = 2**18  # rows linked at a time: sorting takes memory


class GrowableArray:
    """NumPy array of rows that grows by an eighth."""

    def __init__(self, dtype: Any, width: int) -> None:
        """Create an empty array of ``width`` columns."""
        self.count = 0
        self._array: NDArray[Any] = np.zeros((_MIN_BUCKETS, width), dtype)

    @property
    def rows(self) -> NDArray[Any]:
        """The rows so far, (count, width), not copied; invalid after the next `append`."""
        return self._array[: self.count]

    @property
    def bytes(self) -> int:
        """Reserved memory in bytes."""
        return self._array.nbytes

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        end = self.count + len(rows)
        if end > len(self._array):
            capacity = max(end, len(self._array) * 9 // 8)
            self._array.resize((capacity, self._array.shape[1]), refcheck=False)  # in place if the system can
        self._array[self.count : end] = rows
        self.count = end


class HashChains:
    """Row numbers 0, 1, 2, ... in ``tables`` hash tables, with one key per table."""

    def __init__(self, tables: int) -> None:
        """Create empty tables."""
        self._links = GrowableArray(np.int32, tables)
        self._buckets = np.full((tables, _MIN_BUCKETS), -1, np.int32)

    @property
    def bytes(self) -> int:
        """Reserved memory in bytes."""
        return self._links.bytes + self._buckets.nbytes

    @property
    def needs_rebuild(self) -> bool:
        """Whether there are more than two rows per bucket."""
        return self._links.count > 2 * self._buckets.shape[1]

    def append(self, keys: NDArray[np.uint64]) -> None:
        """Append rows under their keys, (n, tables)."""
        first = self._links.count
        self._links.append(np.zeros(keys.shape, np.int32))
        self._link(keys, first)

    def rebuild(self, keys_of: Callable[[slice], NDArray[np.uint64]]) -> None:
        """Increase the number of buckets; ``keys_of`` returns the keys, (n, tables), of a slice of rows."""
        size = self._buckets.shape[1]
        while self._links.count > 2 * size:
            size *= 2
        self._buckets = np.full((len(self._buckets), size), -1, np.int32)
        for start in range(0, self._links.count, _LINKED_ROWS):
            self._link(keys_of(slice(start, start + _LINKED_ROWS)), start)

    def find(
        self, keys: NDArray[np.uint64], tables: NDArray[np.int64], alike: RowFilter, steps: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Walk the buckets of keys, newest rows first.

        Args:
            keys: keys to look up, (m,).
            tables: table of each key, (m,).
            alike: returns for key indices and row numbers, (c,) each, which of these matches to keep, bool (c,).
            steps: maximum rows to visit per bucket.

        Returns:
            Key indices and their row numbers. A match may occur twice.
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


class SimHasher:
    """Computes sketches of unit vectors around a centre."""

    def __init__(self, around: Vectors) -> None:
        """Set the centre to the mean of ``around``, float32 (n, dim), and draw the planes."""
        centre = _round_to_integers(around).astype(np.float64).mean(axis=0)  # sums of integers: exact
        self._centre = np.rint(centre).astype(np.float32)
        planes = make_numpy_rng("sketches", 0, around.shape[1]).integers(0, 2, (around.shape[1], 32 * WORDS))
        self._planes = (2 * planes - 1).astype(np.float32)
        self.spread = float(1 - min((centre / float(_SCALE)) @ (centre / float(_SCALE)), 0.99))

    def sketch(self, rows: Vectors) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Return the words, uint32 (n, WORDS), and two keys to look up per word, uint64 (n, WORDS, 2)."""
        sides = self._sides(_round_to_integers(rows) - self._centre).reshape(len(rows), WORDS, 32)
        words = np.packbits(sides >= 0, axis=2, bitorder="little").view("<u4")[:, :, 0].astype(np.uint32)
        least_certain = np.abs(sides[:, :, :BITS]).argmin(axis=2).astype(np.uint64)
        first = make_sketch_keys(words)
        return words, np.stack([first, first ^ (np.uint64(1) << least_certain)], axis=2)

    def _sides(self, rows: Vectors) -> Vectors:
        """Multiply a few rows at a time, which BLAS does in this thread: idle BLAS threads would busy-wait."""
        dim, planes = self._planes.shape
        few = max(_SINGLE_THREAD_LIMIT // (dim * planes), 1)
        filled = np.zeros((-(-len(rows) // few), few, dim), np.float32)
        filled.reshape(-1, dim)[: len(rows)] = rows
        sides: Vectors = np.matmul(filled, self._planes).reshape(-1, planes)[: len(rows)]
        return sides

    def max_differing_bits(self, near: float) -> int:
        """Return the number of bits in which two vectors of cosine ``near`` differ at most, except 1 pair in 10,000."""
        probability = np.arccos(max(1 - (1 - near) / self.spread, -1.0)) / np.pi
        bits = 32 * WORDS
        return int(bits * probability + 4 * np.sqrt(bits * probability) + 2)


def make_sketch_keys(words: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return the key of each word."""
    return (words & np.uint32(2**BITS - 1)).astype(np.uint64)


def count_differing_bits(some: NDArray[np.uint32], others: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the Hamming distances of ``some`` (s, WORDS) and ``others`` (o, WORDS), uint8 (s, o)."""
    wide, other = np.ascontiguousarray(some).view(np.uint64), np.ascontiguousarray(others).view(np.uint64)
    differing = np.zeros((len(some), len(others)), np.uint8)
    for column in range(wide.shape[1]):
        differing += np.bitwise_count(wide[:, None, column] ^ other[None, :, column])
    return differing


def _round_to_integers(rows: Vectors) -> Vectors:
    rounded: Vectors = np.rint(rows * _SCALE)
    return rounded
