"""What a recipe is: the shape of a batch, and what samples must hold to become one.

`pairs.py`, `triplets.py`, `talks.py` and `students.py` each hold one. A recipe is frozen, small and can be pickled; it
knows nothing of files, workers or ranks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import B, PackedBatch
from pairwright.training.loading.image_transforms import ImageOptions, load_pixels, load_tiles
from pairwright.training.loading.samples import SampleJson, StoredSample
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.models.anyres import Grid

Needs = Literal["nothing", "some", "each"]
"""Of the samples: nothing beside the caption; at least one has to serve; each, and those that do not are left out."""


@dataclass(frozen=True, slots=True)
class CollationContext:
    """What all recipes are told of the batch that they make: how texts and images are prepared, and whose rng."""

    texts: TextOptions
    images: ImageOptions
    seed: int
    epoch: int


@dataclass(frozen=True, slots=True, eq=False)
class PreparedImage:
    """An image as a tower takes it.

    Attributes:
        parts: uint8 (n, 3, size, size): the image, or with tiles (AnyRes) the whole image and its tiles.
        grid: of the tiles; None without.
    """

    parts: npt.NDArray[np.uint8]
    grid: Grid | None = None


class Collator(Protocol[B]):
    """Makes batches of samples."""

    @property
    def needs(self) -> Needs:
        """Return what the samples have to hold."""

    @property
    def members(self) -> frozenset[str]:
        """Return what a sample must have beside its JSON: ``image``, ``caption``."""

    @property
    def unit(self) -> str:
        """Return what an epoch and a step count, in the plural: ``samples`` or ``conversations``."""

    @property
    def units(self) -> Callable[[SampleJson], int] | None:
        """Return a function that counts the units of a sample that serves; None: each sample is one."""

    def lacks(self, body: SampleJson) -> str:
        """Return, as a countable word, what a sample's JSON lacks to serve; nothing when it serves."""

    def collate(
        self, samples: Sequence[StoredSample], pictures: Sequence[PreparedImage], context: CollationContext
    ) -> PackedBatch[B]:
        """Return the batch of these samples, in their order.

        Args:
            samples: one a unit; a sample may come several times, for each of its units.
            pictures: of the samples, in their order; empty where the recipe takes no images.
            context: how texts become tokens, and the seed of what is drawn.
        """


def image_groups(samples: Sequence[StoredSample]) -> list[int]:
    """Return for each sample a number that it shares with the others of the same image, as far as their JSON tells."""
    seen: dict[tuple[str, ...], int] = {}
    return [seen.setdefault(_image_of(sample), len(seen)) for sample in samples]


def _image_of(sample: StoredSample) -> tuple[str, ...]:
    source = sample.body.get("provenance", {})
    if not source.get("image"):
        return (sample.key,)
    return tuple(str(source.get(name, "")) for name in ("source", "image", "width", "height"))


def prepare_image(sample: StoredSample, context: CollationContext) -> PreparedImage:
    """Return the image of a sample as a tower takes it; the same for the same sample, seed and epoch.

    Raises:
        UnusableImage: it does not decode.
    """
    rng = make_rng(context.seed, context.epoch, "crop", sample.key)
    if context.images.tiles:
        return PreparedImage(*load_tiles(sample.image, context.images, rng, sample.where))
    return PreparedImage(load_pixels(sample.image, context.images, rng, sample.where)[np.newaxis])


@dataclass(frozen=True, slots=True)
class StackedImages:
    """The images of a batch's rows.

    Attributes:
        pixels: uint8 (m, 3, size, size), each image once, all parts of one side by side where images are in tiles.
        image_of: int64 (b,), the image of each row; with tiles, all parts of the first row's, then of the second's.
        grids: rows and columns of the tiles of each row's image; empty without tiles.
    """

    pixels: Tensor
    image_index: Tensor
    grids: tuple[tuple[int, int], ...] = ()


def stack_images(pictures: Sequence[PreparedImage]) -> StackedImages:
    """Return the images of rows; a picture that comes several times (the same object) is stored once."""
    distinct = {id(each): each for each in pictures}
    ends = np.cumsum([len(each.parts) for each in distinct.values()])
    last = dict(zip(distinct, ends.tolist(), strict=True))
    places = [np.arange(last[id(each)] - len(each.parts), last[id(each)]) for each in pictures]
    grids = tuple((each.grid.rows, each.grid.columns) for each in pictures if each.grid is not None)
    stacked = np.concatenate([each.parts for each in distinct.values()])
    return StackedImages(torch.from_numpy(stacked), torch.from_numpy(np.concatenate(places)), grids)
