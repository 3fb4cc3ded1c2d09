"""``pairwright evaluate multi-document``: answers from several documents, by the gold one's place."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pairwright.cli.evaluate.models import DeviceOption, HtmlOption
from pairwright.cli.evaluate.report import document_lines, print_evaluation, refuse_repeated_models, require_torch
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import note
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known

if TYPE_CHECKING:
    from pairwright.training.evaluation.multi_document import Treatment
    from pairwright.training.evaluation.results import TaskResult


@with_progress
def multi_document(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Decoders: folders or hub names.")],
    *,
    data: Annotated[Path, typer.Option("--data", help="Questions: .jsonl, .jsonl.gz, .csv, .tsv.")],
    documents: Annotated[
        list[int] | None,
        typer.Option("--documents", min=2, help="Documents in a prompt; 10 when left out. Repeatable."),
    ] = None,
    gold: Annotated[
        str, typer.Option("--gold", metavar="PLACES", help="Where the gold one stands: 1,5,10, or all.")
    ] = "",
    ways: Annotated[
        str, typer.Option("--attention", metavar="WAYS", help="plain,calibrated, or all; see the documentation.")
    ] = "",
    form: Annotated[
        Literal["linear", "log-linear"], typer.Option("--form", help="Of the model of attention.")
    ] = "linear",
    temperature: Annotated[float, typer.Option("--temperature", min=0.0, help="t; 0: 5e-5, of log-linear 1.")] = 0.0,
    questions: Annotated[int, typer.Option("--questions", min=0, help="How many are drawn; 0: all.")] = 0,
    html: HtmlOption = None,
    device: DeviceOption = "",
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Prompts at once.")] = 8,
    as_json: JsonOption = False,
) -> None:
    """Answers from several documents by the gold one's place, attention as it is and calibrated (found in the middle).

    \b
    Example:
      pairwright evaluate multi-document llama --data nq-open.jsonl.gz --documents 10 --documents 20 --html u.html
    """
    refuse_repeated_models(models)
    require_torch(models)
    from pairwright.indexes.encoders.pretrained_models import choose_device
    from pairwright.training.attention.calibration import Calibration
    from pairwright.training.attention.question_files import read_questions
    from pairwright.training.attention.ranking import open_decoder
    from pairwright.training.evaluation.multi_document import MultiDocumentPlan, evaluate_multi_document
    from pairwright.training.evaluation.results import ModelResult

    started = time.perf_counter()
    counts = tuple(dict.fromkeys(documents or ())) or (10,)
    how, chosen = Calibration(form, temperature or None), _parse_ways(ways)
    plans = [MultiDocumentPlan(count, _parse_places(gold, count), chosen, calibration=how) for count in counts]
    asked = [read_questions(data, count, limit=questions) for count in counts]
    found, on = [], str(choose_device(device))
    for name in models:
        reader = open_decoder(name, on, batch_size, fix="Ask for fewer --documents.")
        note(f"{name}: multi-document")
        parts = [evaluate_multi_document(reader, given, plan) for (given, _), plan in zip(asked, plans, strict=True)]
        short = {count: missing for count, (_, missing) in zip(counts, asked, strict=True) if missing}
        found.append(ModelResult(name, reader.model.config.model_type, None, _merged_lines(parts, short)))
    print_evaluation("multi-document", [str(data)], found, html, started, lines=document_lines(found), as_json=as_json)


def _merged_lines(parts: "Sequence[TaskResult]", short: Mapping[int, int]) -> "TaskResult":
    from pairwright.training.evaluation.results import TaskResult

    return TaskResult(
        tuple(metric for part in parts for metric in part.metrics),
        {f"questions have fewer than {count} documents": missing for count, missing in short.items()},
        {key: value for part in parts for key, value in part.detail.items()},
    )


def _parse_ways(written: str) -> "tuple[Treatment, ...]":
    from pairwright.training.evaluation.multi_document import DEFAULT_TREATMENTS, TREATMENTS

    wanted = tuple(one.strip() for one in written.split(",")) if written not in ("", "all") else ()
    require_known("--attention: no such way:", wanted, TREATMENTS)
    return TREATMENTS if written == "all" else tuple(way for way in TREATMENTS if way in wanted) or DEFAULT_TREATMENTS


def _parse_places(written: str, documents: int) -> tuple[int, ...]:
    """Return the gold document's places, from 0: first, middle and last when none are written."""
    if written == "all":
        return tuple(range(documents))
    try:
        places = tuple(dict.fromkeys(int(one) - 1 for one in written.split(","))) if written else ()
    except ValueError:
        places = (-1,)
    if not all(0 <= place < documents for place in places):
        raise UsageError(
            f"--gold {written}: give places from 1 to {documents}, as 1,{(documents + 1) // 2},{documents}, or all."
        )
    return tuple(sorted(places)) or (0, (documents - 1) // 2, documents - 1)
