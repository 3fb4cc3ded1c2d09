"""Vectors that are there already: an embedding folder of clip-retrieval, as LAION publishes them with its datasets.

The pairs are read from the folder's metadata like any input (`datasets.readers.clip_retrieval`), and each carries the
row of its vectors as ``embedding_row`` in `meta`; rows that were rejected leave a gap and nothing shifts. Pairs that
were stored in between (``pairs.parquet``) keep it. Which files there are, their order and what is checked of them:
`datasets.readers.clip_retrieval_parts`.

Files are mapped into memory for the length of one batch and only its rows are read, so that memory is a batch whatever
the size of the folder. Rows become float32 and are then brought to length 1, whatever they were: LAION's, in half
precision, are off by its rounding. A row of zeros has no direction, and one with NaN or an infinity
none that is known: such rows are not indexed, each under its reason.

The vectors are those of a model that the folder does not name. Queries have to be encoded by the same one: on LAION-400M
that is OpenAI's CLIP ViT-B/32.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.readers.clip_retrieval import EMBEDDING_ROW
from pairwright.datasets.readers.embedding_parts import find_embedding_parts, open_vectors
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.indexes.building.pair_vectors import VectorBatch
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.metadata import Modality

EMBEDDING_FOLDERS: dict[Modality, str] = {"text": "text_emb", "image": "img_emb"}
_MIN_LENGTH = 1e-15  # below it the squares lose bits in float32


class PrecomputedVectors:
    """The vectors of pairs whose `meta` names their row of an embedding folder; a `vectors.PairVectors`.

    Holds paths and counts only, so that it can be sent to other processes.

    Attributes:
        folder: the embedding folder.
        modalities: what it has vectors of, text first.
        dim: length of a vector.
        count: rows of each modality.
    """

    def __init__(self, folder: Path) -> None:
        """Look the folder over and check that its parts fit together.

        Raises:
            InputError: naming the file that is missing, cut short, or does not fit the others.
        """
        self.folder = folder
        self._parts = find_embedding_parts(folder)
        self._firsts = np.array([part.first for part in self._parts], np.int64)
        there = self._parts[0].embeddings
        self.modalities: tuple[Modality, ...] = tuple(name for name, kind in EMBEDDING_FOLDERS.items() if kind in there)
        self.dim = self._parts[0].dim
        self.count = self._parts[-1].first + self._parts[-1].rows

    @property
    def every_caption(self) -> bool:
        """No: the folder has a row a pair."""
        return False

    def rows(self, pairs: Sequence[Pair], modality: Modality) -> VectorBatch:
        """Return the vectors of ``pairs``, which may be any of this folder's, in any order.

        A row of zeros is rejected as ``zero_vector``, one with NaN or an infinity as ``not_finite``.

        Raises:
            UsageError: when the folder has no vectors of the modality.
            InputError: when a pair does not name its row, or a file has changed.
        """
        if modality not in self.modalities:
            raise UsageError(f"{self.folder}: no {EMBEDDING_FOLDERS[modality]} here, so no vectors of {modality}s.")
        numbers = self._numbers(pairs)
        stored = self._gathered(numbers, EMBEDDING_FOLDERS[modality])
        lengths = _normalise_in_place(stored)
        has = np.isfinite(lengths) & (lengths > 0)
        if has.all():
            return VectorBatch(has, stored, [])
        rejects = [
            self._reject(pairs[at], int(numbers[at]), modality, zero=bool(lengths[at] == 0))
            for at in np.flatnonzero(~has).tolist()
        ]
        return VectorBatch(has, stored[has], rejects)

    def _reject(self, pair: Pair, number: int, modality: Modality, *, zero: bool) -> Reject:
        part = self._parts[int(self._part_of(number))]
        place = f"{part.embeddings[EMBEDDING_FOLDERS[modality]]}:row {number - part.first + 1}"
        if zero:
            return make_reject(place, "zero_vector", "all values are 0", pair.caption)
        return make_reject(place, "not_finite", "a value is NaN or infinite", pair.caption)

    def _numbers(self, pairs: Sequence[Pair]) -> NDArray[np.int64]:
        numbers = np.fromiter((_embedding_row(pair) for pair in pairs), np.int64, len(pairs))
        wrong = (numbers < 0) | (numbers >= self.count)
        if wrong.any():
            pair, number = pairs[int(np.argmax(wrong))], int(numbers[np.argmax(wrong)])
            what = f"names row {number} of {self.count}" if number >= 0 else f"has no {EMBEDDING_ROW} in its meta"
            raise InputError(
                f"pair {pair.key} {what}", where=str(self.folder), fix="Read the pairs from this folder itself."
            )
        return numbers

    def _gathered(self, numbers: NDArray[np.int64], kind: str) -> Vectors:
        """Return the stored rows of ``numbers`` in float32; each file is mapped once and let go."""
        gathered = np.empty((len(numbers), self.dim), np.float32)
        of_part = self._part_of(numbers)
        for which in np.unique(of_part):
            part = self._parts[which]
            places = np.flatnonzero(of_part == which)
            stored = open_vectors(part.embeddings[kind])
            if stored.shape != (part.rows, self.dim):
                raise InputError("the file has changed", where=str(part.embeddings[kind]), fix="Begin again.")
            gathered[_slice_if_consecutive(places)] = stored[_slice_if_consecutive(numbers[places] - part.first)]
        return gathered

    def _part_of(self, numbers: NDArray[np.int64] | int) -> NDArray[np.int64]:
        return np.asarray(np.searchsorted(self._firsts, numbers, side="right") - 1, np.int64)


def _slice_if_consecutive(numbers: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Return consecutive numbers as a slice, which copies nothing and reads the file in one go."""
    first, last = int(numbers[0]), int(numbers[-1])
    consecutive = last - first + 1 == len(numbers) and bool((np.diff(numbers) == 1).all())
    return slice(first, last + 1) if consecutive else numbers


def _embedding_row(pair: Pair) -> int:
    """Return the row that a pair names, or -1."""
    number: Any = json.loads(pair.meta).get(EMBEDDING_ROW)
    return number if type(number) is int and 0 <= number < 2**62 else -1


def _normalise_in_place(rows: Vectors) -> NDArray[np.float32]:
    """Bring ``rows`` to length 1 in place and return a length for each: 0, NaN or infinite where it cannot be done."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        for row in np.flatnonzero(~((lengths > _MIN_LENGTH) & np.isfinite(lengths))):
            # There is no direction, or the squares left the range of float32: those of values up to 1 do not.
            lengths[row] = largest = np.abs(rows[row]).max()
            if 0 < largest < np.inf:
                rows[row] /= largest
                lengths[row] = np.sqrt(rows[row] @ rows[row])
        rows /= np.where(lengths == 0, np.float32(1), lengths)[:, None]
    return lengths
