"""Sections of a recipe that every objective shares. Imports no torch."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class RecipeSection(BaseModel):
    """A section of a recipe: immutable, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LoraSettings(RecipeSection):
    """Low-rank matrices in both towers; only these are trained."""

    rank: int = Field(4, ge=1)
    alpha: float = Field(1.0, gt=0)


class OnlineNegativeSettings(RecipeSection):
    """Hard negatives generated during training, new ones in each epoch, instead of those of the shards."""

    pool: Path = Field(description="Parquet file with the word statistics of a caption pool.")
    types: tuple[str, ...] = Field((), description="Types of the rules; empty: all, including shuffle.")


class LoadingSettings(RecipeSection):
    """Order and loading of samples."""

    window: int = Field(100_000, ge=0, description="Samples shuffled together; 0: no shuffling.")
    workers: int | None = Field(
        None, ge=0, description="Loading processes per training process; null: one per core, at most 16."
    )


class BatchSettings(LoadingSettings):
    """The batch of a step."""

    size: int = Field(256, ge=1, description="Samples (for LLaVA: conversations) per step, over all processes.")
    chunk: int = Field(
        0, ge=0, description="Rows per pass through the model, by cached gradients; 0: all rows of the process."
    )
    max_tokens: int | None = Field(None, ge=3, description="Tokens per text; null: the limit of the model.")
    crop: float = Field(0.9, gt=0, le=1, description="Minimum area of a random crop; 1: center crop.")
    ends: Literal["even", "repeat", "drop"] = "even"


class OptimizerSettings(RecipeSection):
    """AdamW. Biases, norms and the temperature have no weight decay."""

    lr: float = Field(1e-5, gt=0)
    weight_decay: float = Field(0.1, ge=0)
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = Field(1e-6, gt=0)
    clip: float = Field(0.0, ge=0, description="Maximum gradient norm; 0: unlimited.")


class ScheduleSettings(RecipeSection):
    """Length of the run; the learning rate rises linearly, then falls by half a cosine."""

    epochs: int = Field(5, ge=1)
    steps: int = Field(0, ge=0, description="Steps instead of epochs; 0: use epochs.")
    warmup: float = Field(50, ge=0, description="Warm-up steps; below 1, a share of all steps.")


class RunSettings(RecipeSection):
    """Settings of a run by any method."""

    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    seed: int = Field(0, ge=0)
    log_every: int = Field(10, ge=1, description="Steps between two rows of the log.")
    save_every: int = Field(500, ge=1, description="Steps between two checkpoints (and evaluations, if --validation).")
