"""Ingestion of input pairs: writing them to files, sampling them, and making sample queries.

The sample is the 500 pairs with the smallest keys (keys are hashes: a random sample independent of order and workers).
It gives the *sample queries* that tune the search effort and measure recall. Text queries are the first half of a
caption, of another than the pair's own if there is one, or that whole other caption if it is not indexed. Image queries
are texts too: the other caption, or half of the only one, since images are searched by text and text vectors lie apart
from image vectors. For precomputed vectors without an encoder, the queries are the text vectors of the sample if there
are any, else its stored vectors.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.records import Pair
from pairwright.indexes.building.pair_keys import encode_keys
from pairwright.indexes.building.pair_vectors import PairVectors
from pairwright.indexes.building.part_jobs import IndexProgress
from pairwright.indexes.building.stored_pairs import EntryCounter, StoredPairs, StoredPairsWriter
from pairwright.indexes.encoders.protocols import TextEncoder, Vectors
from pairwright.indexes.hnsw.ground_truth import SAMPLE_QUERY_COUNT
from pairwright.indexes.hnsw.metadata import Modality


class PairIngest:
    """Writes a stream of pairs to files and samples those with the smallest keys."""

    def __init__(self, folder: Path, watch: IndexProgress, first: int = 0) -> None:
        """Start with file number ``first`` in ``folder``."""
        self._writer = StoredPairsWriter(folder, first)
        self._watch = watch
        self._count = 0
        self._entries = EntryCounter()
        self._heap: list[tuple[int, int, Pair]] = []  # (-key, -position, pair): the largest key on top

    def captions(self, batches: Iterable[list[Pair]]) -> Iterator[str]:
        """Write ``batches`` and yield all captions of each pair; captions of exploded siblings once."""
        for batch in batches:
            self._writer.add(batch)
            for pair in batch:
                self._add_to_sample(pair)
                yield from self._entries.add(pair)
            self._watch("pairs", self._count, 0)

    def finish(self) -> StoredPairs:
        """Complete and return the files.

        Raises:
            InputError: if there were no pairs.
        """
        if not self._count:
            raise InputError("no pairs", where="index", fix="Pass at least one pair.")
        return self._writer.finish(*self._entries.result())

    @property
    def sample(self) -> list[Pair]:
        """The pairs with the smallest keys, in order of their keys."""
        return [pair for _, _, pair in sorted(self._heap, reverse=True)]

    def _add_to_sample(self, pair: Pair) -> None:
        self._count += 1
        item = (-int.from_bytes(encode_keys([pair.key]).tobytes(), "big"), -self._count, pair)
        if len(self._heap) < SAMPLE_QUERY_COUNT:
            heapq.heappush(self._heap, item)
        elif item > self._heap[0]:
            heapq.heapreplace(self._heap, item)


def make_sample_queries(
    sample: Sequence[Pair], modality: Modality, source: PairVectors, encoder: TextEncoder | None
) -> Vectors | None:
    """Return sample queries of a modality, float32 (q, dim); see the module docstring."""
    if encoder is not None:
        indexed = modality == "text" and source.every_caption
        return encoder.encode_texts([_sample_query_text(pair, indexed=indexed) for pair in sample])
    return source.rows(sample, "text" if "text" in source.modalities else modality).vectors


def _sample_query_text(pair: Pair, *, indexed: bool) -> str:
    """Return a query text; ``indexed``: all captions of the pair are in the index."""
    if pair.captions and not indexed:
        return pair.captions[0]
    words = (pair.captions or (pair.caption,))[0].split()
    return " ".join(words[: (len(words) + 1) // 2])
