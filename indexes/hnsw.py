"""Building an index folder: a FAISS HNSW graph over unit vectors, or a flat index when the pool is small.

HNSW (Malkov and Yashunin 2018) finds nearly all of the nearest vectors at a small part of the cost of comparing
with every one. Identical vectors would fill a vector's links with copies of itself, so a vector is stored
once, and the further pairs that share it become its *aliases*: found with it, not searched.

Vectors come in batches of any size and are handed to FAISS in order, in blocks of a fixed size, since the graph depends
on the blocks: so the same vectors give the same graph, however they were batched. Memory is the index, a block, and
about 250 bytes a vector to know copies and keys by.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic import replacing
from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.indexes.encoders import TextEncoder, Vectors
from pairwright.indexes.search import tuned_ef_search
from pairwright.indexes.sidecar import (
    ALIASES,
    ENCODER,
    KEYS,
    PROBES,
    SIDECAR,
    VECTORS,
    IndexInfo,
    IndexOptions,
    write_sidecar,
)
from pairwright.indexes.threads import build_threads, omp_threads

Batch = tuple[Sequence[str], Vectors]

BLOCK = 16_384  # vectors that FAISS gets at a time; part of what the bytes of a graph depend on
_UNTUNED_EF_SEARCH = 128


def build_index(
    batches: Iterable[Batch],
    directory: Path,
    *,
    options: IndexOptions | None = None,
    encoder: TextEncoder | None = None,
    probes: Vectors | None = None,
) -> IndexInfo:
    """Build an index over keyed unit vectors in ``directory``, replacing one that is there.

    Args:
        batches: pair keys (32 hex digits, each once) with their vectors, float32 (n, dim) of length 1.
        directory: folder of the index; made when missing.
        options: how to build.
        encoder: what made the vectors; it is saved beside them.
        probes: vectors of sample queries, to choose ef_search on and to keep for checks; without any it is 128.

    Returns:
        What was built; ``summary()`` is for printing.

    Raises:
        InputError: when there is no vector, or one is not of length 1, or a key comes twice or is not one.
    """
    import faiss

    started = time.perf_counter()
    options = options or IndexOptions()
    _clear(directory)
    pool = _Pool(options)
    with omp_threads(build_threads(options.threads)):
        for keys, vectors in batches:
            pool.add(keys, vectors)
        index = pool.finish()
        hnsw = pool.kind == "hnsw"
        ef_search = _UNTUNED_EF_SEARCH if hnsw else 0
        if hnsw and probes is not None and len(probes):
            ef_search = tuned_ef_search(index, probes, options.recall)
    pool.write(directory)
    names = [VECTORS, KEYS, ALIASES]
    if encoder is not None:
        encoder.save(directory / ENCODER)
        names.append(ENCODER)
    if probes is not None:
        _write_array(directory / PROBES, probes)
        names.append(PROBES)
    info = IndexInfo(
        kind="hnsw" if hnsw else "flat",
        dim=index.d,
        vectors=index.ntotal,
        duplicates=len(pool.alias_of),
        m=options.m if hnsw else 0,
        ef_construction=options.ef_construction if hnsw else 0,
        ef_search=ef_search,
        encoder=encoder.fingerprint if encoder else "",
        versions={"faiss": faiss.__version__},
        seconds=round(time.perf_counter() - started, 3),
    )
    return write_sidecar(directory, info, names)


class _Pool:
    """Takes batches in, keeps the distinct vectors, and decides between flat and HNSW when it knows how many."""

    def __init__(self, options: IndexOptions) -> None:
        self.kind = "flat"
        self.alias_of: list[int] = []
        self._options = options
        self._block = max(BLOCK, options.flat_below)
        self._index: Any = None
        self._waiting: list[Vectors] = []
        self._waiting_rows = 0
        self._numbers: dict[bytes, int] = {}  # digest of a vector to its number
        self._keys: list[bytes] = []
        self._alias_keys: list[bytes] = []

    def add(self, keys: Sequence[str], vectors: Vectors) -> None:
        vectors = _checked(keys, vectors)
        new = []
        for row, key in enumerate(keys):
            digest = hashlib.blake2b(vectors[row].tobytes(), digest_size=16).digest()
            number = self._numbers.setdefault(digest, len(self._numbers))
            if number == len(self._keys):
                self._keys.append(_key_bytes(key))
                new.append(row)
            else:
                self._alias_keys.append(_key_bytes(key))
                self.alias_of.append(number)
        self._waiting.append(vectors[new])
        self._waiting_rows += len(new)
        while self._waiting_rows >= self._block:
            rows = np.concatenate(self._waiting)
            self._waiting, self._waiting_rows = [rows[self._block :]], len(rows) - self._block
            self._give(rows[: self._block])

    def finish(self) -> Any:
        """Return the FAISS index over everything that was added."""
        if self._waiting_rows:
            self._give(np.concatenate(self._waiting))
        if self._index is None:
            raise InputError("no vectors", where="index", mend="Give at least one pair.")
        return self._index

    def write(self, directory: Path) -> None:
        """Write graph, keys and aliases, aliases sorted by their vector and else in the order of the input."""
        _write_graph(directory / VECTORS, self._index)
        order = np.argsort(np.array(self.alias_of, np.int64), kind="stable")
        joined = b"".join([*self._keys, *(self._alias_keys[i] for i in order)])
        keys = np.frombuffer(joined, np.uint8).reshape(-1, 16)
        if len(np.unique(keys.view("V16"))) < len(keys):
            raise InputError("a pair key comes twice", where="index", mend="Drop the duplicate pairs first.")
        _write_array(directory / KEYS, keys)
        _write_array(directory / ALIASES, np.array(self.alias_of, np.uint32)[order])

    def _give(self, rows: Vectors) -> None:
        if self._index is None:
            self._index = self._empty(rows.shape[1], len(rows))
        self._index.add(np.ascontiguousarray(rows))

    def _empty(self, dim: int, first_rows: int) -> Any:
        import faiss

        if first_rows < self._options.flat_below:  # then there are no more to come
            return faiss.IndexFlatIP(dim)
        self.kind = "hnsw"
        index = faiss.IndexHNSWFlat(dim, self._options.m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self._options.ef_construction
        return index


def _clear(directory: Path) -> None:
    """Make the folder, and take away what would make it an index before the new one is whole: the sidecar first."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{directory}: not a folder. Name a folder for the index.") from None
    for name in (SIDECAR, ENCODER, PROBES):
        (directory / name).unlink(missing_ok=True)


def _checked(keys: Sequence[str], vectors: Vectors) -> Vectors:
    if vectors.ndim != 2 or len(vectors) != len(keys):
        raise InputError(
            f"{len(keys)} keys with vectors of shape {vectors.shape}", where="index", mend="Give one row a key."
        )
    vectors = np.asarray(vectors, np.float32) + np.float32(0)  # -0.0 becomes 0.0: equal vectors, equal bytes
    wrong = np.flatnonzero(~(np.abs(np.linalg.norm(vectors, axis=1) - 1) < 1e-3))  # NaN is wrong, too
    if len(wrong):
        raise InputError("its vector has not length 1", where=f"pair {keys[wrong[0]]}", mend="Normalise the vectors.")
    return vectors


def _key_bytes(key: str) -> bytes:
    try:
        data = bytes.fromhex(key)
    except ValueError:
        data = b""
    if len(data) != 16:
        raise InputError(f"{key!r} is not a pair key", where="index", mend="Keys are 32 hex digits.")
    return data


def _write_graph(path: Path, index: Any) -> None:
    import faiss

    try:
        with replacing(path) as temporary:
            faiss.write_index(index, str(temporary))
    except RuntimeError as error:  # FAISS's only kind, for a full disk, too
        reason = str(error).strip().rpartition("\n")[2]
        raise StorageError(f"{path}: not written ({reason}). Is the disk full?") from None


def _write_array(path: Path, array: NDArray[Any]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as handle:
        np.save(handle, array, allow_pickle=False)
