"""Random unit rows, and dot products in plain Python."""

from typing import Any

import torch


def unit(rng: Any, *shape: int) -> Any:
    """Return float64 rows of unit length of any leading shape."""
    return torch.nn.functional.normalize(torch.randn(*shape, generator=rng, dtype=torch.float64), dim=-1)


def dot(one: list[float], other: list[float]) -> float:
    """Return the dot product of two lists."""
    return sum(a * b for a, b in zip(one, other, strict=True))
