"""Data set of batches by step: reads the samples of a step, skips unusable ones and collates the rest.

A batch is a function of (seed, epoch, step, rank), so any process makes the same one.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic

from torch.utils.data import Dataset

from pairwright.datasets.errors import InputError, PairwrightError
from pairwright.datasets.images.loading import UnusableImageError
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import B
from pairwright.training.loading.collation import CollationContext, Collator
from pairwright.training.loading.image_transforms import Pixels, load_pixels
from pairwright.training.loading.sample_order import SampleOrder
from pairwright.training.loading.samples import OnError, StoredSample
from pairwright.training.loading.shard_index import ShardSamples

_MAX_STEPS_TRIED = 16
"""Steps that are searched for a usable sample before the run stops."""


@dataclass(frozen=True)
class StepBatches(Dataset[Any], Generic[B]):
    """The batches of one rank by (epoch, step), as workers load them."""

    index: ShardSamples
    order: SampleOrder
    recipe: Collator[B]
    context: CollationContext  # of epoch 0
    rank: int
    on_error: OnError

    def __getitem__(self, at: tuple[int, int]) -> B | PairwrightError:
        """Return a batch, or a `PairwrightError` as a value: raised, torch would wrap it in a worker's traceback."""
        try:
            return self._load_batch(*at)
        except PairwrightError as error:
            return error

    def _load_batch(self, epoch: int, step: int) -> B:
        context = replace(self.context, epoch=epoch)
        first: tuple[Reject, ...] = ()
        for later in range(min(_MAX_STEPS_TRIED, self.order.steps)):
            numbers = self.order.take(epoch, (step + later) % self.order.steps, self.rank)
            usable, skipped = self._split_usable(numbers.tolist(), context)
            first = first or skipped
            if usable:
                samples, images = zip(*usable, strict=True)
                return self.recipe.collate(samples, images, context)._replace(skipped=first)
        raise InputError(
            f"no usable sample in this step and the following ones; the first: {first[0].detail}",
            where=first[0].place,
            fix="`pairwright verify` lists the broken samples of shards.",
        )

    def _split_usable(
        self, numbers: list[int], context: CollationContext
    ) -> tuple[list[tuple[StoredSample, Pixels]], tuple[Reject, ...]]:
        """Return the usable samples with their images, in order, and the rejects."""
        ordered = sorted(numbers)  # in file order
        found = {
            number: _prepare(sample, context) for number, sample in zip(ordered, self.index.find(ordered), strict=True)
        }
        rejects = tuple(each for each in found.values() if isinstance(each, Reject))
        if rejects and self.on_error == "stop":
            raise rejects[0].error()
        return [each for number in numbers if not isinstance(each := found[number], Reject)], rejects


def _prepare(sample: StoredSample | Reject, context: CollationContext) -> tuple[StoredSample, Pixels] | Reject:
    if isinstance(sample, Reject):
        return sample
    rng = make_rng(context.seed, context.epoch, "crop", sample.key)
    try:
        return sample, load_pixels(sample.image, context.images, rng, sample.where)
    except UnusableImageError as error:
        return make_reject(sample.where, error.reason, error.what)
