"""Batches of pairs with random images and words, for the models of `tiny_models`."""

import torch
from torch import Tensor

from pairwright.training.loading.batches import PairBatch
from tests.training import tiny_models


def batch(rows: int = 5, negatives: int = 2, positives: int = 1, seed: int = 0, *, fixed: bool = False) -> PairBatch:
    """Return a batch whose rows have from none to all edited texts; ``fixed``: missing ones are to be embedded too."""
    rng = torch.Generator().manual_seed(seed)
    wrong, right = [row % (negatives + 1) for row in range(rows)], [(row + 1) % (positives + 1) for row in range(rows)]
    return PairBatch(
        images=torch.randn(rows, 3, tiny_models.SIZE, tiny_models.SIZE, generator=rng),
        texts=_words(rng, rows),
        text_mask=torch.ones(rows, 6, dtype=torch.bool),
        negatives=_words(rng, rows, negatives),
        negatives_mask=_first(wrong, negatives),
        negatives_text_mask=torch.ones(rows, negatives, 6, dtype=torch.bool),
        negatives_count=[negatives] * rows if fixed else wrong,
        positives=_words(rng, rows, positives),
        positives_mask=_first(right, positives),
        positives_text_mask=torch.ones(rows, positives, 6, dtype=torch.bool),
        positives_count=[positives] * rows if fixed else right,
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
