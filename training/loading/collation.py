"""Collator interface: which samples a batch needs and how it is made of them.

`pairs.py` and `triplets.py` implement it. A collator is frozen, small and picklable, and independent of files, workers
and ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import B_co
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


class PreparedImage(NamedTuple):
    """An image as a vision tower reads it."""

    # uint8 (n, 3, size, size): the image, or with tiles (AnyRes) the whole image and its tiles
    parts: npt.NDArray[np.uint8]
    grid: Grid | None = None  # of the tiles; None without


class Collator(Protocol[B_co]):
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
    ) -> B_co:
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
