"""Input and output types of the objectives. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class BatchEmbeddings:
    """Embeddings of a batch of pairs; all rows of unit length."""

    images: Tensor  # float (b, d)
    texts: Tensor  # float (b, d); row i belongs to image i
    negatives: Tensor  # float (b, k, d), minimally edited captions that are false for image i
    negatives_mask: Tensor  # bool (b, k), False at missing negatives, whose rows have no effect
    # float (b, p, d), edited captions that are still true for image i; None if the recipe has none
    positives: Tensor | None = None
    positives_mask: Tensor | None = None  # bool (b, p), likewise; None with ``positives``


@dataclass(frozen=True)
class WeightedLoss:
    """A loss and its parts."""

    loss: Tensor  # 0-d, to be minimized
    parts: dict[str, Tensor] = field(default_factory=dict)  # 0-d each, by name, unweighted; with gradients
