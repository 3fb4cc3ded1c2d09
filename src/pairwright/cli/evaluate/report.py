"""Output of the ``pairwright evaluate`` commands that open models: table, page and JSON."""

import importlib.util
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairwright.cli.options.model_runs import bill_lines
from pairwright.cli.output.console import columns, emit, note, note_hub_models
from pairwright.datasets.errors import MissingResourceError, UsageError
from pairwright.datasets.suggestions import find_duplicates

if TYPE_CHECKING:
    from pairwright.filters.evaluation.paired_differences import PairedDifference
    from pairwright.filters.evaluation.results import Metric, ModelResult

_NEEDED = ("torch", "transformers", "safetensors")


def require_torch(models: Sequence[str]) -> None:
    """Check that the libraries for models are installed, and print which models are requested from the hub.

    Raises:
        MissingResourceError: naming the missing libraries.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingResourceError(f"evaluating a model requires {', '.join(missing)}: pip install 'pairwright[train]'")
    from transformers.utils import logging

    logging.disable_progress_bar()  # of loading weights
    note_hub_models([name for name in models if not name.endswith(".jsonl")])


def refuse_repeated_models(models: Sequence[str]) -> None:
    """Refuse a model that is named twice.

    Raises:
        UsageError: naming it.
    """
    if repeated := find_duplicates(models):
        raise UsageError(f"{repeated[0]} is named twice. Name each model once.")


def print_evaluation(
    task: str,
    data: Sequence[str],
    found: "Sequence[ModelResult]",
    html: Path | None,
    started: float,
    *,
    as_json: bool,
    bill: Mapping[str, Any] | None = None,
) -> None:
    """Print the results of models, and write the page of ``--html``.

    Args:
        task: name of the task.
        data: what the models were evaluated on.
        found: results, one per model.
        html: the page; None for none.
        started: start of the command, by `time.perf_counter`.
        as_json: print JSON instead of a table.
        bill: cost of a language model that judged.
    """
    from pairwright.filters.evaluation.paired_differences import paired_differences
    from pairwright.filters.evaluation.results import describe_counts

    apart = paired_differences(found)
    result = {
        "task": task,
        "data": list(data),
        "models": [one.as_json() for one in found],
        "differences": [one.as_json() for one in apart],
        **({} if bill is None else {"llm": bill}),
        "seconds": round(time.perf_counter() - started, 2),
    }
    for line in describe_counts(found):
        note(line)
    shown = table_lines(found)
    shown += ["", *difference_lines(apart)] if apart else []
    shown += [] if bill is None else ["", *bill_lines({"llm": bill})]
    if html is not None:
        from pairwright.datasets.atomic_files import write_text
        from pairwright.filters.evaluation.report import evaluation_page

        write_text(html, evaluation_page(task, data, found))
        result["html"] = str(html)
        shown += ["", f"Page: {html}"]
    emit(result, shown, as_json=as_json)


def difference_lines(apart: "Sequence[PairedDifference]") -> list[str]:
    """Return the differences of models from the first one as a table."""
    head: list[object] = ["of", "measure", "model", f"minus {apart[0].against}", "95%", "n"]
    rows = [[one.part, one.measure, one.model, one.written, one.written_interval, one.n] for one in apart]
    return columns([head, *rows], indent="")


def table_lines(models: "Sequence[ModelResult]") -> list[str]:
    """Return all figures as one table: models in columns, or in rows where there are many."""
    from pairwright.filters.evaluation.results import MAX_COLUMNS, find_metric, metric_rows

    many = len(models) > MAX_COLUMNS
    table: list[list[object]] = [_head(models, many=many)]
    for row in metric_rows(models):
        figures = [find_metric(model, row) for model in models]
        if many:
            table += [
                [*(row if not place else ("", "")), model.model, *_cells(figure), *_ground([figure])]
                for place, (model, figure) in enumerate(zip(models, figures, strict=True))
            ]
        else:
            table.append([*row, *(cell for figure in figures for cell in _cells(figure)), *_ground(figures)])
    return columns(table, indent="")


def _head(models: "Sequence[ModelResult]", *, many: bool) -> list[object]:
    if many:
        return ["of", "measure", "model", "value", "95%", "n", "chance"]
    names = ["value"] if len(models) == 1 else [model.model for model in models]
    return ["of", "measure", *(cell for name in names for cell in (name, "95%")), "n", "chance"]


def _cells(figure: "Metric | None") -> list[object]:
    return ["-", ""] if figure is None else [figure.written, figure.written_interval]


def _ground(figures: "Sequence[Metric | None]") -> list[object]:
    known = [figure for figure in figures if figure is not None]
    return [known[0].n, known[0].written_chance] if known else ["", ""]
