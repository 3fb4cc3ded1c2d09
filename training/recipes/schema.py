"""What a recipe of the trainer can say, and what of it cannot be. Nothing here needs torch.

`recipe_reading.py` reads recipes from YAML; those that we give stand in ``recipes/``. A method has the settings that
it uses and no others, so a setting that would do nothing is an unknown one.
"""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _RecipeSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LoraSettings(_RecipeSection):
    """Low-rank matrices in both towers; they alone are trained."""

    rank: int = Field(4, ge=1)
    alpha: float = Field(1.0, gt=0)


class OnlineNegativeSettings(_RecipeSection):
    """Negatives made while training, other ones in each epoch, instead of those of the shards."""

    pool: Path = Field(description="Parquet file of a pool's statistics, which tell what words are used with which.")
    types: tuple[str, ...] = Field((), description="Of the rules' types; empty: all, and shuffle.")


class _ClipSettings(_RecipeSection):
    lora: LoraSettings | None = None
    locked_text: bool = Field(default=False, description="Leave the text tower as it is.")

    @model_validator(mode="after")
    def _one_share(self) -> Self:
        if self.lora and self.locked_text:
            raise ValueError("`lora` and `locked_text` both say what is trained. Leave one out")
        return self


class ClipMethod(_ClipSettings):
    """Images and captions find each other."""

    kind: Literal["clip"]


class NegClipMethod(_ClipSettings):
    """CLIP with the hard negatives of all rows among each image's texts."""

    kind: Literal["negclip"]
    negatives: int = Field(1, ge=1, description="Of a row, at most.")
    online: OnlineNegativeSettings | None = None


class HardPositivesMethod(_ClipSettings):
    """CLIP with hard negatives and hard positives, each a loss of its own."""

    kind: Literal["hp-hn"]
    negatives: int = Field(1, ge=1, description="Of a row, at most.")
    positives: int = Field(1, ge=1, description="Of a row, at most.")
    negatives_weight: float = Field(1.0, ge=0)
    positives_weight: float = Field(1.0, ge=0)


class FscClipMethod(_ClipSettings):
    """CLIP with hard negatives by whole texts and by tokens, softened."""

    kind: Literal["fsc-clip"]
    negatives: int = Field(3, ge=1, description="Of a row, at most.")
    online: OnlineNegativeSettings | None = None
    whole_weight: float = Field(0.5, ge=0)
    local_weight: float = Field(0.2, ge=0)
    focal: float = Field(2.0, ge=0)
    smoothing: float = Field(0.02, ge=0, le=1)


class ReactMethod(_RecipeSection):
    """Gated blocks in a frozen CLIP; retrieved pairs with alike texts are positives of each other."""

    kind: Literal["react"]
    blocks: int = Field(6, ge=1, description="Gated blocks, before the last layers of the image tower.")
    threshold: float = Field(
        0.9, ge=-1, le=2, description="Cosine from which two texts are alike; above 1: none are, which is CLIP's loss."
    )


class FocalLensClipMethod(_RecipeSection):
    """An image read under an instruction finds the answer."""

    kind: Literal["focallens-clip"]
    turns: int = Field(0, ge=0, description="Of a sample in a batch, at most; 0: all.")
    types: tuple[str, ...] = Field((), description="Of conversations; empty: all.")
    both_ways: bool = Field(default=False, description="Answers also find their image and instruction.")


class FocalLensMllmMethod(_RecipeSection):
    """The same with a language model, whose state behind image and instruction finds the answer."""

    kind: Literal["focallens-mllm"]
    tiles: bool = Field(
        default=False, description="AnyRes: tiles of the image beside the whole; a model that has them keeps them."
    )
    target: str = Field(
        "", description="CLIP that embeds the answers; empty: --model is a FocalLens-MLLM, with its own."
    )
    turns: int = Field(0, ge=0, description="Of a sample in a batch, at most; 0: all.")
    types: tuple[str, ...] = Field((), description="Of conversations; empty: all.")
    both_ways: bool = Field(default=False, description="Answers also find their image and instruction.")


class LlavaMethod(_RecipeSection):
    """A vision tower, a projection and a language model; the loss is on answers and stop marks."""

    kind: Literal["llava-align", "llava-instruct"]
    language: str = Field("", description="The language model, where --model is a CLIP; empty: --model is a LLaVA.")
    projection: Literal["linear", "mlp"] = "mlp"
    tiles: bool = Field(
        default=False, description="AnyRes: tiles of the image beside the whole; a model that has them keeps them."
    )
    types: tuple[str, ...] = Field((), description="Of conversations; empty: all.")


class StepByStepMethod(_RecipeSection):
    """An encoder-decoder writes labels and rationales."""

    kind: Literal["step-by-step"]
    objectives: Literal["multi-task", "single-task", "label"] = "multi-task"
    rationale_weight: float = Field(1.0, ge=0, description="Lambda; with multi-task only.")

    @model_validator(mode="after")
    def _weight_of_a_task(self) -> Self:
        if self.objectives != "multi-task" and "rationale_weight" in self.model_fields_set:
            raise ValueError(f"`rationale_weight` is of multi-task, not of {self.objectives}. Leave it out")
        return self


MethodSettings = (
    ClipMethod
    | NegClipMethod
    | HardPositivesMethod
    | FscClipMethod
    | ReactMethod
    | FocalLensClipMethod
    | FocalLensMllmMethod
    | LlavaMethod
    | StepByStepMethod
)


class BatchSettings(_RecipeSection):
    """What a step takes."""

    size: int = Field(256, ge=1, description="Samples (of LLaVA, conversations) a step, over all processes.")
    max_tokens: int | None = Field(None, ge=3, description="Of a text; left out: what the model reads.")
    crop: float = Field(0.9, gt=0, le=1, description="Least share of an image that a random crop keeps; 1: the middle.")
    mirror: float = Field(0.0, ge=0, le=1, description="Share of images that are mirrored; left becomes right.")
    window: int = Field(100_000, ge=0, description="Samples that are shuffled together; 0: as they stand.")
    ends: Literal["even", "repeat", "drop"] = "even"
    workers: int | None = Field(
        None, ge=0, description="Loading processes per training process; left out: one per core, at most 16."
    )


class OptimizerSettings(_RecipeSection):
    """AdamW. Biases, norms and the temperature do not decay."""

    lr: float = Field(1e-5, gt=0)
    weight_decay: float = Field(0.1, ge=0)
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = Field(1e-6, gt=0)
    clip: float = Field(0.0, ge=0, description="Largest norm of the gradient; 0: any.")


class ScheduleSettings(_RecipeSection):
    """How long, and how the learning rate goes: up in a line, then down in half a cosine."""

    epochs: int = Field(5, ge=1)
    steps: int = Field(0, ge=0, description="Instead of epochs; 0: epochs.")
    warmup: float = Field(50, ge=0, description="Steps; below 1, a share of all.")


class EarlyStopSettings(_RecipeSection):
    """End when the loss on --validation no longer falls; the best weights are kept."""

    patience: int = Field(3, ge=1, description="Looks without a new best before the end.")
    every: int = Field(0, ge=0, description="Steps between two looks; 0: an epoch.")


class Recipe(_RecipeSection):
    """A whole training run but for its data and the model it begins with."""

    method: MethodSettings = Field(discriminator="kind")
    batches: BatchSettings = BatchSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    early_stop: EarlyStopSettings | None = None
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    seed: int = Field(0, ge=0)
    log_every: int = Field(10, ge=1, description="Steps between two lines of the log.")
    save_every: int = Field(500, ge=1, description="Steps between two checkpoints.")

    @model_validator(mode="after")
    def _compares(self) -> Self:
        if self.method.kind in {"clip", "react"} and self.batches.size < 2:
            raise ValueError("this loss compares the samples of a step: set batches.size to 2 or more")
        return self
