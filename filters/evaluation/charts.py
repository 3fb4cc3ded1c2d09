"""SVG charts of an evaluation report: values with intervals, and lines over document positions.

Colors are classes (``m0`` ... ``m5``) of ``report.css``. Each plot has its numbers as alternative text.
"""

import math
import re
from collections.abc import Mapping, Sequence
from html import escape

from pairwright.filters.evaluation.results import Metric, ModelResult, find_metric

COLOURS = 6
_WIDTH, _LEFT, _RIGHT, _LINE, _TOP, _FOOT = 420, 8, 56, 20, 6, 24
_HEIGHT = 190


def dot_plot(measure: str, parts: Sequence[str], models: Sequence[ModelResult]) -> str:
    """Return one measure of all models: a group per part, with a dot and an interval for each model."""
    metrics = [[find_metric(model, (part, measure)) for model in models] for part in parts]
    every = [metric for group in metrics for metric in group if metric is not None]
    least, most = _axis_range(every)
    drawn: list[str] = []
    at = _TOP
    for part, group in zip(parts, metrics, strict=True):
        drawn.append(f'<text x="{_LEFT}" y="{at + 13}">{escape(part)}</text>')
        top, at = at, at + _LINE
        for number, metric in enumerate(group):
            if metric is not None:
                drawn.append(_dot(metric, number % COLOURS, at + _LINE / 2, least, most))
                at += _LINE
        drawn += _chance(group, top + _LINE, at, least, most)
    return _figure(
        _title(measure, every), [_grid(every, least, most, at), *drawn], at + _FOOT, _alt_text(parts, metrics, models)
    )


def _dot(metric: Metric, colour: int, y: float, least: float, most: float) -> str:
    low, high = (_x(max(least, min(most, end)), least, most) for end in (metric.low, metric.high))
    x = _x(metric.value, least, most)
    return (
        f'<g class="mark m{colour}"><line class="reach" x1="{low:.1f}" x2="{high:.1f}" y1="{y:g}" y2="{y:g}"/>'
        f'<circle cx="{x:.1f}" cy="{y:g}" r="4.5"/></g>'
        f'<text class="value" x="{_WIDTH - 2}" y="{y + 4:g}" text-anchor="end">{metric.written.strip()}</text>'
    )


def _chance(group: Sequence[Metric | None], top: float, bottom: float, least: float, most: float) -> list[str]:
    known = {metric.chance for metric in group if metric is not None and metric.chance is not None}
    return [
        f'<line class="chance" x1="{_x(chance, least, most):.1f}" x2="{_x(chance, least, most):.1f}" y1="{top}" y2="{bottom}"/>'
        for chance in sorted(known)
    ]


def _grid(metrics: Sequence[Metric], least: float, most: float, bottom: float) -> str:
    percent = all(metric.percent for metric in metrics)
    drawn = []
    for step in range(5):
        value = least + (most - least) * step / 4
        x, anchor = _x(value, least, most), {0: "start", 4: "end"}.get(step, "middle")
        text = f"{100 * value:.0f}%" if percent else f"{value:g}"
        drawn.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP + _LINE}" y2="{bottom + 4}"/>')
        drawn.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="{anchor}">{text}</text>')
    return "".join(drawn)


def _format_value(value: float, like: Metric) -> str:
    return f"{100 * value:.1f}%" if like.percent else f"{value:.2f}"


def _axis_range(metrics: Sequence[Metric]) -> tuple[float, float]:
    """Return the ends of the axis: 0 to 1, extended to include all values."""
    lowest = min((metric.low for metric in metrics), default=0.0)
    highest = max((metric.high for metric in metrics), default=1.0)
    return min(0.0, math.floor(lowest * 2) / 2), max(1.0, math.ceil(highest * 2) / 2)


def _x(value: float, least: float, most: float) -> float:
    return _LEFT + (value - least) / (most - least) * (_WIDTH - _LEFT - _RIGHT)


def _title(name: str, metrics: Sequence[Metric]) -> str:
    return f"{name} (less is better)" if metrics[0].better == "less" else name


def _alt_text(parts: Sequence[str], metrics: Sequence[Sequence[Metric | None]], models: Sequence[ModelResult]) -> str:
    return "; ".join(
        f"{part}, {model.model}: {metric.written.strip()}"
        for part, group in zip(parts, metrics, strict=True)
        for model, metric in zip(models, group, strict=True)
        if metric is not None
    )


def _figure(title: str, drawn: Sequence[str], height: float, alt_text: str) -> str:
    return (
        f'<figure class="plot"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{escape(alt_text)}">{"".join(drawn)}</svg></figure>'
    )


_POSITION_TOP = 20
_GOLD = re.compile(r"gold (\d+) of (\d+)")

Line = Mapping[int, float]


def position_plots(models: Sequence[ModelResult]) -> str:
    """Return accuracy and attention by document position, for each model and number of documents."""
    return "".join(_position_lines(model) for model in models)


def _position_lines(model: ModelResult) -> str:
    curves: dict[int, dict[str, dict[int, float]]] = {}
    for metric in model.found.metrics:
        if found := _GOLD.fullmatch(metric.measure):
            place, documents = map(int, found.groups())
            curves.setdefault(documents, {}).setdefault(metric.part, {})[place] = metric.value
    drawn = []
    for documents, ways in curves.items():
        drawn.append(
            position_plot(f"{model.model}: accuracy by the gold document's place, K = {documents}", ways, documents)
        )
        attention = model.found.detail[f"attention of {documents}"]
        by_place = {f"gold at {gold}": dict(enumerate(values, 1)) for gold, values in attention.items()}
        drawn.append(position_plot(f"{model.model}: attention a token by place, K = {documents}", by_place, documents))
    return "".join(drawn)


def position_plot(title: str, lines: Mapping[str, Line], documents: int) -> str:
    """Return one plot with its title and key.

    Args:
        title: above the plot.
        lines: by name, non-negative values by position, from 1; the axis begins at 0.
        documents: number of positions.
    """
    most = max((value for line in lines.values() for value in line.values()), default=0.0) or 1.0
    ground = _HEIGHT - _FOOT
    drawn = [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:g}" y2="{y:g}"/>'
        f'<text x="{_WIDTH}" y="{y + 4:g}" text-anchor="end">{value:.3g}</text>'
        for y, value in ((ground, 0.0), ((ground + _POSITION_TOP) / 2, most / 2), (_POSITION_TOP, most))
    ]
    for number, line in enumerate(lines.values()):
        points = [
            (_x_of_position(place, documents), ground - value / most * (ground - _POSITION_TOP))
            for place, value in sorted(line.items())
        ]
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        marks = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points)
        drawn.append(f'<g class="mark m{number % COLOURS}"><path d="M{path}"/>{marks}</g>')
    drawn += [
        f'<text x="{_x_of_position(place, documents):.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{place}</text>'
        for place in sorted({1, (documents + 1) // 2, documents})
    ]
    key = "".join(
        f'<span><i class="swatch m{number % COLOURS}"></i>{escape(name)}</span>' for number, name in enumerate(lines)
    )
    alt_text = "; ".join(
        f"{name}: " + ", ".join(f"{place} {value:.3g}" for place, value in sorted(line.items()))
        for name, line in lines.items()
    )
    return (
        f'<figure class="plot"><figcaption>{escape(title)}</figcaption><div class="key-list">{key}</div>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(alt_text)}">{"".join(drawn)}</svg></figure>'
    )


def _x_of_position(place: int, documents: int) -> float:
    return _LEFT + 8 + (place - 1) / max(1, documents - 1) * (_WIDTH - _LEFT - _RIGHT - 16)
