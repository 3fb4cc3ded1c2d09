"""Objectives over rows of several ranks, for threads of one process and for processes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.conditional import conditional_loss
from pairwright.training.objectives.contrastive import clip_loss, negclip_loss
from pairwright.training.objectives.distributed import ALONE, Ranks
from pairwright.training.objectives.embeddings import PairEmbeddings
from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss
from pairwright.training.objectives.hard_positives import hp_hn_loss
from pairwright.training.objectives.soft_positives import react_loss

Rows = Mapping[str, Tensor]
FULL, SHORT = 3, 2  # rows of a rank; the last rank lacks one
SCALE = 7.0


def _batch(rows: Rows, scale: Tensor) -> PairEmbeddings:
    return PairEmbeddings(**{name: one for name, one in rows.items() if name != "ids"}, scale=scale)


def _wrong(rows: Rows) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return rows["images"], rows["texts"], rows["negatives"], rows["negatives_mask"]


def _fsc(rows: Rows, scale: Tensor, ranks: Ranks) -> Tensor:
    return fsc_clip_loss(_batch(rows, scale), FscWeights(0.5, 0.2, 2.0, 0.02), ranks).loss


def _focallens(rows: Rows, scale: Tensor, ranks: Ranks) -> Tensor:
    pair, same = (rows["images"], rows["texts"]), rows["ids"]
    ranks = ranks.agree(len(same), same.device)
    return conditional_loss(*pair, scale, same=same, both_ways=True, ranks=ranks)


OBJECTIVES: dict[str, Callable[[Rows, Tensor, Ranks], Tensor]] = {
    "clip": lambda rows, scale, ranks: clip_loss(rows["images"], rows["texts"], scale, ranks),
    "negclip": lambda rows, scale, ranks: negclip_loss(*_wrong(rows), scale, ranks),
    "hp-hn": lambda rows, scale, ranks: hp_hn_loss(_batch(rows, scale), negatives=0.7, positives=0.9, ranks=ranks).loss,
    "fsc-clip": _fsc,
    "react": lambda rows, scale, ranks: react_loss(rows["images"], rows["texts"], scale, 0.5, ranks),
    "focallens": _focallens,
}


def whole_batch(count: int) -> Rows:
    """Return the rows of ``count`` ranks: `FULL` each, the last `SHORT` unless alone."""
    rows = count * FULL - (FULL - SHORT if count > 1 else 0)
    rng = torch.Generator().manual_seed(count)
    unit = partial(functional.normalize, dim=-1)

    def some(*shape: int) -> Tensor:
        return torch.randn(rows, *shape, generator=rng, dtype=torch.float64)

    mask = torch.rand(rows, 2, generator=rng) < 0.6
    return {
        "images": unit(some(4)),
        "texts": unit(some(4)),
        "negatives": unit(some(2, 4)),
        "negatives_mask": mask,
        "positives": unit(some(2, 4)),
        "positives_mask": mask.flip(1),
        "patches": some(3, 4),
        "tokens": some(3, 5, 4),
        "tokens_mask": torch.rand(rows, 3, 5, generator=rng) < 0.8,
        "ids": torch.arange(rows) % max(2, rows - 1),
    }


def loss_and_gradients(name: str, rows: Rows, ranks: Ranks = ALONE) -> tuple[Tensor, dict[str, Any]]:
    """Return the loss of rows and its gradient at each tensor of floats and at the scale."""
    leaves = {name: one.clone().requires_grad_() for name, one in rows.items() if one.is_floating_point()}
    scale = torch.tensor(SCALE).double().requires_grad_()
    loss = OBJECTIVES[name]({**rows, **leaves}, scale, ranks)
    torch.autograd.backward(loss)
    return loss.detach(), {name: one.grad for name, one in (leaves | {"scale": scale}).items()}


def part_of(rows: Rows, rank: int) -> Rows:
    """Return the rows of a rank."""
    return {name: one[rank * FULL : (rank + 1) * FULL] for name, one in rows.items()}
