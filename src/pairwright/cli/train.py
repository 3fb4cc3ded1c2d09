"""``pairwright train``: a model of the papers, from shards as they are."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.generate.summary import count_phrase
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import duration, emit, note
from pairwright.cli.output.hub import note_hub_models
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import MissingResourceError
from pairwright.datasets.progress import open_step

if TYPE_CHECKING:
    from pairwright.training.metrics_log import LogRow
    from pairwright.training.trainer import TrainingReport

_NEEDED = ("torch", "transformers", "accelerate", "peft", "safetensors")


@with_progress
def train(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="clip, negclip, hp-hn, fsc-clip, react, focallens-clip, focallens-mllm, llava-align, llava-instruct, "
            "step-by-step; or a YAML file.",
        ),
    ],
    *,
    data: Annotated[str, typer.Option("--data", help="Shards: {00000..00099}.tar, a tar or a folder of them.")],
    model: Annotated[str, typer.Option("--model", help="What to begin with: a folder or a name on the hub.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run: model/, log.csv, checkpoints.")],
    validation: Annotated[
        str, typer.Option("--validation", help="Shards for early_stop, which a recipe has to ask for.")
    ] = "",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, as optimizer.lr=1e-5. Repeatable."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint in OUT.")] = False,
    on_error: Annotated[
        Literal["skip", "stop"],
        typer.Option(
            "--on-error", help="Samples that are broken or lack an image or caption: skip and count them, or stop."
        ),
    ] = "skip",
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write OUT/tensorboard too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model on shards.

    Several GPUs: `accelerate launch --multi_gpu -m pairwright train ...`; batches.size is divided among them.

    \b
    Examples:
      pairwright train negclip --data 'shards/{00000..00004}.tar' --model openai/clip-vit-base-patch32 --out run
      pairwright train fsc-clip --data shards --model clip --out run --set precision=bf16 --set optimizer.lr=1e-5
      pairwright train fsc-clip --data shards --model clip --out run --set precision=bf16 --set optimizer.lr=1e-5 --resume
    """
    from pairwright.training.recipes.reading import read_recipe

    settings = read_recipe(recipe, changes or [])  # before torch, which takes seconds to come
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingResourceError(f"training needs {', '.join(missing)}: pip install 'pairwright[train]'")
    with open_step("loading PyTorch", unit=""):
        from transformers.utils import logging

        from pairwright.training.trainer import TrainingRun
        from pairwright.training.trainer import train as run

    note_hub_models([model])
    logging.disable_progress_bar()  # of loading weights, which takes a moment
    resumable_on_interrupt("--resume goes on from the newest checkpoint")
    asked = TrainingRun(
        settings,
        data,
        model,
        out,
        validation=validation,
        resume=resume,
        on_error=on_error,
        board=tensorboard,
        on_row=lambda row: note(_log_line(row)),
        on_message=note,
    )
    report = run(asked)
    if report.main:
        if report.cut:
            note(f"{report.cut:,} texts were longer than the model reads, and lost their end (counted in each epoch).")
        emit(_report_line(report), _lines(report), as_json=as_json)


def _log_line(row: "LogRow") -> str:
    parts = "".join(f"  {name} {value:.4f}" for name, value in row.parts.items())
    looked = "" if row.validation is None else f"  validation {row.validation:.4f}"
    return (
        f"  step {row.step}  epoch {row.epoch:.2f}  loss {row.loss:.4f}{parts}{looked}  lr {row.lr:.2e}  "
        f"{row.samples_per_second:,.0f} samples/s  waiting {row.waiting:.0%}"
    )


def _report_line(report: "TrainingReport") -> dict[str, object]:
    from dataclasses import asdict

    return {name: value for name, value in asdict(report).items() if name != "main"}


def _sample_counts(what: str, reasons: Mapping[str, int]) -> list[str]:
    return [
        f"  {what:<11}  {count_phrase(count, 'sample')}: {_reason_text(reason)}"
        for reason, count in sorted(reasons.items())
    ]


def _lines(report: "TrainingReport") -> list[str]:
    best = [] if report.best is None else [f"  best         {report.best:.4f} on validation data; its weights are kept"]
    return [
        f"{report.model}",
        f"  steps        {report.steps:,} ({report.epochs:g} epochs of {report.samples:,} {report.unit}), {report.ended}",
        *_sample_counts("left out", report.left_out),
        *_sample_counts("skipped", report.skipped),
        *_sample_counts("lacking", report.lacking),
        f"  trained      {report.trained:,} parameters; {report.frozen:,} frozen",
        f"  loss         {report.loss:.4f}",
        *best,
        f"  took         {duration(report.seconds)}",
    ]


def _reason_text(reason: str) -> str:
    return reason.replace("_", " ")
