"""Settings of a recipe: sections, methods with one class each, and both kinds of recipes. Imports no torch.

`reading.py` reads recipes from YAML; the built-in ones are in this folder. Each method has only the settings that it
uses, so a setting without effect is an unknown key. A new objective is a class here, a case in `preparation.py` and a
YAML file.

`Recipe` is run by our own loop, `FinetuningRecipe` by transformers' Trainer. Its step is a whole batch
(``batches.size``) on any number of GPUs: each process computes ``per_device`` rows at a time and accumulates their
gradients. Settings of `transformers.TrainingArguments` without a key of their own are in ``trainer``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FilePath, model_validator


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

    removed_keys: ClassVar[Mapping[str, str]] = {"mirror": "Remove it: a mirrored image makes left and right false."}

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

    removed_keys: ClassVar[Mapping[str, str]] = {
        "early_stop": "Generative models: `trainer.load_best_model_at_end` with --validation; CLIPs: `pairwright evaluate`."
    }
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    seed: int = Field(0, ge=0)
    log_every: int = Field(10, ge=1, description="Steps between two rows of the log.")
    save_every: int = Field(500, ge=1, description="Steps between two checkpoints (and evaluations, if --validation).")


class Method(RecipeSection):
    """The ``method`` section of a recipe."""

    compares_samples: ClassVar[bool] = False
    """Whether the loss compares the samples of a step, so that a batch needs two or more."""
    loss_parts: ClassVar[tuple[str, ...]] = ()
    """Names of the loss's parts, which are columns of the log."""


class PairMethod(Method):
    """An objective over image-text pairs: rows are embedded separately and compared afterwards, in batches of one shape."""

    local_features: ClassVar[bool] = False
    """Whether the loss also compares patches and tokens."""


class TowerMethod(PairMethod):
    """An objective that finetunes CLIP's towers, whole or by LoRA."""

    lora: LoraSettings | None = None
    locked_text: bool = Field(default=False, description="Freeze the text tower.")

    @model_validator(mode="after")
    def _one_share(self) -> Self:
        if self.lora and self.locked_text:
            raise ValueError("`lora` and `locked_text` are mutually exclusive")
        return self


class HardNegativesMethod(PairMethod):
    """Settings of objectives with hard negatives, of the shards or generated during training."""

    negatives: int = Field(1, ge=1, description="Maximum per row; each epoch draws again.")
    online: OnlineNegativeSettings | None = None


class ClipMethod(TowerMethod):
    """Match images and captions (CLIP, section 2.3)."""

    kind: Literal["clip"]
    compares_samples: ClassVar[bool] = True


class NegClipMethod(HardNegativesMethod, TowerMethod):
    """CLIP with the hard negatives of all rows among each image's texts (ARO, section 4)."""

    kind: Literal["negclip"]


class HardPositivesMethod(TowerMethod):
    """CLIP with one loss for hard negatives and one for hard positives (The Hard Positive Truth, section 5.1, appendix D.1)."""

    kind: Literal["hp-hn"]
    loss_parts: ClassVar[tuple[str, ...]] = ("contrastive", "negatives", "positives")
    negatives: int = Field(1, ge=1, description="Maximum per row.")
    positives: int = Field(1, ge=1, description="Maximum per row.")
    negatives_weight: float = Field(1.0, ge=0, description="Of the hard-negative loss; table 3 goes from 0 to 1.")
    positives_weight: float = Field(1.0, ge=0, description='Of the analogy loss; 0: hard negatives alone ("HN").')


class FscClipMethod(HardNegativesMethod, TowerMethod):
    """CLIP with global and local hard-negative losses, focal and with smoothed labels (FSC-CLIP, section 3.4, eq. 11)."""

    kind: Literal["fsc-clip"]
    local_features: ClassVar[bool] = True
    loss_parts: ClassVar[tuple[str, ...]] = ("contrastive", "whole", "local")
    negatives: int = Field(3, ge=1, description="Maximum per row.")
    whole_weight: float = Field(0.5, ge=0, description="lambda_g, of the loss over whole texts.")
    local_weight: float = Field(0.2, ge=0, description="lambda_l, of the loss over tokens.")
    focal: float = Field(2.0, ge=0, description="gamma, eq. 9.")
    smoothing: float = Field(0.02, ge=0, le=1, description="beta, eq. 10.")


class ReactMethod(PairMethod):
    """Gated blocks in a frozen CLIP; retrieved pairs with similar texts are positives of each other (Liu, chapter 2)."""

    kind: Literal["react"]
    compares_samples: ClassVar[bool] = True
    blocks: int = Field(6, ge=1, description="Gated blocks, before the last layers of the image tower.")
    threshold: float = Field(
        0.9, ge=-1, le=2, description="gamma, eq. 2.5 and 2.6: minimum cosine of similar texts; above 1: CLIP's loss."
    )


class FocalLensMethod(Method):
    """Settings of both FocalLens models: an image under an instruction retrieves its answer (Hsieh, chapter 5)."""

    turns: int = Field(0, ge=0, description="Maximum per sample in a batch; 0: all.")
    types: tuple[str, ...] = Field((), description="Conversation types; empty: all.")
    both_ways: bool = Field(default=False, description="Also retrieve image and instruction by the answer.")


class FocalLensClipMethod(FocalLensMethod):
    """A CLIP whose image tower reads a token of the instruction (eq. 5.1)."""

    kind: Literal["focallens-clip"]


class FocalLensMllmMethod(FocalLensMethod):
    """A LLaVA whose state after image and instruction is the image embedding."""

    kind: Literal["focallens-mllm"]
    tiles: bool = Field(
        default=False, description="AnyRes: tiles of the image and the whole; kept if the model has it."
    )
    target: str = Field(
        "", description="CLIP that embeds the answers; empty: --model is a FocalLens-MLLM with its own."
    )


RecipeMethod = (
    ClipMethod
    | NegClipMethod
    | HardPositivesMethod
    | FscClipMethod
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


class AdapterSettings(RecipeSection):
    """LoRA by peft on the linear layers that would be trained otherwise; merged into the weights at the end."""

    rank: int = Field(16, ge=1)
    alpha: float = Field(32.0, gt=0)


class FinetuningMethod(RecipeSection):
    """Which parameters are trained."""

    train: tuple[str, ...] = Field((), description="Patterns of trained parameters; empty: all.")
    freeze: tuple[str, ...] = Field((), description="Patterns of frozen parameters, of those that `train` names.")
    lora: AdapterSettings | None = None
    weights: Literal["fp32", "bf16"] = Field("fp32", description="Weights in memory; bf16 for LoRA on a large model.")


class ConversationMethod(FinetuningMethod):
    """Answers in conversations about images, under the model's own chat template."""

    kind: Literal["conversations"]
    language: str = Field("", description="Language model to join with the vision tower of --model to a LLaVA.")
    chat_template: FilePath | None = Field(None, description="Jinja file; null: the model's own.")
    types: tuple[str, ...] = Field((), description="Conversation types; empty: all.")
    image_first: bool = Field(
        default=True, description="A single image before the first question; false: before or after, at random."
    )


class StepByStepMethod(FinetuningMethod):
    """Labels and rationales of an encoder-decoder."""

    kind: Literal["step-by-step"]
    objectives: Literal["multi-task", "single-task", "label"] = "multi-task"
    rationale_weight: float = Field(1.0, ge=0, description="lambda, eq. 2.3; for multi-task only.")

    @model_validator(mode="after")
    def _weight_of_a_task(self) -> Self:
        if self.objectives != "multi-task" and "rationale_weight" in self.model_fields_set:
            raise ValueError(f"`rationale_weight` is for multi-task, not for {self.objectives}")
        return self


class FinetuningBatches(LoadingSettings):
    """The batch of a step."""

    size: int = Field(32, ge=1, description="Conversations or examples per step, over all processes.")
    per_device: int = Field(0, ge=0, description="Of these at a time on each device; 0: no gradient accumulation.")
    max_tokens: int = Field(2048, ge=3, description="Tokens per row, image tokens included.")
    group_by_length: bool = Field(default=False, description="Batches of rows of similar length: less padding.")


class HardwareSettings(RecipeSection):
    """The machine that ``--dry-run`` computes for."""

    gpus: int = Field(1, ge=1, description="GPUs of all machines.")
    memory_gb: float = Field(80.0, gt=0, description="Memory of each GPU in GB.")
    tflops: float = Field(989.0, gt=0, description="Peak of each GPU in the run's precision, in TFLOP/s.")
    utilization: float = Field(0.4, gt=0, le=1, description="Reached share of that peak.")


class FinetuningRecipe(RunSettings):
    """A finetuning run, except for its data and the initial model."""

    method: ConversationMethod | StepByStepMethod = Field(discriminator="kind")
    batches: FinetuningBatches = FinetuningBatches()
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    gradient_checkpointing: bool = Field(default=False, description="Compute activations again in the backward pass.")
    keep: int = Field(1, ge=1, description="Checkpoints to keep.")
    trainer: dict[str, Any] = Field({}, description="Further settings of transformers.TrainingArguments.")
    hardware: HardwareSettings = HardwareSettings()
