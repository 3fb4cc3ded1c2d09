"""Runs of the trainer and of its evaluation, as `claims.py` makes them: small, on one core, each in a folder of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pairwright.training.evaluation.tasks import EvaluationRequest, evaluate_models
from pairwright.training.recipes.reading import read_recipe
from pairwright.training.trainer import TrainingRun, train

SMALL = (
    "batches.size=32",
    "batches.workers=0",
    "batches.crop=1",
    "schedule.warmup=0.1",
    "precision=fp32",
    "optimizer.weight_decay=0.05",
    "log_every=1000",
    "save_every=100000",
)

Figures = dict[str, float]


@dataclass(frozen=True)
class Trials:
    """Trains and measures models in a folder.

    Attributes:
        folder: of the runs.
        seed: of all of them.
        effort: 1 for the table; below, for tests: so much of the steps and data.
    """

    folder: Path
    seed: int
    effort: float = 1.0

    def number(self, usual: int) -> int:
        """Return how many steps, or things, that ``usual`` is the number of for the table."""
        return max(1, round(usual * self.effort))

    def train(self, name: str, recipe: str, start: tuple[str, str], steps: int, **settings: object) -> str:
        """Train by a recipe and return the model's folder.

        Args:
            name: of the run.
            recipe: one of ours.
            start: the model it begins with, and the data.
            steps: for the table.
            settings: of the recipe, with ``__`` for a dot.
        """
        changes = [f"{key.replace('__', '.')}={value}" for key, value in settings.items()]
        fixed = [*SMALL, f"seed={self.seed}", f"schedule.steps={self.number(steps)}"]
        model, data = start
        return train(TrainingRun(read_recipe(recipe, [*fixed, *changes]), data, model, self.folder / name)).model

    def figures(self, task: str, model: str, data: str, **request: object) -> Mapping[tuple[str, str], float]:
        """Return what an evaluation finds, by part and measure."""
        asked = EvaluationRequest(task, (model,), (data,), **request)  # type: ignore[arg-type]  # each of its own type
        (found,) = evaluate_models(asked, lambda _: None)
        return {(one.part, one.measure): one.value for one in found.found.metrics}
