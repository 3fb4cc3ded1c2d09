"""The pairs beside their index: Parquet files of 50,000, by which parts are built and hits are looked up.

Every build goes through them, since parts are built of ranges, by several processes, in two modalities, from an input that
may be a stream; a caller that keeps the pairs elsewhere has them removed when the index is whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import Pair
from pairwright.indexes.building.caption_entries import NO_SIBLINGS, CaptionEntries, Siblings, expand_captions

_PAIRS_PER_FILE = 50_000  # pairs
BATCH_PAIRS = 1024  # that are turned into vectors at a time


@dataclass(frozen=True)
class StoredPairs:
    """Whole files of pairs.

    Attributes:
        folder: that they are in.
        names: in order.
        ends: number of the first pair after each file.
        captions: of all pairs that get a vector of their own where every caption does (`entries.py`).
        siblings: groups of pairs that were exploded, ascending.
    """

    folder: Path
    names: tuple[str, ...]
    ends: tuple[int, ...]
    captions: int = 0
    siblings: Siblings = field(default_factory=lambda: NO_SIBLINGS, compare=False)

    @property
    def count(self) -> int:
        """Pairs together."""
        return self.ends[-1] if self.ends else 0

    def entries(self, pairs: Sequence[Pair]) -> CaptionEntries:
        """Return the captions of ``pairs``, which are of these files."""
        return expand_captions(pairs, self.siblings)

    def captions_of(self, first: int, end: int) -> int:
        """Count the captions of the pairs with numbers from ``first`` to before ``end``."""
        if (first, end) == (0, self.count):
            return self.captions
        return sum(len(self.entries(pairs).pairs) for pairs in self.batches(first, end))

    def batches(self, first: int, end: int) -> Iterator[list[Pair]]:
        """Yield the pairs with numbers from ``first`` to before ``end``, `BATCH_PAIRS` at a time within a file."""
        start = 0
        for name, after in zip(self.names, self.ends, strict=True):
            if start < end and after > first:
                frame = PAIRS.read_frame(self.folder / name)
                low, high = max(first - start, 0), min(end, after) - start
                for place in range(low, high, BATCH_PAIRS):
                    yield PAIRS.records(frame[place : min(place + BATCH_PAIRS, high)])
            start = after

    def chosen(self, numbers: NDArray[np.int64]) -> Iterator[list[Pair]]:
        """Yield the pairs of ``numbers``, which ascend, at most `BATCH_PAIRS` at a time."""
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
    """Writes pairs to files whose names count from ``first``."""

    def __init__(self, folder: Path, first: int = 0) -> None:
        """Begin in ``folder``, which is made when there is something to write."""
        self._folder, self._first = folder, first
        self._names: list[str] = []
        self._ends: list[int] = []
        self._waiting: list[Pair] = []

    def add(self, pairs: Sequence[Pair]) -> None:
        """Take pairs."""
        self._waiting += pairs
        while len(self._waiting) >= _PAIRS_PER_FILE:
            self._write(self._waiting[:_PAIRS_PER_FILE])
            self._waiting = self._waiting[_PAIRS_PER_FILE:]

    def finish(self, captions: int, siblings: Siblings) -> StoredPairs:
        """Write what is left, and return all files."""
        if self._waiting:
            self._write(self._waiting)
        return StoredPairs(self._folder, tuple(self._names), tuple(self._ends), captions, siblings)

    def _write(self, pairs: list[Pair]) -> None:
        self._names.append(f"{self._first + len(self._names):05d}.parquet")
        self._ends.append((self._ends[-1] if self._ends else 0) + len(pairs))
        PAIRS.write(pairs, self._folder / self._names[-1])


def look_up_pairs(files: Sequence[Path], keys: Sequence[str]) -> pl.DataFrame:
    """Return those pairs of ``keys`` that are in ``files``, in the order of the keys; columns of `PAIRS`.

    A pair that had no vector when it came first may be there twice, having been added again: the newest counts.
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
