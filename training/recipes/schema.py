"""The schema of a recipe of our own training loop. Imports no torch.

Recipes that transformers' Trainer runs are in `finetuning.settings`.

`reading.py` reads recipes from YAML; the built-in ones are in this folder. Each method has only the settings that it uses,
so a setting without effect is an unknown key.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from pairwright.training.recipes.methods import (
    ClipMethod,
    FocalLensClipMethod,
    FocalLensMllmMethod,
    FscClipMethod,
    HardPositivesMethod,
    NegClipMethod,
    PairMethod,
    ReactMethod,
    SiglipHnMethod,
    SiglipMethod,
    TowerMethod,
)
from pairwright.training.recipes.sections import BatchSettings, RunSettings

# One line an objective: the class has its settings.
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
    def _fits_the_method(self) -> Self:
        method, batches = self.method, self.batches
        for name, used in (("batches.chunk", batches.chunk), ("compile", self.compile)):
            if used and not isinstance(method, PairMethod):
                raise ValueError(f"{name} is for objectives over pairs of image and text, not for {method.kind}")
        if batches.chunk > batches.size:
            raise ValueError(f"batches.chunk {batches.chunk} is above batches.size {batches.size}: set it lower")
        if self.save_openclip and not isinstance(method, TowerMethod):
            raise ValueError(f"save_openclip is for objectives that finetune a CLIP, not for {method.kind}")
        if method.compares_samples and batches.size < 2:
            raise ValueError("this loss compares the samples of a step: set batches.size to 2 or more")
        return self
