"""Samples of shards as a map-style data set for transformers' `Trainer`, in the order of our loader.

An epoch is the permutation of `loading.sample_order`: shards in random order, shuffled within windows. The same seed gives
the same samples per step with any number of processes and workers, and a resumed run continues at its step without reading
the samples before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Dataset, Sampler
from transformers.trainer_pt_utils import get_length_grouped_indices

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.rejects import Reject
from pairwright.datasets.rng import make_rng
from pairwright.training.finetuning.conversations import ConversationCollator
from pairwright.training.loading.rationales import RationaleCollator, SampleIndex, index_samples
from pairwright.training.loading.sample_order import SampleOrder
from pairwright.training.loading.shard_index import OnError, SampleSelection, StoredSample, check_usable

NO_ROW, _READ_TOGETHER = -1, 256
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
            return list(self.index.find([number for number in numbers if number != NO_ROW]))
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
    """Row numbers in the order of ``epoch``, that of the next iteration, which `trainers.RunCallback` sets.

    With the ``lengths`` of all rows, each ``batch`` of them has rows of similar length. `NO_ROW` fills up the last batch:
    several processes would repeat rows there.
    """

    def __init__(
        self, counts: tuple[int, ...], window: int, seed: int, lengths: Sequence[int] = (), batch: int = 1
    ) -> None:
        self.epoch, self._seed, self._lengths, self._batch = 0, seed, lengths, batch
        self._order = SampleOrder(counts, sum(counts), seed=seed, window=window)

    def __len__(self) -> int:
        """Return the number of rows, rounded up to whole batches."""
        return -(-self._order.samples // self._batch) * self._batch

    def __iter__(self) -> Iterator[int]:
        order = self._order.take(self.epoch, 0, 0).tolist()
        if self._lengths:  # by a generator of its own: the state of torch's is not that of the epoch's start on resume
            drawn = torch.Generator().manual_seed(make_rng(self._seed, self.epoch, "lengths").getrandbits(63))
            order = get_length_grouped_indices(self._lengths, self._batch, generator=drawn)
        return iter(order + [NO_ROW] * (len(self) - len(order)))
