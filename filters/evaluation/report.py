"""HTML report of an evaluation: one self-contained file with plots and tables."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.reports.html_page import render_page, render_section
from pairwright.filters.evaluation.charts import COLOURS, dot_plot, position_plots
from pairwright.filters.evaluation.paired_differences import PairedDifference, paired_differences
from pairwright.filters.evaluation.results import (
    MAX_COLUMNS,
    Metric,
    ModelResult,
    describe_counts,
    find_metric,
    metric_rows,
)

_PAIRED_NOTE = (
    "On the same rows, in percentage points (correlations unscaled); paired bootstrap intervals. "
    "The models differ significantly if the interval excludes 0."
)
STYLE = Path(__file__).with_name("report.css")
_TITLES = {
    "negatives": "Hard negatives",
    "retrieval": "Retrieval",
    "zero-shot": "Zero-shot classification",
    "conditions": "Conditional retrieval",
    "rationales": "Labels and rationales",
    "answers": "Judged answers",
    "multi-document": "Answers from several documents",
}


def evaluation_page(task: str, data: Sequence[str], models: Sequence[ModelResult]) -> str:
    """Return the HTML page.

    Args:
        task: of `tasks.TASKS`.
        data: evaluated data.
        models: at least one, with metrics.
    """
    by_place = position_plots(models)
    return render_page(
        _TITLES[task],
        "pairwright evaluate",
        [count_phrase(len(models), "model"), *data],
        [
            render_section(
                "Metrics",
                "Dot: value; line: 95% interval; dashed line: chance level.",
                _key(models) + f'<div class="plots">{_plain(models)}</div>',
            ),
            *(
                [
                    render_section(
                        "By position", "From the first document to the last.", f'<div class="plots">{by_place}</div>'
                    )
                ]
                if by_place
                else []
            ),
            *(
                [render_section("Differences", _PAIRED_NOTE, _differences(apart))]
                if (apart := paired_differences(models))
                else []
            ),
            render_section("Table", "n: number of rows, queries or images.", _table(models)),
            render_section("Other counts", "", _counts(models)),
        ],
        STYLE.read_text(encoding="utf-8"),
    )


def _plain(models: Sequence[ModelResult]) -> str:
    parts: dict[str, list[str]] = {}
    for part, measure in metric_rows(models):
        parts.setdefault(measure, []).append(part)
    return "".join(dot_plot(measure, of, models) for measure, of in parts.items())


def _key(models: Sequence[ModelResult]) -> str:
    names = [model.model for model in models]
    shown = "".join(
        f'<span><i class="swatch m{number % COLOURS}"></i>{escape(name)}</span>' for number, name in enumerate(names)
    )
    return f'<div class="key-list">{shown}</div>'


def _table(models: Sequence[ModelResult]) -> str:
    many = len(models) > MAX_COLUMNS
    names = ["value"] if many or len(models) == 1 else [model.model for model in models]
    head = "".join(f'<th class="number">{escape(name)}</th><th class="number">95%</th>' for name in names)
    model = "<th>model</th>" if many else ""
    rows = "".join(_rows_per_model(row, models) if many else _side_by_side(row, models) for row in metric_rows(models))
    return (
        f'<div class="scroll"><table><thead><tr><th>of</th><th>measure</th>{model}{head}<th class="number">n</th>'
        f'<th class="number">chance</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _side_by_side(row: tuple[str, str], models: Sequence[ModelResult]) -> str:
    metrics = [find_metric(model, row) for model in models]
    return _row(row, "".join(map(_value, metrics)), metrics)


def _rows_per_model(row: tuple[str, str], models: Sequence[ModelResult]) -> str:
    return "".join(
        _row(
            row if not place else ("", ""),
            f"<td>{escape(model.model)}</td>{_value(find_metric(model, row))}",
            [find_metric(model, row)],
        )
        for place, model in enumerate(models)
    )


def _row(names: tuple[str, str], cells: str, metrics: Sequence[Metric | None]) -> str:
    known = next((one for one in metrics if one), None)
    ground = (f"{known.n:,}", known.written_chance.strip()) if known else ("", "")
    numbers = "".join(f'<td class="number">{text}</td>' for text in ground)
    names_cells = "".join(f'<td class="name">{escape(name)}</td>' for name in names)
    return f"<tr>{names_cells}{cells}{numbers}</tr>"


def _value(metric: Metric | None) -> str:
    texts = (metric.written.strip(), metric.written_interval) if metric else ("-", "")
    return "".join(f'<td class="number">{text}</td>' for text in texts)


def _differences(apart: Sequence[PairedDifference]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("of", "measure", "model"))
    head += "".join(f'<th class="number">{name}</th>' for name in (f"minus {escape(apart[0].against)}", "95%", "n"))
    rows = "".join(
        "<tr>"
        + "".join(f'<td class="name">{escape(name)}</td>' for name in (one.part, one.measure, one.model))
        + "".join(f'<td class="number">{text}</td>' for text in (one.written, one.written_interval, f"{one.n:,}"))
        + "</tr>"
        for one in apart
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _counts(models: Sequence[ModelResult]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in describe_counts(models))
