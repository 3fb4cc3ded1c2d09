"""Precomputed vectors: an embedding folder of clip-retrieval, as published with the LAION datasets.

The pairs are read from the metadata of the folder like any input (`datasets.readers.clip_retrieval`), and each carries
the row of its vectors as ``embedding_row`` in `meta`; rejected rows do not shift the others. Pairs stored in between
(``pairs.parquet``) keep it. `datasets.readers.embedding_parts` lists and checks the files.

Files are memory-mapped for one batch at a time and only its rows are read, so memory does not depend on the size of the
folder. Rows are converted to float32 and normalised: LAION's are in half precision. Rows of zeros and rows with NaN or
infinite values are rejected.

The folder does not name the model that made the vectors. Queries must be encoded by the same one: OpenAI's CLIP ViT-B/32
for LAION-400M.
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
_MIN_LENGTH = 1e-15  # shorter vectors lose precision when squared in float32


class PrecomputedVectors:
    """Vectors of pairs whose `meta` holds their row in an embedding folder; implements `PairVectors`.

    Holds paths and counts only, so that it can be sent to worker processes.

    Attributes:
        folder: the embedding folder.
        modalities: available modalities, text first.
        dim: length of a vector.
        count: number of rows per modality.
    """

    def __init__(self, folder: Path) -> None:
        """List the files of the folder and check that they match.

        Raises:
            InputError: if a file is missing, truncated, or does not match the others.
        """
        self.folder = folder
        self._parts = find_embedding_parts(folder)
        self._firsts = np.array([part.first for part in self._parts], np.int64)
        kinds = self._parts[0].embeddings
        self.modalities: tuple[Modality, ...] = tuple(name for name, kind in EMBEDDING_FOLDERS.items() if kind in kinds)
        self.dim = self._parts[0].dim
        self.count = self._parts[-1].first + self._parts[-1].rows

    @property
    def every_caption(self) -> bool:
        """Always false: the folder has one row per pair."""
        return False

    def rows(self, pairs: Sequence[Pair], modality: Modality) -> VectorBatch:
        """Return the vectors of any ``pairs`` of this folder, in any order.

        A row of zeros is rejected as ``zero_vector``, one with NaN or infinite values as ``not_finite``.

        Raises:
            UsageError: if the folder has no vectors of the modality.
            InputError: if a pair has no row number, or a file has changed.
        """
        if modality not in self.modalities:
            raise UsageError(f"{self.folder}: no {EMBEDDING_FOLDERS[modality]} folder, so no {modality} vectors.")
        numbers = self._numbers(pairs)
        stored = self._read_rows(numbers, EMBEDDING_FOLDERS[modality])
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
            what = (
                f"has row number {number}, but there are {self.count} rows"
                if number >= 0
                else f"has no {EMBEDDING_ROW} in its meta"
            )
            raise InputError(f"pair {pair.key} {what}", where=str(self.folder), fix="Read the pairs from this folder.")
        return numbers

    def _read_rows(self, numbers: NDArray[np.int64], kind: str) -> Vectors:
        """Return rows ``numbers`` in float32; each file is mapped once and closed."""
        gathered = np.empty((len(numbers), self.dim), np.float32)
        of_part = self._part_of(numbers)
        for which in np.unique(of_part):
            part = self._parts[which]
            places = np.flatnonzero(of_part == which)
            stored = open_vectors(part.embeddings[kind])
            if stored.shape != (part.rows, self.dim):
                raise InputError("the file has changed", where=str(part.embeddings[kind]), fix="Start again.")
            gathered[_slice_if_consecutive(places)] = stored[_slice_if_consecutive(numbers[places] - part.first)]
        return gathered

    def _part_of(self, numbers: NDArray[np.int64] | int) -> NDArray[np.int64]:
        return np.asarray(np.searchsorted(self._firsts, numbers, side="right") - 1, np.int64)


def _slice_if_consecutive(numbers: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Return consecutive numbers as a slice, which avoids a copy and reads sequentially."""
    first, last = int(numbers[0]), int(numbers[-1])
    consecutive = last - first + 1 == len(numbers) and bool((np.diff(numbers) == 1).all())
    return slice(first, last + 1) if consecutive else numbers


def _embedding_row(pair: Pair) -> int:
    """Return the row number in the meta of a pair, or -1."""
    number: Any = json.loads(pair.meta).get(EMBEDDING_ROW)
    return number if type(number) is int and 0 <= number < 2**62 else -1


def _normalise_in_place(rows: Vectors) -> NDArray[np.float32]:
    """Normalise ``rows`` in place and return their lengths: 0, NaN or infinite where it is not possible."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        for row in np.flatnonzero(~((lengths > _MIN_LENGTH) & np.isfinite(lengths))):
            # Zero or not finite, or the squares overflow float32: divide by the largest value first.
            lengths[row] = largest = np.abs(rows[row]).max()
            if 0 < largest < np.inf:
                rows[row] /= largest
                lengths[row] = np.sqrt(rows[row] @ rows[row])
        rows /= np.where(lengths == 0, np.float32(1), lengths)[:, None]
    return lengths
