"""``pairwright evaluate negatives``, ``retrieval``, ``zero-shot``, ``conditions``, ``rationales``: models by task."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairwright.cli.evaluate.report import print_evaluation, require_torch
from pairwright.cli.options.declarations import advanced_option, input_option, output_option, refuse_url, with_options
from pairwright.cli.options.input import JsonOption, LayoutOption
from pairwright.cli.output.console import note
from pairwright.cli.output.files import check_extension, check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError

ModelsArgument = Annotated[
    list[str], typer.Argument(metavar="MODEL...", help="Folders, of a run too, or hub names; several are compared.")
]
_DATA = "Shards or a file, see the documentation."
DataOption = Annotated[list[str], input_option("--data", help=f"{_DATA} Repeatable.")]
OneDataOption = Annotated[str, input_option("--data", help=_DATA)]
ImagesOption = Annotated[str, input_option("--images", help="Folder of relative image paths; else that of the file.")]
LabelsOption = Annotated[Path | None, input_option("--labels", help="Labels of shards: a file with a column key.")]


def _check_page(html: Path | None) -> Path | None:
    """Check the page before the models run, which may take hours."""
    refuse_url(html)
    check_extension(html, ".html")
    check_outputs(html)
    return html


HtmlOption = Annotated[Path | None, output_option("--html", help="Page with table and plots.", callback=_check_page)]
DeviceOption = Annotated[str, advanced_option("--device", help="Device: cpu, cuda; else detected.")]


@dataclass(frozen=True)
class EvaluationOptions:
    """Options of all tasks that open models."""

    images: ImagesOption = ""
    html: HtmlOption = None
    device: DeviceOption = ""
    batch_size: Annotated[int, advanced_option(min=1, help="Images or texts per batch.")] = 64
    as_json: JsonOption = False

    def run(self, task: str, models: Sequence[str], data: Sequence[str], **more: Any) -> None:
        """Evaluate models by a task of `training.evaluation.tasks` and print the results."""
        require_torch(models)
        from pairwright.training.evaluation.tasks import EvaluationRequest, evaluate_models

        started = time.perf_counter()
        request = EvaluationRequest(
            task,
            tuple(models),
            tuple(data),
            device=self.device,
            batch=self.batch_size,
            images=self.images,
            **more,
        )
        print_evaluation(task, data, list(evaluate_models(request, note)), self.html, started, as_json=self.as_json)


with_evaluation_options = with_options(EvaluationOptions, "common")


@with_progress
@with_evaluation_options
def negatives(
    models: ModelsArgument, *, data: DataOption, layout: LayoutOption = "", common: EvaluationOptions
) -> None:
    """Evaluate accuracy on hard negatives and brittleness to hard positives.

    Files of benchmarks give the scores that their users report: Winoground text, image and group, What'sUp pair and set.

    \b
    Examples:
      pairwright evaluate negatives run openai/clip-vit-base-patch32 --data swap_att.json --images val2017
      pairwright evaluate negatives run clip --data shards --html report.html
      pairwright evaluate negatives openai/clip-vit-base-patch32 --data winoground/examples.jsonl --images images
    """
    common.run("negatives", models, data, layout=layout)


@with_progress
@with_evaluation_options
def retrieval(models: ModelsArgument, *, data: DataOption, common: EvaluationOptions) -> None:
    """Evaluate Recall@k of texts for images and images for texts.

    \b
    Example:
      pairwright evaluate retrieval run clip --data 'shards/{00000..00004}.tar'
    """
    common.run("retrieval", models, data)


@with_progress
@with_evaluation_options
def zero_shot(
    models: ModelsArgument,
    *,
    data: OneDataOption,
    by: Annotated[str, typer.Option("--by", metavar="COLUMN", help="Label column with the class.")],
    labels: LabelsOption = None,
    classes: Annotated[
        Path | None, input_option("--classes", help="JSON of classes and templates, as for `pairwright retrieve`.")
    ] = None,
    common: EvaluationOptions,
) -> None:
    """Evaluate zero-shot classification by class names.

    \b
    Example:
      pairwright evaluate zero-shot run clip --data birds.csv --by species --classes birds.json
    """
    common.run("zero-shot", models, [data], labels=labels, by=(by,), classes=classes)


@with_progress
@with_evaluation_options
def conditions(
    models: ModelsArgument,
    *,
    data: OneDataOption,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMN", help="Label that has to match, A+B for both, or rgb. Repeatable."),
    ] = None,
    instruction: Annotated[
        list[str] | None,
        typer.Option("--instruction", metavar="COLUMN=TEXT", help="Instruction for a --by. Repeatable."),
    ] = None,
    labels: LabelsOption = None,
    common: EvaluationOptions,
) -> None:
    """Evaluate image-image retrieval by instruction (FocalLens).

    Metrics: mean average precision by label; rank correlation by a colour that is a number. Without --by, all known
    labels are evaluated.

    \b
    Example:
      pairwright evaluate conditions lens clip --data colorshape --by colour --by rgb --html lens.html
    """
    instructions = _parse_instructions(instruction or ())
    common.run("conditions", models, [data], labels=labels, by=tuple(by or ()), instructions=instructions)


@with_progress
@with_options(EvaluationOptions, "common", ("html", "device", "batch_size", "as_json"))
def rationales(
    models: ModelsArgument,
    *,
    data: DataOption,
    split: Annotated[Literal["validation", "train"], input_option("--split", help="Split.")] = "validation",
    single_task: Annotated[
        bool, typer.Option("--single-task", help="The student writes rationale and label as one text.")
    ] = False,
    common: EvaluationOptions,
) -> None:
    """Evaluate labels and rationales of a student (T5 or another encoder-decoder).

    \b
    Example:
      pairwright evaluate rationales student baseline --data nli.jsonl
    """
    common.run("rationales", models, data, split=split, single=single_task)


def _parse_instructions(items: Sequence[str]) -> dict[str, str]:
    instructions: dict[str, str] = {}
    for item in items:
        name, sign, text = (part.strip() for part in item.partition("="))
        if not (sign and name and text):
            raise UsageError(f"--instruction {item!r}: write COLUMN=TEXT, such as 'colour=What color is it?'.")
        instructions[name] = text
    return instructions
