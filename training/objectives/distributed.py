"""Ranks of distributed training: features of all ranks as candidates for the rows of one, with gradients.

A contrastive objective compares each row with the rows of all ranks. As OpenCLIP's ``local_loss`` with
``gather_with_grad``, a rank computes the losses of its own rows alone: of b rows among N gathered ones, not N among N. The
backward pass sums over ranks what each rank's loss says of a gathered feature, and returns it to the rank that embedded
the row. The mean over ranks of losses and parameter gradients, which distributed training takes anyway, is then the loss
and the gradient of one process with the whole batch, also for parameters that enter the loss directly (temperature, bias).

Ranks may have fewer rows than a full batch, as broken samples are skipped. Gathered rows are padded to a fixed number per
rank, so that no process waits for the sizes of others; `Ranks.present` masks the padding.
"""

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, distributed
from torch.nn import functional

from pairwright.training.objectives.embeddings import mask_value, scaled_similarities

# Names since torch 2.13, and before.
_ALL_GATHER: Any = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
_REDUCE_SCATTER: Any = getattr(distributed, "reduce_scatter_single", None) or distributed.reduce_scatter_tensor


@dataclass(frozen=True, slots=True)
class Ranks:
    """Rank of this process and number of ranks."""

    rank: int = 0  # of this process, from 0
    count: int = 1  # number of ranks; 1: no communication
    # Maximum rows per rank, to which gathered rows are padded; see `agree` where it is not known beforehand
    rows: int = 0

    def agree(self, rows: int, device: torch.device) -> "Ranks":
        """Return ranks that pad to the largest ``rows`` of any rank; the host waits for the device."""
        if self.count == 1:
            return self
        most = torch.tensor(rows, device=device)
        distributed.all_reduce(most, distributed.ReduceOp.MAX)
        return Ranks(self.rank, self.count, int(most))

    def gather(self, own: Tensor) -> Tensor:
        """Return the rows of all ranks in rank order, each rank's padded with zeros (False).

        ``own``: at most ``self.rows`` rows (first dimension), whose other dimensions are equal on all ranks. The result
        is of the same type: (N, ...), N = count * rows.
        """
        if self.count == 1:
            return own
        sent = own.to(torch.uint8) if own.dtype == torch.bool else own
        sent = functional.pad(sent, [0] * (2 * own.dim() - 1) + [self.rows - len(own)])
        gathered: Tensor = _Gathered.apply(sent, self.count)  # type: ignore[no-untyped-call]
        return gathered.bool() if own.dtype == torch.bool else gathered

    def places(self, own: Tensor) -> Tensor:
        """Return the indices of the own rows among the gathered ones: int64 (b,)."""
        return torch.arange(len(own), device=own.device) + self.rank * self.rows

    def present(self, own: Tensor) -> Tensor | None:
        """Return which gathered rows are no padding: bool (N,); None for one process, where all are."""
        return None if self.count == 1 else self.gather(own.new_ones(len(own), dtype=torch.bool))

    def mean(self, values: Tensor, counted: Tensor | None = None) -> Tensor:
        """Return this rank's part of a mean over rows: the mean over ranks of it is that of all counted values.

        ``values``: float, of this rank, finite also where not counted; ``counted``: bool, the same shape, None: all.
        """
        counted = torch.ones_like(values, dtype=torch.bool) if counted is None else counted
        number = counted.sum()
        own = values.masked_fill(~counted, 0.0).sum() / number.clamp(min=1)
        return own if self.count == 1 else own * number * self.count / self.total(number).clamp(min=1)

    def total(self, value: Tensor) -> Tensor:
        """Return the sum of a 0-d tensor over ranks, without a gradient."""
        summed = value.detach().clone()
        if self.count > 1:
            distributed.all_reduce(summed)
        return summed


ALONE: Final = Ranks()
"""One process with the whole batch."""


def paired_logits(
    images: Tensor, texts: Tensor, scale: Tensor | float, ranks: Ranks
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return scaled similarities of the own images with all texts, of the own texts with all images, and the padding.

    Arguments as of `contrastive.clip_loss`. Both are float (b, N), with `mask_value` at padding; row i belongs to
    column ``ranks.places(images)[i]``. Then ``ranks.present(images)``.
    """
    to_text = scaled_similarities(images, ranks.gather(texts), scale)
    present = ranks.present(images)
    if present is None:
        return to_text, to_text.T, None
    to_image = scaled_similarities(texts, ranks.gather(images), scale)
    low = mask_value(to_text)
    return to_text.masked_fill(~present, low), to_image.masked_fill(~present, low), present


class _Gathered(torch.autograd.Function):
    """Gather (rows, ...) of each rank to (count * rows, ...); backward sums over ranks and returns the own part."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, count: int) -> Tensor:
        ctx.shape = rows.shape
        gathered = rows.new_empty(count * len(rows), *rows.shape[1:])
        _ALL_GATHER(gathered, rows.contiguous())
        return gathered

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        own = gradient.new_empty(ctx.shape)
        _REDUCE_SCATTER(own, gradient.contiguous())
        return own, None
