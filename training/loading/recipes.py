"""What a recipe is: the shape of a batch, and what samples must hold to become one.

`pairs.py`, `triplets.py`, `talks.py` and `students.py` each hold one. A recipe is frozen, small and can be pickled; it
knows nothing of files, workers or ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from pairwright.datasets.chance import stream
from pairwright.datasets.errors import InputError
from pairwright.training.loading.batches import B, Packed
from pairwright.training.loading.images import ImageOptions, pixels
from pairwright.training.loading.raw import Body, RawSample
from pairwright.training.loading.texts import TextOptions

Needs = Literal["nothing", "some", "each"]
"""Of the samples: nothing beside the caption; at least one has to serve; each, and those that do not are left out."""


@dataclass(frozen=True, slots=True)
class Making:
    """What all recipes are told of the batch that they make: how texts and images are prepared, and whose chance."""

    texts: TextOptions
    images: ImageOptions
    seed: int
    epoch: int


class Recipe(Protocol[B]):
    """Makes batches of samples."""

    @property
    def needs(self) -> Needs:
        """Return what the samples have to hold."""

    @property
    def pictures(self) -> bool:
        """Return whether the batch holds images."""

    def lacks(self, body: Body) -> str:
        """Return, as a countable word, what a sample's JSON lacks to serve; nothing when it serves."""

    def collate(self, samples: Sequence[RawSample], making: Making) -> Packed[B]:
        """Return the batch of these samples, in their order."""


def group_numbers(samples: Sequence[RawSample]) -> list[int]:
    """Return for each sample a number that it shares with the others of the same image, as far as their JSON tells."""
    seen: dict[tuple[str, ...], int] = {}
    return [seen.setdefault(_image_of(sample), len(seen)) for sample in samples]


def _image_of(sample: RawSample) -> tuple[str, ...]:
    source = sample.body.get("provenance", {})
    if not source.get("image"):
        return (sample.key,)
    return tuple(str(source.get(name, "")) for name in ("source", "image", "width", "height"))


def image_tensor(samples: Sequence[RawSample], making: Making) -> Tensor:
    """Return uint8 (m, 3, size, size): the images of these samples.

    Raises:
        InputError: a sample without an image.
        UnusableImage: an image that does not decode.
    """
    stacked = np.empty((len(samples), 3, making.images.size, making.images.size), dtype=np.uint8)
    for place, sample in enumerate(samples):
        if not sample.image:
            raise no_image(sample.where)
        chance = stream(making.seed, making.epoch, "crop", sample.key)
        stacked[place] = pixels(sample.image, making.images, chance, sample.where)
    return torch.from_numpy(stacked)


def no_image(where: str) -> InputError:
    """Return the error of a sample that has to have an image."""
    return InputError("no image", where=where, mend="This recipe looks at images: give shards that hold them.")
