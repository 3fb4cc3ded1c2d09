"""Builder of a part: vectors of one modality in one FAISS index, with their keys and ground truth.

Each vector belongs to an entry, a caption or image of a pair (`stored_pairs`). Duplicates would fill the links of a
graph with each other, so a vector is stored once, and further entries with an equal or nearly equal vector
(`duplicates`) become its *aliases*: returned with it, not searched.

Vectors arrive in batches of any size and are added to FAISS in order, in blocks of a fixed size, since a graph depends
on the blocks: the same vectors give the same bytes however they were batched. Memory: the index, a block, the lookup of
`duplicates`, and 18 bytes per entry.
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
from pairwright.indexes.building.near_duplicate_lookup import GrowableArray
from pairwright.indexes.building.pair_keys import KeyArray, encode_keys
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.faiss_files import map_array, write_array
from pairwright.indexes.hnsw.graph import DEFAULT_EF_SEARCH
from pairwright.indexes.hnsw.ground_truth import GroundTruth, GroundTruthSearch, read_ground_truth, write_ground_truth
from pairwright.indexes.hnsw.index_folder import parse_part_name, remove_index_files
from pairwright.indexes.hnsw.ivfpq import DEFAULT_NPROBE
from pairwright.indexes.hnsw.metadata import ALIASES_FILE, CAPTIONS_FILE, GROUND_TRUTH_FILE, KEYS_FILE, PartInfo
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.search import find_not_unit
from pairwright.indexes.hnsw.storage import StorageChoice, VectorStore, new_store, open_store

BLOCK_ROWS = 16_384  # vectors added to FAISS at a time; the bytes of a graph depend on it
_RECALL_K = 10


class PartBuilder:
    """Collects keyed vectors and writes a part; created by `new_part_builder` or `extend_part_builder`."""

    def __init__(
        self, folder: Path, index: VectorStore, options: IndexOptions, truth_search: GroundTruthSearch | None
    ) -> None:
        """Start a part in ``folder`` with the store ``index``, empty or followed by `resume`."""
        self._folder = folder
        self._index = index
        self._options = options
        self._truth_search = truth_search
        self._duplicate_finder = DuplicateFinder(index.dim, options.near)
        self._keys = GrowableArray(np.uint8, 16)
        self._captions = GrowableArray(np.uint16, 1)
        self._alias_keys = GrowableArray(np.uint8, 16)
        self._alias_captions = GrowableArray(np.uint16, 1)
        self._alias_of = GrowableArray(np.uint32, 1)
        self._block = np.empty((BLOCK_ROWS, index.dim), np.float32)
        self._waiting = 0  # rows of the block that are not in FAISS yet
        self._duplicates = (0, 0)  # equal and near duplicates of the extended part

    def resume(self, folder: Path, info: PartInfo) -> None:
        """Load keys and aliases of the extended part in ``folder``, whose vectors the store holds."""
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
            self._duplicate_finder.add_known(
                self._index.stored(np.arange(start, min(start + BLOCK_ROWS, info.vectors)))
            )

    def add(self, keys: Sequence[str], vectors: Vectors, captions: NDArray[np.uint16] | None = None) -> None:
        """Add entries.

        Args:
            keys: keys of their pairs, 32 hexadecimal digits each; duplicates are detected when all parts are complete.
            vectors: unit rows, float32 (n, dim).
            captions: caption index of each entry, uint16 (n,), see `stored_pairs.CaptionEntries`; 0 by default.

        Raises:
            InputError: if a row has not length 1, or a key is invalid.
        """
        names, vectors = encode_keys(keys), _check_vectors(keys, vectors, self._index.dim)
        captions = np.zeros(len(names), np.uint16) if captions is None else captions
        for start in range(0, len(vectors), BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            self._deduplicate(names[some], captions[some, None], vectors[some])

    def finish(self) -> PartInfo | None:
        """Write the part and return its metadata; None if it is empty.

        Raises:
            StorageError: if the files cannot be written.
        """
        self._flush_block()
        if not self._index.vectors:
            return None
        self._index.write()
        alias_of = self._alias_of.rows[:, 0]
        order = np.argsort(alias_of, kind="stable")  # by vector, then in input order
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
            duplicates=self._duplicates[0] + self._duplicate_finder.equal,
            near_duplicates=self._duplicates[1] + self._duplicate_finder.near,
            m=self._options.m if self._index.kind == "hnsw" else 0,
            ef_construction=self._options.ef_construction if self._index.kind == "hnsw" else 0,
        )
        truth = self._truth_search.truth if self._truth_search else None
        if truth is not None:
            write_ground_truth(self._folder / GROUND_TRUTH_FILE, truth)
        return _tune_effort(info, self._index, truth, self._options.recall)

    def _deduplicate(self, keys: KeyArray, captions: NDArray[np.uint16], rows: Vectors) -> None:
        before = self._duplicate_finder.vectors
        numbers = self._duplicate_finder.match(self._index.as_stored(rows), self._stored)
        new = mark_new_rows(numbers, before)
        self._keys.append(keys[new])
        self._captions.append(captions[new])
        self._alias_keys.append(keys[~new])
        self._alias_captions.append(captions[~new])
        self._alias_of.append(numbers[~new, None])
        rows = rows[new]
        while len(rows):
            free = BLOCK_ROWS - self._waiting
            head = rows[:free]
            self._block[self._waiting : self._waiting + len(head)] = head
            self._waiting += len(head)
            rows = rows[free:]
            if self._waiting == BLOCK_ROWS:
                self._flush_block()

    def _stored(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Vectors:
        """Return stored vectors after decoding, from FAISS or from the current block."""
        first = self._index.vectors
        rows = np.empty((len(numbers), self._index.dim), np.float32)
        in_block = numbers >= first
        rows[in_block] = self._index.as_stored(self._block[numbers[in_block] - first])
        rows[~in_block] = self._index.stored(numbers[~in_block])
        return rows

    def _flush_block(self) -> None:
        rows = self._block[: self._waiting]
        if not len(rows):
            return
        if self._truth_search is not None:
            self._truth_search.add(rows, self._index.vectors)
        graph = open_step("adding to the graph", unit="") if self._index.kind == "hnsw" else nullcontext()
        with graph:
            self._index.add(rows)
        self._waiting = 0


def new_part_builder(  # noqa: PLR0913 - keyword arguments, documented below
    folder: Path,
    choice: StorageChoice,
    options: IndexOptions,
    *,
    count: int,
    sample: Vectors | None = None,
    sample_queries: Vectors | None = None,
) -> PartBuilder:
    """Return the builder of a new part.

    Args:
        folder: folder of the part; its name gives the modality.
        choice: storage of the vectors; parts below `IndexOptions.flat_below` get no graph.
        options: options of the index.
        count: maximum number of entries.
        sample: training rows, see `storage.training_row_count`.
        sample_queries: float32 (q, dim), to tune on and to store; without any the effort is a default.

    Raises:
        InputError: if the sample is too small.
    """
    remove_index_files(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if choice.kind != "ivfpq":
        choice = replace(choice, kind="hnsw" if count >= options.flat_below else "flat")
    index = new_store(choice, folder, count=count, options=options, sample=sample)
    truth_search = GroundTruthSearch(sample_queries) if sample_queries is not None and len(sample_queries) else None
    return PartBuilder(folder, index, options, truth_search)


def extend_part_builder(  # noqa: PLR0913 - keyword arguments, documented below
    folder: Path, old: Path, info: PartInfo, options: IndexOptions, *, count: int, sample: Vectors | None = None
) -> PartBuilder:
    """Return the builder of a part that starts with the content of the part in ``old``.

    Args:
        folder: folder of the new part.
        old: folder of the part to extend, which does not change.
        info: metadata of that part.
        options: options of the index.
        count: maximum number of additional entries.
        sample: training rows among these, for a small part that becomes a graph.

    Raises:
        StorageError: if the old part is damaged.
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
    """Set the smallest effort that reaches the wanted recall on the sample queries, or the largest."""
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
            fix="Pass one row per key.",
        )
    vectors = np.asarray(vectors, np.float32) + np.float32(0)  # -0.0 becomes 0.0: equal vectors, equal bytes
    if len(wrong := find_not_unit(vectors)):
        raise InputError(
            "its vector does not have length 1", where=f"pair {keys[wrong[0]]}", fix="Normalise the vectors."
        )
    return vectors
