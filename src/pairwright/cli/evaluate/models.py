"""``pairwright evaluate negatives``, ``retrieval``, ``zero-shot``, ``conditions``, ``rationales``: models by a task."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.evaluate.report import print_evaluation, require_torch
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.training.evaluation.evaluated_models import WiseFtSettings

ModelsArgument = Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders (of a run too) or hub names.")]
DataOption = Annotated[
    list[str], typer.Option("--data", help="Shards, or a file; which ones: the documentation. Repeatable.")
]
OneDataOption = Annotated[str, typer.Option("--data", help="Shards, or a file; which ones: the documentation.")]
ImagesOption = Annotated[
    str, typer.Option("--images", help="Folder that images named in a file start from; else that of the file.")
]
LabelsOption = Annotated[Path | None, typer.Option("--labels", help="Of shards: a file with a column key.")]


def _check_page(html: Path | None) -> Path | None:
    """Refuse, before hours of work, a page that would take the place of data or cannot be written."""
    if html is not None and html.suffix.lower() != ".html":
        raise UsageError(f"{html}: the page ends in .html.")
    check_outputs(html)
    return html


HtmlOption = Annotated[
    Path | None, typer.Option("--html", help="Write table and plots to this page.", callback=_check_page)
]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda; guessed when left out.")]
WiseFtOption = Annotated[
    str, typer.Option("--wise-ft", metavar="SHARES", help="Mix each model with --base: 0,0.25,0.5,0.75,1.")
]
BaseOption = Annotated[str, typer.Option("--base", help="With --wise-ft: what the training started from.")]
BatchOption = Annotated[int, typer.Option("--batch-size", min=1, help="Images or texts at once.")]


@with_progress
def negatives(
    models: ModelsArgument,
    *,
    data: DataOption,
    images: ImagesOption = "",
    wise_ft: WiseFtOption = "",
    base: BaseOption = "",
    html: HtmlOption = None,
    device: DeviceOption = "",
    batch_size: BatchOption = 64,
    as_json: JsonOption = False,
) -> None:
    """Accuracy on hard negatives by type, and brittleness to hard positives; several models side by side.

    \b
    Examples:
      pairwright evaluate negatives run openai/clip-vit-base-patch32 --data swap_att.json --images val2017
      pairwright evaluate negatives run --base clip --wise-ft 0,0.5,1 --data shards --html report.html
    """
    _run(
        "negatives",
        models,
        data,
        html,
        mixing=(wise_ft, base),
        as_json=as_json,
        images=images,
        device=device,
        batch=batch_size,
    )


@with_progress
def retrieval(
    models: ModelsArgument,
    *,
    data: DataOption,
    images: ImagesOption = "",
    wise_ft: WiseFtOption = "",
    base: BaseOption = "",
    html: HtmlOption = None,
    device: DeviceOption = "",
    batch_size: BatchOption = 64,
    as_json: JsonOption = False,
) -> None:
    """Recall@k of texts for images and of images for texts; several models side by side.

    \b
    Example:
      pairwright evaluate retrieval run --base clip --wise-ft 0,0.5,1 --data 'shards/{00000..00004}.tar'
    """
    _run(
        "retrieval",
        models,
        data,
        html,
        mixing=(wise_ft, base),
        as_json=as_json,
        images=images,
        device=device,
        batch=batch_size,
    )


@with_progress
def zero_shot(
    models: ModelsArgument,
    *,
    data: OneDataOption,
    by: Annotated[str, typer.Option("--by", metavar="COLUMN", help="The label that tells the class.")],
    labels: LabelsOption = None,
    classes: Annotated[
        Path | None, typer.Option("--classes", help="JSON of classes and templates, as for `pairwright retrieve`.")
    ] = None,
    images: ImagesOption = "",
    wise_ft: WiseFtOption = "",
    base: BaseOption = "",
    html: HtmlOption = None,
    device: DeviceOption = "",
    batch_size: BatchOption = 64,
    as_json: JsonOption = False,
) -> None:
    """Zero-shot classification: the class whose name is most like the image; several models side by side.

    \b
    Example:
      pairwright evaluate zero-shot run clip --data birds.csv --by species --classes birds.json
    """
    more: dict[str, Any] = {"labels": labels, "by": (by,), "classes": classes, "images": images}
    _run(
        "zero-shot",
        models,
        [data],
        html,
        mixing=(wise_ft, base),
        as_json=as_json,
        device=device,
        batch=batch_size,
        **more,
    )


@with_progress
def conditions(
    models: ModelsArgument,
    *,
    data: OneDataOption,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", metavar="COLUMN", help="What makes two images alike, A+B for both, or rgb. Repeatable; all known."
        ),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option("--ask", metavar="COLUMN=TEXT", help="The instruction for a --by. Repeatable."),
    ] = None,
    labels: LabelsOption = None,
    images: ImagesOption = "",
    wise_ft: WiseFtOption = "",
    base: BaseOption = "",
    html: HtmlOption = None,
    device: DeviceOption = "",
    batch_size: BatchOption = 64,
    as_json: JsonOption = False,
) -> None:
    """Image-image retrieval by what is asked (FocalLens): mAP by label, rank correlation by a colour that is a number.

    \b
    Example:
      pairwright evaluate conditions lens clip --data colorshape --by colour --by rgb --html lens.html
    """
    more: dict[str, Any] = {
        "labels": labels,
        "by": tuple(by or ()),
        "asked": _parse_instructions(ask or ()),
        "images": images,
    }
    _run(
        "conditions",
        models,
        [data],
        html,
        mixing=(wise_ft, base),
        as_json=as_json,
        device=device,
        batch=batch_size,
        **more,
    )


@with_progress
def rationales(
    models: ModelsArgument,
    *,
    data: DataOption,
    split: Annotated[Literal["validation", "train"], typer.Option("--split", help="Which examples.")] = "validation",
    single_task: Annotated[
        bool, typer.Option("--single-task", help="The student writes rationale and label as one text.")
    ] = False,
    wise_ft: WiseFtOption = "",
    base: BaseOption = "",
    html: HtmlOption = None,
    device: DeviceOption = "",
    batch_size: BatchOption = 64,
    as_json: JsonOption = False,
) -> None:
    """Labels and rationales that a student writes (T5, or another encoder-decoder); several side by side.

    \b
    Example:
      pairwright evaluate rationales student baseline --data nli.jsonl
    """
    more: dict[str, Any] = {"split": split, "single": single_task}
    _run(
        "rationales",
        models,
        data,
        html,
        mixing=(wise_ft, base),
        as_json=as_json,
        device=device,
        batch=batch_size,
        **more,
    )


def _run(
    task: str,
    models: Sequence[str],
    data: Sequence[str],
    html: Path | None,
    *,
    mixing: tuple[str, str],
    as_json: bool,
    **more: Any,
) -> None:
    """Measure models by a task of `training.evaluation.tasks` and show what is found."""
    require_torch(models)
    from pairwright.training.evaluation.tasks import EvaluationRequest, evaluate_models

    started = time.perf_counter()
    request = EvaluationRequest(task, tuple(models), tuple(data), mixing=_mixing(*mixing), **more)
    found = list(evaluate_models(request, note))
    print_evaluation(task, data, found, html, started, as_json=as_json)


def _mixing(wise_ft: str, base: str) -> "WiseFtSettings | None":
    if not wise_ft:
        if base:
            raise UsageError("--base is for --wise-ft. Give the shares: --wise-ft 0,0.5,1.")
        return None
    if not base:
        raise UsageError("--wise-ft needs --base: the model that training started from.")
    from pairwright.training.evaluation.evaluated_models import WiseFtSettings

    try:
        shares = tuple(dict.fromkeys(float(share) for share in wise_ft.split(",")))
    except ValueError:
        shares = ()
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise UsageError(f"--wise-ft {wise_ft}: give shares from 0 to 1, as 0,0.25,0.5,0.75,1.")
    return WiseFtSettings(base, shares)


def _parse_instructions(written: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in written:
        name, sign, instruction = one.partition("=")
        if not (sign and name.strip() and instruction.strip()):
            raise UsageError(f"--ask {one!r}: write CONDITION=INSTRUCTION, as 'colour=What color is it?'.")
        found[name.strip()] = instruction.strip()
    return found
