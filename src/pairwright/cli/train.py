"""``pairwright train``: training of a model on shards by a recipe."""

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.options.declarations import input_option, output_option
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import duration, emit, note, note_hub_models
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import MissingResourceError, UsageError
from pairwright.datasets.progress import open_step
from pairwright.training.recipes.names import recipe_names

if TYPE_CHECKING:
    from pairwright.training.recipes.settings import FinetuningRecipe, Recipe
    from pairwright.training.trainer import TrainingReport

_NEEDED = ("torch", "transformers", "accelerate", "peft", "safetensors")


@with_progress
def train(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help=f"{', '.join(recipe_names())}; or a YAML file.",
        ),
    ],
    *,
    data: Annotated[
        str,
        input_option(help="A build, a folder of shards, a .tar or {00000..00099}.tar, or the URL of one (s3://...)."),
    ],
    validation: Annotated[str, input_option(help="Shards to evaluate a generative model on.")] = "",
    on_error: Annotated[
        Literal["skip", "stop"], input_option(help="Skip broken samples and count them, or stop.")
    ] = "skip",
    out: Annotated[Path, output_option(help="Folder of the run: model/, log.csv, checkpoints.")],
    report_to: Annotated[
        str, output_option("--report-to", metavar="NAMES", help="Also report to tensorboard, wandb, mlflow, trackio.")
    ] = "",
    model: Annotated[str, typer.Option(help="Initial model: a folder or a hub name.")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as optimizer.lr=1e-5. Repeatable."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume from the newest checkpoint in OUT.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print parameters, memory per GPU, steps and required data rate; train nothing (generative recipes only).",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model on shards.

    Several GPUs: `accelerate launch --multi_gpu -m pairwright train ...`; batches.size is divided among them.

    \b
    Examples:
      pairwright train negclip --data build/birds --model openai/clip-vit-base-patch32 --out run
      pairwright train fsc-clip --data shards --model clip --out run --set precision=bf16 --set optimizer.lr=1e-5
      pairwright train fsc-clip --data shards --model clip --out run --set precision=bf16 --set optimizer.lr=1e-5 --resume
      pairwright train vlm-instruct --data shards --model Qwen/Qwen2.5-VL-3B-Instruct --out run --set method.lora.rank=16
      pairwright train llava-7b-8gpu --data shards --model llava-hf/llava-1.5-7b-hf --out run --dry-run
    """
    from pairwright.training.recipes.reading import read_recipe
    from pairwright.training.recipes.settings import FinetuningRecipe

    settings = read_recipe(recipe, changes or [])  # before torch, whose import takes seconds
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingResourceError(f"training requires {', '.join(missing)}: pip install 'pairwright[train]'")
    # Batches in huge pages: normalizing images on a CPU takes a third of the time. torch reads this at its first tensor.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    reporters = tuple(filter(None, map(str.strip, report_to.split(","))))
    with open_step("loading PyTorch", unit=""):
        from transformers.utils import logging

        from pairwright.datasets.shards.indexed_shards import find_indexed_shards
        from pairwright.training.loading.rationales import check_training_data
        from pairwright.training.reporters import check_reporters

    check_reporters(reporters)
    check_data = check_training_data if isinstance(settings, FinetuningRecipe) else find_indexed_shards
    for each in filter(None, (data, validation)):
        check_data(each)  # before the hub is asked for the model
    note_hub_models([model])
    logging.disable_progress_bar()  # of loading weights
    logging.set_verbosity_error()  # "requires torchvision; falling back"
    if dry_run:
        _print_plan(settings, data, model, validation, as_json=as_json)
        return
    resumable_on_interrupt("--resume continues from the newest checkpoint")
    named: dict[str, Any] = {
        "validation": validation,
        "resume": resume,
        "on_error": on_error,
        "report_to": reporters,
        "on_message": note,
    }
    if isinstance(settings, FinetuningRecipe):
        from pairwright.training.finetuning.run import FinetuningRun, finetune

        report = finetune(FinetuningRun(settings, data, model, out, **named))
    else:
        from pairwright.training.trainer import TrainingRun
        from pairwright.training.trainer import train as run

        report = run(TrainingRun(settings, data, model, out, **named, on_row=lambda row: note(_log_line(row))))
    if report.main:
        if report.cut:
            note(
                f"{count_phrase(report.cut, 'text')} longer than the model's limit, truncated (counted in each epoch)."
            )
        emit(report.as_json(), _lines(report), as_json=as_json)


def _print_plan(
    settings: "Recipe | FinetuningRecipe", data: str, model: str, validation: str, *, as_json: bool
) -> None:
    from dataclasses import asdict

    from pairwright.training.finetuning.plan import make_plan
    from pairwright.training.recipes.settings import FinetuningRecipe

    if not isinstance(settings, FinetuningRecipe):
        raise UsageError("--dry-run is for recipes that finetune a generative model, such as llava-instruct.")
    plan = make_plan(settings, data, model, validation)
    emit(asdict(plan), plan.lines(), as_json=as_json)


def _log_line(row: Mapping[str, float]) -> str:
    parts = "".join(f"  {name[5:]} {value:.4f}" for name, value in row.items() if name.startswith("loss_"))
    return (
        f"  step {row['step']}  epoch {row['epoch']:.2f}  loss {row['loss']:.4f}{parts}  lr {row['lr']:.2e}  "
        f"{row['samples_per_second']:,.0f} samples/s  waiting {row['waiting']:.0%}"
    )


def _sample_counts(outcome: str, reasons: Mapping[str, int]) -> list[str]:
    return [
        f"  {outcome:<11}  {count_phrase(count, 'sample')}: {reason.replace('_', ' ')}"
        for reason, count in sorted(reasons.items())
    ]


def _lines(report: "TrainingReport") -> list[str]:
    return [
        f"{report.model}",
        f"  steps        {report.steps:,} ({report.epochs:g} {'epoch' if report.epochs == 1 else 'epochs'} of {report.samples:,} {report.unit})",
        *_sample_counts("omitted", report.left_out),
        *_sample_counts("skipped", report.skipped),
        *_sample_counts("lacking", report.lacking),
        f"  trained      {count_phrase(report.trained, 'parameter')}; {report.frozen:,} frozen",
        f"  loss         {report.loss:.4f}",
        f"  took         {duration(report.seconds)}",
    ]
