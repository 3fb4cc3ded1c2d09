"""HTML report of the loss curves of a run, generated from its log.csv.

Plots over the steps: training and validation loss, each part of the loss, learning rate, gradient norm, scale, and the
share of the time spent waiting for data. Columns without values are skipped.
"""

import csv
from collections.abc import Sequence
from html import escape
from pathlib import Path

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.reports.html_page import render_page, render_section, render_tiles

CURVES_FILE = "report.html"
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _FOOT = 420, 190, 8, 76, 12, 24
_NAMES = {
    "lr": "learning rate",
    "gradient": "gradient norm",
    "scale": "scale (1 / temperature)",
    "waiting": "waiting for data (share of the time)",
}
_STYLE = """.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 420px), 1fr)); gap: 0 16px; }
.plot svg { display: block; width: 100%; height: auto; }
.plot text { font-size: 12px; fill: var(--soft); }
.plot .grid { stroke: var(--line); stroke-width: 1; }
.plot path, .plot circle { fill: none; stroke: var(--kept); stroke-width: 2; }
.plot .second { stroke: var(--rejected); }
.key-list .swatch-second { background: var(--rejected); }
"""

Points = Sequence[tuple[float, float]]


def write_curves(out: Path) -> None:
    """Write the report of the run in ``out``; nothing without log rows."""
    with (out / "log.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if rows:
        write_text(out / CURVES_FILE, curves_page(out.name, rows))


def curves_page(name: str, rows: Sequence[dict[str, str]]) -> str:
    """Return the HTML page."""
    last = rows[-1]
    parts = [column for column in last if column.startswith("loss_")]
    titles = {column: f"{column.removeprefix('loss_')} (part of the loss)" for column in parts} | _NAMES
    validated = bool(_points(rows, "validation"))
    plots = [_plot("loss", _points(rows, "loss"), _points(rows, "validation"))]
    plots += [_plot(titles[column], _points(rows, column)) for column in (*parts, *_NAMES) if _points(rows, column)]
    key = (
        '<div class="key-list"><span><i class="swatch-kept"></i>training</span>'
        '<span><i class="swatch-second"></i>validation</span></div>'
    )
    numbers = [
        ("steps", f"{int(last['step']):,}"),
        ("epochs", f"{float(last['epoch']):g}"),
        ("last loss", last["loss"]),
    ]
    if last.get("samples_per_second"):
        numbers.append(("samples a second", f"{float(last['samples_per_second']):,.0f}"))
    body = (key if validated else "") + f'<div class="plots">{"".join(plots)}</div>'
    note = f"{len(rows):,} rows of log.csv; each is the mean over the steps since the previous row."
    return render_page(
        name,
        "pairwright train",
        ["Loss curves"],
        [render_tiles(numbers), render_section("Over the steps", note, body)],
        _STYLE,
    )


def _points(rows: Sequence[dict[str, str]], column: str) -> list[tuple[float, float]]:
    return [(float(row["step"]), float(row[column])) for row in rows if row.get(column)]


def _plot(title: str, points: Points, second: Points = ()) -> str:
    every = [*points, *second]
    steps = min(step for step, _ in every), max(step for step, _ in every)
    values = [value for _, value in every if abs(value) != float("inf") and value == value]  # noqa: PLR0124 - not NaN
    least, most = (min(values), max(values)) if values else (0.0, 1.0)
    if least == most:
        least, most = (0.0, 1.0) if not least else sorted((0.0, 2 * least))
    ground = _HEIGHT - _FOOT

    def place(point: tuple[float, float]) -> tuple[float, float]:
        wide = (point[0] - steps[0]) / ((steps[1] - steps[0]) or 1)
        high = (point[1] - least) / (most - least)
        return _LEFT + wide * (_WIDTH - _LEFT - _RIGHT), ground - high * (ground - _TOP)

    grid = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:g}" y2="{y:g}"/>'
        f'<text x="{_WIDTH - _RIGHT + 8}" y="{y + 4:g}">{value:.3g}</text>'
        for y, value in ((ground, least), ((ground + _TOP) / 2, (least + most) / 2), (_TOP, most))
    )
    ends = (
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{steps[0]:g}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">{steps[1]:g}</text>'
    )
    finite = [[(step, value) for step, value in one if value in values] for one in (points, second)]
    lines = "".join(
        _line([place(point) for point in one], css) for one, css in zip(finite, ("first", "second"), strict=True) if one
    )
    summary = f"{title}: from {points[0][1]:.4g} to {points[-1][1]:.4g}"
    return (
        f'<figure class="plot"><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(summary)}">{grid}{lines}{ends}</svg><p class="note">{escape(summary)}</p></figure>'
    )


def _line(places: Sequence[tuple[float, float]], css_class: str) -> str:
    if len(places) == 1:
        return f'<circle class="{css_class}" cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="3"/>'
    return f'<path class="{css_class}" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in places)}"/>'
