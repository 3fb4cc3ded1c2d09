"""Optimizer, learning rate and averaged weights of a training run."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from pairwright.training.models.checkpoints import trained_parameters
from pairwright.training.recipes.sections import OptimizerSettings, ScheduleSettings


def make_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.AdamW:
    """Return AdamW over the trained parameters; those with fewer than two dimensions have no weight decay, as in OpenCLIP.

    On a GPU one kernel updates all parameters ("fused").
    """
    trained = list(trained_parameters(model).values())
    groups = [
        {"params": [one for one in trained if one.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [one for one in trained if one.dim() < 2], "weight_decay": 0.0},
    ]
    fused = trained[0].is_cuda or None
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=fused)


class WeightAverage:
    """Exponential moving average of the trained parameters: a = decay * a + (1 - decay) * w after each step.

    Attributes:
        weights: the averages by parameter name; initially copies of the parameters.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        trained = trained_parameters(model)
        self.weights = {name: one.detach().clone() for name, one in trained.items()}
        make: Any = get_ema_multi_avg_fn  # untyped
        self._trained, self._average = list[Tensor](trained.values()), make(decay)

    def update(self) -> None:
        """Add the current parameters."""
        self._average(list(self.weights.values()), self._trained, 0)


def learning_rate_factor(step: int, warmup: int, steps: int) -> float:
    """Return the fraction of the full learning rate at a step, 0-1: linear warm-up, then half a cosine down to 0.

    Args:
        step: from 0.
        warmup: warm-up steps; the first has 1 / warmup.
        steps: of the whole run.
    """
    if step < warmup:
        return (step + 1) / warmup
    return (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup)))) / 2


def schedule_notes(settings: ScheduleSettings, steps: int) -> list[str]:
    """Return a sentence where the learning rate rises to the end of a run."""
    if (warmup := warmup_steps(settings, steps)) < steps:
        return []
    reached = learning_rate_factor(steps - 1, warmup, steps)
    line = f"Warm-up takes {warmup} steps and the run {steps}: the learning rate reaches {reached:.0%} of optimizer.lr."
    return [f"{line} Lower schedule.warmup (below 1: a share of all steps)."]


def warmup_steps(settings: ScheduleSettings, steps: int) -> int:
    """Return the number of warm-up steps of a run: the setting itself, or that share of ``steps`` if below 1."""
    return math.ceil(settings.warmup * steps) if settings.warmup < 1 else int(settings.warmup)
