"""From pairs to an index folder with its encoder in it, and back: what ``pairwright index build`` calls.

The captions are read twice, once to fit the encoder and once to encode, so that no more than a batch of pairs is held.
A pair is indexed under its ``caption``. The 500 pairs with the smallest keys (keys are hashes: a random sample that no
order or worker changes) give the *probes*, queries on which ef_search is tuned and recall is checked: another caption
of the same image where there is one, else the first half of the caption.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.records import Pair
from pairwright.indexes.encoders import TextEncoder
from pairwright.indexes.hnsw import Batch, build_index
from pairwright.indexes.lexical import DEFAULT_DIM, LexicalEncoder
from pairwright.indexes.search import Index, open_index
from pairwright.indexes.sidecar import ENCODER, SIDECAR, IndexInfo, IndexOptions

ENCODERS: dict[str, type[LexicalEncoder]] = {"lexical": LexicalEncoder}

_PROBES = 500

PairBatches = Callable[[], Iterable[list[Pair]]]


@dataclass(frozen=True)
class EncoderOptions:
    """Which encoder to fit, and how.

    Attributes:
        name: in `ENCODERS`.
        dim: length of the vectors.
        seed: of the encoder's chance.
    """

    name: str = "lexical"
    dim: int = DEFAULT_DIM
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in ENCODERS:
            raise UsageError(f"encoder {self.name!r}: not known. There are: {', '.join(ENCODERS)}.")


@dataclass(frozen=True)
class IndexFolder:
    """An open index over captions and the encoder that its queries need."""

    index: Index
    encoder: TextEncoder


def index_pairs(
    pairs: PairBatches,
    directory: Path,
    *,
    encoder: EncoderOptions | None = None,
    options: IndexOptions | None = None,
) -> IndexInfo:
    """Fit an encoder on the captions of ``pairs`` and build their index in ``directory``.

    Args:
        pairs: gives the batches anew each time it is called; it is called twice.
        directory: folder of the index; an index that is there is replaced.
        encoder: which encoder; the lexical one when not given.
        options: of the index.

    Returns:
        What was built; ``seconds`` counts fitting and encoding, too.

    Raises:
        UsageError: when an option is not possible.
        InputError: when there is no pair, a key comes twice, or the second reading differs from the first.
    """
    started = time.perf_counter()
    encoder = encoder or EncoderOptions()
    sample = _Sample()
    fitted = ENCODERS[encoder.name].fit(sample.watch(pairs()), dim=encoder.dim, seed=encoder.seed)
    probes = fitted.encode_texts(sample.queries())
    info = build_index(_encoded(pairs(), fitted), directory, options=options, encoder=fitted, probes=probes)
    if info.pairs != fitted.captions:
        (directory / SIDECAR).unlink()
        raise InputError(
            f"{fitted.captions} pairs at first and {info.pairs} when read again",
            where="index",
            mend="Leave the input unchanged while the index is built.",
        )
    return replace(info, seconds=round(time.perf_counter() - started, 3))


def open_index_folder(directory: Path) -> IndexFolder:
    """Open an index that `index_pairs` built, with its encoder.

    Raises:
        StorageError: when a file is missing, truncated, or the encoder is not the index's.
    """
    index = open_index(directory)
    if ENCODER not in index.info.files:
        raise StorageError(f"{directory}: an index of vectors without an encoder. Open it with `open_index`.")
    encoder = LexicalEncoder.load(directory / ENCODER)
    if encoder.fingerprint != index.info.encoder:
        raise StorageError(f"{directory / ENCODER}: not the encoder of this index. Build the index again.")
    return IndexFolder(index, encoder)


def _encoded(batches: Iterable[list[Pair]], encoder: TextEncoder) -> Iterator[Batch]:
    for batch in batches:
        if batch:
            yield [pair.key for pair in batch], encoder.encode_texts([pair.caption for pair in batch])


class _Sample:
    """Keeps the pairs with the smallest keys of those that pass by."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []  # (-key, query text): the largest key on top

    def watch(self, batches: Iterable[list[Pair]]) -> Iterator[str]:
        """Yield the captions of ``batches``."""
        for batch in batches:
            for pair in batch:
                self._offer(pair)
                yield pair.caption

    def queries(self) -> list[str]:
        """Return the query texts, in order of their pairs' keys."""
        return [text for _, text in sorted(self._heap, reverse=True)]

    def _offer(self, pair: Pair) -> None:
        rank = -int(pair.key, 16)
        if len(self._heap) < _PROBES:
            heapq.heappush(self._heap, (rank, _query_of(pair)))
        elif rank > self._heap[0][0]:
            heapq.heapreplace(self._heap, (rank, _query_of(pair)))


def _query_of(pair: Pair) -> str:
    if pair.captions:
        return pair.captions[0]
    words = pair.caption.split()
    return " ".join(words[: (len(words) + 1) // 2])
