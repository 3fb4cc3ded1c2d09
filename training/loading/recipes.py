"""What a recipe is: the shape of a batch, and what samples must hold to become one.

`pairs.py`, `triplets.py`, `talks.py` and `students.py` each hold one. A recipe is frozen, small and can be pickled; it
knows nothing of files, workers or ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from pairwright.datasets.chance import stream
from pairwright.datasets.errors import InputError
from pairwright.training.loading.batches import B, Packed
from pairwright.training.loading.images import ImageOptions, parts, pixels
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
        stacked[place] = pixels(_image(sample), making.images, _chance(sample, making), sample.where)
    return torch.from_numpy(stacked)


@dataclass(frozen=True, slots=True)
class Shown:
    """The images of a batch's rows.

    Attributes:
        pixels: uint8 (m, 3, size, size), each image once, all parts of one side by side where images are in tiles.
        image_of: int64 (b,), the image of each row; with tiles, all parts of the first row's, then of the second's.
        grids: rows and columns of the tiles of each row's image; empty without tiles.
    """

    pixels: Tensor
    image_of: Tensor
    grids: tuple[tuple[int, int], ...] = ()


def shown(samples: Sequence[RawSample], owners: Sequence[int], making: Making) -> Shown:
    """Return the images of rows, ``owners`` telling for each the place of its sample.

    Raises:
        InputError: a sample without an image.
        UnusableImage: an image that does not decode.
    """
    if not making.images.tiles:
        return Shown(image_tensor(samples, making), torch.tensor(owners))
    cut = [parts(_image(one), making.images, _chance(one, making), one.where) for one in samples]
    first = np.cumsum([0, *(len(own) for own, _ in cut)])
    places = [np.arange(first[owner], first[owner + 1]) for owner in owners]
    grids = tuple((cut[owner][1].rows, cut[owner][1].columns) for owner in owners)
    return Shown(
        torch.from_numpy(np.concatenate([own for own, _ in cut])), torch.from_numpy(np.concatenate(places)), grids
    )


def _image(sample: RawSample) -> bytes:
    if not sample.image:
        raise no_image(sample.where)
    return sample.image


def _chance(sample: RawSample, making: Making) -> Random:
    return stream(making.seed, making.epoch, "crop", sample.key)


def no_image(where: str) -> InputError:
    """Return the error of a sample that has to have an image."""
    return InputError("no image", where=where, mend="This recipe looks at images: give shards that hold them.")
