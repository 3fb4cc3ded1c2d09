"""A training step: loss, gradients (also cached ones), update, optimizer, learning rate and averaged weights.

Nothing here waits for the device: losses and norms are read from it at the next row of the log.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import PairBatch
from pairwright.training.models.checkpoints import trained_parameters
from pairwright.training.models.clip import Clip
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.objectives.embeddings import PairEmbeddings, WeightedLoss
from pairwright.training.recipes.preparation import batch_loss, embed_pairs, pair_loss
from pairwright.training.recipes.settings import OptimizerSettings, PairMethod, Recipe, ScheduleSettings
from pairwright.training.run_folder import RunState


class TrainingStep:
    """A model in training on its device.

    Attributes:
        model: the model; its parameters are those of ``wrapped``.
        wrapped: the model for several processes and mixed precision.
        state: optimizer, gradient scaler and averaged weights.
    """

    def __init__(self, recipe: Recipe, model: nn.Module, accelerator: Any, ranks: Ranks, steps: int) -> None:
        """Wrap model and optimizer for a run of ``steps``; a checkpoint may be loaded into ``state`` afterwards."""
        self.recipe, self.model, self.ranks = recipe, model.to(accelerator.device), ranks
        optimizer = make_optimizer(model, recipe.optimizer)
        average = WeightAverage(model, recipe.ema) if recipe.ema else None
        self.state = RunState(model, optimizer, accelerator.scaler, average.weights if average else {})
        self._accelerator, self._average = accelerator, average
        if recipe.compile:
            model.compile()
        self.wrapped: nn.Module = accelerator.prepare_model(model)
        self._optimizer: Any = accelerator.prepare_optimizer(optimizer)
        self._steps, self._warmup = steps, warmup_steps(recipe.schedule, steps)
        self._trained = list(trained_parameters(model).values())
        method, chunk = recipe.method, recipe.batches.chunk
        self._cache = (
            GradientCache(method, self.wrapped, accelerator, ranks, chunk)
            if chunk and isinstance(method, PairMethod)
            else None
        )

    def take(self, batch: Any, step: int) -> tuple[WeightedLoss, Tensor, float]:
        """Train on a batch at a step, from 0; return own loss, gradient norm before clipping (0-d), learning rate."""
        rate = self.recipe.optimizer.lr * learning_rate_factor(step, self._warmup, self._steps)
        for group in self.state.optimizer.param_groups:
            group["lr"] = rate
        self.wrapped.train()
        seed = make_rng(self.recipe.seed, step, "step", str(self.ranks.rank)).getrandbits(63)
        if self._cache:
            total = self._cache.backward(batch, seed)
        else:
            torch.manual_seed(seed)
            total = batch_loss(self.recipe.method, self.wrapped, batch, self.ranks)
            self._accelerator.backward(total.loss)
        norm = self._accelerator.clip_grad_norm_(self._trained, self.recipe.optimizer.clip or math.inf)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        if isinstance(self.model, Clip | FocalLensMllm):
            self.model.limit_scale()
        if self._average:
            self._average.update()
        return total, torch.as_tensor(norm).detach(), rate


@dataclass(frozen=True, slots=True)
class GradientCache:
    """Backward pass of a pair objective on a batch that does not fit in one pass (Gao et al. 2021, section 3.2).

    All parts are embedded without a graph, the loss of all rows gives the gradient at each embedding, and a second pass
    of each part continues it into the model. Memory is that of one part plus all embeddings; loss and gradients are
    those of the whole batch, as each part's second pass draws the same random numbers as its first.
    """

    method: PairMethod  # the objective
    model: nn.Module  # possibly wrapped for several processes
    accelerator: Any  # of accelerate
    ranks: Ranks  # all processes, which may have different numbers of parts
    rows: int  # of a part

    def backward(self, batch: PairBatch, seed: int) -> WeightedLoss:
        """Add the gradients of the batch's loss to the parameters, and return it; ``seed`` is that of dropout."""
        parts = split_rows(batch, self.rows)
        with torch.no_grad():
            whole = join_rows([self._embed(part, seed, number) for number, part in enumerate(parts)])
        leaves = _differentiable(whole)
        for leaf in leaves:
            leaf.requires_grad_()
        total = pair_loss(self.method, whole, self.ranks)
        torch.autograd.backward(total.loss)
        gradients = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
        for number, part in enumerate(parts):
            rows = slice(number * self.rows, (number + 1) * self.rows)
            # Each part has the same scale and bias, and an equal share of their gradient.
            slopes = [one[rows] if one.dim() else one / len(parts) for one in gradients]
            with nullcontext() if number == len(parts) - 1 else self.accelerator.no_sync(self.model):
                outputs = _differentiable(self._embed(part, seed, number))
                dots = [(one * slope).sum() for one, slope in zip(outputs, slopes, strict=True)]
                self.accelerator.backward(torch.stack(dots).sum())
        return total

    def _embed(self, part: PairBatch, seed: int, number: int) -> PairEmbeddings:
        torch.manual_seed(make_rng(seed, number).getrandbits(63))
        return embed_pairs(self.model, part, local=self.method.local_features)


def _differentiable(pairs: PairEmbeddings) -> list[Tensor]:
    """Return the tensors that have gradients, in a fixed order."""
    return [one for one in pairs if one is not None and one.is_floating_point()]


def split_rows(batch: PairBatch, rows: int) -> list[PairBatch]:
    """Return the batch in parts of ``rows`` rows, the last with the rest."""
    parts = []
    for start in range(0, len(batch.keys), rows):
        named = batch._asdict().items()
        part: dict[str, Any] = {
            name: one[start : start + rows] for name, one in named if isinstance(one, Tensor | np.ndarray | list)
        }
        parts.append(batch._replace(**part))
    return parts


def join_rows(parts: Sequence[PairEmbeddings]) -> PairEmbeddings:
    """Return the embeddings of a batch from those of its parts; scale and bias are copies of the first part's."""
    named = {
        name: [getattr(part, name) for part in parts] for name, one in parts[0]._asdict().items() if one is not None
    }
    return parts[0]._replace(**{name: torch.cat(of) if of[0].dim() else of[0].clone() for name, of in named.items()})


def make_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.AdamW:
    """Return AdamW, fused on a GPU; parameters with fewer than two dimensions have no weight decay, as in OpenCLIP."""
    trained = list(trained_parameters(model).values())
    groups = [
        {"params": [one for one in trained if one.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [one for one in trained if one.dim() < 2], "weight_decay": 0.0},
    ]
    fused = trained[0].is_cuda or None
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=fused)


class WeightAverage:
    """Moving average of the trained parameters, ``weights``: a = decay * a + (1 - decay) * w after each step."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        trained = trained_parameters(model)
        self.weights = {name: one.detach().clone() for name, one in trained.items()}
        make: Any = get_ema_multi_avg_fn  # untyped
        self._trained, self._average = list[Tensor](trained.values()), make(decay)

    def update(self) -> None:
        """Add the current parameters."""
        self._average(list(self.weights.values()), self._trained, 0)


def learning_rate_factor(step: int, warmup: int, steps: int) -> float:
    """Return the fraction of the full learning rate at a step, from 0: linear warm-up, then half a cosine down to 0."""
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
