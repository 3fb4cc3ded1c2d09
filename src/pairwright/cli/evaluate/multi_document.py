"""``pairwright evaluate multi-document``: answers from several documents by position of the gold one."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pairwright.cli.evaluate.models import DeviceOption, HtmlOption
from pairwright.cli.evaluate.report import print_evaluation, refuse_repeated_models, require_torch
from pairwright.cli.options.declarations import advanced_option, input_option, limit_option
from pairwright.cli.options.input import JsonOption, split_list
from pairwright.cli.output.console import note
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known

if TYPE_CHECKING:
    from pairwright.filters.evaluation.results import TaskResult
    from pairwright.training.evaluation.multi_document import Treatment


@with_progress
def multi_document(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Decoders: folders or hub names.")],
    *,
    data: Annotated[Path, input_option("--data", help="Questions: .jsonl, .csv or .tsv, also compressed.")],
    documents: Annotated[
        list[int] | None,
        typer.Option("--documents", min=2, help="Documents in a prompt. Repeatable.", show_default="10"),
    ] = None,
    gold: Annotated[
        str,
        typer.Option(metavar="PLACES", help="Positions of the gold one, or all.", show_default="first, middle, last"),
    ] = "",
    attention: Annotated[str, typer.Option(metavar="KINDS", help="Attention: plain,calibrated, or all.")] = "",
    form: Annotated[Literal["linear", "log-linear"], advanced_option(help="Form of the attention model.")] = "linear",
    temperature: Annotated[float, advanced_option(min=0.0, help="t (0 = 5e-5, log-linear: 1).")] = 0.0,
    questions: Annotated[int, limit_option(min=0, help="Questions to sample (0 = all).")] = 0,
    html: HtmlOption = None,
    device: DeviceOption = "",
    batch_size: Annotated[int, advanced_option(min=1, help="Prompts per batch.")] = 8,
    as_json: JsonOption = False,
) -> None:
    """Evaluate answers from several documents by position of the gold one.

    Attention is plain or calibrated (Found in the Middle).

    \b
    Example:
      pairwright evaluate multi-document llama --data nq-open.jsonl.gz --documents 10 --documents 20 --html u.html
    """
    refuse_repeated_models(models)
    require_torch(models)
    from pairwright.filters.evaluation.results import ModelResult
    from pairwright.indexes.encoders.pretrained_models import choose_device
    from pairwright.training.attention.calibration import Calibration
    from pairwright.training.attention.decoder import open_decoder
    from pairwright.training.attention.question_files import read_questions
    from pairwright.training.evaluation.multi_document import MultiDocumentPlan, evaluate_multi_document

    started = time.perf_counter()
    counts = tuple(dict.fromkeys(documents or ())) or (10,)
    calibration, treatments = Calibration(form, temperature or None), _parse_treatments(attention)
    plans = [
        MultiDocumentPlan(count, _parse_places(gold, count), treatments, calibration=calibration) for count in counts
    ]
    sets = [read_questions(data, count, limit=questions) for count in counts]
    short = {count: missing for count, (_, missing) in zip(counts, sets, strict=True) if missing}
    found, resolved = [], str(choose_device(device))
    for name in models:
        decoder = open_decoder(name, resolved, batch_size, fix="Use fewer --documents.")
        note(f"{name}: multi-document")
        parts = [evaluate_multi_document(decoder, texts, plan) for (texts, _), plan in zip(sets, plans, strict=True)]
        found.append(ModelResult(name, decoder.model.config.model_type, _merge_results(parts, short)))
    print_evaluation("multi-document", [str(data)], found, html, started, as_json=as_json)


def _merge_results(parts: "Sequence[TaskResult]", short: Mapping[int, int]) -> "TaskResult":
    from pairwright.filters.evaluation.results import TaskResult

    return TaskResult(
        tuple(metric for part in parts for metric in part.metrics),
        {f"questions have fewer than {count} documents": missing for count, missing in short.items()},
        {key: value for part in parts for key, value in part.detail.items()},
    )


def _parse_treatments(text: str) -> "tuple[Treatment, ...]":
    from pairwright.training.evaluation.multi_document import DEFAULT_TREATMENTS, TREATMENTS

    if text == "all":
        return TREATMENTS
    named = split_list(text)
    require_known("--attention: no such kind:", named, TREATMENTS)
    return tuple(treatment for treatment in TREATMENTS if treatment in named) or DEFAULT_TREATMENTS


def _parse_places(text: str, documents: int) -> tuple[int, ...]:
    """Return the positions of the gold document, from 0; first, middle and last for an empty text."""
    if text == "all":
        return tuple(range(documents))
    try:
        places = tuple(dict.fromkeys(int(item) - 1 for item in text.split(","))) if text else ()
    except ValueError:
        places = (-1,)
    if not all(0 <= place < documents for place in places):
        example = f"1,{(documents + 1) // 2},{documents}"
        raise UsageError(f"--gold {text}: give positions from 1 to {documents}, such as {example}, or all.")
    return tuple(sorted(places)) or (0, (documents - 1) // 2, documents - 1)
