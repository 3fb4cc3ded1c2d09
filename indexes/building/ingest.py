"""The one reading of the pairs of an index to be: they are written beside it, and a sample of them is put aside.

The sample is the 500 pairs with the smallest keys (keys are hashes: a random sample that no order or worker changes). It
gives the *probes*, queries on which a search's effort is tuned and recall is checked. For captions: the first half of a
caption, of another than the pair's own where there is one; that other caption whole, where it is not indexed itself. For
images: the other caption, or half of the only one, since text is what images will be asked with, and text lies elsewhere
than images do. Vectors from elsewhere without an encoder are asked with text vectors of the sample where there are any,
else with stored ones.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.records import Pair
from pairwright.indexes.building.caption_entries import EntryCounter
from pairwright.indexes.building.pair_files import StoredPairs, StoredPairsWriter
from pairwright.indexes.building.pair_keys import encode_keys
from pairwright.indexes.building.pair_vectors import PairVectors
from pairwright.indexes.building.part_jobs import IndexProgress
from pairwright.indexes.encoders.protocols import TextEncoder, Vectors
from pairwright.indexes.hnsw.ground_truth import SAMPLE_QUERY_COUNT
from pairwright.indexes.hnsw.metadata import Modality


class PairIngest:
    """Writes pairs to files as they pass, and keeps those with the smallest keys."""

    def __init__(self, folder: Path, watch: IndexProgress, first: int = 0) -> None:
        """Begin; the files' names count from ``first``."""
        self._writer = StoredPairsWriter(folder, first)
        self._watch = watch
        self._count = 0
        self._entries = EntryCounter()
        self._heap: list[tuple[int, int, Pair]] = []  # (-key, -place, pair): the largest key on top

    def captions(self, batches: Iterable[list[Pair]]) -> Iterator[str]:
        """Yield the captions of ``batches``, all of each pair; of pairs that were exploded, each once."""
        for batch in batches:
            self._writer.add(batch)
            for pair in batch:
                self._offer(pair)
                yield from self._entries.see(pair)
            self._watch("pairs", self._count, 0)

    def finish(self) -> StoredPairs:
        """Return the files.

        Raises:
            InputError: when there was no pair.
        """
        if not self._count:
            raise InputError("no pairs", where="index", fix="Give at least one pair.")
        return self._writer.finish(*self._entries.result())

    @property
    def sample(self) -> list[Pair]:
        """The pairs with the smallest keys, in order of their keys."""
        return [pair for _, _, pair in sorted(self._heap, reverse=True)]

    def _offer(self, pair: Pair) -> None:
        self._count += 1
        item = (-int.from_bytes(encode_keys([pair.key]).tobytes(), "big"), -self._count, pair)
        if len(self._heap) < SAMPLE_QUERY_COUNT:
            heapq.heappush(self._heap, item)
        elif item > self._heap[0]:
            heapq.heapreplace(self._heap, item)


def make_sample_queries(
    sample: Sequence[Pair], modality: Modality, source: PairVectors, encoder: TextEncoder | None
) -> Vectors | None:
    """Return queries of the kind that a modality will be asked with, float32 (q, dim); see the module."""
    if encoder is not None:
        indexed = modality == "text" and source.every_caption
        return encoder.encode_texts([_sample_query_text(pair, indexed=indexed) for pair in sample])
    return source.rows(sample, "text" if "text" in source.modalities else modality).vectors


def _sample_query_text(pair: Pair, *, indexed: bool) -> str:
    """Return a text like those that are asked; ``indexed``: all captions of the pair are in the pool."""
    if pair.captions and not indexed:
        return pair.captions[0]
    words = (pair.captions or (pair.caption,))[0].split()
    return " ".join(words[: (len(words) + 1) // 2])
