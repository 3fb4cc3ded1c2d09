"""Vector stores: choice by memory budget, creation and opening.

storage   memory at d 512, M 32         loss
flat      2,320 bytes per vector        none
fp16      1,296                         about 1e-4 of a cosine
int8        784                         about 1e-3 of a cosine
ivfpq        72, and 1,024 on disk      more neighbours, unless more lists are searched

The first three have an HNSW graph or, for small pools, exact search (`graph.py`); the last has inverted lists and is
rescored from disk (`ivfpq.py`). A memory-mapped store loads only the pages that a search reads; FAISS reads the links of
a graph once when it opens. A build needs the bytes above, a block of rows, and the memory of `building/duplicates.py`.
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
from pairwright.indexes.hnsw.metadata import IndexKind, VectorStorage
from pairwright.indexes.hnsw.options import IndexOptions

VECTOR_STORAGES: tuple[VectorStorage, ...] = ("flat", "fp16", "int8", "ivfpq")

_INT8_TRAINING = 16_384  # sample rows for the extremes of each dimension
_GIB = 2**30


class VectorStore(Protocol):
    """Stored vectors, numbered from 0 in the order of addition."""

    @property
    def kind(self) -> IndexKind:
        """Kind of search: flat (exact), hnsw or ivfpq."""
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
        """Number of stored vectors."""
        ...

    @property
    def efforts(self) -> tuple[int, ...]:
        """Values of ef_search or nprobe to tune over, ascending; empty for exact search."""
        ...

    def add(self, rows: Vectors) -> None:
        """Add float32 unit rows (n, dim). The bytes depend on their order and blocks."""
        ...

    def search(self, vectors: Vectors, k: int, effort: int = 0) -> SearchResult:
        """Return the nearest vectors of each row (n, dim): cosines (n, k), descending, and numbers (n, k), -1 for none.

        ``effort`` is ef_search or nprobe; 0 for the default.
        """
        ...

    def exact(self, vectors: Vectors, k: int) -> SearchResult:
        """Return the exact result of `search` by comparing with every stored vector."""
        ...

    def stored(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return stored vectors after decoding, float32 (n, dim)."""
        ...

    def as_stored(self, rows: Vectors) -> Vectors:
        """Return ``rows`` after encoding and decoding: duplicates are detected among these."""
        ...

    def write(self) -> list[str]:
        """Write the files into the folder of the store and return their names.

        Raises:
            StorageError: if they cannot be written.
        """
        ...


@dataclass(frozen=True)
class StorageChoice:
    """Storage of a pool.

    Attributes:
        kind: flat (no graph, for small pools), hnsw or ivfpq.
        storage: how a vector is stored.
        dim: length of a vector.
        bytes_per_vector: bytes in memory, links included.
        total_bytes: bytes of all vectors in memory.
        why: reason for the choice, one line.
    """

    kind: IndexKind
    storage: VectorStorage
    dim: int
    bytes_per_vector: float
    total_bytes: int
    why: str


def choose_storage(count: int, dim: int, options: IndexOptions) -> StorageChoice:
    """Return the storage of ``count`` vectors: the requested one, or the most accurate one within ``memory_gib``.

    Raises:
        UsageError: if no storage fits the budget.
    """
    graph = count >= options.flat_below
    sizes = {storage: bytes_per_vector(storage, dim, count, options.m if graph else 0) for storage in VECTOR_STORAGES}
    fits = [storage for storage in VECTOR_STORAGES if sizes[storage] * count <= options.memory_gib * _GIB]
    if not graph and "ivfpq" in fits:
        fits.remove("ivfpq")
    if options.storage != "auto":
        storage, reason = options.storage, "as requested"
    elif fits:
        storage = fits[0]
        reason = f"within the budget of {options.memory_gib:g} GiB"
        if storage != "flat":
            larger = VECTOR_STORAGES[VECTOR_STORAGES.index(storage) - 1]
            reason += f", where {larger} needs {_format_gib(sizes[larger] * count)}"
    else:
        raise UsageError(
            f"{count:,} vectors of {dim} dimensions need {_format_gib(min(sizes.values()) * count)} in the smallest storage:"
            f" more than the budget of {options.memory_gib:g} GiB. Raise the budget or split the pool into several indexes."
        )
    kind: IndexKind = "ivfpq" if storage == "ivfpq" else "hnsw" if graph else "flat"
    total = int(sizes[storage] * count)
    structures = {"flat": "exact search", "hnsw": "HNSW graph", "ivfpq": "inverted lists, rescored from disk"}
    size = f"{count:,} vectors x {sizes[storage]:,.0f} bytes = {_format_gib(total)} in memory"
    why = f"storage {storage}, {structures[kind]}: {size}, {reason}"
    return StorageChoice(kind, storage, dim, sizes[storage], total, why)


def bytes_per_vector(storage: VectorStorage, dim: int, count: int, m: int) -> float:
    """Return the bytes in memory of one of ``count`` vectors and its links; ``m`` 0 for no graph."""
    if storage == "ivfpq":
        return ivfpq.memory_bytes_per_vector(dim, count)
    return {"flat": 4, "fp16": 2, "int8": 1}[storage] * dim + (link_bytes_per_vector(m) if m else 0)


def training_row_count(storage: VectorStorage, count: int) -> int:
    """Return the number of training rows that `new_store` needs for ``storage``."""
    return {"ivfpq": ivfpq.training_row_count(count), "int8": min(count, _INT8_TRAINING)}.get(storage, 0)


def new_store(
    choice: StorageChoice, directory: Path, *, count: int, options: IndexOptions, sample: Vectors | None = None
) -> VectorStore:
    """Return an empty store.

    Args:
        choice: from `choose_storage`, possibly for a larger pool that this store holds a part of.
        directory: folder of the files; ivfpq writes rows there as they are added.
        count: maximum number of vectors that will be added; sizes memory and inverted lists.
        options: m and ef_construction of an HNSW graph.
        sample: training rows, float32 (s, dim), see `training_row_count`; None if that is 0. The bytes depend on them.

    Raises:
        InputError: if the sample is too small.
    """
    wanted = min(training_row_count(choice.storage, count), 1)
    if sample is None or len(sample) < wanted:
        if wanted:
            raise InputError(
                f"no vectors to train {choice.storage} on", where="index", fix="Pass a sample of the pool."
            )
        sample = np.empty((0, choice.dim), np.float32)
    if choice.kind == "ivfpq":
        return ivfpq.new_rescored_store(choice.dim, count, sample, directory)
    graph = GraphStore(new_faiss_index(choice.kind, choice.storage, choice.dim, options), choice.storage, directory)
    graph.train(sample)
    graph.reserve(count)
    return graph


def open_store(
    directory: Path, kind: IndexKind, storage: VectorStorage, *, into: Path | None = None, count: int = 0
) -> VectorStore:
    """Open a store that `VectorStore.write` wrote.

    Args:
        directory: folder of the store.
        kind: kind of the store.
        storage: storage of the store.
        into: None opens it memory-mapped, for searching. A folder reads it into memory, to be extended and written there.
        count: with ``into``, the final number of vectors, to reserve memory.

    Raises:
        StorageError: if a file is missing, truncated, or of another kind.
    """
    if kind == "ivfpq":
        return ivfpq.open_rescored_store(directory, into=into)
    graph = open_graph(directory, kind, storage, into=into)
    if into is not None:
        graph.reserve(count)
    return graph


def _format_gib(size: float) -> str:
    return f"{size / _GIB:.2f} GiB"
