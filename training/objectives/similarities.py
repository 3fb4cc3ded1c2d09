"""Functions shared by the objectives: similarities in full precision, and masks.

Embeddings often are bfloat16, in which a cosine near 1 times a scale of 100 has steps of 0.5. Similarities are therefore
float32 at least, also within autocast; where a GPU multiplies them as TF32, they are off by up to 0.01 at that scale.
Masked similarities are ``mask_value``: finite, so that no gradient becomes NaN where a whole row is masked.

Nothing here communicates; see `distributed.py`.
"""

import torch
from torch import Tensor


def to_full_precision(values: Tensor) -> Tensor:
    """Return the values in float32; float64 stays."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def scaled_similarities(queries: Tensor, keys: Tensor, scale: Tensor | float) -> Tensor:
    """Return ``scale`` times the dot product of each query with each key.

    Args:
        queries: float (..., q, d).
        keys: float (..., k, d), leading sizes as those of the queries or broadcast to them.
        scale: 1 / temperature, a number or a 0-d tensor.

    Returns:
        float (..., q, k), float32 at least.
    """
    with torch.autocast(device_type=queries.device.type, enabled=False):
        return scale * (to_full_precision(queries) @ to_full_precision(keys).mT)


def mask_value(values: Tensor) -> float:
    """Return a finite number with a softmax share of 0; half the lowest, so that sums stay finite."""
    return torch.finfo(values.dtype).min / 2


def zero_masked(embeddings: Tensor, mask: Tensor) -> Tensor:
    """Return the embeddings, float (..., d), with zeros where the mask, bool (...), is False, also instead of NaN."""
    return embeddings.masked_fill(~mask.unsqueeze(-1), 0.0)
