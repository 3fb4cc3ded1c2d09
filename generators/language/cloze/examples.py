"""Filled slots of a caption pool, from which a cloze model is trained: a bounded sample that is gathered in parts.

A sample keeps a limited number of examples of each slot kind: those of the captions with the lowest hash values. Which
ones these are depends on the captions alone, not on their order or on how the pool is divided into parts.

Memory: 120 bytes for each example while gathering, half of it in a sample.
"""

import hashlib
import json
import zipfile
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.generators.language.cloze.context import HEADS, MAX_BAG, REACH, SLOT_KINDS, ClozeExample

DEFAULT_LIMIT: Final = 150_000  # examples of a slot kind
FORMAT_VERSION: Final = 1
WIDTHS: Final = (REACH, REACH, HEADS, MAX_BAG)  # columns of a context: left, right, heads, bag
WordNumbers = NDArray[Any]  # uint16 or int32
_PADS: Final = tuple((None,) * width for width in range(max(WIDTHS) + 1))
_UNBOUNDED: Final = 2**64 - 1
_COLUMNS: Final = 1 + sum(WIDTHS)  # the target comes first


@dataclass(frozen=True, eq=False)
class KindSample:
    """Examples of one slot kind.

    Attributes:
        captions: hash of the caption of each example, ascending, uint64 (n,).
        rows: uint16, or int32 if there are too many words, (n, 1 + columns of a context): numbers into ``ClozeSample.words`` plus one, 0 beyond the end of a
            part of a context. The first column is the target.
        bound: lowest hash of a caption that was dropped, with all higher ones; `_UNBOUNDED` if there is none.
    """

    captions: NDArray[np.uint64]
    rows: WordNumbers
    bound: int


@dataclass(frozen=True, eq=False)
class ClozeSample:
    """Examples of a pool or of a part of it.

    Attributes:
        words: targets and context words, ascending.
        limit: how many examples of a kind are kept.
        kinds: the examples of each of `SLOT_KINDS`.
    """

    words: tuple[str, ...]
    limit: int
    kinds: Mapping[str, KindSample]

    @classmethod
    def merged(cls, parts: Sequence["ClozeSample"]) -> "ClozeSample":
        """Return the sample of a pool from those of its parts, in any order.

        Args:
            parts: at least one; all with the same limit.
        """
        words = sorted({word for part in parts for word in part.words})
        number = {word: at for at, word in enumerate(words, 1)}
        kind_of_number = _number_type(words)
        tables = [np.array([0, *(number[word] for word in part.words)], kind_of_number) for part in parts]
        kinds = {kind: _concatenate([part.kinds[kind] for part in parts], tables) for kind in SLOT_KINDS}
        return _canonical(words, parts[0].limit, kinds)

    def save(self, path: Path) -> None:
        """Write the sample to a ``.npz`` file atomically; equal samples give equal bytes."""
        stored: dict[str, Any] = {}
        for kind, found in self.kinds.items():
            stored[f"{kind}.captions"] = found.captions
            stored[f"{kind}.rows"] = found.rows
            stored[f"{kind}.bound"] = np.array([found.bound], np.uint64)
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez(
                handle,
                format=np.array([FORMAT_VERSION, self.limit]),
                words=np.frombuffer(json.dumps(self.words).encode(), np.uint8),
                **stored,
            )

    @classmethod
    def load(cls, path: Path) -> "ClozeSample":
        """Read a sample that `save` wrote.

        Raises:
            StorageError: the file is missing, corrupt or of another format.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                version, limit = map(int, stored["format"])
                words = tuple(json.loads(stored["words"].tobytes()))
                kinds = {kind: _load_kind(stored, kind) for kind in SLOT_KINDS}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise StorageError(f"{path}: not a sample of slots ({error}). Delete it and build again.") from None
        if version != FORMAT_VERSION:
            raise StorageError(f"{path}: a sample of slots of another version. Delete it and build again.")
        return cls(words, limit, kinds)


class ClozeSampler:
    """Gathers the examples of captions.

    Args:
        limit: how many examples of a kind are kept.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._number = defaultdict[str | None, int](count(1).__next__, {None: 0})
        self._captions = {kind: array("Q") for kind in SLOT_KINDS}
        self._rows = {kind: array("i") for kind in SLOT_KINDS}
        self._bounds = dict.fromkeys(SLOT_KINDS, _UNBOUNDED)

    def add(self, key: str, examples: Iterable[ClozeExample]) -> None:
        """Add the examples of one caption.

        Args:
            key: the caption, or a name of it that does not depend on the division into parts.
            examples: its slots.
        """
        hashed = int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
        for kind, target, (left, right, heads, bag) in examples:
            if hashed >= self._bounds[kind]:
                continue
            self._captions[kind].append(hashed)
            row = (
                *(target, *left, *_PADS[REACH - len(left)], *right, *_PADS[REACH - len(right)]),
                *(*heads, *_PADS[HEADS - len(heads)], *bag, *_PADS[MAX_BAG - len(bag)]),
            )
            self._rows[kind].fromlist([*map(self._number.__getitem__, row)])
            if len(self._captions[kind]) > 2 * self._limit:
                self._drop_examples(kind)

    def _drop_examples(self, kind: str) -> None:
        found = _with_lowest_hashes(self._kind(kind), self._limit)
        self._captions[kind], self._rows[kind] = array("Q", found.captions.tobytes()), array("i", found.rows.tobytes())
        self._bounds[kind] = found.bound

    def _kind(self, kind: str) -> KindSample:
        captions = np.array(self._captions[kind], np.uint64)
        return KindSample(captions, np.array(self._rows[kind], np.int32).reshape(-1, _COLUMNS), self._bounds[kind])

    def sample(self) -> ClozeSample:
        """Return the sample of the captions added so far."""
        words = [word for word in self._number if word is not None]
        return _canonical(words, self._limit, {kind: self._kind(kind) for kind in SLOT_KINDS})


def _number_type(words: Sequence[Any]) -> type[np.uint16 | np.int32]:
    return np.uint16 if len(words) < np.iinfo(np.uint16).max else np.int32


def _load_kind(stored: Mapping[str, NDArray[Any]], kind: str) -> KindSample:
    captions, rows, bound = (stored[f"{kind}.{name}"] for name in ("captions", "rows", "bound"))
    return KindSample(captions, rows, int(bound[0]))


def _concatenate(parts: Sequence[KindSample], tables: Sequence[WordNumbers]) -> KindSample:
    """Return the examples of all parts, given the new number of each of their words."""
    rows = [table[part.rows] for table, part in zip(tables, parts, strict=True)]
    captions = np.concatenate([part.captions for part in parts])
    return KindSample(captions, np.concatenate(rows), min(part.bound for part in parts))


def _with_lowest_hashes(found: KindSample, limit: int) -> KindSample:
    """Return the examples of the captions with the lowest hashes, at most ``limit``; of a caption, all or none."""
    kept = found.captions < found.bound
    captions, rows, bound = found.captions[kept], found.rows[kept], found.bound
    if len(captions) > limit:
        bound = int(np.partition(captions, limit)[limit])
        kept = captions < bound
        captions, rows = captions[kept], rows[kept]
    return KindSample(captions, rows, bound)


def _canonical(words: Sequence[str], limit: int, kinds: Mapping[str, KindSample]) -> ClozeSample:
    """Return a sample that depends on its examples alone: words and examples in order, without words of no example."""
    kept = {kind: _with_lowest_hashes(found, limit) for kind, found in kinds.items()}
    used = np.zeros(len(words) + 1, bool)
    for found in kept.values():
        used[found.rows] = True
    ordered = sorted((words[at], at + 1) for at in np.flatnonzero(used[1:]).tolist())
    table = np.zeros(len(words) + 1, _number_type(ordered))
    table[[number for _, number in ordered]] = np.arange(1, len(ordered) + 1)
    return ClozeSample(
        tuple(word for word, _ in ordered),
        limit,
        {kind: _sorted(KindSample(found.captions, table[found.rows], found.bound)) for kind, found in kept.items()},
    )


def _sorted(found: KindSample) -> KindSample:
    big_endian = np.ascontiguousarray(found.rows, found.rows.dtype.newbyteorder(">"))  # whose bytes sort as its numbers
    order = np.lexsort((big_endian.view(f"S{big_endian.itemsize * _COLUMNS}").ravel(), found.captions))
    return KindSample(found.captions[order], found.rows[order], found.bound)
