"""Batches of a training step: one frozen dataclass of tensors per kind of row.

Shape letters: b rows, k texts per row, t tokens, s target tokens, h and w pixels. Masks are False at padding. Rows keep
the order of their samples, and rows of one sample are adjacent.

A worker sends a `PackedBatch`, with pixels as bytes and each image once: a quarter of the memory or less. `unpack`
converts it to the batch on the training device.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from pairwright.datasets.rejects import Reject


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Images, captions and edited captions."""

    images: Tensor  # float32 (b, 3, h, w), normalized
    texts: Tensor  # int64 (b, t), token ids of the captions
    text_mask: Tensor  # bool (b, t)
    negatives: Tensor  # int64 (b, k, t), token ids of hard negatives; k is set by the recipe and may be 0
    negatives_mask: Tensor  # bool (b, k), False where a row has no such negative
    negatives_text_mask: Tensor  # bool (b, k, t), token mask of the negatives
    # Texts of ``negatives`` to embed in each row, from the first: those that there are, or k with texts of fixed
    # length. On the host, so that no step waits for the device to count them.
    negatives_count: list[int]
    # int64 (b, k', t), hard positives; ``positives_mask``, ``positives_text_mask`` and ``positives_count`` likewise
    positives: Tensor
    positives_mask: Tensor
    positives_text_mask: Tensor
    positives_count: list[int]
    keys: list[str]  # sample keys, b of them
    cut: int  # texts of this batch that were truncated


@dataclass(frozen=True, slots=True)
class TripletBatch:
    """Images with an instruction and its answer each (FocalLens)."""

    images: Tensor  # float32 (b, 3, h, w); rows of one sample have the same image
    # With tiles (AnyRes), rows and columns per row; ``images`` then holds all parts of the first row's image, the whole
    # first, then of the second's. Empty without tiles.
    grids: tuple[tuple[int, int], ...]
    instructions: Tensor  # int64 (b, t); ``instruction_mask`` is bool (b, t)
    instruction_mask: Tensor
    texts: Tensor  # int64 (b, s), the answers; ``text_mask`` is bool (b, s)
    text_mask: Tensor
    keys: list[str]  # sample keys, one per row
    cut: int  # as in `PairBatch`


B = TypeVar("B", PairBatch, TripletBatch)


@dataclass(frozen=True, slots=True)
class PackedBatch(Generic[B]):
    """A batch as a worker sends it; the ``images`` of ``batch`` are empty."""

    batch: B  # everything but the images
    pixels: Tensor  # uint8 (m, 3, h, w), each image once; (0,) for batches without images
    image_index: Tensor  # int64 (b,), the image of each row; with tiles, the indices of all parts, row by row
    skipped: tuple[Reject, ...] = ()  # unusable samples of this step, which are not in the batch

    def pin_memory(self) -> "PackedBatch[B]":
        """Return the batch in page-locked memory; called by torch's DataLoader."""
        pixels, image_index = self.pixels.pin_memory(), self.image_index.pin_memory()
        return PackedBatch(_map_tensors(self.batch, Tensor.pin_memory), pixels, image_index, self.skipped)


def unpack(packed: PackedBatch[B], device: torch.device, mean: tuple[float, ...], std: tuple[float, ...]) -> B:
    """Return the batch on ``device``, images as float32 normalized by ``mean`` and ``std`` of channels in 0-1."""

    def to_device(tensor: Tensor) -> Tensor:
        return tensor.to(device, non_blocking=True)

    batch = _map_tensors(packed.batch, to_device)
    if packed.pixels.dim() == 1:
        return batch
    middle, spread = (_channels(values, device) for values in (mean, std))
    images = to_device(packed.pixels).float().sub_(middle).div_(spread)
    if len(images) != len(packed.image_index):
        images = images[to_device(packed.image_index)]
    return replace(batch, images=images)


@lru_cache(maxsize=8)
def _channels(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Return values in 0-1 for bytes of each channel, (3, 1, 1); cached, as a copy to a device waits for it."""
    return 255 * torch.tensor(values, device=device).view(3, 1, 1)


def _map_tensors(batch: B, change: Callable[[Tensor], Tensor]) -> B:
    named = {field.name: getattr(batch, field.name) for field in fields(batch)}
    changed: dict[str, Any] = {name: change(value) for name, value in named.items() if isinstance(value, Tensor)}
    return replace(batch, **changed)
