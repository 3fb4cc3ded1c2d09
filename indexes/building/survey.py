"""What an index build has to know of all pairs before the first part: gathered from parts of the pairs and merged.

These are the number of entries and the siblings (`stored_pairs`), the pairs with the smallest keys (`ingest`), and for
the lexical encoder the document frequencies. The files that the pairs are already in serve as `StoredPairs`.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.records import Pair
from pairwright.indexes.building.stored_pairs import EntryCounter, EntryCounts, Siblings
from pairwright.indexes.encoders.lexical import DocumentFrequency, count_document_frequency
from pairwright.indexes.hnsw.ground_truth import SAMPLE_QUERY_COUNT


@dataclass(frozen=True)
class PairSurvey:
    """What is known of a part of the pairs.

    Attributes:
        entries: counts of pairs and further captions.
        keys: the smallest keys, ascending, at most `SAMPLE_QUERY_COUNT`.
        rows: of each of these keys, the number of its pair within the part.
        frequency: document frequencies; with no captions if they were not counted.
    """

    entries: EntryCounts
    keys: list[str]
    rows: list[int]
    frequency: DocumentFrequency

    def save(self, path: Path) -> None:
        """Write the survey to an .npz file atomically."""
        counts, captions = self.frequency
        used = np.flatnonzero(counts)
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez(
                handle,
                numbers=np.array([self.entries.pairs, captions, len(counts)], np.int64),
                groups=self.entries.groups,
                others=self.entries.others,
                keys=np.array(self.keys, "S32"),
                rows=np.array(self.rows, np.int64),
                buckets=used.astype(np.uint32),
                captions=counts[used],
            )

    @classmethod
    def load(cls, path: Path) -> "PairSurvey":
        """Read a file that `save` wrote."""
        with np.load(path, allow_pickle=False) as stored:
            pairs, captions, buckets = map(int, stored["numbers"])
            counts = np.zeros(buckets, np.uint32)
            counts[stored["buckets"]] = stored["captions"]
            keys = [key.decode() for key in stored["keys"].tolist()]
            entries = EntryCounts(pairs, stored["groups"], stored["others"])
            return cls(entries, keys, stored["rows"].tolist(), (counts, captions))


def survey_pairs(batches: Iterable[Sequence[Pair]], *, count_features: bool) -> PairSurvey:
    """Return the survey of a part of the pairs; ``count_features`` for the lexical encoder."""
    counter, keys = EntryCounter(), list[str]()

    def captions() -> Iterator[str]:
        for batch in batches:
            for pair in batch:
                keys.append(pair.key)
                yield from counter.add(pair)

    frequency: DocumentFrequency = np.zeros(0, np.uint32), 0
    if count_features:
        frequency = count_document_frequency(captions())
    else:
        deque(captions(), maxlen=0)
    smallest = nsmallest(SAMPLE_QUERY_COUNT, ((key, row) for row, key in enumerate(keys)))
    return PairSurvey(counter.counts, [key for key, _ in smallest], [row for _, row in smallest], frequency)


@dataclass(frozen=True)
class PoolSurvey:
    """What is known of all pairs.

    Attributes:
        ends: number of the first pair after each part.
        captions: number of entries of a text index in which every caption has a vector.
        siblings: sibling groups, ascending.
        sample: part and row of the pairs with the smallest keys, in order of their keys.
        frequency: document frequencies.
    """

    ends: tuple[int, ...]
    captions: int
    siblings: Siblings
    sample: list[tuple[int, int]]
    frequency: DocumentFrequency


def merge_surveys(paths: Sequence[Path]) -> PoolSurvey:
    """Return the survey of all pairs from the files of its parts."""
    groups, others = list[NDArray[np.uint64]](), list[NDArray[np.uint16]]()
    counts, captions, ends, smallest = np.zeros(0, np.uint32), 0, list[int](), list[tuple[str, int, int]]()
    for number, path in enumerate(paths):
        part = PairSurvey.load(path)
        ends.append((ends[-1] if ends else 0) + part.entries.pairs)
        groups.append(part.entries.groups)
        others.append(part.entries.others)
        own = ((key, number, row) for key, row in zip(part.keys, part.rows, strict=True))
        smallest = nsmallest(SAMPLE_QUERY_COUNT, [*smallest, *own])
        counts = counts + part.frequency[0] if len(counts) else part.frequency[0]
        captions += part.frequency[1]
    entries, siblings = EntryCounts(ends[-1], np.concatenate(groups), np.concatenate(others)).result()
    sample = [(part, row) for _, part, row in smallest]
    return PoolSurvey(tuple(ends), entries, siblings, sample, (counts, captions))
