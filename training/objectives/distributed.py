"""Ranks of distributed training: features of all ranks in one batch, with gradients.

Contrastive objectives compare each row with all others, so each rank needs the features of all ranks, which
`Ranks.gather` returns in rank order. Every rank computes the loss of the whole batch and keeps the gradient of its own
rows, times the number of ranks, as parameter gradients are averaged over ranks afterwards. The result is the gradient of
one process with the whole batch, also for parameters that enter the loss directly (the temperature), without
communicating gradients of features.

Cost: each rank computes the loss of the whole batch, which is small compared with the towers.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Ranks:
    """Rank of this process and number of ranks.

    Attributes:
        rank: of this process, from 0.
        count: number of ranks; 1: no communication.
    """

    rank: int = 0
    count: int = 1

    def gather(self, rows: Tensor) -> Tensor:
        """Return the rows (first dimension) of all ranks, in rank order.

        Args:
            rows: of any type, at least one dimension. Sizes may differ between ranks: all rows are kept; other dimensions are
                padded with zeros (False).
        """
        if self.count == 1:
            return rows
        sizes = self._sizes(rows)
        most = [max(size[place] for size in sizes) for place in range(rows.dim())]
        missing = [edge for place in reversed(range(rows.dim())) for edge in (0, most[place] - rows.shape[place])]
        sent = functional.pad(rows.to(torch.uint8) if rows.dtype == torch.bool else rows, missing)
        stacked: Tensor = _Gathered.apply(sent, self.rank, self.count)  # type: ignore[no-untyped-call]
        together = torch.cat([stacked[rank, : size[0]] for rank, size in enumerate(sizes)])
        return together.bool() if rows.dtype == torch.bool else together

    def total(self, value: Tensor) -> Tensor:
        """Return the sum of a 0-d tensor over ranks, without a gradient."""
        summed = value.detach().clone()
        if self.count > 1:
            distributed.all_reduce(summed)
        return summed

    def merge(self, found: dict[str, str]) -> dict[str, str]:
        """Return the entries of all ranks; later ranks win on equal keys."""
        if self.count == 1:
            return found
        each: list[dict[str, str]] = [{}] * self.count
        distributed.all_gather_object(each, found)
        return {name: value for one in each for name, value in one.items()}

    def _sizes(self, rows: Tensor) -> list[list[int]]:
        own = torch.tensor(rows.shape, device=rows.device)
        found = [torch.empty_like(own) for _ in range(self.count)]
        distributed.all_gather(found, own)
        return [size.tolist() for size in found]


class _Gathered(torch.autograd.Function):
    """Gather (...) of each rank to (ranks, ...); backward returns the own part times the number of ranks."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, rank: int, count: int) -> Tensor:
        ctx.rank, ctx.count = rank, count
        found = [torch.empty_like(rows) for _ in range(count)]
        distributed.all_gather(found, rows.contiguous())
        return torch.stack(found)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient[ctx.rank] * ctx.count, None, None
