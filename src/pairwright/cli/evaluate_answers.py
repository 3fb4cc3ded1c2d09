"""``pairwright evaluate answers``: a LLaVA's answers, judged by a language model."""

import time
from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.asking import Asked, Watching, cancelled_lines, may_ask_a_model, plan_lines
from pairwright.cli.console import emit, note
from pairwright.cli.evaluate_models import DeviceOption, HtmlOption, ImagesOption
from pairwright.cli.evaluated import need_torch, show, told_once
from pairwright.cli.exit_codes import end_below
from pairwright.cli.progress import shows_progress
from pairwright.cli.reading import JsonOption
from pairwright.datasets.errors import UsageError


@shows_progress
@may_ask_a_model
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
    asked: Asked,
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
    told_once(models)
    if not all(name.endswith(".jsonl") for name in models) and not asked.dry_run:
        need_torch(models)
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
    watching = Watching("answers", asked.max_cost)
    found, bill = judge_models(request, asking, note, watching)
    watching.end()
    show("answers", [str(data)], found, html, started, bill=bill, as_json=as_json)
    if not any(one.found.figures for one in found):
        end_below("No answer was judged: no judgement has two scores.")
