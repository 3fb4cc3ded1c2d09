"""Collator interface: which samples a batch needs and how it is made of them.

`pairs.py` and `triplets.py` implement it. A collator is frozen, small and picklable, and independent of files, workers
and ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pairwright.training.loading.batches import B_co
from pairwright.training.loading.image_transforms import ImageOptions, PreparedImage
from pairwright.training.loading.samples import SampleSelection, StoredSample
from pairwright.training.loading.tokenization import TextOptions


@dataclass(frozen=True, slots=True)
class CollationContext:
    """Text and image options, and the seed and epoch that random choices depend on."""

    texts: TextOptions
    images: ImageOptions
    seed: int
    epoch: int = 0


class Collator(Protocol[B_co]):
    """Collates samples to batches."""

    @property
    def selection(self) -> SampleSelection:
        """Return which samples are used."""

    def collate(
        self, samples: Sequence[StoredSample], prepared_images: Sequence[PreparedImage], context: CollationContext
    ) -> B_co:
        """Return the batch of these samples, in order.

        Args:
            samples: at least one.
            prepared_images: their images, in order.
            context: tokenization, and seed of random choices.
        """
