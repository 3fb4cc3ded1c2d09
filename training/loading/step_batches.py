"""Data set of batches by step: reads the samples of a step, skips unusable ones and collates the rest.

A batch is a function of (seed, epoch, step, rank), so any process makes the same one.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic

from torch.utils.data import Dataset

from pairwright.datasets.errors import InputError, PairwrightError
from pairwright.datasets.images.loading import UnusableImageError
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.training.loading.batches import B, PackedBatch
from pairwright.training.loading.collation import CollationContext, Collator, PreparedImage, prepare_image
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.sample_order import SampleOrder
from pairwright.training.loading.samples import OnError, SampleIndex, StoredSample
from pairwright.training.loading.tokenization import TextOptions

_MAX_STEPS_TRIED = 16
"""Steps that are searched for a usable sample before the run stops."""


@dataclass(frozen=True)
class StepBatches(Dataset[Any], Generic[B]):
    """The batches of one rank by (epoch, step), as workers load them."""

    index: SampleIndex
    order: SampleOrder
    recipe: Collator[B]
    texts: TextOptions
    images: ImageOptions
    seed: int
    rank: int
    on_error: OnError

    def __getitem__(self, at: tuple[int, int]) -> PackedBatch[B] | PairwrightError:
        """Return a batch, or a `PairwrightError` as a value: raised, torch would wrap it in a worker's traceback."""
        try:
            return self._load_batch(*at)
        except PairwrightError as error:
            return error

    def _load_batch(self, epoch: int, step: int) -> PackedBatch[B]:
        context = CollationContext(self.texts, self.images, self.seed, epoch)
        first: tuple[Reject, ...] = ()
        for later in range(min(_MAX_STEPS_TRIED, self.order.steps)):
            numbers = self.order.take(epoch, (step + later) % self.order.steps, self.rank)
            usable, skipped = self._split_usable(numbers.tolist(), context)
            first = first or skipped
            if usable:
                samples = [sample for sample, _ in usable]
                prepared_images = [image for _, image in usable if image is not None]
                return replace(self.recipe.collate(samples, prepared_images, context), skipped=first)
        raise InputError(
            f"no usable sample in this step and the following ones; the first: {first[0].detail}",
            where=first[0].place,
            fix="`pairwright verify` lists the broken samples of shards.",
        )

    def _split_usable(
        self, numbers: list[int], context: CollationContext
    ) -> tuple[list[tuple[StoredSample, PreparedImage | None]], tuple[Reject, ...]]:
        """Return the usable samples with their images, in order, and the rejects.

        Raises:
            InputError: an unusable sample with ``on_error`` ``stop``.
        """
        prepared_images: dict[str, PreparedImage | Reject] = {}  # one per sample, also with several units
        found: dict[int, tuple[StoredSample, PreparedImage | None] | Reject] = {}
        ordered = sorted(set(numbers))  # in file order
        for number, sample in zip(ordered, self.index.find(ordered), strict=True):
            if isinstance(sample, Reject) or "image" not in self.recipe.members:
                found[number] = sample if isinstance(sample, Reject) else (sample, None)
                continue
            if sample.where not in prepared_images:
                prepared_images[sample.where] = _prepare(sample, context)
            shown = prepared_images[sample.where]
            found[number] = shown if isinstance(shown, Reject) else (sample, shown)
        rejects = {each.place: each for each in found.values() if isinstance(each, Reject)}
        if rejects and self.on_error == "stop":
            raise next(iter(rejects.values())).error()
        usable = [each for number in numbers if not isinstance(each := found[number], Reject)]
        return usable, tuple(rejects.values())


def _prepare(sample: StoredSample, context: CollationContext) -> PreparedImage | Reject:
    try:
        return prepare_image(sample, context)
    except UnusableImageError as error:
        return make_reject(sample.where, error.reason, error.what)
