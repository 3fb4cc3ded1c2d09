"""Images under evaluation: checked before a model is opened, and made ready for its tower.

An image is a locator (a path, or ``shard.tar::member``). It is prepared as CLIP does: the shorter side brought to the
tower's size, the square in the middle cut out; some are decoded side by side. Memory: one batch.
"""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pairwright.datasets.errors import InputError
from pairwright.datasets.images import UnusableImage, check_locator, open_image
from pairwright.training.loading.images import ImageOptions, pixels
from pairwright.training.models.clip import Pixels

_THREADS = 4


def image_sizes(images: Sequence[str]) -> dict[str, int]:
    """Return the shorter side in pixels of each image, by its locator, once each.

    Raises:
        InputError: telling how many cannot be read, and the first of them.
    """
    sides: dict[str, int] = {}
    troubles: list[UnusableImage] = []
    wanted = dict.fromkeys(images)
    for image in wanted:
        try:
            width, height, _ = check_locator(image)
        except UnusableImage as error:
            troubles.append(error)
        else:
            sides[image] = min(width, height)
    if troubles:
        raise InputError(
            f"{len(troubles):,} of {len(wanted):,} images cannot be read; the first {troubles[0].what}",
            where=troubles[0].where,
            mend="Name their folder by --images, or leave their rows out.",
        )
    return sides


def image_batches(images: Sequence[str], wanted: Pixels, size: int, device: torch.device) -> Iterator[Tensor]:
    """Yield the images in order as float32 (up to ``size``, 3, side, side), normalised.

    Args:
        images: locators.
        wanted: what the tower takes.
        size: images a batch.
        device: where the batches go.

    Raises:
        UnusableImage: an image whose header is whole does not decode.
    """
    mean, std = (cast("tuple[float, float, float]", tuple(each)) for each in (wanted.mean, wanted.deviation))
    options = ImageOptions(wanted.size, mean=mean, std=std)
    middle, spread = (torch.tensor(each, device=device)[:, None, None] for each in (mean, std))
    with ThreadPoolExecutor(_THREADS) as threads:
        for start in range(0, len(images), size):
            found = list(threads.map(partial(_square, options), images[start : start + size]))
            raw = torch.from_numpy(np.stack(found)).to(device)
            yield (raw.float() / 255 - middle) / spread


def _square(options: ImageOptions, image: str) -> npt.NDArray[np.uint8]:
    return pixels(open_image(image), options, random.Random(0), image)  # without crops nothing is drawn
