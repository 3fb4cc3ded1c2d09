"""The schema of a recipe of our own training loop. Imports no torch.

Recipes that transformers' Trainer runs are in `finetuning.settings`.

`reading.py` reads recipes from YAML; the built-in ones are in this folder. Each method has only the settings that it uses,
so a setting without effect is an unknown key.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from pairwright.training.recipes.focallens import FocalLensClipMethod, FocalLensMllmMethod
from pairwright.training.recipes.pairs import (
    ClipMethod,
    FscClipMethod,
    HardPositivesMethod,
    NegClipMethod,
    ReactMethod,
    SiglipHnMethod,
    SiglipMethod,
    TowerMethod,
)
from pairwright.training.recipes.sections import BatchSettings, RunSettings

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


class Recipe(RunSettings):
    """A training run, except for its data and the initial model."""

    method: RecipeMethod = Field(discriminator="kind")
    batches: BatchSettings = BatchSettings()
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto", description="auto: bf16 on a GPU that has it, else fp32; all but fp32 use TF32 for what stays float32."
    )
    compile: bool = Field(default=False, description="torch.compile; texts are padded to batches.max_tokens.")
    ema: float = Field(0.0, ge=0, lt=1, description="Decay of averaged weights, saved in OUT/model-ema; 0: none.")
    save_openclip: bool = Field(default=False, description="Also save the model in OpenCLIP's layout.")

    @model_validator(mode="after")
    def _rows_can_be_split(self) -> Self:
        for name, used in (("batches.chunk", self.batches.chunk), ("compile", self.compile)):
            if used and not self.method.splits_rows:
                raise ValueError(f"{name} is for objectives over pairs of image and text, not for {self.method.kind}")
        if self.batches.chunk > self.batches.size:
            raise ValueError(
                f"batches.chunk {self.batches.chunk} is above batches.size {self.batches.size}: set it lower"
            )
        return self

    @model_validator(mode="after")
    def _model_is_a_clip(self) -> Self:
        if self.save_openclip and not isinstance(self.method, TowerMethod):
            raise ValueError(f"save_openclip is for objectives that finetune a CLIP, not for {self.method.kind}")
        return self

    @model_validator(mode="after")
    def _batch_is_large_enough(self) -> Self:
        if self.method.compares_samples and self.batches.size < 2:
            raise ValueError("this loss compares the samples of a step: set batches.size to 2 or more")
        return self
