"""``pairwright evaluate answers``: a LLaVA's answers, judged by a language model."""

import time
from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.evaluate.models import DeviceOption, HtmlOption, ImagesOption
from pairwright.cli.evaluate.report import print_evaluation, refuse_repeated_models, require_torch
from pairwright.cli.options.input import JsonOption
from pairwright.cli.options.model import ModelOptions, ModelRunBar, cancelled_lines, plan_lines, with_model_options
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError


@with_progress
@with_model_options
def answers(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="LLaVA models: folders or hub names; or .jsonl of answers.")
    ],
    *,
    data: Annotated[Path, typer.Option("--data", help="A .jsonl of questions.")],
    images: ImagesOption = "",
    html: HtmlOption = None,
    device: DeviceOption = "",
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Questions at once.")] = 8,
    as_json: JsonOption = False,
    asked: ModelOptions,
) -> None:
    """Answers to questions about images, a LLaVA's or those in a .jsonl, judged by a language model in both orders.

    \b
    Example:
      pairwright evaluate answers llava --data questions.jsonl --images coco --model gpt-4o --dry-run
    """
    from pairwright.flows.commands.evaluate_answers import JudgingRequest, judge_models, plan_judging

    started = time.perf_counter()
    if not asked.model:
        raise UsageError("evaluate answers needs a judge: name a language model by --model.")
    refuse_repeated_models(models)
    if not all(name.endswith(".jsonl") for name in models) and not asked.dry_run:
        require_torch(models)
    out = html or Path("answers.html")
    request = JudgingRequest(tuple(models), data, images, out, device, batch_size)
    asking = asked.asking(out)
    if asked.batch_cancel:
        ids = asking.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)
        return
    if asked.dry_run:
        plan = plan_judging(request, asking)
        emit({"plan": [plan.described()]}, plan_lines([plan]), as_json=as_json)
        return
    watching = ModelRunBar("answers", asked.max_cost)
    found, bill = judge_models(request, asking, note, watching)
    watching.end()
    print_evaluation("answers", [str(data)], found, html, started, bill=bill, as_json=as_json)
    if not any(one.found.metrics for one in found):
        exit_below_target("No answer was judged: no judgement has two scores.")
