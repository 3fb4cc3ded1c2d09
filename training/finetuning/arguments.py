"""`transformers.TrainingArguments` of a recipe: our keys by name, ``trainer`` for everything else.

The processes are those of `torchrun` or `accelerate launch`; FSDP and DeepSpeed are set in ``trainer`` (``fsdp: true``,
``deepspeed: {...}``) or by accelerate's config.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, get_type_hints

import torch
from accelerate.utils import FullyShardedDataParallelPlugin, TorchDynamoPlugin  # type: ignore[import-untyped]
from pydantic import TypeAdapter, ValidationError
from transformers import PreTrainedModel, Seq2SeqTrainingArguments, Trainer, TrainingArguments, get_scheduler
from transformers.integrations.deepspeed import is_deepspeed_available

from pairwright.datasets.errors import MissingResourceError, UsageError
from pairwright.datasets.suggestions import did_you_mean, require_known
from pairwright.training.accelerate_setup import default_workers
from pairwright.training.finetuning.networks import sharded_layer_names, tie_embedding_modules
from pairwright.training.recipes.settings import FinetuningRecipe, StepByStepMethod

_LAYERS = "transformer_layer_cls_to_wrap"
# Of what is ours here: order of samples, reports, resuming, evaluation by loss.
_WITHOUT_EFFECT = (
    *("do_train", "do_eval", "do_predict", "resume_from_checkpoint", "train_sampling_strategy", "length_column_name"),
    *("run_name", "project", "trackio_space_id", "trackio_bucket_id", "trackio_static_space_id", "local_rank"),
    *("predict_with_generate", "generation_max_length", "generation_num_beams", "generation_config", "sortish_sampler"),
)
_REFUSALS = (ValueError, TypeError, KeyError, AttributeError, ImportError, OSError, NotImplementedError)


def training_arguments(recipe: FinetuningRecipe, out: Path, *, validated: bool) -> TrainingArguments:
    """Join the process group of this process, if any, and return the arguments; ``validated``: with validation data.

    Raises:
        UsageError: settings that transformers refuses, that contradict each other, or that do not fit the processes.
        MissingResourceError: DeepSpeed is not installed.
    """
    processes = max(1, int(os.environ.get("WORLD_SIZE", "1")))
    named = _named_arguments(recipe, out, processes, validated=validated)
    if named.get("deepspeed") and not is_deepspeed_available():
        raise MissingResourceError("trainer.deepspeed requires deepspeed: pip install deepspeed")
    with explain_refusals():
        arguments = _arguments_class(recipe)(**named)
    if arguments.world_size != processes:
        raise UsageError(f"{processes} processes were started, but accelerate joined {arguments.world_size}.")
    arguments._n_gpu = min(arguments.n_gpu, 1)  # noqa: SLF001 - DataParallel would split packed image patches
    if (plugin := arguments.deepspeed_plugin) and plugin.zero_stage == 3:
        # Else the weights of the finished model would only be in DeepSpeed's own files.
        plugin.deepspeed_config["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] = True
    _check_arguments(arguments, joined=arguments.parallel_mode.value == "distributed")
    return arguments


def check_planned_arguments(recipe: FinetuningRecipe, model: PreTrainedModel, *, validated: bool) -> None:
    """Check the arguments of a run on ``hardware.gpus`` GPUs, as the run does, without joining processes.

    ``model`` may be without weights. Not checked: what depends on the machine, such as installed packages.
    """
    gpus = recipe.hardware.gpus

    class PlannedArguments(_arguments_class(recipe)):  # type: ignore[misc]  # a class chosen at run time
        """Arguments of processes that are not here."""

        world_size = gpus
        _setup_devices = torch.device("cpu")

    named = _named_arguments(recipe, Path(), gpus, validated=validated) | {"use_cpu": True, "tf32": None}
    if not is_deepspeed_available():
        named.pop("deepspeed", None)
    with explain_refusals():
        arguments = PlannedArguments(**named)
    _check_arguments(arguments, joined=gpus > 1)
    _check_model(arguments, model)


@contextmanager
def explain_refusals() -> Iterator[None]:
    """Translate what transformers and accelerate raise on wrong settings into a one-line `UsageError`."""
    try:
        yield
    except _REFUSALS as error:
        what = " ".join(str(error).split())
        what = f"{type(error).__name__} {what}" if isinstance(error, KeyError | AttributeError) else what
        raise UsageError(f"transformers refuses these settings: {what}") from error


def _named_arguments(recipe: FinetuningRecipe, out: Path, processes: int, *, validated: bool) -> dict[str, Any]:
    """Return the recipe's keys and ``trainer`` by names of transformers, for a number of processes."""
    workers = default_workers(processes) if recipe.batches.workers is None else recipe.batches.workers
    ours = _our_arguments(recipe, out, validated=validated) | divide_batch(recipe, processes)
    ours["dataloader_num_workers"] = workers
    named = _trainer_settings(recipe, {*ours, "gradient_checkpointing"})
    if named.get("fsdp") and named.get("deepspeed"):
        raise UsageError("trainer.fsdp and trainer.deepspeed are mutually exclusive. Remove one.")
    if named.get("fsdp") and isinstance(named.setdefault("fsdp_config", {}), dict):
        # FSDP's own checkpointing: the model's gathers each layer's weights once more in the backward pass.
        again = ours.pop("activation_checkpointing")
        named["fsdp_config"] = {"activation_checkpointing": again, **named["fsdp_config"]}
    return {**ours, **named}


def _trainer_settings(recipe: FinetuningRecipe, ours: set[str]) -> dict[str, Any]:
    """Return the settings in ``trainer`` with the types that transformers declares (YAML reads 1e-5 as a string)."""
    types = get_type_hints(_arguments_class(recipe)) | {"fsdp": bool | str | list[str]}  # declared without bool
    found = {}
    for name, value in recipe.trainer.items():
        if name not in types:
            hint = did_you_mean([name], types) or "Known are those of transformers.TrainingArguments."
            raise UsageError(f"trainer.{name}: no such setting of transformers. {hint}")
        if name in ours:
            raise UsageError(f"trainer.{name} has a key of its own in the recipe: remove it from `trainer`.")
        if name in _WITHOUT_EFFECT:
            raise UsageError(f"trainer.{name} has no effect here: remove it from `trainer`.")
        try:
            found[name] = TypeAdapter(types[name]).validate_python(value)
        except ValidationError as error:
            said = " or ".join(dict.fromkeys(problem["msg"].lower() for problem in error.errors()))
            raise UsageError(f"trainer.{name} is {value!r}: {said}. Change it.") from None
    return found


def _check_arguments(arguments: TrainingArguments, *, joined: bool) -> None:
    """Make what `Trainer` makes of them later, so that it is refused before weights are loaded; ``joined``: to a group."""
    if arguments.fsdp and not joined:  # accelerate would silently train the whole model
        raise UsageError(
            "trainer.fsdp shards the model over several processes (--dry-run: hardware.gpus), and there is one. Launch by "
            "torchrun --nproc-per-node N, or set trainer.fsdp=false."
        )
    with explain_refusals():
        optimizer = torch.optim.SGD([torch.zeros(1)])
        kind, named = arguments.lr_scheduler_type, arguments.lr_scheduler_kwargs
        get_scheduler(kind, optimizer, num_warmup_steps=0, num_training_steps=1, scheduler_specific_kwargs=named)
        TorchDynamoPlugin(arguments.torch_compile_backend, arguments.torch_compile_mode)
        if arguments.fsdp_plugin_args:
            FullyShardedDataParallelPlugin(**arguments.fsdp_plugin_args)


def _arguments_class(recipe: FinetuningRecipe) -> type[TrainingArguments]:
    chosen: type[TrainingArguments] = (
        Seq2SeqTrainingArguments if isinstance(recipe.method, StepByStepMethod) else TrainingArguments
    )
    return chosen


def divide_batch(recipe: FinetuningRecipe, processes: int) -> dict[str, int]:
    """Return rows per device and gradient accumulation for a number of processes."""
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
    optimizer, schedule = recipe.optimizer, recipe.schedule
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
        "eval_strategy": "steps" if validated else "no",
        "eval_steps": recipe.save_every if validated else None,
        "save_steps": recipe.save_every,
        "save_total_limit": recipe.keep,
        "prediction_loss_only": True,
        "remove_unused_columns": False,
        "disable_tqdm": True,
        "report_to": [],  # `reporters.py`
        "use_cpu": not torch.accelerator.is_available(),
    }


def prepare_sharding(arguments: TrainingArguments, model: PreTrainedModel) -> None:
    """Let FSDP shard the layers that the model has, unless the recipe or accelerate's config names others."""
    model._no_split_modules = sharded_layer_names(model)  # noqa: SLF001 - which accelerate reads
    tie_embedding_modules(model)
    _check_model(arguments, model)


def _check_model(arguments: TrainingArguments, model: PreTrainedModel) -> None:
    with explain_refusals():
        Trainer.get_optimizer_cls_and_kwargs(arguments, model)
        if arguments.deepspeed:  # a copy: the run's is completed when its steps are known
            deepcopy(arguments.hf_deepspeed_config).trainer_config_finalize(arguments, model, 1)
    named = (arguments.fsdp_config or {}).get(_LAYERS, ()) if arguments.fsdp else ()
    present = dict.fromkeys(type(module).__name__ for module in model.modules())
    require_known(f"trainer.fsdp_config.{_LAYERS}: the model has no layer", named, present)
