"""Cached gradients: a contrastive step on a batch that does not fit in one pass.

Source: Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup", section 3.2.

Gradient accumulation would compare the rows of each part among themselves alone. Here all parts are embedded without a
graph, the loss of all rows gives the gradient at each embedding, and a second pass of each part continues it into the
model. Memory is that of one part plus all embeddings, for one more forward pass; loss and gradients are those of the whole
batch, as each part's second pass draws the same random numbers as its first.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import PairBatch
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.objectives.embeddings import PairEmbeddings, WeightedLoss
from pairwright.training.recipes.preparation import embed_pairs, pair_loss
from pairwright.training.recipes.settings import PairMethod


@dataclass(frozen=True, slots=True)
class GradientCache:
    """Backward pass of a pair objective in parts."""

    method: PairMethod  # the objective
    model: nn.Module  # possibly wrapped for several processes
    accelerator: Any  # of accelerate
    ranks: Ranks  # all processes, which may have different numbers of parts
    rows: int  # of a part

    def backward(self, batch: PairBatch, seed: int) -> WeightedLoss:
        """Add the gradients of the batch's loss to the parameters, and return the loss.

        ``seed`` is that of random numbers in the forward pass, such as those of dropout.
        """
        parts = split_rows(batch, self.rows)
        with torch.no_grad():
            whole = join_rows([self._embed(part, seed, number) for number, part in enumerate(parts)])
        leaves = _differentiable(whole)
        for leaf in leaves:
            leaf.requires_grad_()
        total = pair_loss(self.method, whole, self.ranks)
        torch.autograd.backward(total.loss)
        gradients = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
        for number, part in enumerate(parts):
            rows = slice(number * self.rows, (number + 1) * self.rows)
            # Each part has the same scale and bias, and an equal share of their gradient.
            slopes = [one[rows] if one.dim() else one / len(parts) for one in gradients]
            with nullcontext() if number == len(parts) - 1 else self.accelerator.no_sync(self.model):
                outputs = _differentiable(self._embed(part, seed, number))
                dots = [(one * slope).sum() for one, slope in zip(outputs, slopes, strict=True)]
                self.accelerator.backward(torch.stack(dots).sum())
        return total

    def _embed(self, part: PairBatch, seed: int, number: int) -> PairEmbeddings:
        torch.manual_seed(make_rng(seed, number).getrandbits(63))
        return embed_pairs(self.model, part, local=self.method.local_features)


def _differentiable(pairs: PairEmbeddings) -> list[Tensor]:
    """Return the tensors that have gradients, in a fixed order."""
    return [one for one in pairs if one is not None and one.is_floating_point()]


def split_rows(batch: PairBatch, rows: int) -> list[PairBatch]:
    """Return the batch in parts of ``rows`` rows, the last with the rest."""
    parts = []
    for start in range(0, len(batch.keys), rows):
        named = batch._asdict().items()
        part: dict[str, Any] = {
            name: one[start : start + rows] for name, one in named if isinstance(one, Tensor | np.ndarray | list)
        }
        parts.append(batch._replace(**part))
    return parts


def join_rows(parts: Sequence[PairEmbeddings]) -> PairEmbeddings:
    """Return the embeddings of a batch from those of its parts; scale and bias are copies of the first part's."""
    named = {
        name: [getattr(part, name) for part in parts] for name, one in parts[0]._asdict().items() if one is not None
    }
    return parts[0]._replace(**{name: torch.cat(of) if of[0].dim() else of[0].clone() for name, of in named.items()})
