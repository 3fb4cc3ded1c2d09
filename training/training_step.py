"""A training step: loss, gradients and update of one batch, and the state that its successors depend on.

Nothing here waits for the device: losses and norms are read from it at the next row of the log.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pairwright.datasets.rng import make_rng
from pairwright.training.gradient_cache import GradientCache
from pairwright.training.models.checkpoints import trained_parameters
from pairwright.training.models.clip import Clip
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.objectives.batch_embeddings import WeightedLoss
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.optimization import WeightAverage, learning_rate_factor, make_optimizer, warmup_steps
from pairwright.training.recipes.methods import PairMethod
from pairwright.training.recipes.preparation import batch_loss
from pairwright.training.recipes.schema import Recipe
from pairwright.training.run_checkpoints import RunState


@dataclass(frozen=True, slots=True)
class StepResult:
    """Result of a step: the loss of this rank's rows, the gradient norm before clipping (0-d), and the learning rate."""

    total: WeightedLoss
    norm: Tensor
    rate: float


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

    def take(self, batch: Any, step: int) -> StepResult:
        """Train on a batch.

        ``step`` counts from 0.
        """
        rate = self.recipe.optimizer.lr * learning_rate_factor(step, self._warmup, self._steps)
        for group in self.state.optimizer.param_groups:
            group["lr"] = rate
        self.wrapped.train()
        total = self._backward(batch, make_rng(self.recipe.seed, step, "step", str(self.ranks.rank)).getrandbits(63))
        norm = self._accelerator.clip_grad_norm_(self._trained, self.recipe.optimizer.clip or math.inf)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        if isinstance(self.model, Clip | FocalLensMllm):
            self.model.limit_scale()
        if self._average:
            self._average.update()
        return StepResult(total, torch.as_tensor(norm).detach(), rate)

    def validation_loss(self, batch: Any) -> Tensor:
        """Return the mean loss over ranks, 0-d, without gradients and with the model in evaluation mode."""
        self.wrapped.eval()
        with torch.no_grad():
            found = self._cache.loss(batch) if self._cache else self._loss(batch)
        return self.ranks.total(found.loss) / self.ranks.count

    def _backward(self, batch: Any, seed: int) -> WeightedLoss:
        if self._cache:
            return self._cache.backward(batch, seed)
        torch.manual_seed(seed)
        total = self._loss(batch)
        self._accelerator.backward(total.loss)
        return total

    def _loss(self, batch: Any) -> WeightedLoss:
        return batch_loss(self.recipe.method, self.wrapped, batch, self.ranks)
