"""Processes that train together: features of all ranks in one batch, with gradients.

Contrastive objectives compare each row with all others, so each rank needs the features of all. `Ranks.gather` gives
them, in the order of ranks. Every rank then forms the same loss of the same batch; of its gradient a rank keeps the part
of its own rows, times the number of ranks, for the gradients of parameters are averaged over ranks afterwards. What
comes out is the gradient that one process with the whole batch would have, for parameters behind features as for those
that enter the loss directly (the temperature), without sending gradients of features about.

The price: each rank computes the loss of the whole batch, which is small beside the towers.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those that train together.

    Attributes:
        rank: of this process, from 0.
        count: how many there are; 1: nothing is sent.
    """

    rank: int = 0
    count: int = 1

    def gather(self, rows: Tensor) -> Tensor:
        """Return the rows (first dimension) of all ranks, in the order of ranks.

        Args:
            rows: of any type and at least one dimension. Ranks may have different sizes in each dimension: of the
                first, all rows are kept; in the others, the smaller are filled up with zeros (False).
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

    def merged(self, found: dict[str, str]) -> dict[str, str]:
        """Return the entries of all ranks; where two have one key, that of the later rank."""
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
    """(...) of each rank to (ranks, ...); backwards, own part times the number of ranks."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, rank: int, count: int) -> Tensor:
        ctx.rank, ctx.count = rank, count
        found = [torch.empty_like(rows) for _ in range(count)]
        distributed.all_gather(found, rows.contiguous())
        return torch.stack(found)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient[ctx.rank] * ctx.count, None, None
