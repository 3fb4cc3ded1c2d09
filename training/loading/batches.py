"""What a training step gets: one frozen dataclass of tensors for each kind of row.

Letters of the shapes: b rows, k texts a row, t tokens, s tokens of a target, h and w pixels. A mask is True where there
is something; behind it stands the tokenizer's padding. Rows keep the order in which their samples were drawn, and rows
of one sample stand together.

Between a worker and the training process a batch is `Packed`: pixels as bytes, each image once, which is a quarter of
the memory or less. `unpack` makes the batch of it, on the device where it is to be used.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from pairwright.datasets.rejects import Reject


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Images, their captions, and texts made by editing these.

    Attributes:
        images: float32 (b, 3, h, w), normalised.
        texts: int64 (b, t), token ids of the captions.
        text_mask: bool (b, t).
        negatives: int64 (b, k, t), token ids of hard negatives; k is the recipe's number, and may be 0.
        negatives_mask: bool (b, k), False where a row has no such negative.
        negatives_text_mask: bool (b, k, t), which tokens of them are text.
        positives: int64 (b, k', t), hard positives; ``positives_mask`` and ``positives_text_mask`` likewise.
        groups: int64 (b,), equal for rows of one image, within this batch.
        keys: of the samples, b of them.
        cut: how many texts of this batch were longer than the tokens allowed, and were cut.
    """

    images: Tensor
    texts: Tensor
    text_mask: Tensor
    negatives: Tensor
    negatives_mask: Tensor
    negatives_text_mask: Tensor
    positives: Tensor
    positives_mask: Tensor
    positives_text_mask: Tensor
    groups: Tensor
    keys: list[str]
    cut: int


@dataclass(frozen=True, slots=True)
class TripletBatch:
    """Images, an instruction about each, and what is to be found for it (FocalLens).

    Attributes:
        images: float32 (b, 3, h, w); rows of one sample have the same image.
        instructions: int64 (b, t), what was asked; ``instruction_mask`` is bool (b, t).
        texts: int64 (b, s), the answer; ``text_mask`` is bool (b, s).
        grids: of images in tiles (AnyRes), rows and columns for each row; ``images`` are then all parts of the first
            row's image, the whole first, then of the second's. Empty without tiles.
        groups: int64 (b,), equal for rows of one image, within this batch.
        keys: of the samples, one a row.
        cut: as in `PairBatch`.
    """

    images: Tensor
    grids: tuple[tuple[int, int], ...]
    instructions: Tensor
    instruction_mask: Tensor
    texts: Tensor
    text_mask: Tensor
    groups: Tensor
    keys: list[str]
    cut: int


@dataclass(frozen=True, slots=True)
class ConversationBatch:
    """Images with a whole conversation each (LLaVA).

    Attributes:
        images: float32 (b, 3, h, w).
        texts: int64 (b, t), token ids; one of each row is the mark that the image's features take the place of.
        text_mask: bool (b, t).
        labels: int64 (b, t): the token itself in answers and the stop marks behind them, `IGNORE_INDEX` elsewhere.
        grids: of images in tiles (AnyRes), rows and columns for each row; ``images`` are then all parts of the first
            row's image, the whole first, then of the second's. Empty without tiles.
        groups: int64 (b,), as in `PairBatch`.
        keys: of the samples, one a row.
        cut: conversations that lost their end.
    """

    images: Tensor
    grids: tuple[tuple[int, int], ...]
    texts: Tensor
    text_mask: Tensor
    labels: Tensor
    groups: Tensor
    keys: list[str]
    cut: int


@dataclass(frozen=True, slots=True)
class RationaleBatch:
    """Inputs and outputs of an encoder-decoder without images (Distilling step-by-step).

    Attributes:
        texts: int64 (b, t), inputs with the prefix of their task; ``text_mask`` is bool (b, t).
        targets: int64 (b, s), outputs; `IGNORE_INDEX` behind their end.
        rationale: bool (b,), True where the output is the rationale, False where it is (or ends in) the label.
        keys: of the examples' samples, one a row.
        cut: as in `PairBatch`.
    """

    texts: Tensor
    text_mask: Tensor
    targets: Tensor
    rationale: Tensor
    keys: list[str]
    cut: int


B = TypeVar("B", PairBatch, TripletBatch, ConversationBatch, RationaleBatch)


@dataclass(frozen=True, slots=True)
class PackedBatch(Generic[B]):
    """A batch on its way out of a worker; its ``images`` (if any) are empty.

    Attributes:
        batch: everything else.
        pixels: uint8 (m, 3, h, w), each image once; (0,) for batches without.
        image_of: int64 (b,), the image of each row; of images in tiles, the places of all parts, row by row.
        skipped: samples of this step that cannot be used, and that the batch is without.
    """

    batch: B
    pixels: Tensor
    image_index: Tensor
    skipped: tuple[Reject, ...] = ()

    def pin_memory(self) -> "PackedBatch[B]":
        """Return the same in page-locked memory; torch's loader calls this before it hands a batch over."""
        pixels, image_index = self.pixels.pin_memory(), self.image_index.pin_memory()
        return PackedBatch(_each(self.batch, Tensor.pin_memory), pixels, image_index, self.skipped)


def unpack(packed: PackedBatch[B], device: torch.device, mean: tuple[float, ...], std: tuple[float, ...]) -> B:
    """Return the batch on ``device``, its images as float32, less ``mean`` and by ``std`` (of channels in 0-1)."""

    def moved(tensor: Tensor) -> Tensor:
        return tensor.to(device, non_blocking=True)

    batch = _each(packed.batch, moved)
    if packed.pixels.dim() == 1:
        return batch
    middle, spread = (255 * torch.tensor(values, device=device).view(3, 1, 1) for values in (mean, std))
    images = moved(packed.pixels).float().sub_(middle).div_(spread)
    if len(images) != len(packed.image_index):
        images = images[moved(packed.image_index)]
    return replace(batch, images=images)  # type: ignore[call-arg]  # a batch with pixels has images


def _each(batch: B, change: Callable[[Tensor], Tensor]) -> B:
    named = {field.name: getattr(batch, field.name) for field in fields(batch)}
    changed: dict[str, Any] = {name: change(value) for name, value in named.items() if isinstance(value, Tensor)}
    return replace(batch, **changed)
