"""``pairwright evaluate choices``: a vision-language model, at a server or local, on captions and hard negatives."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from pairwright.cli.evaluate.models import DataOption, HtmlOption, ImagesOption
from pairwright.cli.evaluate.report import print_evaluation
from pairwright.cli.options.declarations import limit_option
from pairwright.cli.options.input import JsonOption, LayoutOption
from pairwright.cli.options.model import ModelOptions, with_model_options
from pairwright.cli.options.model_runs import cancel_plan_or_run
from pairwright.cli.output.console import note
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError


@with_progress
@with_model_options
def choices(
    *,
    data: DataOption,
    images: ImagesOption = "",
    layout: LayoutOption = "",
    method: Annotated[
        Literal["choice", "probability"],
        typer.Option(help="Choice between captions, or probability of yes for each (needs log-probabilities)."),
    ] = "choice",
    limit: Annotated[int, limit_option(min=0, help="Rows to evaluate, the first ones (0 = all).")] = 0,
    html: HtmlOption = None,
    as_json: JsonOption = False,
    model_options: ModelOptions,
) -> None:
    """Evaluate a model that writes text on captions and hard negatives.

    choice: each row in both orders, with the share of rows where the order decides. probability: VQAScore, also with
    the prior of the texts removed.

    \b
    Examples:
      pairwright evaluate choices --data valse/existence.json --images coco --model gpt-4o-mini --dry-run
      pairwright evaluate choices --data examples.jsonl --images winoground --method probability --model local:qwen-vl
    """
    from pairwright.flows.commands.evaluate_choices import ChoiceRequest, evaluate_choices, plan_choices

    started = time.perf_counter()
    if not model_options.model:
        raise UsageError("evaluate choices requires --model: the model under test.")
    beside = Path(data[0] if "://" not in data[0] else Path(data[0]).name)  # of a store: the current folder
    beside = beside.resolve() if beside.is_dir() else beside  # "." has no name
    out = html or beside.with_suffix(".choices.html")
    request = ChoiceRequest(tuple(data), images, layout, method, out, limit)
    access = model_options.access(html or Path("choices.html"))  # without --html the cache is in the current folder
    found = cancel_plan_or_run(
        model_options,
        access,
        "rows",
        plan=lambda: plan_choices(request, access),
        run=lambda bar: evaluate_choices(request, access, note, bar),
        as_json=as_json,
    )
    if found is not None:
        print_evaluation("choices", data, [found[0]], html, started, bill=found[1], as_json=as_json)
