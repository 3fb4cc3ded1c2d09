"""In which form vectors are stored: chosen by what fits a memory budget, and made, opened and extended behind one shape.

storage   in memory, d 512, M 32        what it loses
flat      2,320 bytes a vector          nothing
fp16      1,296                         about 1e-4 of a cosine
int8        784                         about 1e-3 of a cosine
ivfpq        72, and 1,024 on disk      more neighbours, unless more lists are searched

The first three lie under an HNSW graph (`graph.py`) or, in small pools, alone; the last in inverted lists, rescored
from disk (`ivfpq.py`). Opened by memory map, all of them cost what a search touches; the links of a graph are walked
through once by FAISS when it opens. A build needs the bytes above, a block of rows, and `duplicates.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError, UsageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw import ivfpq
from pairwright.indexes.hnsw.graph import GraphStore, SearchResult, link_bytes_per_vector, new_faiss_index, open_graph
from pairwright.indexes.hnsw.metadata import IndexKind, IndexOptions, VectorStorage

VECTOR_STORAGES: tuple[VectorStorage, ...] = ("flat", "fp16", "int8", "ivfpq")

_INT8_TRAINING = 16_384  # rows that the extremes of each dimension are taken from
_GIB = 2**30


class VectorStore(Protocol):
    """Stored vectors, numbered from 0 in the order in which they were added."""

    @property
    def kind(self) -> IndexKind:
        """How it is searched: flat (all are compared), hnsw, or ivfpq."""
        ...

    @property
    def storage(self) -> VectorStorage:
        """How a vector is stored."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    @property
    def vectors(self) -> int:
        """How many are stored."""
        ...

    @property
    def efforts(self) -> tuple[int, ...]:
        """What a search can spend, ascending, to tune on: steps of ef_search or nprobe; empty when always exact."""
        ...

    def add(self, rows: Vectors) -> None:
        """Store float32 unit rows (n, dim). Their order and blocks are part of what the bytes depend on."""
        ...

    def search(self, vectors: Vectors, k: int, effort: int = 0) -> SearchResult:
        """Return the nearest of each of (n, dim): cosines (n, k) descending, and numbers (n, k), -1 for none.

        ``effort`` is one of `efforts` or anything between; 0 for a middling one.
        """
        ...

    def exact(self, vectors: Vectors, k: int) -> SearchResult:
        """Return the same by comparing with every stored vector."""
        ...

    def stored(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return stored vectors as they are read back, float32 (n, dim)."""
        ...

    def as_stored(self, rows: Vectors) -> Vectors:
        """Return ``rows`` as they would be read back once stored: what copies are sought among."""
        ...

    def write(self) -> list[str]:
        """Write the files whole into the folder that the index was made for, and return their names.

        Raises:
            StorageError: when the disk does not take them.
        """
        ...


@dataclass(frozen=True)
class StorageChoice:
    """How to store a pool.

    Attributes:
        kind: flat (no graph, for small pools), hnsw or ivfpq.
        storage: form of a vector.
        dim: length of a vector.
        bytes_a_vector: in memory, links included.
        total_bytes: of all vectors in memory.
        why: one line for people.
    """

    kind: IndexKind
    storage: VectorStorage
    dim: int
    bytes_per_vector: float
    total_bytes: int
    why: str


def choose_storage(count: int, dim: int, options: IndexOptions) -> StorageChoice:
    """Choose for ``count`` vectors: what was asked for, or the form that loses least within ``memory_gib``.

    Raises:
        UsageError: when nothing fits the budget.
    """
    graph = count >= options.flat_below
    sizes = {storage: bytes_per_vector(storage, dim, count, options.m if graph else 0) for storage in VECTOR_STORAGES}
    fits = [storage for storage in VECTOR_STORAGES if sizes[storage] * count <= options.memory_gib * _GIB]
    if not graph and "ivfpq" in fits:
        fits.remove("ivfpq")
    if options.storage != "auto":
        storage, reason = options.storage, "as asked"
    elif fits:
        storage = fits[0]
        reason = f"within the budget of {options.memory_gib:g} GiB"
        if storage != "flat":
            larger = VECTOR_STORAGES[VECTOR_STORAGES.index(storage) - 1]
            reason += f", where {larger} would take {_format_gib(sizes[larger] * count)}"
    else:
        raise UsageError(
            f"{count:,} vectors of {dim} dimensions take {_format_gib(min(sizes.values()) * count)} in the smallest form: more than"
            f" the budget of {options.memory_gib:g} GiB. Raise the budget or split the pool into several indexes."
        )
    kind: IndexKind = "ivfpq" if storage == "ivfpq" else "hnsw" if graph else "flat"
    total = int(sizes[storage] * count)
    under = {"flat": "compared one by one", "hnsw": "under an HNSW graph", "ivfpq": "in lists, rescored from disk"}[
        kind
    ]
    why = f"storage {storage}, {under}: {count:,} vectors x {sizes[storage]:,.0f} bytes = {_format_gib(total)} in memory, {reason}"
    return StorageChoice(kind, storage, dim, sizes[storage], total, why)


def bytes_per_vector(storage: VectorStorage, dim: int, count: int, m: int) -> float:
    """Return the bytes of one of ``count`` vectors in memory, with its links; ``m`` 0 for no graph."""
    if storage == "ivfpq":
        return ivfpq.memory_bytes_per_vector(dim, count)
    return {"flat": 4, "fp16": 2, "int8": 1}[storage] * dim + (link_bytes_per_vector(m) if m else 0)


def training_row_count(storage: VectorStorage, count: int) -> int:
    """Return how many sample rows `new_store` wants for ``storage``; 0 when it needs none."""
    return {"ivfpq": ivfpq.training_row_count(count), "int8": min(count, _INT8_TRAINING)}.get(storage, 0)


def new_store(
    choice: StorageChoice, directory: Path, *, count: int, options: IndexOptions, sample: Vectors | None = None
) -> VectorStore:
    """Return an empty index.

    Args:
        choice: from `choose_storage`; it may be of a larger pool that this is a part of.
        directory: folder that the files are written to; ivfpq writes rows there from the first one on.
        count: vectors that will be added, at most: memory is set aside for them and lists are made for so many.
        options: links and effort of an HNSW graph.
        sample: rows of the same kind to train on, float32 (s, dim), see `training_row_count`; None when that is 0. The
            bytes depend on it.

    Raises:
        InputError: when the sample is too small.
    """
    wanted = min(training_row_count(choice.storage, count), 1)
    if sample is None or len(sample) < wanted:
        if wanted:
            raise InputError(f"no vectors to train {choice.storage} on", where="index", fix="Give some of the pool's.")
        sample = np.empty((0, choice.dim), np.float32)
    if choice.kind == "ivfpq":
        return ivfpq.new_rescored_store(choice.dim, count, sample, directory)
    graph = GraphStore(new_faiss_index(choice.kind, choice.storage, choice.dim, options), choice.storage, directory)
    graph.learn(sample)
    graph.set_aside(count)
    return graph


def open_store(
    directory: Path, kind: IndexKind, storage: VectorStorage, *, into: Path | None = None, count: int = 0
) -> VectorStore:
    """Open what `StoredIndex.write` wrote.

    Args:
        directory: the folder.
        kind: as it was built.
        storage: as it was built.
        into: None opens by memory map, to search. A folder reads the index into memory, to be added to and written there.
        count: with ``into``, how many vectors there will be together, to set memory aside for.

    Raises:
        StorageError: when a file is missing or torn, or not of that kind.
    """
    if kind == "ivfpq":
        return ivfpq.open_rescored_store(directory, into=into)
    graph = open_graph(directory, kind, storage, into=into)
    if into is not None:
        graph.set_aside(count)
    return graph


def _format_gib(size: float) -> str:
    return f"{size / _GIB:.2f} GiB"
