"""Detection of equal and near-duplicate vectors in a stream, in 54 to 72 bytes per vector.

An *equal* duplicate has the same bytes as a stored vector and is found by a digest. A *near* duplicate has a cosine of
at least ``near`` to a stored vector: candidates are looked up by their sign bits (`near_duplicate_lookup`) and compared
exactly; the first 2,048 vectors are compared with all. Share of pairs found among 20,000 vectors, for pairs of exactly
the cosine ``near``, where the lookup is least certain (real captions; a cone of mean cosine 0.6, as CLIP's):

    near        0.999    0.995    0.99    0.98    0.95
    captions    99.97%   98.5%    93%     79%     41%
    cone        99.6%    91%      71%     45%     12%

Of pairs with cosine 0.9995 and more, 99.97% are found at ``near`` 0.999. At this default, among 40,000 real captions all
merged pairs differed only in case, whitespace or punctuation, with the lexical encoder and with MiniLM (20,000). Lower
values merge different texts: "the cat is to the left of the dog" and its reverse have 0.993, a long caption with red
instead of yellow 0.997, two item numbers that differ by one 0.9989.

The result depends only on the order of the vectors, not on batches or threads. A duplicate refers to a stored vector, so
no chain of small steps joins two different vectors.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.indexes.building.near_duplicate_lookup import (
    WORDS,
    GrowableArray,
    HashChains,
    SimHasher,
    count_differing_bits,
    make_sketch_keys,
)
from pairwright.indexes.encoders.protocols import Vectors

StoredLookup = Callable[[NDArray[np.int64]], Vectors]
_BatchDuplicate = tuple[int, NDArray[np.int64], NDArray[np.bool_]]

_NONE = np.iinfo(np.int64).max
_CENTRE_ROWS = 2048  # stored vectors whose mean is the centre of the planes
_BLOCK = 256  # stored vectors linked by their keys at a time, and rows processed at a time
# The next two bound the cost of dense clusters of thousands of vectors.
_MAX_BUCKET_STEPS = 48  # rows visited per bucket
_MAX_COMPARED = 32  # stored vectors that a row is compared with, those with the fewest differing bits
_LENGTH_TOLERANCE = 3e-3  # maximum difference of dot product and cosine for vectors of length 1 +- 1e-3
_MIN_EQUAL_COSINE = 0.98  # equal digests with a lower cosine are hash collisions


@dataclass(frozen=True)
class _SketchedRows:
    """Rows with digests and sketches; words and keys are empty before the hasher exists."""

    rows: Vectors
    digests: NDArray[np.uint64]
    words: NDArray[np.uint32]
    keys: NDArray[np.uint64]

    def select(self, numbers: NDArray[np.intp]) -> "_SketchedRows":
        return _SketchedRows(self.rows[numbers], self.digests[numbers], self.words[numbers], self.keys[numbers])

    def concatenate(self, more: "_SketchedRows") -> "_SketchedRows":
        return _SketchedRows(
            np.concatenate([self.rows, more.rows]),
            np.concatenate([self.digests, more.digests]),
            np.concatenate([self.words, more.words]),
            np.concatenate([self.keys, more.keys]),
        )


class DuplicateFinder:
    """Detects vectors of a stream that duplicate earlier ones, and numbers the others from 0.

    Attributes:
        equal: number of duplicates so far that equal a stored vector bit by bit.
        near: number of other duplicates so far.
    """

    def __init__(self, dim: int, near: float) -> None:
        """Start without vectors.

        Args:
            dim: length of a vector, up to 16,384.
            near: cosine from which a vector is a duplicate; 1 for equal vectors only.
        """
        self.equal = 0
        self.near = 0
        self._near = near
        self._digests = GrowableArray(np.uint64, 1)
        self._by_digest = HashChains(1)
        self._words = GrowableArray(np.uint32, WORDS)
        self._by_words = HashChains(WORDS)
        self._hasher: SimHasher | None = None
        self._waiting = self._sketch_rows(
            np.empty((0, dim), np.float32)
        )  # the last stored rows, not linked by keys yet

    @property
    def vectors(self) -> int:
        """Number of stored vectors."""
        return self._digests.count

    @property
    def bytes(self) -> int:
        """Memory of the lookup structures in bytes."""
        return self._digests.bytes + self._by_digest.bytes + self._words.bytes + self._by_words.bytes

    def match(self, rows: Vectors, stored: StoredLookup) -> NDArray[np.int64]:
        """Return for each row the number of the stored vector that it duplicates, or its own new number.

        If it duplicates several, an equal one is chosen, else the oldest. `mark_new_rows` returns which rows to store.

        Args:
            rows: unit rows after encoding and decoding by the store, float32 (n, dim).
            stored: returns the vectors, float32 (m, dim), of numbers from earlier calls.

        Returns:
            int64 (n,).
        """
        before = self.vectors
        answers = np.empty(len(rows), np.int64)
        new = np.empty(0, np.int64)  # rows of this call to be stored, which `stored` does not know yet

        def known(numbers: NDArray[np.int64]) -> Vectors:
            found = np.empty((len(numbers), rows.shape[1]), np.float32)
            is_new = numbers >= before
            found[is_new] = rows[new[numbers[is_new] - before]]
            found[~is_new] = stored(numbers[~is_new])
            return found

        done = 0
        while done < len(rows):
            first = self.vectors
            found = self._match_block(self._sketch_rows(rows[done : done + _BLOCK]), known)
            answers[done : done + len(found)] = found
            new = np.concatenate([new, done + np.flatnonzero(mark_new_rows(found, first))])
            done += len(found)
        return answers

    def add_known(self, rows: Vectors) -> None:
        """Add stored vectors of an index that is extended, after decoding, without looking for duplicates."""
        start = 0
        while start < len(rows):
            piece = self._sketch_rows(rows[start : start + self._room])
            self._store(piece)
            start += len(piece.rows)

    @property
    def _room(self) -> int:
        return (_CENTRE_ROWS if self._hasher is None else _BLOCK) - len(self._waiting.rows)

    def _sketch_rows(self, rows: Vectors) -> _SketchedRows:
        """Return rows with their digests and sketches."""
        rows = np.ascontiguousarray(rows, np.float32) + np.float32(0)  # -0.0 becomes 0.0: equal vectors, equal bytes
        count = len(rows)
        words, keys = np.empty((count, 0), np.uint32), np.empty((count, 0, 2), np.uint64)
        if self._hasher is not None:
            words, keys = self._hasher.sketch(rows)
        return _SketchedRows(rows, _hash_rows(rows), words, keys)

    def _match_block(self, piece: _SketchedRows, known: StoredLookup) -> NDArray[np.int64]:
        """Match rows up to the one that fills the waiting block: later results depend on it."""
        same = self._find_equal(piece, known)
        answers = np.where(same < _NONE, same, self._find_oldest_near(piece, known))
        equal = same < _NONE
        new = answers == _NONE
        copy_of = {}  # new rows that duplicate an earlier new row of this block
        for row, earlier, exact in self._find_within(piece):
            others = earlier[new[earlier]]
            if new[row] and len(others):
                exactly = exact[new[earlier]]
                new[row], equal[row] = False, exactly.any()
                copy_of[row] = others[exactly][0] if equal[row] else others[0]
        answers[new] = self.vectors + np.arange(new.sum())
        for row, earlier_row in copy_of.items():
            answers[row] = answers[earlier_row]
        if new.sum() >= self._room:
            end = int(np.flatnonzero(new)[self._room - 1]) + 1
            answers, new, equal = answers[:end], new[:end], equal[:end]
        self.equal += int(equal.sum())
        self.near += int((~new & ~equal).sum())
        self._store(piece.select(np.flatnonzero(new)))
        return answers

    def _find_equal(self, piece: _SketchedRows, known: StoredLookup) -> NDArray[np.int64]:
        """Return the number of the stored vector that equals each row, or `_NONE`."""
        count = len(piece.rows)
        stored = self._digests.rows[:, 0]

        def alike(index: NDArray[np.int64], number: NDArray[np.int32]) -> NDArray[np.bool_]:
            return np.asarray(stored[number] == piece.digests[index])

        row, number = self._by_digest.find(piece.digests, np.zeros(count, np.int64), alike, len(stored))
        return _lowest_match(count, row, number, _cosines(piece.rows[row], known(number)) >= _MIN_EQUAL_COSINE)

    def _find_oldest_near(self, piece: _SketchedRows, known: StoredLookup) -> NDArray[np.int64]:
        """Return the oldest number found of a near-duplicate stored vector for each row, or `_NONE`."""
        count = len(piece.rows)
        if self._near == 1:
            return np.full(count, _NONE)
        row, column = np.nonzero(self._alike(piece, self._waiting))
        number = column + self.vectors - len(self._waiting.rows)
        if self._hasher is not None:
            sketched_row, sketched = self._by_sketch(piece, self._hasher.max_differing_bits(self._near))
            row, number = np.concatenate([row, sketched_row]), np.concatenate([number, sketched])
        return _lowest_match(count, row, number, _cosines(piece.rows[row], known(number)) >= self._near)

    def _by_sketch(self, piece: _SketchedRows, max_differing_bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and numbers of stored vectors with a shared key and similar sign bits."""
        row, table, _ = np.indices(piece.keys.shape).reshape(3, -1)
        stored = self._words.rows

        def differing(rows: NDArray[np.int64], number: NDArray[Any]) -> NDArray[np.int64]:
            return np.asarray(np.bitwise_count(stored[number] ^ piece.words[rows]).sum(axis=1, dtype=np.int64))

        index, number = self._by_words.find(
            piece.keys.ravel(),
            table,
            lambda i, n: np.asarray(differing(row[i], n) <= max_differing_bits),
            _MAX_BUCKET_STEPS,
        )
        found, number = np.unique(np.stack([row[index], number]), axis=1)  # the same match may come from several tables
        order = np.lexsort((number, differing(found, number), found))
        found, number = found[order], number[order]
        nearest = np.arange(len(found)) - np.searchsorted(found, found) < _MAX_COMPARED
        return found[nearest], number[nearest]

    def _alike(self, some: _SketchedRows, others: _SketchedRows) -> NDArray[np.bool_]:
        """Return a mask (s, o) of pairs of ``some`` and ``others`` that may be near duplicates."""
        alike = np.ones((len(some.rows), len(others.rows)), np.bool_)
        if self._hasher is not None:
            alike = count_differing_bits(some.words, others.words) <= self._hasher.max_differing_bits(self._near)
        if self._hasher is None or alike.sum() > _MAX_COMPARED * len(alike):
            alike &= some.rows @ others.rows.T >= self._near - _LENGTH_TOLERANCE
        return alike

    def _find_within(self, piece: _SketchedRows) -> Iterator[_BatchDuplicate]:
        """Yield each row with its earlier duplicates in the same block, in order, and a mask of the equal ones."""
        rows = piece.rows
        alike = piece.digests[:, None] == piece.digests[None, :]
        if self._near < 1:
            alike |= self._alike(piece, piece)
        row, earlier = np.nonzero(np.tril(alike, -1))
        exact = (rows[row] == rows[earlier]).all(axis=1)
        true = exact | ((_cosines(rows[row], rows[earlier]) >= self._near) & (self._near < 1))
        row, earlier, exact = row[true], earlier[true], exact[true]
        found, starts = np.unique(row, return_index=True)
        for number, start, end in zip(found.tolist(), starts, np.append(starts, len(row))[1:], strict=True):
            yield number, earlier[start:end], exact[start:end]

    def _store(self, piece: _SketchedRows) -> None:
        """Store at most `_room` rows; when the waiting block is full, link its rows by their keys."""
        self._digests.append(piece.digests[:, None])
        self._by_digest.append(piece.digests[:, None])
        if self._by_digest.needs_rebuild:
            self._by_digest.rebuild(lambda part: self._digests.rows[part])
        if self._near == 1:
            return
        full = len(piece.rows) == self._room
        self._waiting = self._waiting.concatenate(piece)
        if not full:
            return
        if self._hasher is None:
            self._hasher = SimHasher(self._waiting.rows)
            self._waiting = self._sketch_rows(self._waiting.rows)
        self._words.append(self._waiting.words)
        self._by_words.append(self._waiting.keys[:, :, 0])
        if self._by_words.needs_rebuild:
            self._by_words.rebuild(lambda part: make_sketch_keys(self._words.rows[part]))
        self._waiting = self._waiting.select(np.arange(0))


def mark_new_rows(answers: NDArray[np.int64], before: int) -> NDArray[np.bool_]:
    """Return a mask (n,) of the rows that got a new number.

    Args:
        answers: result of a call of `DuplicateFinder.match`.
        before: `DuplicateFinder.vectors` before that call.
    """
    highest = np.maximum.accumulate(np.concatenate([[before - 1], answers]))
    return np.asarray(answers > highest[:-1])


def _hash_rows(rows: Vectors) -> NDArray[np.uint64]:
    data = memoryview(rows.tobytes())
    size = 4 * rows.shape[1]
    parts = [hashlib.blake2b(data[start : start + size], digest_size=8).digest() for start in range(0, len(data), size)]
    return np.frombuffer(b"".join(parts), "<u8").astype(np.uint64)


def _cosines(some: Vectors, others: Vectors) -> NDArray[np.float64]:
    """Return row-wise cosines in double precision, so that they do not depend on the batch."""
    some, others = some.astype(np.float64), others.astype(np.float64)
    product = np.sqrt((some * some).sum(axis=1) * (others * others).sum(axis=1))
    cosines: NDArray[np.float64] = (some * others).sum(axis=1) / product
    return cosines


def _lowest_match(
    count: int, row: NDArray[np.int64], number: NDArray[np.int64], true: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the lowest number of the true matches of each of ``count`` rows, or `_NONE`."""
    lowest = np.full(count, _NONE)
    np.minimum.at(lowest, row[true], number[true])
    return lowest
