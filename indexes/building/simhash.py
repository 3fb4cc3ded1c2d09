"""A vector's 128 sign bits, by which near copies are looked up: locality-sensitive hashing for angles (Charikar 2002).

Each bit says on which side of a random plane a vector lies; two vectors at an angle a differ in a bit with probability
a / pi. The vectors of an encoder often fill a narrow cone, where most planes would not part any two of them, so the
planes go through the centre of the first vectors. Four words of 32 bits each give a key of `BITS`; two vectors meet
when they share a key, or share it but for the bit that is least certain in the one that is looked up.

The arithmetic is exact: rows are rounded to whole multiples of 2**-16 and planes are of 1 and -1, so a float32 product
sums whole numbers below 2**24, in any order the same. So a row has the same bits on any processor and in any batch.
"""

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.rng import make_numpy_rng
from pairwright.indexes.encoders.protocols import Vectors

WORDS = 4
BITS = 24  # of a word's 32 that make its key
_SINGLE_THREAD_LIMIT = 2**18  # multiplications that OpenBLAS does not share out among threads
_SCALE = np.float32(2**16)


class SimHasher:
    """Makes sketches of unit vectors around a centre."""

    def __init__(self, around: Vectors, seed: int) -> None:
        """Take the centre from ``around``, float32 (n, dim), and the planes from ``seed``."""
        centre = _round_to_integers(around).astype(np.float64).mean(axis=0)  # sums of whole numbers: exact
        self._centre = np.rint(centre).astype(np.float32)
        planes = make_numpy_rng("sketches", seed, around.shape[1]).integers(0, 2, (around.shape[1], 32 * WORDS))
        self._planes = (2 * planes - 1).astype(np.float32)
        self.spread = float(1 - min((centre / float(_SCALE)) @ (centre / float(_SCALE)), 0.99))

    def sketch(self, rows: Vectors) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Return the words, uint32 (n, WORDS), and for each word the two keys to look up, uint64 (n, WORDS, 2)."""
        sides = self._sides(_round_to_integers(rows) - self._centre).reshape(len(rows), WORDS, 32)
        words = np.packbits(sides >= 0, axis=2, bitorder="little").view("<u4")[:, :, 0].astype(np.uint32)
        doubtful = np.abs(sides[:, :, :BITS]).argmin(axis=2).astype(np.uint64)
        first = make_sketch_keys(words)
        return words, np.stack([first, first ^ (np.uint64(1) << doubtful)], axis=2)

    def _sides(self, rows: Vectors) -> Vectors:
        """Multiply a few rows at a time, which NumPy's BLAS does in this thread: its others would wait in a busy loop."""
        dim, planes = self._planes.shape
        few = max(_SINGLE_THREAD_LIMIT // (dim * planes), 1)
        filled = np.zeros((-(-len(rows) // few), few, dim), np.float32)
        filled.reshape(-1, dim)[: len(rows)] = rows
        sides: Vectors = np.matmul(filled, self._planes).reshape(-1, planes)[: len(rows)]
        return sides

    def max_differing_bits(self, near: float) -> int:
        """Return how many of the bits two vectors of cosine ``near`` differ in at most, but for one pair in 10,000."""
        chance = np.arccos(max(1 - (1 - near) / self.spread, -1.0)) / np.pi
        bits = 32 * WORDS
        return int(bits * chance + 4 * np.sqrt(bits * chance) + 2)


def make_sketch_keys(words: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return the key of each word."""
    return (words & np.uint32(2**BITS - 1)).astype(np.uint64)


def count_differing_bits(some: NDArray[np.uint32], others: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return in how many bits each of ``some`` (s, WORDS) differs from each of ``others`` (o, WORDS), uint8 (s, o)."""
    wide, other = np.ascontiguousarray(some).view(np.uint64), np.ascontiguousarray(others).view(np.uint64)
    differing = np.zeros((len(some), len(others)), np.uint8)
    for column in range(wide.shape[1]):
        differing += np.bitwise_count(wide[:, None, column] ^ other[None, :, column])
    return differing


def _round_to_integers(rows: Vectors) -> Vectors:
    whole: Vectors = np.rint(rows * _SCALE)
    return whole
