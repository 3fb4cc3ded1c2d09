"""Embeddings of a batch, their similarities in full precision, and masks: what the objectives share.

Embeddings often are bfloat16, in which a cosine near 1 times a scale of 100 has steps of 0.5. Similarities are therefore
float32 at least, also within autocast; where a GPU multiplies them as TF32, they are off by up to 0.01 at that scale.
Masked similarities are ``mask_value``: finite, so that no gradient becomes NaN where a whole row is masked.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor


class PairEmbeddings(NamedTuple):
    """Embeddings of a batch of pairs; rows of unit length but for those of patches and tokens."""

    images: Tensor  # float (b, d)
    texts: Tensor  # float (b, d); row i belongs to image i
    negatives: Tensor  # float (b, k, d), minimally edited captions that are false for image i; k may be 0
    negatives_mask: Tensor  # bool (b, k), False at missing negatives, whose rows have no effect
    positives: Tensor  # float (b, p, d), edited captions that are still true for image i; p may be 0
    positives_mask: Tensor  # bool (b, p), likewise
    scale: Tensor  # 0-d, 1 / temperature
    # Tensors of FSC-CLIP, None for other objectives. Patches in the shared space after the projection: float (b, p, d)
    patches: Any = None
    tokens: Any = None  # float (b, 1 + k, w, d), tokens of the caption and its negatives, in the order of ``negatives``
    # bool (b, 1 + k, w), False at padding. The paper does not say whether special tokens count; in the authors' code
    # the end token does and the start token does not, as in `models.clip.Clip.token_mask`.
    tokens_mask: Any = None


@dataclass(frozen=True)
class WeightedLoss:
    """A loss and its parts."""

    loss: Tensor  # 0-d, to be minimized
    parts: dict[str, Tensor] = field(default_factory=dict)  # 0-d each, by name, unweighted; with gradients


def to_full_precision(values: Tensor) -> Tensor:
    """Return the values in float32; float64 stays."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def scaled_similarities(queries: Tensor, keys: Tensor, scale: Tensor | float) -> Tensor:
    """Return ``scale`` (1 / temperature) times the dot product of each query with each key.

    Float (..., q, d) and (..., k, d), whose leading sizes are equal or broadcast, give (..., q, k), float32 at least.
    """
    with torch.autocast(device_type=queries.device.type, enabled=False):
        return scale * (to_full_precision(queries) @ to_full_precision(keys).mT)


def mask_value(values: Tensor) -> float:
    """Return a finite number with a softmax share of 0; half the lowest, so that sums stay finite."""
    return torch.finfo(values.dtype).min / 2


def zero_masked(embeddings: Tensor, mask: Tensor) -> Tensor:
    """Return the embeddings, float (..., d), with zeros where the mask, bool (...), is False, also instead of NaN."""
    return embeddings.masked_fill(~mask.unsqueeze(-1), 0.0)
