"""``pairwright evaluate answers``: answers of an image-text-to-text model, judged by a language model."""

import time
from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.evaluate.models import DeviceOption, HtmlOption, ImagesOption
from pairwright.cli.evaluate.report import print_evaluation, refuse_repeated_models, require_torch
from pairwright.cli.options.declarations import advanced_option, input_option
from pairwright.cli.options.input import JsonOption
from pairwright.cli.options.model import ModelOptions, with_model_options
from pairwright.cli.options.model_runs import cancel_plan_or_run
from pairwright.cli.output.console import note
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError


@with_progress
@with_model_options
def answers(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...", help="Image-text-to-text models: folders or hub names; or .jsonl of answers."
        ),
    ],
    *,
    data: Annotated[Path, input_option("--data", help="A .jsonl of questions.")],
    images: ImagesOption = "",
    html: HtmlOption = None,
    see_image: Annotated[
        bool, typer.Option("--see-image", help="Send the image to the judge too; questions without one get no score.")
    ] = False,
    device: DeviceOption = "",
    batch_size: Annotated[int, advanced_option(min=1, help="Questions per batch.")] = 8,
    as_json: JsonOption = False,
    model_options: ModelOptions,
) -> None:
    """Evaluate answers of a vision-language model by a judge, a language model.

    The judge reads each pair of answers in both orders.

    \b
    Example:
      pairwright evaluate answers llava --data questions.jsonl --images coco --model gpt-4o --dry-run
    """
    from pairwright.flows.commands.evaluate_answers import JudgingRequest, judge_models, plan_judging

    started = time.perf_counter()
    if not model_options.model:
        raise UsageError("evaluate answers requires --model: the language model that judges.")
    refuse_repeated_models(models)
    if not all(name.endswith(".jsonl") for name in models) and not model_options.dry_run:
        require_torch(models)
    out = html or data.with_suffix(".answers.html")
    request = JudgingRequest(tuple(models), data, images, out, device, batch_size, see_image)
    access = model_options.access(html or Path("answers.html"))  # without --html the cache is in the current folder
    judged = cancel_plan_or_run(
        model_options,
        access,
        "answers",
        plan=lambda: plan_judging(request, access),
        run=lambda bar: judge_models(request, access, note, bar),
        as_json=as_json,
    )
    if judged is None:
        return
    found, bill = judged
    print_evaluation("answers", [str(data)], found, html, started, bill=bill, as_json=as_json)
    if not any(one.found.metrics for one in found):
        exit_below_target("No answer was judged: no judgement has two scores.")
