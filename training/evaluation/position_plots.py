"""Figures over the places of documents, as SVG: accuracy by the gold document's place, attention by every place.

Colours are classes (``m0`` ... ``m5``) of ``page.css``. Each figure says its numbers in text as well.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape

from pairwright.training.evaluation.results import ModelResult

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _FOOT, _COLOURS = 420, 190, 8, 56, 20, 24, 6
_GOLD = re.compile(r"gold (\d+) of (\d+)")

Line = Mapping[int, float]


def position_plots(models: Sequence[ModelResult]) -> str:
    """Return the U-curve of each model and number of documents, and its attention by place."""
    return "".join(_position_lines(model) for model in models)


def _position_lines(model: ModelResult) -> str:
    curves: dict[int, dict[str, dict[int, float]]] = {}
    for figure in model.found.figures:
        if found := _GOLD.fullmatch(figure.measure):
            place, documents = map(int, found.groups())
            curves.setdefault(documents, {}).setdefault(figure.part, {})[place] = figure.value
    drawn = []
    for documents, ways in curves.items():
        drawn.append(
            position_plot(f"{model.label}: accuracy by the gold document's place, K = {documents}", ways, documents)
        )
        attention = model.found.detail[f"attention of {documents}"]
        by_place = {f"gold at {gold}": dict(enumerate(values, 1)) for gold, values in attention.items()}
        drawn.append(position_plot(f"{model.label}: attention a token by place, K = {documents}", by_place, documents))
    return "".join(drawn)


def position_plot(title: str, lines: Mapping[str, Line], documents: int) -> str:
    """Return one figure with its title and key.

    Args:
        title: above it.
        lines: by name, values of 0 or more by place, from 1; the axis begins at 0.
        documents: how many places there are.
    """
    most = max((value for line in lines.values() for value in line.values()), default=0.0) or 1.0
    ground = _HEIGHT - _FOOT
    drawn = [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:g}" y2="{y:g}"/>'
        f'<text x="{_WIDTH}" y="{y + 4:g}" text-anchor="end">{value:.3g}</text>'
        for y, value in ((ground, 0.0), ((ground + _TOP) / 2, most / 2), (_TOP, most))
    ]
    for number, line in enumerate(lines.values()):
        points = [
            (_x(place, documents), ground - value / most * (ground - _TOP)) for place, value in sorted(line.items())
        ]
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        marks = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points)
        drawn.append(f'<g class="mark m{number % _COLOURS}"><path d="M{path}"/>{marks}</g>')
    drawn += [
        f'<text x="{_x(place, documents):.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{place}</text>'
        for place in sorted({1, (documents + 1) // 2, documents})
    ]
    key = "".join(
        f'<span><i class="swatch m{number % _COLOURS}"></i>{escape(name)}</span>' for number, name in enumerate(lines)
    )
    told = "; ".join(
        f"{name}: " + ", ".join(f"{place} {value:.3g}" for place, value in sorted(line.items()))
        for name, line in lines.items()
    )
    return (
        f'<figure class="plot"><figcaption>{escape(title)}</figcaption><div class="key-list">{key}</div>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(told)}">{"".join(drawn)}</svg></figure>'
    )


def _x(place: int, documents: int) -> float:
    return _LEFT + 8 + (place - 1) / max(1, documents - 1) * (_WIDTH - _LEFT - _RIGHT - 16)
