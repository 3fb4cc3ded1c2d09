"""`transformers.TrainingArguments` of a recipe: our keys by name, ``trainer`` for everything else.

The processes are those of `torchrun` or `accelerate launch`; FSDP and DeepSpeed are set in ``trainer`` (``fsdp: true``,
``deepspeed: {...}``) or by accelerate's config.
"""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, Seq2SeqTrainingArguments, TrainingArguments

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.training.accelerate_setup import default_workers
from pairwright.training.finetuning.networks import layers_to_wrap, share_embedding
from pairwright.training.finetuning.settings import FinetuningRecipe, StepByStepMethod

_PROJECT = "pairwright"


def training_arguments(
    recipe: FinetuningRecipe, out: Path, *, validated: bool, report_to: Sequence[str] = ()
) -> TrainingArguments:
    """Join the process group of this process, if any, and return the arguments.

    ``validated``: whether there are validation data.

    Raises:
        UsageError: settings that transformers refuses, that contradict each other, or that do not fit the processes.
    """
    ours = _our_arguments(recipe, out, validated=validated) | {"report_to": list(report_to)}
    check_trainer_settings(recipe)
    kind = _arguments_class(recipe)
    os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(out / "tensorboard"))
    processes = max(1, int(os.environ.get("WORLD_SIZE", "1")))
    ours |= divide_batch(recipe, processes)
    named = dict(recipe.trainer)
    if named.get("fsdp") and isinstance(named.setdefault("fsdp_config", {}), dict):
        # FSDP's own checkpointing: the model's gathers each layer's weights once more in the backward pass.
        again = ours.pop("activation_checkpointing")
        named["fsdp_config"] = {"activation_checkpointing": again, **named["fsdp_config"]}
    ours["dataloader_num_workers"] = (
        default_workers(processes) if recipe.batches.workers is None else recipe.batches.workers
    )
    try:
        arguments = kind(**ours, **named)
        if arguments.world_size != processes:
            raise UsageError(f"{processes} processes were started, but accelerate joined {arguments.world_size}.")
    except (ValueError, ImportError, TypeError, KeyError) as error:
        raise UsageError(f"transformers refuses these settings: {str(error).strip().splitlines()[0]}") from None
    arguments._n_gpu = min(arguments.n_gpu, 1)  # noqa: SLF001 - DataParallel would split packed image patches
    return arguments


def check_trainer_settings(recipe: FinetuningRecipe) -> None:
    """Check the names in ``trainer``.

    Raises:
        UsageError: one that transformers does not know, or that has a key of its own in the recipe.
    """
    known = [one.name for one in dataclasses.fields(_arguments_class(recipe))]
    require_known("trainer: no such setting of transformers:", recipe.trainer, known)
    ours = {*_our_arguments(recipe, Path(), validated=False), "report_to", "gradient_accumulation_steps"}
    if set_twice := sorted(recipe.trainer.keys() & ours):
        raise UsageError(f"trainer.{set_twice[0]} has a key of its own in the recipe: remove it from `trainer`.")


def _arguments_class(recipe: FinetuningRecipe) -> type[TrainingArguments]:
    chosen: type[TrainingArguments] = (
        Seq2SeqTrainingArguments if isinstance(recipe.method, StepByStepMethod) else TrainingArguments
    )
    return chosen


def divide_batch(recipe: FinetuningRecipe, processes: int) -> dict[str, int]:
    """Return rows per device and gradient accumulation for a number of processes.

    Raises:
        UsageError: the batch cannot be divided.
    """
    batches = recipe.batches
    share, left = divmod(batches.size, processes)
    each = batches.per_device or share
    if left or not share or share % each:
        raise UsageError(
            f"batches.size {batches.size} is not a multiple of {processes} processes x per_device "
            f"{batches.per_device or 1}: change one of them."
        )
    return {
        "per_device_train_batch_size": each,
        "per_device_eval_batch_size": each,
        "gradient_accumulation_steps": share // each,
    }


def _our_arguments(recipe: FinetuningRecipe, out: Path, *, validated: bool) -> dict[str, Any]:
    optimizer, schedule, early = recipe.optimizer, recipe.schedule, recipe.early_stop
    every = (early.every if early else recipe.save_every) if validated else 0
    strategy = "no" if not validated else "steps" if every else "epoch"
    return {
        "output_dir": str(out / "checkpoints"),
        "num_train_epochs": schedule.epochs,
        "max_steps": schedule.steps or -1,
        "warmup_steps": schedule.warmup,
        "lr_scheduler_type": "cosine",
        "learning_rate": optimizer.lr,
        "weight_decay": optimizer.weight_decay,
        "adam_beta1": optimizer.betas[0],
        "adam_beta2": optimizer.betas[1],
        "adam_epsilon": optimizer.eps,
        "max_grad_norm": optimizer.clip,
        "bf16": recipe.precision == "bf16",
        "fp16": recipe.precision == "fp16",
        "activation_checkpointing": recipe.gradient_checkpointing,
        "seed": recipe.seed,
        "logging_steps": recipe.log_every,
        "eval_strategy": strategy,
        "eval_steps": every or None,
        "save_strategy": strategy if early else "steps",
        "save_steps": (every or recipe.save_every) if early else recipe.save_every,
        "save_total_limit": recipe.keep,
        "load_best_model_at_end": early is not None,
        "metric_for_best_model": "eval_loss" if early else None,
        "prediction_loss_only": True,
        "remove_unused_columns": False,
        "disable_tqdm": True,
        "project": _PROJECT,
        "run_name": out.name,
        "use_cpu": not torch.accelerator.is_available(),
    }


def wrap_present_layers(arguments: TrainingArguments, model: PreTrainedModel) -> None:
    """Let FSDP shard the layers that the model has, unless the recipe or accelerate's config names them."""
    layers = layers_to_wrap(model)
    share_embedding(model)
    if arguments.fsdp and isinstance(arguments.fsdp_config, dict):
        arguments.fsdp_config.setdefault("transformer_layer_cls_to_wrap", layers)
        arguments.fsdp_plugin_args = arguments._process_fsdp_args()  # noqa: SLF001
    os.environ.setdefault("FSDP_TRANSFORMER_CLS_TO_WRAP", ",".join(layers))
