"""Settings of recipes that finetune generative models of transformers by its `Trainer`. Imports no torch.

``conversations``  any image-text-to-text model on conversations (LLaVA's two stages: Liu, section 3.4)
``step-by-step``   an encoder-decoder on labels and rationales (Hsieh, chapter 2)

A step is a whole batch (``batches.size``) on any number of GPUs: each process computes ``per_device`` rows at a time and
accumulates their gradients. Settings of `transformers.TrainingArguments` without a key of their own are in ``trainer``.
"""

from typing import Any, Literal, Self

from pydantic import Field, FilePath, model_validator

from pairwright.training.recipes.settings import LoadingSettings, RecipeSection, RunSettings


class AdapterSettings(RecipeSection):
    """LoRA by peft on the linear layers that would be trained otherwise; merged into the weights at the end."""

    rank: int = Field(16, ge=1)
    alpha: float = Field(32.0, gt=0)
    dropout: float = Field(0.0, ge=0, lt=1)


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
