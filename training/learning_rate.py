"""The learning rate over the steps of a run: up in a line, down in half a cosine."""

import math


def warmup_steps(warmup: float, steps: int) -> int:
    """Return the steps of warm-up: ``warmup`` itself, or its share of all ``steps`` when it is below 1."""
    return math.ceil(warmup * steps) if warmup < 1 else int(warmup)


def learning_rate_factor(step: int, warmup: int, steps: int) -> float:
    """Return what share of the full learning rate a step has, 0-1.

    Args:
        step: from 0.
        warmup: steps in which it rises; the first of them has 1 / warmup.
        steps: of the whole run; what comes after would be 0.
    """
    if step < warmup:
        return (step + 1) / warmup
    return (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup)))) / 2
