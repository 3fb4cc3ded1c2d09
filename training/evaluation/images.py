"""Images under evaluation: checked before a model is opened, and made ready for its tower.

An image is a locator (`datasets.images`). It is prepared as CLIP does: the shorter side brought to the
tower's size, the square in the middle cut out; or, for a LLaVA that reads tiles, whole and in tiles. Some are decoded
side by side. Memory: one batch.
"""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import UnusableImageError, check_image_at, open_image
from pairwright.datasets.progress import track
from pairwright.training.loading.image_transforms import ImageOptions, load_pixels, load_tiles
from pairwright.training.models.anyres import Grid
from pairwright.training.models.clip import PixelSettings

_THREADS = 4


def image_sizes(images: Sequence[str]) -> dict[str, int]:
    """Return the shorter side in pixels of each image, by its locator, once each.

    Raises:
        InputError: telling how many cannot be read, and the first of them.
    """
    sides: dict[str, int] = {}
    troubles: list[UnusableImageError] = []
    wanted = dict.fromkeys(images)
    for image in wanted:
        try:
            width, height, _ = check_image_at(image)
        except UnusableImageError as error:
            troubles.append(error)
        else:
            sides[image] = min(width, height)
    if troubles:
        raise InputError(
            f"{len(troubles):,} of {len(wanted):,} images cannot be read; the first {troubles[0].what}",
            where=troubles[0].where,
            fix="Name their folder by --images, or leave their rows out.",
        )
    return sides


@dataclass(frozen=True, slots=True)
class ImageBatch:
    """Images as a tower takes them.

    Attributes:
        pixels: float32 (n, 3, side, side), normalised; of images in tiles all parts, one image after the other.
        grids: one an image; None without tiles.
    """

    pixels: Tensor
    grids: list[Grid] | None = None

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.pixels) if self.grids is None else len(self.grids)


def image_batches(
    images: Sequence[str], wanted: PixelSettings, size: int, device: torch.device, *, tiles: bool = False
) -> Iterator[ImageBatch]:
    """Yield the images in order, ``size`` at once.

    Args:
        images: locators.
        wanted: what the tower takes.
        size: images a batch.
        device: where the batches go.
        tiles: in parts, the whole and its tiles (AnyRes).

    Raises:
        UnusableImage: an image whose header is whole does not decode.
    """
    mean, std = (cast("tuple[float, float, float]", tuple(each)) for each in (wanted.mean, wanted.deviation))
    options = ImageOptions(wanted.size, tiles=tiles, mean=mean, std=std)
    middle, spread = (torch.tensor(each, device=device)[:, None, None] for each in (mean, std))
    with ThreadPoolExecutor(_THREADS) as threads:
        for start in track(range(0, len(images), size), "embedding images", unit="batches"):
            found = list(threads.map(partial(_prepared, options), images[start : start + size]))
            raw = torch.from_numpy(np.concatenate([own for own, _ in found])).to(device)
            grids = [grid for _, grid in found if grid is not None]
            yield ImageBatch((raw.float() / 255 - middle) / spread, grids or None)


def _prepared(options: ImageOptions, image: str) -> tuple[npt.NDArray[np.uint8], Grid | None]:
    rng = random.Random(0)  # without crops nothing is drawn
    if options.tiles:
        return load_tiles(open_image(image), options, rng, image)
    return load_pixels(open_image(image), options, rng, image)[None], None
