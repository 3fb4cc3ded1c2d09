"""Batches of pairs with random images and words, for the models of `tiny_models`."""

import torch
from torch import Tensor

from pairwright.training.loading.batches import PairBatch
from tests.training import tiny_models


def batch(rows: int = 5, negatives: int = 2, positives: int = 1, seed: int = 0, *, fixed: bool = False) -> PairBatch:
    """Return a batch whose rows have from none to all edited texts; ``fixed``: missing ones are to be embedded too."""
    rng = torch.Generator().manual_seed(seed)
    wrong, right = [row % (negatives + 1) for row in range(rows)], [(row + 1) % (positives + 1) for row in range(rows)]
    mask = torch.cat([torch.ones(rows, 1, dtype=torch.bool), _first(wrong, negatives), _first(right, positives)], dim=1)
    return PairBatch(
        images=torch.randn(rows, 3, tiny_models.SIZE, tiny_models.SIZE, generator=rng),
        texts=_words(rng, *mask.shape),
        text_mask=torch.ones(*mask.shape, 6, dtype=torch.bool),
        mask=mask,
        embedded=(torch.ones_like(mask) if fixed else mask).numpy(),
        negatives=negatives,
        keys=[str(row) for row in range(rows)],
        cut=0,
    )


def _words(rng: torch.Generator, *shape: int) -> Tensor:
    """Return texts of a start token, four words and an end token."""
    words = torch.randint(1, tiny_models.START, (*shape, 4), generator=rng)
    ends = words.new_full((*shape, 1), tiny_models.START), words.new_full((*shape, 1), tiny_models.END)
    return torch.cat([ends[0], words, ends[1]], dim=-1)


def _first(count: list[int], places: int) -> Tensor:
    return torch.arange(places) < torch.tensor(count).unsqueeze(1)
