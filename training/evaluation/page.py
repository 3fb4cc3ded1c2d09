"""The page of an evaluation: one HTML file that needs nothing else, with plots and the whole table."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from pairwright.datasets.reports.html_page import render_page, render_section
from pairwright.training.evaluation.differences import Difference, differences
from pairwright.training.evaluation.figures import SIDE_BY_SIDE, Evaluated, Figure, figure_of, rows_of, told_counts
from pairwright.training.evaluation.place_plots import place_plots
from pairwright.training.evaluation.plots import COLOURS, dots, lines

_PAIRED = (
    "On the same rows, in points of a hundred (correlations as they are); the interval is of rows drawn anew for both "
    "models at once. One that leaves out 0 tells them apart."
)
STYLE = Path(__file__).with_name("page.css")
_TITLES = {
    "negatives": "Hard negatives",
    "retrieval": "Retrieval",
    "zero-shot": "Zero-shot classification",
    "conditions": "Conditional retrieval",
    "rationales": "Labels and rationales",
    "answers": "Judged answers",
    "multi-document": "Answers from several documents",
}


def evaluation_page(task: str, data: Sequence[str], models: Sequence[Evaluated]) -> str:
    """Return the page.

    Args:
        task: of `tasks.TASKS`.
        data: what it was measured on.
        models: with their figures, one at least.
    """
    mixed = any(model.share is not None for model in models)
    by_place = place_plots(models)
    return render_page(
        _TITLES[task],
        "pairwright evaluate",
        [f"{len(models)} {'model' if len(models) == 1 else 'models'}", *data],
        [
            render_section(
                "Figures",
                "Over the share of the trained weights (0: before training, 1: trained); lines show 95% intervals."
                if mixed
                else "A dot is the value, its line the 95% interval, the dashed line what guessing gives.",
                _key(models) + f'<div class="plots">{_mixed(models) if mixed else _plain(models)}</div>',
            ),
            *(
                [
                    render_section(
                        "By place", "From the first document to the last.", f'<div class="plots">{by_place}</div>'
                    )
                ]
                if by_place
                else []
            ),
            *([render_section("Differences", _PAIRED, _differences(apart))] if (apart := differences(models)) else []),
            render_section("Table", "n: rows, queries or images that a figure was counted on.", _table(models)),
            render_section("What else was counted", "", _counts(models)),
        ],
        STYLE.read_text(encoding="utf-8"),
    )


def _plain(models: Sequence[Evaluated]) -> str:
    parts: dict[str, list[str]] = {}
    for part, measure in rows_of(models):
        parts.setdefault(measure, []).append(part)
    return "".join(dots(measure, of, models) for measure, of in parts.items())


def _mixed(models: Sequence[Evaluated]) -> str:
    return "".join(lines(part, measure, models) for part, measure in rows_of(models))


def _key(models: Sequence[Evaluated]) -> str:
    mixed = any(model.share is not None for model in models)
    names = list(dict.fromkeys(model.model if mixed else model.label for model in models))
    shown = "".join(
        f'<span><i class="swatch m{number % COLOURS}"></i>{escape(name)}</span>' for number, name in enumerate(names)
    )
    return f'<div class="key-list">{shown}</div>'


def _table(models: Sequence[Evaluated]) -> str:
    many = len(models) > SIDE_BY_SIDE
    names = ["value"] if many or len(models) == 1 else [model.label for model in models]
    head = "".join(f'<th class="number">{escape(name)}</th><th class="number">95%</th>' for name in names)
    model = "<th>model</th>" if many else ""
    rows = "".join(_many(row, models) if many else _side_by_side(row, models) for row in rows_of(models))
    return (
        f'<div class="scroll"><table><thead><tr><th>of</th><th>measure</th>{model}{head}<th class="number">n</th>'
        f'<th class="number">chance</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _side_by_side(row: tuple[str, str], models: Sequence[Evaluated]) -> str:
    figures = [figure_of(model, row) for model in models]
    return _row(row, "".join(map(_value, figures)), figures)


def _many(row: tuple[str, str], models: Sequence[Evaluated]) -> str:
    return "".join(
        _row(
            row if not place else ("", ""),
            f"<td>{escape(model.label)}</td>{_value(figure_of(model, row))}",
            [figure_of(model, row)],
        )
        for place, model in enumerate(models)
    )


def _row(names: tuple[str, str], cells: str, figures: Sequence[Figure | None]) -> str:
    known = next((one for one in figures if one), None)
    ground = (f"{known.n:,}", known.written_chance.strip()) if known else ("", "")
    numbers = "".join(f'<td class="number">{text}</td>' for text in ground)
    told = "".join(f'<td class="name">{escape(name)}</td>' for name in names)
    return f"<tr>{told}{cells}{numbers}</tr>"


def _value(figure: Figure | None) -> str:
    texts = (figure.written.strip(), figure.written_interval) if figure else ("-", "")
    return "".join(f'<td class="number">{text}</td>' for text in texts)


def _differences(apart: Sequence[Difference]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("of", "measure", "model"))
    head += "".join(f'<th class="number">{name}</th>' for name in (f"less {escape(apart[0].against)}", "95%", "n"))
    rows = "".join(
        "<tr>"
        + "".join(f'<td class="name">{escape(name)}</td>' for name in (one.part, one.measure, one.model))
        + "".join(f'<td class="number">{text}</td>' for text in (one.written, one.written_interval, f"{one.n:,}"))
        + "</tr>"
        for one in apart
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _counts(models: Sequence[Evaluated]) -> str:
    return "".join(f"<p>{escape(told)}</p>" for told in told_counts(models))
