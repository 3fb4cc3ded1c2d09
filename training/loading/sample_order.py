"""Order of samples over steps and ranks, computed without reading files.

Samples of all shards are numbered. An epoch is a permutation of the numbers, drawn from (seed, epoch): shards in random
order, then shuffled within windows of that order. A window keeps reads close together; a window of the size of the data
set gives a uniform permutation.

A step of all ranks takes the next slice of the order, and each rank its part of that slice. A batch therefore is a
function of (seed, epoch, step) with any number of workers; ranks only share the work; resuming takes the step alone and
reads nothing; and one shard is enough for any number of ranks.

Samples seldom fill the last step. ``ends`` is one of:

``even``    slightly smaller batches whose sizes differ by at most one: each sample exactly once
``repeat``  full batches (needs at least one batch of samples); the last is filled with the first samples of the order
``drop``    full batches; less than one step of samples is skipped, others in each epoch
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_numpy_rng

Ends = Literal["even", "repeat", "drop"]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SampleOrder:
    """Order of samples; UsageError on values out of range and on too few samples for one step."""

    counts: tuple[int, ...]  # samples per shard
    batch_size: int  # maximum samples per step and rank
    ranks: int = 1  # processes that train together
    seed: int = 0  # of the run
    window: int = 100_000  # samples shuffled together; 0: no shuffling
    ends: Ends = "even"  # how an epoch ends

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("ranks", 1), ("window", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} is {getattr(self, name)}: set at least {least}.")
        if self.batch_size == 1 and self.ends == "even" and self.samples % self.ranks:
            raise UsageError(
                f"batches of 1 cannot divide {self.samples} samples evenly over {self.ranks} ranks. "
                "Set `ends` to repeat or drop, or use larger batches."
            )
        least = self.ranks if self.ends == "even" else self.together
        # With `repeat`, fewer samples would occur twice in one batch and be their own negatives.
        if self.samples < least:
            raise UsageError(
                f"samples are too few for one step: {self.samples}, of at least {least} (ends: {self.ends}, ranks: "
                f"{self.ranks}, batch of each: {self.batch_size}). Use more data, smaller batches or fewer ranks."
            )

    @property
    def samples(self) -> int:
        """Return the total number of samples."""
        return sum(self.counts)

    @property
    def together(self) -> int:
        """Return the maximum samples per step over all ranks."""
        return self.batch_size * self.ranks

    @property
    def steps(self) -> int:
        """Return the steps per epoch, equal on all ranks."""
        return self.samples // self.together if self.ends == "drop" else -(-self.samples // self.together)

    def take(self, epoch: int, step: int, rank: int) -> Numbers:
        """Return the numbers of the samples that ``rank`` takes in a step, in order."""
        order = _shuffle_epoch(self.counts, self.window, self.seed, epoch)
        piece, pieces = step * self.ranks + rank, self.steps * self.ranks
        if self.ends == "even":
            return order[piece * self.samples // pieces : (piece + 1) * self.samples // pieces]
        places = np.arange(piece * self.batch_size, (piece + 1) * self.batch_size)
        return order[places % self.samples]


@lru_cache(maxsize=2)
def _shuffle_epoch(counts: tuple[int, ...], window: int, seed: int, epoch: int) -> Numbers:
    if not window:
        return np.arange(sum(counts), dtype=np.int64)
    rng = make_numpy_rng(seed, epoch, "loading")
    ends = np.cumsum(counts)
    shards = rng.permutation(len(counts))
    order = np.concatenate([np.arange(ends[shard] - counts[shard], ends[shard], dtype=np.int64) for shard in shards])
    for start in range(0, len(order), window):
        rng.shuffle(order[start : start + window])
    return order
