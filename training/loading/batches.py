"""Batches of a training step, one named tuple of tensors per kind of row, and the collators that make them.

Shape letters: b rows, n texts per row, t tokens, s target tokens, h and w pixels. Masks are False at padding. Rows keep
the order of their samples, and rows of one sample are adjacent.

Workers send images as bytes, a quarter of the memory; `move_batch` normalizes them on the training device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pairwright.datasets.rejects import Reject
from pairwright.training.loading.image_transforms import ImageOptions, PreparedImage
from pairwright.training.loading.samples import SampleSelection, StoredSample
from pairwright.training.loading.tokenization import TextOptions


class PairBatch(NamedTuple):
    """Images, captions and edited captions."""

    images: Tensor  # float32 (b, 3, h, w), normalized; uint8 as a worker sends them
    # int64 (b, n, t), token ids of each row's texts: its caption, places for hard negatives, places for hard positives
    texts: Tensor
    text_mask: Tensor  # bool (b, n, t)
    mask: Tensor  # bool (b, n), False where a row has no such text
    # bool (b, n), which texts to embed: those that there are, or all with texts of fixed length. On the host, so that no
    # step waits for the device to count them.
    embedded: npt.NDArray[np.bool_]
    negatives: int  # places for hard negatives, set by the recipe; may be 0
    keys: list[str]  # sample keys, b of them
    cut: int  # texts of this batch that were truncated
    skipped: Sequence[Reject] = ()  # unusable samples of this step, which are not in the batch


class TripletBatch(NamedTuple):
    """Images with an instruction and its answer each (FocalLens)."""

    # (m, 3, h, w), as in `PairBatch`, each image once; with tiles (AnyRes) all its parts, the whole first
    images: Tensor
    image_index: Tensor  # int64 (b,), the image of each row; with tiles the indices of all parts, row by row
    grids: Sequence[tuple[int, int]]  # rows and columns of the tiles, per row; empty without tiles
    instructions: Tensor  # int64 (b, t); ``instruction_mask`` is bool (b, t)
    instruction_mask: Tensor
    texts: Tensor  # int64 (b, s), the answers; ``text_mask`` is bool (b, s)
    text_mask: Tensor
    keys: list[str]  # sample keys, one per row
    cut: int  # as in `PairBatch`
    skipped: Sequence[Reject] = ()  # likewise


B = TypeVar("B", PairBatch, TripletBatch)
B_co = TypeVar("B_co", PairBatch, TripletBatch, covariant=True)


@dataclass(frozen=True, slots=True)
class CollationContext:
    """Text and image options, and the seed and epoch that random choices depend on."""

    texts: TextOptions
    images: ImageOptions
    seed: int
    epoch: int = 0


class Collator(Protocol[B_co]):
    """Collates samples to batches; frozen, picklable, and independent of files, workers and ranks."""

    @property
    def selection(self) -> SampleSelection:
        """Return which samples are used."""

    def collate(
        self, samples: Sequence[StoredSample], prepared_images: Sequence[PreparedImage], context: CollationContext
    ) -> B_co:
        """Return the batch of one or more samples and their images, in order."""


def move_batch(batch: B, device: torch.device, mean: tuple[float, ...], std: tuple[float, ...]) -> B:
    """Return a worker's batch on ``device``, images as float32 normalized by ``mean`` and ``std`` of channels in 0-1."""
    named = batch._asdict().items()
    moved: dict[str, Any] = {name: one.to(device, non_blocking=True) for name, one in named if isinstance(one, Tensor)}
    middle, spread = (_channels(values, device) for values in (mean, std))
    return batch._replace(**moved | {"images": moved["images"].float().sub_(middle).div_(spread)})


@lru_cache(maxsize=8)
def _channels(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Return values in 0-1 for bytes of each channel, (3, 1, 1); cached, as a copy to a device waits for it."""
    return 255 * torch.tensor(values, device=device).view(3, 1, 1)
