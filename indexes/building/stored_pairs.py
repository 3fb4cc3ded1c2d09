"""Stored pairs of an index (Parquet files of 50,000 pairs), and the caption entries of a pair.

Every build writes the pairs first: parts are built from ranges of them, by several processes and in two modalities,
while the input may be a stream. The files are removed after the build unless the index keeps its pairs.

All captions of a pair are *entries* of a text index, so that a query finds the image by its best caption. Exploded pairs
(one per caption, each listing the other captions of the image) would repeat every caption under each pair. Such pairs
are *siblings*, recognised by the same image and the same set of captions, and each has one entry, its own caption.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import Pair

MAX_OTHER_CAPTIONS = 2**16 - 1  # further captions of a pair that become entries

Siblings = NDArray[np.uint64]
NO_SIBLINGS: Siblings = np.empty(0, np.uint64)


@dataclass(frozen=True)
class CaptionEntries:
    """Entries of pairs, each with a vector.

    Attributes:
        pairs: one pair per entry; its ``caption`` is the text of the entry.
        captions: caption index of each entry, uint16 (n,): 0 the pair's own caption, n the n-th other one.
    """

    pairs: Sequence[Pair]
    captions: NDArray[np.uint16]


def expand_captions(pairs: Sequence[Pair], siblings: Siblings) -> CaptionEntries:
    """Return the entries of ``pairs``, in order: the own caption of each pair, then the others."""
    found: list[Pair] = []
    captions: list[int] = []
    for pair, others in zip(pairs, _indexed_captions(pairs, siblings), strict=True):
        found.append(pair)
        captions.append(0)
        for number, text in enumerate(others, start=1):
            found.append(replace(pair, caption=text, captions=()))
            captions.append(number)
    return CaptionEntries(found, np.array(captions, np.uint16))


def one_entry_per_pair(pairs: Sequence[Pair]) -> CaptionEntries:
    """Return one entry per pair: its own caption, or its image."""
    return CaptionEntries(pairs, np.zeros(len(pairs), np.uint16))


class EntryCounter:
    """Counts entries and finds siblings in a stream of pairs; 10 bytes per pair with further captions."""

    def __init__(self) -> None:
        """Start without pairs."""
        self._pairs = 0
        self._groups = array("Q")
        self._others = array("H")

    def add(self, pair: Pair) -> tuple[str, ...]:
        """Count a pair and return its captions; none if the previous pair is a sibling with the same captions."""
        self._pairs += 1
        if not pair.captions:
            return (pair.caption,)
        group = _sibling_group(pair)
        known = bool(self._groups) and self._groups[-1] == group
        self._groups.append(group)
        self._others.append(min(len(pair.captions), MAX_OTHER_CAPTIONS))
        return () if known else (pair.caption, *pair.captions)

    @property
    def counts(self) -> "EntryCounts":
        """The counts so far."""
        return EntryCounts(self._pairs, np.array(self._groups, np.uint64), np.array(self._others, np.uint16))

    def result(self) -> tuple[int, Siblings]:
        """Return the number of entries and the sibling groups, ascending."""
        return self.counts.result()


@dataclass(frozen=True)
class EntryCounts:
    """Counts of pairs, which can be concatenated.

    Attributes:
        pairs: number of pairs.
        groups: sibling group of each pair with further captions, uint64 (n,).
        others: number of these captions, uint16 (n,).
    """

    pairs: int
    groups: NDArray[np.uint64]
    others: NDArray[np.uint16]

    def result(self) -> tuple[int, Siblings]:
        """Return the number of entries and the sibling groups, ascending."""
        ordered, places, counts = np.unique(self.groups, return_inverse=True, return_counts=True)
        alone = counts[places] == 1
        return self.pairs + int(self.others.astype(np.int64)[alone].sum()), ordered[counts > 1]


def _indexed_captions(pairs: Sequence[Pair], siblings: Siblings) -> list[Sequence[str]]:
    """Return the further captions of each pair that are its entries."""
    if not len(siblings):
        return [pair.captions[:MAX_OTHER_CAPTIONS] for pair in pairs]
    groups = np.array([_sibling_group(pair) if pair.captions else 0 for pair in pairs], np.uint64)
    alone = ~np.isin(groups, siblings)
    return [
        pair.captions[:MAX_OTHER_CAPTIONS] if single else () for pair, single in zip(pairs, alone.tolist(), strict=True)
    ]


def _sibling_group(pair: Pair) -> int:
    text = "\0".join((pair.source, pair.source_id, pair.image, *sorted((pair.caption, *pair.captions))))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


_PAIRS_PER_FILE = 50_000
BATCH_PAIRS = 1024  # pairs encoded at a time


@dataclass(frozen=True)
class StoredPairs:
    """Complete files of pairs.

    Attributes:
        folder: folder of the files.
        names: file names in order.
        ends: number of the first pair after each file.
        captions: number of entries of a text index in which every caption has a vector.
        siblings: sibling groups, ascending.
    """

    folder: Path
    names: tuple[str, ...]
    ends: tuple[int, ...]
    captions: int = 0
    siblings: Siblings = field(default_factory=lambda: NO_SIBLINGS, compare=False)

    @property
    def count(self) -> int:
        """Number of pairs."""
        return self.ends[-1] if self.ends else 0

    def entries(self, pairs: Sequence[Pair]) -> CaptionEntries:
        """Return the caption entries of ``pairs`` from these files."""
        return expand_captions(pairs, self.siblings)

    def captions_of(self, first: int, end: int) -> int:
        """Count the caption entries of pairs ``first`` to ``end``, exclusive."""
        if (first, end) == (0, self.count):
            return self.captions
        return sum(len(self.entries(pairs).pairs) for pairs in self.batches(first, end))

    def batches(self, first: int, end: int) -> Iterator[list[Pair]]:
        """Yield pairs ``first`` to ``end``, exclusive, `BATCH_PAIRS` at a time within a file."""
        start = 0
        for name, after in zip(self.names, self.ends, strict=True):
            if start < end and after > first:
                frame = PAIRS.read_frame(self.folder / name)
                low, high = max(first - start, 0), min(end, after) - start
                for place in range(low, high, BATCH_PAIRS):
                    yield PAIRS.records(frame[place : min(place + BATCH_PAIRS, high)])
            start = after

    def select(self, numbers: NDArray[np.int64]) -> Iterator[list[Pair]]:
        """Yield the pairs of ascending ``numbers``, at most `BATCH_PAIRS` at a time."""
        start = 0
        for name, after in zip(self.names, self.ends, strict=True):
            rows = numbers[(numbers >= start) & (numbers < after)] - start
            start = after
            if not len(rows):
                continue
            frame = PAIRS.read_frame(self.folder / name)
            for place in range(0, len(rows), BATCH_PAIRS):
                yield PAIRS.records(frame[rows[place : place + BATCH_PAIRS]])


class StoredPairsWriter:
    """Writes pairs to numbered files."""

    def __init__(self, folder: Path, first: int = 0) -> None:
        """Start in ``folder``, created with the first write, with file number ``first``."""
        self._folder, self._first = folder, first
        self._names: list[str] = []
        self._ends: list[int] = []
        self._waiting: list[Pair] = []

    def add(self, pairs: Sequence[Pair]) -> None:
        """Add pairs."""
        self._waiting += pairs
        while len(self._waiting) >= _PAIRS_PER_FILE:
            self._write(self._waiting[:_PAIRS_PER_FILE])
            self._waiting = self._waiting[_PAIRS_PER_FILE:]

    def finish(self, captions: int, siblings: Siblings) -> StoredPairs:
        """Write the remaining pairs and return all files."""
        if self._waiting:
            self._write(self._waiting)
        return StoredPairs(self._folder, tuple(self._names), tuple(self._ends), captions, siblings)

    def _write(self, pairs: list[Pair]) -> None:
        self._names.append(f"{self._first + len(self._names):05d}.parquet")
        self._ends.append((self._ends[-1] if self._ends else 0) + len(pairs))
        PAIRS.write(pairs, self._folder / self._names[-1])


def look_up_pairs(files: Sequence[Path], keys: Sequence[str]) -> pl.DataFrame:
    """Return the pairs of ``keys`` that are in ``files``, in the order of the keys; columns of `PAIRS`.

    A pair without a vector may be stored twice if it was added again; the last one is returned.
    """
    wanted = pl.DataFrame({"key": keys}, schema={"key": pl.String}).unique(maintain_order=True).with_row_index()
    found = pl.scan_parquet(list(files)).filter(pl.col("key").is_in(wanted["key"].implode())).collect()
    found = found.unique("key", keep="last", maintain_order=True)
    return found.join(wanted, on="key").sort("index").drop("index").select(list(PAIRS.schema))


def map_captions_by_index(pairs: pl.DataFrame) -> dict[tuple[str, int], str]:
    """Return the captions of ``pairs`` by key and caption_index: 0 for ``caption``, n for the n-th of ``captions``."""
    return {
        (key, number): text
        for key, own, others in pairs.select("key", "caption", "captions").iter_rows()
        for number, text in enumerate((own, *others))
    }
