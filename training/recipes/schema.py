"""The schema of a recipe of our own training loop. Imports no torch.

Recipes that transformers' Trainer runs are in `finetuning.settings`.

`reading.py` reads recipes from YAML; the built-in ones are in this folder. Each method has only the settings that it uses,
so a setting without effect is an unknown key.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from pairwright.training.recipes.clip import ClipMethod
from pairwright.training.recipes.focallens import FocalLensClipMethod, FocalLensMllmMethod
from pairwright.training.recipes.fsc_clip import FscClipMethod
from pairwright.training.recipes.hard_positives import HardPositivesMethod
from pairwright.training.recipes.negclip import NegClipMethod
from pairwright.training.recipes.react import ReactMethod
from pairwright.training.recipes.sections import (
    BatchSettings,
    EarlyStopSettings,
    OptimizerSettings,
    RecipeSection,
    ScheduleSettings,
)
from pairwright.training.recipes.siglip import SiglipHnMethod, SiglipMethod

# One line an objective: the class has its settings, batches and loss.
RecipeMethod = (
    ClipMethod
    | NegClipMethod
    | HardPositivesMethod
    | FscClipMethod
    | SiglipMethod
    | SiglipHnMethod
    | ReactMethod
    | FocalLensClipMethod
    | FocalLensMllmMethod
)


class Recipe(RecipeSection):
    """A training run, except for its data and the initial model."""

    method: RecipeMethod = Field(discriminator="kind")
    batches: BatchSettings = BatchSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    early_stop: EarlyStopSettings | None = None
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    seed: int = Field(0, ge=0)
    log_every: int = Field(10, ge=1, description="Steps between two rows of the log.")
    save_every: int = Field(500, ge=1, description="Steps between two checkpoints.")

    @model_validator(mode="after")
    def _batch_is_large_enough(self) -> Self:
        if self.method.compares_samples and self.batches.size < 2:
            raise ValueError("this loss compares the samples of a step: set batches.size to 2 or more")
        return self
