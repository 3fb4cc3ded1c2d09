"""What the objectives share: scores in full precision, and means over the rows that count.

Embeddings often come in bfloat16. A cosine near 1 times a scale of 100 keeps a step of 0.5 there, so scores are
formed in float32 at least, also within autocast, which would else take the product back to half precision. Scores
that do not count are set to ``lowest``: finite, so that no gradient becomes NaN where a whole line is left out.

Nothing here looks at other processes: gather embeddings and masks over the ranks first, then call an objective on
the whole batch, and the loss is that of one process.
"""

import torch
from torch import Tensor


def to_full_precision(values: Tensor) -> Tensor:
    """Return the values in float32, or in float64 if that is what they are."""
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
    """Return a finite number so low that its share in a softmax is 0; half the lowest, so that sums stay finite."""
    return torch.finfo(values.dtype).min / 2


def masked_mean(values: Tensor, counted: Tensor) -> Tensor:
    """Return the mean of the values that count; 0, with a gradient of 0, where none does.

    Args:
        values: float, any shape; finite where they do not count.
        counted: bool, the same shape.
    """
    return values.masked_fill(~counted, 0.0).sum() / counted.sum().clamp(min=1)


def zero_masked(embeddings: Tensor, mask: Tensor) -> Tensor:
    """Return the embeddings with zeros where the mask is False: what stood there, NaN too, has no effect.

    Args:
        embeddings: float (..., d).
        mask: bool (...).
    """
    return embeddings.masked_fill(~mask.unsqueeze(-1), 0.0)
