"""Which samples a step takes: arithmetic over numbers, without a file.

The samples of all shards are numbered through. An epoch is an order of these numbers, drawn from (seed, epoch): the
shards in random order, and within each window of so many samples of that row a random order again. A window keeps
reading near in the files; one as large as the data set gives every order the same rng.

A step of all ranks together takes the next stretch of the order, and each rank its part of that stretch. So

- workers change nothing: a batch is told by (seed, epoch, step), whoever makes it;
- ranks change only who does what: with the same number of samples a step in all, the same samples make a step;
- where to go on is one number, the step. Nothing is read to get there;
- every rank takes the same number of steps, and one shard is enough for any number of ranks and workers.

What the end of an epoch does, since samples seldom fill the last step (``ends``):

``even``    batches are a little smaller, all of one size or one less: each sample exactly once
``repeat``  all batches are full, so one batch of samples is needed at least; the last is filled with the first samples of the order, which come twice
``drop``    all batches are full; up to one step's samples are left out, others in each epoch
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
    """The order of samples; see the module.

    Attributes:
        counts: samples of each shard.
        batch_size: samples a step and rank, at most.
        ranks: processes that train together.
        seed: of the run.
        window: samples that are put in random order together; 0: all stays as it stands.
        ends: what the end of an epoch does.

    Raises:
        UsageError: numbers that give no step, or that no run can have.
    """

    counts: tuple[int, ...]
    batch_size: int
    ranks: int = 1
    seed: int = 0
    window: int = 100_000
    ends: Ends = "even"

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("ranks", 1), ("window", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} is {getattr(self, name)}: give at least {least}.")
        if self.batch_size == 1 and self.ends == "even" and self.samples % self.ranks:
            raise UsageError(
                f"batches of 1 over {self.ranks} ranks come out even only if the {self.samples} samples do. "
                "Give ends: repeat or drop, or larger batches."
            )
        least = self.ranks if self.ends == "even" else self.together
        # Repeated, fewer would come twice in one batch and be their own negatives.
        if self.samples < least:
            raise UsageError(
                f"{self.samples} samples for {self.ranks} ranks and batches of {self.batch_size} make no step "
                f"(ends: {self.ends} needs {least}). Give more data, smaller batches or fewer ranks."
            )

    @property
    def samples(self) -> int:
        """Return the number of samples in all."""
        return sum(self.counts)

    @property
    def together(self) -> int:
        """Return how many samples a step takes at most, over all ranks."""
        return self.batch_size * self.ranks

    @property
    def steps(self) -> int:
        """Return the number of steps an epoch, the same on every rank."""
        return self.samples // self.together if self.ends == "drop" else -(-self.samples // self.together)

    @property
    def repeated(self) -> int:
        """Return how many samples of an epoch come a second time."""
        return self.steps * self.together - self.samples if self.ends == "repeat" else 0

    @property
    def left_out(self) -> int:
        """Return how many samples an epoch does not see."""
        return self.samples - self.steps * self.together if self.ends == "drop" else 0

    def take(self, epoch: int, step: int, rank: int) -> Numbers:
        """Return the numbers of the samples that ``rank`` takes in a step, in their order."""
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
