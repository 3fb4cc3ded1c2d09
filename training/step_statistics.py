"""The steps between two rows of the log: what they add up to, and how fast they were."""

import time
from typing import Any

import torch
from torch import Tensor

from pairwright.training.metrics_log import LogRow
from pairwright.training.objectives.batch_embeddings import WeightedLoss
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.run_checkpoints import TrainingProgress


class StepStatistics:
    """What happened since the last row of the log; tensors stay where they are until then."""

    def __init__(self) -> None:
        self._begun = self._saved = time.perf_counter()
        self._waited = 0.0
        self._clear()

    def start(self) -> None:
        """A wait for data begins."""
        self._asked = time.perf_counter()

    def got(self) -> None:
        """The data is there."""
        self._waited += time.perf_counter() - self._asked

    def add(self, total: WeightedLoss, norm: Any, samples: int, rate: float) -> None:
        """A step is done, and the next wait begins."""
        self._losses.append(total.loss.detach())
        self._norms.append(torch.as_tensor(norm).detach())
        for name, part in total.parts.items():
            self._parts.setdefault(name, []).append(part.detach())
        self._samples += samples
        self._rate = rate
        self.start()

    def row(
        self, progress: TrainingProgress, epoch: float, ranks: Ranks, scale: Tensor | None, validation: float | None
    ) -> LogRow:
        """Return the row, the same on all ranks but for the speed, and begin the next."""
        loss, parts = _mean(self._losses, ranks), {name: _mean(own, ranks) for name, own in self._parts.items()}
        spent = time.perf_counter() - self._begun
        made = LogRow(
            step=progress.step,
            epoch=epoch,
            loss=loss,
            lr=self._rate,
            gradient=torch.stack(self._norms).mean().item(),
            samples_per_second=self._samples * ranks.count / spent,
            waiting=self._waited / spent,
            scale=None if scale is None else scale.item(),
            validation=validation,
            parts=parts,
        )
        self._begun, self._waited = time.perf_counter(), 0.0
        self._clear()
        return made

    def lap(self) -> float:
        """Return the seconds since the last lap."""
        before, self._saved = self._saved, time.perf_counter()
        return self._saved - before

    def _clear(self) -> None:
        self._losses = list[Tensor]()
        self._norms = list[Tensor]()
        self._parts = dict[str, list[Tensor]]()
        self._samples, self._rate = 0, 0.0


def _mean(values: list[Tensor], ranks: Ranks) -> float:
    # A gathered loss is the same on all ranks; others are shares whose mean over ranks is the loss.
    return (ranks.total(torch.stack(values).mean()) / ranks.count).item()
