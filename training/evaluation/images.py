"""Images for evaluation: checked before a model is opened, and prepared for its vision tower.

Preparation is CLIP's: shorter side resized, center crop; or, for a FocalLens-MLLM with tiles, the whole image and its tiles.
Decoding uses several threads. Memory: one batch.
"""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import UnusableImageError
from pairwright.datasets.progress import track
from pairwright.filters.evaluation.crops import cropped_size, open_cropped
from pairwright.training.loading.image_transforms import ImageOptions, load_parts
from pairwright.training.models.anyres import Grid

_THREADS = 4


def image_sizes(images: Sequence[str]) -> dict[str, int]:
    """Return the shorter side in pixels of each distinct image by locator.

    Raises:
        InputError: images are not readable; the message has their number and the first one.
    """
    sides: dict[str, int] = {}
    errors: list[UnusableImageError] = []
    wanted = dict.fromkeys(images)
    for image in wanted:
        try:
            width, height = cropped_size(image)
        except UnusableImageError as error:
            errors.append(error)
        else:
            sides[image] = min(width, height)
    if errors:
        raise InputError(
            f"{len(errors):,} of {len(wanted):,} images are not readable; the first {errors[0].what}",
            where=errors[0].where,
            fix="Set their folder with --images, or remove their rows.",
        )
    return sides


@dataclass(frozen=True, slots=True)
class ImageBatch:
    """Images as a tower reads them."""

    pixels: Tensor  # float32 (n, 3, side, side), normalized; with tiles all parts, one image after the other
    grids: list[Grid] | None = None  # one per image; None without tiles

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.pixels) if self.grids is None else len(self.grids)


def image_batches(
    images: Sequence[str], options: ImageOptions, size: int, device: torch.device
) -> Iterator[ImageBatch]:
    """Yield the images in order, ``size`` per batch; ``images`` are locators."""
    middle, spread = (torch.tensor(each, device=device)[:, None, None] for each in (options.mean, options.std))
    with ThreadPoolExecutor(_THREADS) as threads:
        for start in track(range(0, len(images), size), "embedding images", unit="batches"):
            found = list(threads.map(partial(_load_image, options), images[start : start + size]))
            raw = torch.from_numpy(np.concatenate([own for own, _ in found])).to(device)
            grids = [grid for _, grid in found if grid is not None]
            yield ImageBatch((raw.float() / 255 - middle) / spread, grids or None)


def _load_image(options: ImageOptions, image: str) -> tuple[npt.NDArray[np.uint8], Grid | None]:
    return load_parts(open_cropped(image), options, random.Random(0), image)  # the generator is unused without crops
