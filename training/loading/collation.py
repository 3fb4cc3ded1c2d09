"""Collator interface: which samples a batch needs and how it is made of them.

`pairs.py` and `triplets.py` implement it. A collator is frozen, small and picklable, and independent of files, workers
and ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import B, PackedBatch
from pairwright.training.loading.image_transforms import ImageOptions, load_parts
from pairwright.training.loading.samples import SampleJson, StoredSample
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.models.anyres import Grid

Needs = Literal["nothing", "some", "each"]
"""Texts of the samples: none besides the caption; at least one sample has some; each used sample has some."""


@dataclass(frozen=True, slots=True)
class CollationContext:
    """Text and image options, and the seed and epoch that random choices depend on."""

    texts: TextOptions
    images: ImageOptions
    seed: int
    epoch: int


@dataclass(frozen=True, slots=True, eq=False)
class PreparedImage:
    """An image as a vision tower reads it."""

    # uint8 (n, 3, size, size): the image, or with tiles (AnyRes) the whole image and its tiles
    parts: npt.NDArray[np.uint8]
    grid: Grid | None = None  # of the tiles; None without


class Collator(Protocol[B]):
    """Collates samples to batches."""

    @property
    def needs(self) -> Needs:
        """Return which texts the samples need."""

    @property
    def members(self) -> frozenset[str]:
        """Return the required members of a sample besides its JSON: ``image``, ``caption``."""

    def lacks(self, body: SampleJson) -> str:
        """Return the reason why a sample's JSON is not usable; empty if it is."""

    def collate(
        self, samples: Sequence[StoredSample], prepared_images: Sequence[PreparedImage], context: CollationContext
    ) -> PackedBatch[B]:
        """Return the batch of these samples, in order.

        Args:
            samples: at least one.
            prepared_images: their images, in order.
            context: tokenization, and seed of random choices.
        """


def prepare_image(sample: StoredSample, context: CollationContext) -> PreparedImage:
    """Return the image of a sample, cropped and resized; deterministic in sample, seed and epoch."""
    rng = make_rng(context.seed, context.epoch, "crop", sample.key)
    return PreparedImage(*load_parts(sample.image, context.images, rng, sample.where))


def stack_images(prepared_images: Sequence[PreparedImage]) -> tuple[Tensor, Tensor]:
    """Return ``pixels`` and ``image_index`` of a `PackedBatch`; an image of several rows (the same object) is stored once."""
    distinct = {id(each): each for each in prepared_images}
    ends = np.cumsum([len(each.parts) for each in distinct.values()])
    last = dict(zip(distinct, ends.tolist(), strict=True))
    places = [np.arange(last[id(each)] - len(each.parts), last[id(each)]) for each in prepared_images]
    stacked = np.concatenate([each.parts for each in distinct.values()])
    return torch.from_numpy(stacked), torch.from_numpy(np.concatenate(places))
