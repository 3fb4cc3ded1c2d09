"""Finding copies among vectors that stream by: equal ones always, near ones nearly always, in 54 to 72 bytes a vector.

An *equal* copy has the same bytes as a stored vector and is found by a digest. A *near* copy has a cosine of at least
``near`` to one: those worth comparing are looked up by their sign bits (`sketches.py`) and compared truly; the first
2,048 vectors are compared with all. How many are found was measured on pairs of exactly the
cosine ``near``, of which the lookup is least certain, in 20,000 vectors (real captions; a cone of mean cosine 0.6, as CLIP's):

    near        0.999    0.995    0.99    0.98    0.95
    captions    99.97%   98.5%    93%     79%     41%
    cone        99.6%    91%      71%     45%     12%

and of cosine 0.9995 and more 99.97% at ``near`` 0.999. That is the default, for what it merges says the same: among
40,000 real captions every such pair differed in case, blanks or marks alone, with the lexical encoder and with MiniLM
(20,000). Below it come other texts: "the cat is to the left of the dog" and its reverse have 0.993, a long caption with
red in the place of yellow 0.997, and two item numbers that differ by one 0.9989.

What is found depends on the order of the vectors alone: not on how they are batched, nor on threads. A copy is one of
a stored vector, so no chain of small steps joins two vectors that differ.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.indexes.building.hash_chains import GrowableArray, HashChains
from pairwright.indexes.building.simhash import WORDS, SimHasher, count_differing_bits, make_sketch_keys
from pairwright.indexes.encoders.protocols import Vectors

StoredLookup = Callable[[NDArray[np.int64]], Vectors]
_BatchDuplicate = tuple[int, NDArray[np.int64], NDArray[np.bool_]]

_NONE = np.iinfo(np.int64).max
_CENTRE_ROWS = 2048  # stored vectors that the planes' centre is taken from
_BLOCK = 256  # stored vectors that wait to be linked by their keys, and rows that are worked on at a time
_MAX_BUCKET_STEPS = (
    48  # that are taken in a bucket: this and the next bound the cost of thousands of vectors in one place
)
_MAX_COMPARED = 32  # stored vectors that a row is compared with at most, those whose bits differ least
_LENGTH_TOLERANCE = 3e-3  # products of two vectors whose length is 1 to 1e-3 are this near to their cosine
_MIN_EQUAL_COSINE = 0.98  # what a digest says is equal and is not even this near is a clash of digests


@dataclass(frozen=True)
class _SketchedRows:
    """Rows and what they are compared by; words and keys are empty before there is a sketcher."""

    rows: Vectors
    digests: NDArray[np.uint64]
    words: NDArray[np.uint32]
    keys: NDArray[np.uint64]

    def taken(self, numbers: NDArray[np.intp]) -> "_SketchedRows":
        return _SketchedRows(self.rows[numbers], self.digests[numbers], self.words[numbers], self.keys[numbers])

    def joined(self, more: "_SketchedRows") -> "_SketchedRows":
        return _SketchedRows(
            np.concatenate([self.rows, more.rows]),
            np.concatenate([self.digests, more.digests]),
            np.concatenate([self.words, more.words]),
            np.concatenate([self.keys, more.keys]),
        )


class DuplicateFinder:
    """Tells which vectors of a stream are copies of earlier ones, and numbers the others from 0.

    Attributes:
        equal: copies so far that equal a stored vector to the last bit.
        near: copies so far that do not.
    """

    def __init__(self, dim: int, near: float, seed: int = 0) -> None:
        """Begin with no vectors.

        Args:
            dim: length of a vector, up to 16,384.
            near: cosine from which one is a copy of another; 1 for equal ones only.
            seed: of the planes that the sign bits come from.
        """
        self.equal = 0
        self.near = 0
        self._near = near
        self._seed = seed
        self._digests = GrowableArray(np.uint64, 1)
        self._by_digest = HashChains(1)
        self._words = GrowableArray(np.uint32, WORDS)
        self._by_words = HashChains(WORDS)
        self._sketcher: SimHasher | None = None
        self._waiting = self._described(np.empty((0, dim), np.float32))  # the last stored ones, not found by keys yet

    @property
    def vectors(self) -> int:
        """How many are stored."""
        return self._digests.count

    @property
    def bytes(self) -> int:
        """Memory that is kept to find copies by."""
        return self._digests.bytes + self._by_digest.bytes + self._words.bytes + self._by_words.bytes

    def match(self, rows: Vectors, stored: StoredLookup) -> NDArray[np.int64]:
        """Return for each row the number of the stored vector that it is a copy of, or its own new number.

        Of several the row is a copy of the equal one, else of the oldest. `mark_new_rows` tells which rows are to be stored.

        Args:
            rows: float32 (n, dim) of length 1, as they are read back once stored.
            stored: returns the vectors, float32 (m, dim), of numbers that earlier calls gave.

        Returns:
            int64 (n,).
        """
        before = self.vectors
        answers = np.empty(len(rows), np.int64)
        new = np.empty(0, np.int64)  # rows of this call that are stored, which `stored` does not know yet

        def known(numbers: NDArray[np.int64]) -> Vectors:
            found = np.empty((len(numbers), rows.shape[1]), np.float32)
            here = numbers >= before
            found[here] = rows[new[numbers[here] - before]]
            found[~here] = stored(numbers[~here])
            return found

        done = 0
        while done < len(rows):
            first = self.vectors
            found = self._settle(self._described(rows[done : done + _BLOCK]), known)
            answers[done : done + len(found)] = found
            new = np.concatenate([new, done + np.flatnonzero(mark_new_rows(found, first))])
            done += len(found)
        return answers

    def remember(self, rows: Vectors) -> None:
        """Take the next stored vectors of an index that is extended, as they are read back, without looking for copies."""
        start = 0
        while start < len(rows):
            piece = self._described(rows[start : start + self._room])
            self._store(piece)
            start += len(piece.rows)

    @property
    def _room(self) -> int:
        return (_CENTRE_ROWS if self._sketcher is None else _BLOCK) - len(self._waiting.rows)

    def _described(self, rows: Vectors) -> _SketchedRows:
        """Return rows with what they are compared by."""
        rows = np.ascontiguousarray(rows, np.float32) + np.float32(0)  # -0.0 becomes 0.0: equal vectors, equal bytes
        count = len(rows)
        words, keys = np.empty((count, 0), np.uint32), np.empty((count, 0, 2), np.uint64)
        if self._sketcher is not None:
            words, keys = self._sketcher.sketch(rows)
        return _SketchedRows(rows, _hash_rows(rows), words, keys)

    def _settle(self, piece: _SketchedRows, known: StoredLookup) -> NDArray[np.int64]:
        """Answer for rows up to the one that fills what waits: what is found after it depends on it."""
        same = self._same(piece, known)
        answers = np.where(same < _NONE, same, self._oldest_near(piece, known))
        equal = same < _NONE
        new = answers == _NONE
        copy_of = {}  # of the new ones of these rows, those that are copies of new ones after all
        for row, earlier, exact in self._within(piece):
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
        self._store(piece.taken(np.flatnonzero(new)))
        return answers

    def _same(self, piece: _SketchedRows, known: StoredLookup) -> NDArray[np.int64]:
        """Return for each row the stored number that it equals, or `_NONE`."""
        count = len(piece.rows)
        stored = self._digests.rows[:, 0]

        def alike(index: NDArray[np.int64], number: NDArray[np.int32]) -> NDArray[np.bool_]:
            return np.asarray(stored[number] == piece.digests[index])

        row, number = self._by_digest.find(piece.digests, np.zeros(count, np.int64), alike, len(stored))
        return _lowest_match(count, row, number, _cosines(piece.rows[row], known(number)) >= _MIN_EQUAL_COSINE)

    def _oldest_near(self, piece: _SketchedRows, known: StoredLookup) -> NDArray[np.int64]:
        """Return for each row the oldest stored number found that it is near to, or `_NONE`."""
        count = len(piece.rows)
        if self._near == 1:
            return np.full(count, _NONE)
        row, column = np.nonzero(self._alike(piece, self._waiting))
        number = column + self.vectors - len(self._waiting.rows)
        if self._sketcher is not None:
            sketched_row, sketched = self._by_sketch(piece, self._sketcher.max_differing_bits(self._near))
            row, number = np.concatenate([row, sketched_row]), np.concatenate([number, sketched])
        return _lowest_match(count, row, number, _cosines(piece.rows[row], known(number)) >= self._near)

    def _by_sketch(self, piece: _SketchedRows, max_differing_bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and the stored numbers whose sign bits are nearly theirs, as far as a key is shared."""
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
        found, number = np.unique(np.stack([row[index], number]), axis=1)  # met in several tables
        order = np.lexsort((number, differing(found, number), found))
        found, number = found[order], number[order]
        nearest = np.arange(len(found)) - np.searchsorted(found, found) < _MAX_COMPARED
        return found[nearest], number[nearest]

    def _alike(self, some: _SketchedRows, others: _SketchedRows) -> NDArray[np.bool_]:
        """Return which of ``some`` and ``others``, (s, o), may be near."""
        alike = np.ones((len(some.rows), len(others.rows)), np.bool_)
        if self._sketcher is not None:
            alike = count_differing_bits(some.words, others.words) <= self._sketcher.max_differing_bits(self._near)
        if self._sketcher is None or alike.sum() > _MAX_COMPARED * len(alike):
            alike &= some.rows @ others.rows.T >= self._near - _LENGTH_TOLERANCE
        return alike

    def _within(self, piece: _SketchedRows) -> Iterator[_BatchDuplicate]:
        """Yield each row that is a copy of an earlier one of its piece, with those in order and which of them equal it."""
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
        """Number rows, at most as many as there is room for; when that is full, those that wait are looked up by keys."""
        self._digests.append(piece.digests[:, None])
        self._by_digest.append(piece.digests[:, None])
        if self._by_digest.crowded:
            self._by_digest.rebuild(lambda part: self._digests.rows[part])
        if self._near == 1:
            return
        full = len(piece.rows) == self._room
        self._waiting = self._waiting.joined(piece)
        if not full:
            return
        if self._sketcher is None:
            self._sketcher = SimHasher(self._waiting.rows, self._seed)
            self._waiting = self._described(self._waiting.rows)
        self._words.append(self._waiting.words)
        self._by_words.append(self._waiting.keys[:, :, 0])
        if self._by_words.crowded:
            self._by_words.rebuild(lambda part: make_sketch_keys(self._words.rows[part]))
        self._waiting = self._waiting.taken(np.arange(0))


def mark_new_rows(answers: NDArray[np.int64], before: int) -> NDArray[np.bool_]:
    """Return which rows got a number of their own, (n,), from what `Copies.match` answered.

    Args:
        answers: of one call.
        before: `Copies.vectors` before that call.
    """
    highest = np.maximum.accumulate(np.concatenate([[before - 1], answers]))
    return np.asarray(answers > highest[:-1])


def _hash_rows(rows: Vectors) -> NDArray[np.uint64]:
    data = memoryview(rows.tobytes())
    size = 4 * rows.shape[1]
    parts = [hashlib.blake2b(data[start : start + size], digest_size=8).digest() for start in range(0, len(data), size)]
    return np.frombuffer(b"".join(parts), "<u8").astype(np.uint64)


def _cosines(some: Vectors, others: Vectors) -> NDArray[np.float64]:
    """Return the cosine of each row with its other, in double precision, so that no batch changes it."""
    some, others = some.astype(np.float64), others.astype(np.float64)
    product = np.sqrt((some * some).sum(axis=1) * (others * others).sum(axis=1))
    cosines: NDArray[np.float64] = (some * others).sum(axis=1) / product
    return cosines


def _lowest_match(
    count: int, row: NDArray[np.int64], number: NDArray[np.int64], true: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the lowest number of the true pairs of each of ``count`` rows, or `_NONE`."""
    lowest = np.full(count, _NONE)
    np.minimum.at(lowest, row[true], number[true])
    return lowest
