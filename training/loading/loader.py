"""Loader of batches from shards, with workers, ranks, epochs and exact resuming.

An iteration is an epoch, or the rest of it, in the order of `sample_order.py`. The state is taken between batches and
is a few numbers. Random choices (crops, negatives) are functions of (seed, epoch, key): a sample repeated within an
epoch is identical, and differs in the next.

A sample that cannot be used (such as an image that does not decode) is skipped, which makes its batch smaller; a rank
whose whole batch is unusable takes the samples of a later step. Both depend on (seed, epoch, step, rank) alone, so
resuming stays exact.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic

import torch
from torch.utils.data import DataLoader, Dataset

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import InputError, PairwrightError, UsageError
from pairwright.datasets.images.loading import UnusableImageError
from pairwright.datasets.rejects import Reject, make_reject, rank_reasons
from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import B, CollationContext, Collator, move_batch
from pairwright.training.loading.image_transforms import ImageOptions, PreparedImage, load_parts
from pairwright.training.loading.sample_order import Ends, SampleOrder
from pairwright.training.loading.shard_index import (
    OnError,
    ShardSamples,
    StoredSample,
    check_usable,
    index_shards,
    skip_notes,
)
from pairwright.training.loading.tokenization import TextOptions, load_tokenizer

LoaderState = dict[str, Any]
"""Position of a loader, see `ShardLoader.state_dict`."""

_MAX_STEPS_TRIED = 16
"""Steps that are searched for a usable sample before the run stops."""


@dataclass(frozen=True, slots=True)
class LoadingOptions:
    """Batch size, order, workers and ranks."""

    batch_size: int  # samples per step and rank
    seed: int = 0  # of the run
    window: int = 100_000  # samples shuffled together (`sample_order.py`); 0: the order of the shards
    ends: Ends = "even"  # how an epoch ends (`sample_order.py`)
    workers: int = 0  # loading processes per rank; 0: load in the training process
    ahead: int = 2  # batches that each worker prefetches
    rank: int = 0  # of this process, from 0
    ranks: int = 1  # processes that train together
    device: str = "cpu"  # of the batches
    # For broken samples and samples without image or caption: ``skip`` skips and counts them, ``stop`` raises
    on_error: OnError = "skip"

    def __post_init__(self) -> None:
        if self.workers < 0 or self.ahead < 1:
            raise UsageError("loading: workers must be at least 0, ahead at least 1.")
        if not 0 <= self.rank < self.ranks:
            raise UsageError(f"rank {self.rank} of {self.ranks}: ranks count from 0.")


@dataclass(frozen=True)
class StepBatches(Dataset[Any], Generic[B]):
    """The batches of one rank by (epoch, step), as workers load them: any process makes the same ones."""

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
                samples, prepared_images = zip(*usable, strict=True)
                return self.recipe.collate(samples, prepared_images, context)._replace(skipped=first)
        raise InputError(
            f"no usable sample in this step and the following ones; the first: {first[0].detail}",
            where=first[0].place,
            fix="`pairwright verify` lists the broken samples of shards.",
        )

    def _split_usable(
        self, numbers: list[int], context: CollationContext
    ) -> tuple[list[tuple[StoredSample, PreparedImage]], tuple[Reject, ...]]:
        """Return the usable samples with their images, in order, and the rejects."""
        ordered = sorted(numbers)  # in file order
        found = {
            number: _prepare(sample, context) for number, sample in zip(ordered, self.index.find(ordered), strict=True)
        }
        rejects = tuple(each for each in found.values() if isinstance(each, Reject))
        if rejects and self.on_error == "stop":
            raise rejects[0].error()
        return [each for number in numbers if not isinstance(each := found[number], Reject)], rejects


def _prepare(sample: StoredSample | Reject, context: CollationContext) -> tuple[StoredSample, PreparedImage] | Reject:
    if isinstance(sample, Reject):
        return sample
    rng = make_rng(context.seed, context.epoch, "crop", sample.key)
    try:
        return sample, load_parts(sample.image, context.images, rng, sample.where)
    except UnusableImageError as error:
        return make_reject(sample.where, error.reason, error.what)


class ShardLoader(Generic[B]):
    """Iterator over the batches of one rank.

    Attributes:
        index: the samples; ``index.left_out`` counts those that the collator cannot use, by reason.
        lacking: samples used without texts of some kind, by reason; their masks are False.
        skipped: samples skipped in the batches so far, by place.
        order: sample order.
        batches: the batches as workers make them, by (epoch, step).
        epoch: of the next batch.
        step: of the next batch.
    """

    def __init__(
        self, data: str, recipe: Collator[B], options: LoadingOptions, texts: TextOptions, images: ImageOptions
    ) -> None:
        """Index the shards and check all options.

        ``data`` is a folder of shards, a tar, or a brace pattern, on disk or as a URL (``s3://``, ...).

        Raises:
            PairwrightError: no such shards or tokenizer, no usable sample, a damaged shard, or conflicting options.
        """
        load_tokenizer(texts.tokenizer)
        self.options, self._images = options, images
        self.skipped: dict[str, Reject] = {}
        self.index = index_shards(data, replace(recipe.selection, on_error=options.on_error))
        self.lacking = self.index.lacking
        check_usable(sum(self.index.counts), self.index.left_out, self.lacking, data)
        self.order = SampleOrder(
            self.index.counts, options.batch_size, options.ranks, options.seed, options.window, options.ends
        )
        self._places = self.index.places()
        self.epoch = self.step = 0
        self._steps: list[tuple[int, int]] = []  # epoch and step of the batches of an iteration, for persistent workers
        context = CollationContext(texts, images, options.seed)
        self.batches: StepBatches[B] = StepBatches(
            self.index, self.order, recipe, context, options.rank, options.on_error
        )
        self._loader: DataLoader[Any] = DataLoader(
            self.batches,
            batch_size=None,
            sampler=self._steps,
            collate_fn=_keep,
            num_workers=options.workers,
            prefetch_factor=options.ahead if options.workers else None,
            persistent_workers=options.workers > 0,
            pin_memory=torch.device(options.device).type == "cuda",
            worker_init_fn=_start_worker,
        )

    def __len__(self) -> int:
        """Return the number of steps per epoch, equal on all ranks."""
        return self.order.steps

    def __iter__(self) -> Iterator[B]:
        """Yield the batches from the next one to the end of the epoch; the position advances when a batch is yielded.

        Raises:
            StorageError: a shard changed since it was indexed.
            InputError: an unusable sample with ``on_error`` ``stop``; no usable sample in many steps.
            PairwrightError: a worker was killed.
        """
        epoch = self.epoch
        self._steps[:] = [(epoch, step) for step in range(self.step, len(self))]
        for made in _explain_killed_workers(self._loader):
            if isinstance(made, PairwrightError):
                try:
                    raise made
                finally:
                    del made  # it refers to this frame and so to the workers; collecting those takes torch seconds
            self.skipped |= {each.place: each for each in made.skipped}
            self.step += 1
            if self.step == len(self):
                self.epoch, self.step = epoch + 1, 0
            yield move_batch(made, torch.device(self.options.device), self._images.mean, self._images.std)

    def notes(self) -> list[str]:
        """Return sentences on skipped samples, missing texts and smaller steps."""
        order = self.order
        lines = skip_notes(self.index.left_out)
        lines += [
            f"{count:,} of {count_phrase(order.samples, 'sample')} used without {reason.removeprefix('no_').replace('_', ' ')}."
            for reason, count in rank_reasons(self.lacking)
        ]
        largest = -(-order.samples // order.steps)
        if order.ends == "even" and largest < order.together:
            lines.append(
                f"Steps have {count_phrase(largest, 'sample')}, not {order.together:,}: an epoch of {order.samples:,} is "
                f"divided evenly over {count_phrase(order.steps, 'step')}."
            )
        return lines

    def state_dict(self) -> LoaderState:
        """Return the state for `load_state_dict`: epoch and step of the next batch, and what detects a changed order.

        ``places`` is a digest of the positions of the samples in the shards, ``together`` the samples per step over all ranks.
        """
        names = ("seed", "samples", "together", "window", "ends")
        order = {name: getattr(self.order, name) for name in names}
        return {"epoch": self.epoch, "step": self.step, "places": self._places, **order}

    def load_state_dict(self, state: LoaderState) -> None:
        """Move to the position of a state; UsageError if it is of other data or another order.

        Workers may differ, and ranks, if the total batch size is the same.
        """
        for name, value in self.state_dict().items():
            if name not in ("epoch", "step") and state.get(name) != value:
                raise UsageError(
                    f"the state has {name} {state.get(name)}, this run {value}, which changes the batches. "
                    "Resume with the same data and settings, or start a new run."
                )
        self.epoch, self.step = state["epoch"], state["step"]


def _explain_killed_workers(made: Iterable[Any]) -> Iterator[Any]:
    """Yield the workers' batches; translate torch's error on a killed worker."""
    try:
        yield from made
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise PairwrightError(
            "a loading process was killed, most likely because memory or /dev/shm was full. Set a smaller "
            "batches.workers or batches.size."
        ) from None


def _keep(batch: B) -> B:
    """Return a batch as it is; torch would convert the array that is to stay on the host to a tensor."""
    return batch


def _start_worker(_number: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread per worker, and no warning about forks
