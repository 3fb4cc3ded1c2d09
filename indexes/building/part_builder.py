"""Building a part of an index: the vectors of one modality under one FAISS index, with their keys and their truth.

Each vector is of an entry, a caption or image of a pair (`entries.py`). Copies would fill a vector's links with each
other, so a vector is stored once, and the further entries that share it or nearly do (`duplicates.py`) become its
*aliases*: found with it, not searched.

Vectors come in batches of any size and are handed to FAISS in order, in blocks of a fixed size, since a graph depends
on the blocks: so the same vectors give the same bytes, however they were batched. Memory is the index, a block, what
`duplicates.py` knows of every vector, and 18 bytes an entry.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError
from pairwright.datasets.progress import open_step
from pairwright.indexes.building.duplicates import DuplicateFinder, mark_new_rows
from pairwright.indexes.building.hash_chains import GrowableArray
from pairwright.indexes.building.pair_keys import KeyArray, encode_keys
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.graph import DEFAULT_EF_SEARCH
from pairwright.indexes.hnsw.ground_truth import GroundTruth, GroundTruthSearch, read_ground_truth, write_ground_truth
from pairwright.indexes.hnsw.index_folder import parse_part_name, remove_index_files
from pairwright.indexes.hnsw.ivfpq import DEFAULT_NPROBE
from pairwright.indexes.hnsw.metadata import (
    ALIASES_FILE,
    CAPTIONS_FILE,
    GROUND_TRUTH_FILE,
    KEYS_FILE,
    IndexOptions,
    PartInfo,
)
from pairwright.indexes.hnsw.numpy_files import map_array, write_array
from pairwright.indexes.hnsw.storage import StorageChoice, VectorStore, new_store, open_store

BLOCK_ROWS = 16_384  # vectors that FAISS gets at a time; part of what the bytes of a graph depend on
_RECALL_K = 10  # neighbours that recall looks at


class PartBuilder:
    """Takes keyed vectors in and writes them as a part; made by `new_part_builder` and `extend_part_builder`."""

    def __init__(
        self, folder: Path, index: VectorStore, options: IndexOptions, seeker: GroundTruthSearch | None
    ) -> None:
        """Take an index that is written to ``folder``, empty but for what `resume` tells of."""
        self._folder = folder
        self._index = index
        self._options = options
        self._seeker = seeker
        self._copies = DuplicateFinder(index.dim, options.near)
        self._keys = GrowableArray(np.uint8, 16)
        self._captions = GrowableArray(np.uint16, 1)
        self._alias_keys = GrowableArray(np.uint8, 16)
        self._alias_captions = GrowableArray(np.uint16, 1)
        self._alias_of = GrowableArray(np.uint32, 1)
        self._block = np.empty((BLOCK_ROWS, index.dim), np.float32)
        self._waiting = 0  # rows of the block that FAISS has not got yet
        self._duplicates = (0, 0)  # equal and near ones of the part that is extended

    def resume(self, folder: Path, info: PartInfo) -> None:
        """Take over keys and copies of the part in ``folder``, whose vectors the index holds."""
        keys = map_array(folder / KEYS_FILE)
        self._keys.append(keys[: info.vectors])
        self._alias_keys.append(keys[info.vectors :])
        captions = (
            map_array(folder / CAPTIONS_FILE)
            if (folder / CAPTIONS_FILE).exists()
            else np.zeros(info.entries, np.uint16)
        )
        self._captions.append(captions[: info.vectors, None])
        self._alias_captions.append(captions[info.vectors :, None])
        self._alias_of.append(map_array(folder / ALIASES_FILE)[:, None])
        self._duplicates = info.duplicates, info.near_duplicates
        for start in range(0, info.vectors, BLOCK_ROWS):
            self._copies.remember(self._index.stored(np.arange(start, min(start + BLOCK_ROWS, info.vectors))))

    def add(self, keys: Sequence[str], vectors: Vectors, captions: NDArray[np.uint16] | None = None) -> None:
        """Take entries.

        Args:
            keys: of their pairs, 32 hex digits each; that no pair comes twice is checked when all parts are there.
            vectors: float32 (n, dim) of length 1.
            captions: which caption of its pair each is, uint16 (n,), see `entries.Entries`; its own when not given.

        Raises:
            InputError: when one is not of length 1, or a key is not one.
        """
        names, vectors = encode_keys(keys), _check_vectors(keys, vectors, self._index.dim)
        captions = np.zeros(len(names), np.uint16) if captions is None else captions
        for start in range(0, len(vectors), BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            self._take(names[some], captions[some, None], vectors[some])

    def finish(self) -> PartInfo | None:
        """Write the part and return what it is, but for its name and modality; None when it is empty.

        Raises:
            StorageError: when the disk does not take it.
        """
        self._give()
        if not self._index.vectors:
            return None
        self._index.write()
        alias_of = self._alias_of.rows[:, 0]
        order = np.argsort(alias_of, kind="stable")  # by vector, and else in the order of the input
        write_array(self._folder / ALIASES_FILE, alias_of[order])
        write_array(self._folder / KEYS_FILE, np.concatenate([self._keys.rows, self._alias_keys.rows[order]]))
        captions = np.concatenate([self._captions.rows, self._alias_captions.rows[order]])[:, 0]
        if captions.any():
            write_array(self._folder / CAPTIONS_FILE, captions)
        info = PartInfo(
            name=self._folder.name,
            modality=parse_part_name(self._folder.name)[0],
            kind=self._index.kind,
            storage=self._index.storage,
            dim=self._index.dim,
            vectors=self._index.vectors,
            duplicates=self._duplicates[0] + self._copies.equal,
            near_duplicates=self._duplicates[1] + self._copies.near,
            m=self._options.m if self._index.kind == "hnsw" else 0,
            ef_construction=self._options.ef_construction if self._index.kind == "hnsw" else 0,
        )
        truth = self._seeker.truth if self._seeker else None
        if truth is not None:
            write_ground_truth(self._folder / GROUND_TRUTH_FILE, truth)
        return _tune_effort(info, self._index, truth, self._options.recall)

    def _take(self, keys: KeyArray, captions: NDArray[np.uint16], rows: Vectors) -> None:
        before = self._copies.vectors
        numbers = self._copies.match(self._index.as_stored(rows), self._stored)
        new = mark_new_rows(numbers, before)
        self._keys.append(keys[new])
        self._captions.append(captions[new])
        self._alias_keys.append(keys[~new])
        self._alias_captions.append(captions[~new])
        self._alias_of.append(numbers[~new, None])
        rows = rows[new]
        while len(rows):
            room = BLOCK_ROWS - self._waiting
            taken = rows[:room]
            self._block[self._waiting : self._waiting + len(taken)] = taken
            self._waiting += len(taken)
            rows = rows[room:]
            if self._waiting == BLOCK_ROWS:
                self._give()

    def _stored(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Vectors:
        """Return numbered vectors as they are read back, whether FAISS has them already or not."""
        first = self._index.vectors
        rows = np.empty((len(numbers), self._index.dim), np.float32)
        here = numbers >= first
        rows[here] = self._index.as_stored(self._block[numbers[here] - first])
        rows[~here] = self._index.stored(numbers[~here])
        return rows

    def _give(self) -> None:
        rows = self._block[: self._waiting]
        if not len(rows):
            return
        if self._seeker is not None:
            self._seeker.see(rows, self._index.vectors)
        graph = open_step("adding to the graph", unit="") if self._index.kind == "hnsw" else nullcontext()
        with graph:
            self._index.add(rows)
        self._waiting = 0


def new_part_builder(  # noqa: PLR0913 - keywords, each told of below
    folder: Path,
    choice: StorageChoice,
    options: IndexOptions,
    *,
    count: int,
    sample: Vectors | None = None,
    probes: Vectors | None = None,
) -> PartBuilder:
    """Begin a part.

    Args:
        folder: of the part; its name tells the modality.
        choice: how vectors are stored; a graph is left out below `IndexOptions.flat_below`.
        options: of the index.
        count: entries that will come, at most.
        sample: rows to train on, see `storage.training_rows`.
        probes: sample queries, float32 (q, dim), to tune on and to keep; without any the effort is a middling one.

    Raises:
        InputError: when the sample is too small.
    """
    remove_index_files(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if choice.kind != "ivfpq":
        choice = replace(choice, kind="hnsw" if count >= options.flat_below else "flat")
    index = new_store(choice, folder, count=count, options=options, sample=sample)
    seeker = GroundTruthSearch(probes) if probes is not None and len(probes) else None
    return PartBuilder(folder, index, options, seeker)


def extend_part_builder(  # noqa: PLR0913 - keywords, each told of below
    folder: Path, old: Path, info: PartInfo, options: IndexOptions, *, count: int, sample: Vectors | None = None
) -> PartBuilder:
    """Begin a part with all that the part in ``old`` holds.

    Args:
        folder: of the new part.
        old: of the part to extend, which stays as it is.
        info: of that part.
        options: of the index.
        count: entries that will come, at most, without those that are there.
        sample: of them, to train on if a small part becomes a graph.

    Raises:
        StorageError: when the old part is damaged.
    """
    remove_index_files(folder)
    folder.mkdir(parents=True, exist_ok=True)
    count += info.vectors
    if info.kind == "flat" and count >= options.flat_below:
        known = open_store(old, info.kind, info.storage)
        rows = known.stored(np.arange(info.vectors))
        choice = StorageChoice("hnsw", info.storage, info.dim, 0, 0, "")
        sample = rows if sample is None else np.concatenate([rows, sample])
        index = new_store(choice, folder, count=count, options=options, sample=sample)
        for start in range(0, len(rows), BLOCK_ROWS):
            index.add(rows[start : start + BLOCK_ROWS])
    else:
        index = open_store(old, info.kind, info.storage, into=folder, count=count)
    truth = read_ground_truth(old / GROUND_TRUTH_FILE) if (old / GROUND_TRUTH_FILE).exists() else None
    builder = PartBuilder(folder, index, options, GroundTruthSearch(truth.queries, truth) if truth else None)
    builder.resume(old, info)
    return builder


def _tune_effort(info: PartInfo, index: VectorStore, truth: GroundTruth | None, wanted: float) -> PartInfo:
    """Set the smallest effort that reaches the wanted recall on the probes, or the greatest."""
    if truth is None:
        effort, recall = {"hnsw": DEFAULT_EF_SEARCH, "ivfpq": DEFAULT_NPROBE}.get(info.kind, 0), 0.0
    else:
        k = min(_RECALL_K, info.vectors)
        for effort in index.efforts or (0,):
            recall = truth.recall(index.search(truth.queries, k, effort)[1])
            if recall >= wanted:
                break
    if info.kind == "hnsw":
        return replace(info, recall=round(recall, 4), ef_search=effort)
    return replace(info, recall=round(recall, 4), nprobe=effort)


def _check_vectors(keys: Sequence[str], vectors: Vectors, dim: int) -> Vectors:
    if vectors.shape != (len(keys), dim):
        raise InputError(
            f"{len(keys)} keys with vectors of shape {vectors.shape}, in an index of length {dim}",
            where="index",
            fix="Give one row a key.",
        )
    vectors = np.asarray(vectors, np.float32) + np.float32(0)  # -0.0 becomes 0.0: equal vectors, equal bytes
    wrong = np.flatnonzero(~(np.abs(np.linalg.norm(vectors, axis=1) - 1) < 1e-3))  # NaN is wrong, too
    if len(wrong):
        raise InputError("its vector has not length 1", where=f"pair {keys[wrong[0]]}", fix="Normalise the vectors.")
    return vectors
