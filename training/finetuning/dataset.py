"""Samples of shards as a map-style data set for transformers' `Trainer`, in the order of our loader.

An epoch is the permutation of `loading.sample_order`: shards in random order, shuffled within windows. The same seed gives
the same samples per step with any number of processes and workers, and a resumed run continues at its step without reading
the samples before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch.utils.data import Dataset, Sampler

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.rejects import Reject
from pairwright.training.finetuning.conversations import ConversationCollator
from pairwright.training.loading.rationales import RationaleCollator, SampleIndex, index_samples
from pairwright.training.loading.sample_order import SampleOrder
from pairwright.training.loading.shard_index import OnError, SampleSelection, StoredSample, check_usable

_READ_TOGETHER = 256


RowCollator = ConversationCollator | RationaleCollator


@dataclass(frozen=True)
class ShardDataset(Dataset[Any]):
    """Rows of shards by number."""

    index: SampleIndex  # of the samples
    on_error: OnError = "skip"  # ``stop`` ends the run at a broken sample, ``skip`` leaves it out

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(self.index.counts)

    def __getitem__(self, number: int) -> StoredSample | Reject | PairwrightError:
        """Return a sample; see `__getitems__`."""
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[StoredSample | Reject | PairwrightError]:
        """Return the samples of a batch; rejects and errors as values: raised, torch would wrap them in a traceback."""
        try:
            return list(self.index.find(numbers))
        except PairwrightError as error:
            return [error]


def open_dataset(data: str, collator: RowCollator, on_error: OnError = "skip") -> ShardDataset:
    """Index shards, or a ``.jsonl`` of rationale rows."""
    index = index_samples(data, SampleSelection(collator.lacks, units=collator.units, on_error=on_error))
    check_usable(sum(index.counts), index.left_out, {}, data)
    return ShardDataset(index, on_error)


def read_rows(
    dataset: ShardDataset, numbers: Sequence[int]
) -> Iterator[tuple[int, StoredSample | Reject | PairwrightError]]:
    """Yield rows with their numbers, reading several samples at a time."""
    for start in range(0, len(numbers), _READ_TOGETHER):
        some = numbers[start : start + _READ_TOGETHER]
        yield from zip(some, dataset.__getitems__(some), strict=False)


class EpochOrder(Sampler[int]):
    """Row numbers in the order of ``epoch``, that of the next iteration, which `trainers.RunCallback` sets."""

    def __init__(self, counts: tuple[int, ...], window: int, seed: int) -> None:
        self.epoch = 0
        self._order = SampleOrder(counts, sum(counts), seed=seed, window=window)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._order.samples

    def __iter__(self) -> Iterator[int]:
        return iter(self._order.take(self.epoch, 0, 0).tolist())
