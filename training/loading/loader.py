"""Batches of shards for a training loop: workers, ranks, epochs, and going on where a run stopped.

    loader = ShardLoader("shards/{00000..00004}.tar", Pairs(negatives=3), options, texts, ImageOptions(size=224))
    for batch in loader:                  # one epoch, or what is left of it
        ...
        torch.save(loader.state_dict(), ...)
    for batch in loader:                  # the next epoch

What comes when is told by `order.py` alone: the same seed gives the same batches with any number of workers, on any
machine; with several ranks the steps hold the same samples as with one rank and as many samples a step. The state is
taken between batches and is three numbers; after it is loaded, the batch comes that would have come.

Chance (order, crops, which negatives) is a function of (seed, epoch, key): a sample that an epoch repeats is the same
again, and the next epoch sees it otherwise.

A sample that cannot be used (an image that does not decode) is left out of its batch, which is smaller by that sample;
a rank whose whole batch is unusable takes the samples of the epoch's next step as well. Both depend on (seed, epoch,
step, rank) alone, so that resuming stays exact.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypedDict

import torch
from torch.utils.data import DataLoader, Sampler

from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.rejects import Reject
from pairwright.datasets.shards.webdataset import find_shards
from pairwright.training.loading.batches import B, unpack
from pairwright.training.loading.collation import Collator
from pairwright.training.loading.data_notes import check_usable, data_notes
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.rationales import index_rationales, missing_file_message
from pairwright.training.loading.sample_order import Ends, SampleOrder
from pairwright.training.loading.samples import OnError, SampleCheck, SampleIndex, SampleJson, SampleSelection
from pairwright.training.loading.shard_index import index_shards
from pairwright.training.loading.step_batches import StepBatches
from pairwright.training.loading.tokenization import TextOptions, load_tokenizer


class LoaderState(TypedDict):
    """Where a loader stands.

    ``epoch`` and ``step``: of the batch that comes next. ``seed``, ``samples``, ``places`` (a digest of where the samples lie
    in the shards), ``together`` (samples a step over all ranks), ``window`` and ``ends``: what the order depends on, so
    that it can be told when it became another.
    """

    epoch: int
    step: int
    seed: int
    samples: int
    places: str
    together: int
    window: int
    ends: str


@dataclass(frozen=True, slots=True)
class LoadingOptions:
    """How batches are made and by whom.

    Attributes:
        batch_size: samples a step and rank.
        seed: of the run.
        window: samples that are put in random order together (`order.py`); 0: as they stand in the shards.
        ends: what the end of an epoch does (`order.py`).
        workers: processes that load for each rank; 0: the training process does.
        ahead: batches that each worker makes before they are asked for.
        rank: of this process, from 0.
        ranks: processes that train together.
        device: where batches go.
        on_error: samples that are broken or lack an image or caption: ``skip`` leaves them out and counts them, ``stop``
            raises.

    Raises:
        UsageError: a number that cannot be.
    """

    batch_size: int
    seed: int = 0
    window: int = 100_000
    ends: Ends = "even"
    workers: int = 0
    ahead: int = 2
    rank: int = 0
    ranks: int = 1
    device: str = "cpu"
    on_error: OnError = "skip"

    def __post_init__(self) -> None:
        if self.workers < 0 or self.ahead < 1:
            raise UsageError("loading: workers is at least 0, ahead at least 1.")
        if not 0 <= self.rank < self.ranks:
            raise UsageError(f"rank {self.rank} of {self.ranks} ranks: ranks count from 0.")


class ShardLoader(Generic[B]):
    """Iterates over the batches of one rank; see the module.

    Attributes:
        index: the samples; ``index.left_out`` counts those that the recipe cannot use, by reason.
        lacking: samples that are used but lack texts of some kind, by reason; masks stand for them.
        unit: what an epoch and a step count, in the plural: samples, or conversations.
        skipped: samples of the batches given so far that were left out of them, by place.
        order: which samples make a step.
        epoch: of the next batch.
        step: of the next batch.
    """

    def __init__(
        self, data: str, recipe: Collator[B], options: LoadingOptions, texts: TextOptions, images: ImageOptions
    ) -> None:
        """Look at the shards and find what could not go well, before anything starts.

        Args:
            data: a folder of shards, a tar, or a brace pattern; for `Students` also a ``.jsonl`` of their rows.
            recipe: what a batch is made of.
            options: who makes batches, and of what size.
            texts: how texts become tokens.
            images: how images become pixels.

        Raises:
            InputError: no such shard; nothing in them that the recipe could use; no images.
            StorageError: a shard that is torn.
            UsageError: no tokenizer, or numbers that do not go together.
        """
        load_tokenizer(texts.tokenizer)
        self.options, self._images, self.unit = options, images, recipe.unit
        self.skipped: dict[str, Reject] = {}
        counted = _LackCounter(recipe.lacks)
        judges: dict[str, SampleCheck | None] = {"each": recipe.lacks, "some": counted, "nothing": None}
        selection = SampleSelection(judges[recipe.needs], recipe.units, recipe.members, options.on_error)
        self.index = _index(data, selection)
        self.lacking: Mapping[str, int] = dict(counted.found)
        check_usable(self.index, self.lacking, data)
        self.order = SampleOrder(
            self.index.counts, options.batch_size, options.ranks, options.seed, options.window, options.ends
        )
        self._places = self.index.places()
        self.epoch = self.step = 0
        self._sampler = _StepSampler()
        self._loader: DataLoader[Any] = DataLoader(
            StepBatches(self.index, self.order, recipe, texts, images, options.seed, options.rank, options.on_error),
            batch_size=None,
            sampler=self._sampler,
            num_workers=options.workers,
            prefetch_factor=options.ahead if options.workers else None,
            persistent_workers=options.workers > 0,
            pin_memory=torch.device(options.device).type == "cuda",
            worker_init_fn=_start_worker,
        )

    def __len__(self) -> int:
        """Return the number of steps an epoch, the same on every rank."""
        return self.order.steps

    def __iter__(self) -> Iterator[B]:
        """Yield the batches from the next one to the end of the epoch; each is counted as taken when it is given.

        Raises:
            StorageError: a shard that changed meanwhile.
            InputError: a sample that cannot be used, where ``on_error`` is ``stop``; none in many steps that can be.
            PairwrightError: a worker that was killed.
        """
        epoch = self.epoch
        self._sampler.steps = [(epoch, step) for step in range(self.step, len(self))]
        for made in _explain_killed_workers(self._loader):
            if isinstance(made, PairwrightError):
                try:
                    raise made
                finally:
                    del made  # it holds this frame, and with it workers: torch waits seconds for those found as garbage
            self.skipped |= {each.place: each for each in made.skipped}
            self.step += 1
            if self.step == len(self):
                self.epoch, self.step = epoch + 1, 0
            yield unpack(made, torch.device(self.options.device), self._images.mean, self._images.std)

    def notes(self) -> list[str]:
        """Return in sentences what differs from data in which every sample is used and complete."""
        return data_notes(self.index.left_out, self.lacking, self.order, self.unit)

    def state_dict(self) -> LoaderState:
        """Return where the loader stands: what `load_state_dict` takes."""
        order = self.order
        return LoaderState(
            epoch=self.epoch,
            step=self.step,
            seed=order.seed,
            samples=order.samples,
            places=self._places,
            together=order.together,
            window=order.window,
            ends=order.ends,
        )

    def load_state_dict(self, state: LoaderState) -> None:
        """Go to where a loader stood. Workers may be others, and ranks, with as many samples a step in all.

        Raises:
            UsageError: the state is of other data, or of another order.
        """
        for name, value in self.state_dict().items():
            if name not in ("epoch", "step") and state.get(name) != value:
                raise UsageError(
                    f"the state is of a run with {name} {state.get(name)}, this one has {value}: "
                    "its batches would be others. Go on with the same data and settings, or start anew."
                )
        self.epoch, self.step = state["epoch"], state["step"]


def check_data_exists(data: str) -> None:
    """Say that there is no such data, where there is none, without a look at what it holds.

    Raises:
        InputError: no such shard or file.
    """
    if not data.endswith(".jsonl"):
        find_shards(Path(data))
    elif not Path(data).is_file():
        raise missing_file_message(Path(data))


def _index(data: str, selection: SampleSelection) -> SampleIndex:
    if data.endswith(".jsonl"):
        return index_rationales(Path(data), selection.lacks)
    return index_shards(data, selection)


class _LackCounter:
    """Counts what samples lack, and leaves none out."""

    def __init__(self, lacks: SampleCheck) -> None:
        self._lacks = lacks
        self.found: Counter[str] = Counter()

    def __call__(self, body: SampleJson) -> str:
        reason = self._lacks(body)
        self.found.update([reason] if reason else [])
        return ""


def _explain_killed_workers(made: Iterable[Any]) -> Iterator[Any]:
    """Yield what workers made; torch's word for one that was killed becomes a line."""
    try:
        yield from made
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise PairwrightError(
            "a process that loads data was killed, most likely since memory or /dev/shm was full. What helps: fewer "
            "batches.workers, a smaller batches.size."
        ) from None


class _StepSampler(Sampler[tuple[int, int]]):
    """The steps (epoch, step) that a pass over the loader asks for; workers that live on get them as they come."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.steps)


def _start_worker(_number: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread a worker; else it warns of having been forked
