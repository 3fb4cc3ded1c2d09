"""Finetuning run: a generative model of transformers, trained by its `Trainer` on our shards.

The run folder is as in `run_folder.py`, with checkpoints of transformers, the newest ``keep``, a model that
transformers and vLLM open with its processor and chat template, and with LoRA the adapter alone in ``adapter/``. A
checkpoint has weights, optimizer, schedule, random state and position, so a resumed run ends as an uninterrupted one.
"""

import shutil
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object  # type: ignore[import-untyped]
from transformers import PreTrainedModel, PrinterCallback, TrainingArguments
from transformers.integrations.deepspeed import unset_hf_deepspeed_config

from pairwright.datasets.progress import open_step
from pairwright.datasets.rejects import Reject
from pairwright.training.finetuning.arguments import explain_refusals, prepare_sharding, training_arguments
from pairwright.training.finetuning.conversations import ConversationCollator
from pairwright.training.finetuning.dataset import (
    EpochOrder,
    RowCollator,
    ShardDataset,
    open_dataset,
    read_rows,
)
from pairwright.training.finetuning.networks import freeze_untrained, open_network, stop_tokens
from pairwright.training.finetuning.trainers import RunCallback, ShardTrainer, StepByStepTrainer
from pairwright.training.loading.rationales import RationaleCollator, check_training_data
from pairwright.training.loading.shard_index import StoredSample, skip_notes
from pairwright.training.metrics_log import write_history
from pairwright.training.models.generative import GenerativeModel
from pairwright.training.models.registry import model_folder
from pairwright.training.models.trainable_parameters import ParameterCounts, count_parameters
from pairwright.training.out_of_memory import explain_out_of_memory
from pairwright.training.recipes.settings import FinetuningRecipe, StepByStepMethod
from pairwright.training.reporters import open_reporters
from pairwright.training.run_folder import Run, check_run_folder, lock_run_folder, replace_folder, write_run_description
from pairwright.training.trainer import TrainingReport

FinetuningRun = Run[FinetuningRecipe]


def finetune(run: FinetuningRun) -> TrainingReport:
    """Train a model by a finetuning recipe; errors as of `trainer.train`."""
    recipe = run.recipe
    for data in filter(None, (run.data, run.validation)):
        check_training_data(data)
    arguments = training_arguments(recipe, run.out, validated=bool(run.validation))
    check_run_folder(run)
    with explain_out_of_memory(lambda: _memory_helps(recipe)), ExitStack() as stack:
        torch.manual_seed(recipe.seed)
        model = open_network(recipe, model_folder(run.model))
        torch.manual_seed(recipe.seed)  # adapters do not depend on how weights are read (ZeRO-3)
        trained = freeze_untrained(model.network, recipe.method)
        sizes = count_parameters(trained)
        prepare_sharding(arguments, model.network)
        trainer = _trainer(run, arguments, trained, make_collator(recipe, model))
        trainer.accelerator.wait_for_everyone()  # all checks passed on all ranks
        if arguments.process_index == 0:
            stack.enter_context(lock_run_folder(run.out))
            write_run_description(run)
            for line in skip_notes(trainer.train_dataset.index.left_out):
                run.on_message(line)
        _train_to_end(run, trainer)
        return _finish(run, trainer, sizes)


def make_collator(recipe: FinetuningRecipe, model: GenerativeModel) -> RowCollator:
    """Return the collator of a recipe."""
    method, tokens = recipe.method, recipe.batches.max_tokens
    if isinstance(method, StepByStepMethod):
        return RationaleCollator(method.objectives, "train", model.processor, tokens)
    stops = stop_tokens(model.network, model.processor.tokenizer)
    return ConversationCollator(model.processor, stops, method.types, tokens, method.image_first, recipe.seed)


def _trainer(
    run: FinetuningRun, arguments: TrainingArguments, trained: PreTrainedModel, collator: RowCollator
) -> ShardTrainer:
    """Return the trainer; ``trained`` has adapters if any."""
    recipe = run.recipe
    dataset, batches = open_dataset(run.data, collator, run.on_error), recipe.batches
    lengths = _all_lengths(dataset, collator, arguments) if batches.group_by_length else ()
    named: dict[str, Any] = {
        "train_dataset": dataset,
        "eval_dataset": open_dataset(run.validation, collator, run.on_error) if run.validation else None,
        "data_collator": collator,
        "processing_class": collator.processor,
        "order": EpochOrder(dataset.index.counts, batches.window, recipe.seed, lengths, batches.size),
    }
    kind: Any = ShardTrainer
    if isinstance(recipe.method, StepByStepMethod):
        several = recipe.method.objectives == "multi-task"
        kind = partial(StepByStepTrainer, rationale_weight=recipe.method.rationale_weight if several else None)
    with explain_refusals():
        trainer: ShardTrainer = kind(trained, arguments, **named)
    trainer.remove_callback(PrinterCallback)
    return trainer


def _all_lengths(dataset: ShardDataset, collator: RowCollator, arguments: TrainingArguments) -> list[int]:
    """Return the lengths of all rows, 0 of unusable samples; each process reads its share."""
    own = range(arguments.process_index, len(dataset), arguments.world_size)
    rows = read_rows(dataset, own)
    lengths = [(number, collator.length(one) if isinstance(one, StoredSample) else 0) for number, one in rows]
    found = dict(gather_object(lengths))
    return [found[number] for number in range(len(dataset))]


def _train_to_end(run: FinetuningRun, trainer: ShardTrainer) -> None:
    checkpoint = newest_trainer_checkpoint(run.out) if run.resume else None
    step = int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0
    with open_step("training", None, "steps") as bar, open_reporters(trainer.accelerator, run, step) as report:
        trainer.add_callback(RunCallback(run.out, trainer.order, bar.reach, run.on_message, report))
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)


def newest_trainer_checkpoint(out: Path) -> Path | None:
    """Return the newest complete checkpoint; None without one. `Trainer` writes its state last."""
    found = [path.parent for path in out.glob("checkpoints/checkpoint-*/trainer_state.json")]
    return max(found, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)


def _finish(run: FinetuningRun, trainer: ShardTrainer, sizes: ParameterCounts) -> TrainingReport:
    main, folder = trainer.args.process_index == 0, run.out / "model"
    temporary = run.out / (".adapter.tmp" if run.recipe.method.lora else ".model.tmp")
    trainer.save_model(str(temporary))
    skipped: list[tuple[str, Reject]] = gather_object(list(trainer.skipped.items()))
    cut = sum(gather_object([trainer.cut]))
    report = _report(trainer, sizes, dict(skipped), cut, folder)
    if main:
        (temporary / "training_args.bin").unlink(missing_ok=True)  # pickled
        if run.recipe.method.lora:
            _merge_adapter(run, _replace(temporary, run.out / "adapter"), folder)
        else:
            _replace(temporary, folder)
        write_history(run.out / "log.csv", trainer.state.log_history)
        report.write(run.out, {name: f"{one.reason}: {one.detail}" for name, one in skipped})
    trainer.accelerator.wait_for_everyone()
    return report


def _replace(temporary: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return temporary.rename(folder)


def _merge_adapter(run: FinetuningRun, adapter: Path, folder: Path) -> None:
    """Write the initial model with the adapter merged into its weights; it is opened again, as the trained one may be sharded."""
    from peft import PeftModel

    unset_hf_deepspeed_config()  # ZeRO-3 would divide it among all processes, which wait for this one
    torch.manual_seed(run.recipe.seed)  # a projection that was new
    model = open_network(run.recipe, model_folder(run.model))
    merged = PeftModel.from_pretrained(model.network, str(adapter)).merge_and_unload()
    with replace_folder(folder) as temporary:
        merged.save_pretrained(temporary)
        model.processor.save_pretrained(temporary)


def _report(
    trainer: ShardTrainer, sizes: ParameterCounts, skipped: dict[str, Reject], cut: int, folder: Path
) -> TrainingReport:
    state, dataset = trainer.state, trainer.train_dataset
    losses = [row["loss"] for row in state.log_history if "loss" in row]
    return TrainingReport(
        model=str(folder),
        steps=state.global_step,
        epochs=round(state.epoch or 0, 4),
        loss=losses[-1] if losses else 0.0,
        trained=sizes.trained,
        frozen=sizes.frozen,
        unit=trainer.data_collator.unit,
        samples=len(dataset),
        left_out=dict(dataset.index.left_out),
        skipped=dict(Counter(one.reason for one in skipped.values())),
        cut=cut,
        seconds=round(next((row["train_runtime"] for row in state.log_history if "train_runtime" in row), 0.0), 1),
        main=trainer.args.process_index == 0,
    )


def _memory_helps(recipe: FinetuningRecipe) -> str:
    each = recipe.batches.per_device or "all"
    return (
        f"with batches.per_device {each} and precision {recipe.precision}. Try a smaller batches.per_device (gradients are "
        "accumulated), gradient_checkpointing=true, precision=bf16, method.lora.rank=16, a smaller batches.max_tokens, or "
        "trainer.fsdp=true with more processes. --dry-run estimates the memory. Then choose another --out."
    )
