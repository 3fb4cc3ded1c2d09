"""SVG charts of an audit: accuracy bars from 50% to 100%, heatmaps of two gaps, and histograms.

No plotting library, as in `datasets.reports.charts`; every chart states its numbers as text as well.
"""

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from pairwright.filters.attacks.accuracy import MeasuredAttack
from pairwright.generators.language.vocabulary import FloatArray

CELLS = 25
_SIDE = 240


def draw_accuracy_bar(measured: MeasuredAttack, limit: float, *, exceeds: bool) -> str:
    """Return a bar from 50% to 100% with the accuracy as a dot, its interval as a line and the limit as a tick."""

    def x(share: float) -> float:
        return 200 * min(max(share, 0.5), 1.0) - 100

    low, high, at, bound = x(measured.low), x(measured.high), x(measured.accuracy), x(limit)
    broken = " over" if exceeds else ""
    label = f"{measured.accuracy:.1%}, 95% {measured.low:.1%} to {measured.high:.1%}"
    return (
        f'<svg class="scale{broken}" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f'<rect class="ground" width="100" height="10"/><rect class="reach" x="{low:.2f}" width="{max(high - low, 0.4):.2f}" '
        f'y="3" height="4"/><rect class="dot" x="{max(at - 0.5, 0):.2f}" width="1" height="10"/>'
        f'<line class="bound" x1="{bound:.2f}" x2="{bound:.2f}" y1="0" y2="10"/></svg>'
    )


def draw_gap_heatmap(title: str, first: FloatArray, second: FloatArray, reach: tuple[float, float]) -> str:
    """Return the heatmap of two gaps, darker where there are more rows (after figure 4.4 of the SugarCrepe chapter).

    Symmetry about the centre means that neither scorer, nor any rule over both, detects the positive.

    Args:
        title: shown above it.
        first: float64 (n,) gap to the right; NaN is skipped.
        second: float64 (n,) gap upwards.
        reach: maximum of each axis; larger gaps count at the edge.
    """
    counts = count_cells(first, second, reach)
    most = counts.max() or 1
    width = _SIDE / CELLS
    rects = "".join(
        f'<rect x="{column * width:.1f}" y="{(CELLS - 1 - row) * width:.1f}" width="{width:.1f}" height="{width:.1f}" '
        f'fill-opacity="{0.12 + 0.88 * (counts[row, column] / most) ** 0.5:.2f}"/>'
        for row, column in zip(*np.nonzero(counts), strict=True)
    )
    half = _SIDE / 2
    right = float(np.mean(np.nan_to_num(first) > 0)) if len(first) else 0.5
    up = float(np.mean(np.nan_to_num(second) > 0)) if len(second) else 0.5
    label = f"{len(first):,} rows; {right:.0%} right of the middle, {up:.0%} above it"
    return (
        f'<figure class="square"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {_SIDE} {_SIDE}" role="img" aria-label="{escape(label)}">'
        f'<rect class="ground" width="{_SIDE}" height="{_SIDE}"/><g class="cells">{rects}</g>'
        f'<line class="axis" x1="{half}" x2="{half}" y1="0" y2="{_SIDE}"/>'
        f'<line class="axis" x1="0" x2="{_SIDE}" y1="{half}" y2="{half}"/></svg><p class="note">{escape(label)}</p></figure>'
    )


def count_cells(first: FloatArray, second: FloatArray, reach: tuple[float, float]) -> npt.NDArray[np.int64]:
    """Return the number of rows in each of `CELLS` x `CELLS` cells, rows of cells from the bottom."""
    whole = np.isfinite(first) & np.isfinite(second)
    places = [
        np.clip(((gap[whole] / far + 1) / 2 * CELLS).astype(np.int64), 0, CELLS - 1)
        for gap, far in zip((first, second), reach, strict=True)
    ]
    counts = np.zeros((CELLS, CELLS), np.int64)
    np.add.at(counts, (places[1], places[0]), 1)
    return counts


def draw_bar_chart(counts: Sequence[int], names: tuple[str, str]) -> str:
    """Return vertical bars for counts from left to right; ``names`` label the two ends."""
    most = max(counts) or 1
    width = 400 / len(counts)
    bars = "".join(
        f'<rect x="{at * width + 2:.1f}" width="{width - 4:.1f}" y="{100 - 92 * count / most:.1f}" height="{92 * count / most:.1f}">'
        f"<title>{count:,}</title></rect>"
        for at, count in enumerate(counts)
    )
    label = ", ".join(f"{count:,}" for count in counts)
    return (
        f'<figure class="histogram places"><svg viewBox="0 0 400 120" role="img" aria-label="{label}"><g class="after">{bars}</g>'
        f'<line class="axis" x1="0" x2="400" y1="100" y2="100"/><text x="0" y="116">{escape(names[0])}</text>'
        f'<text x="400" y="116" text-anchor="end">{escape(names[1])}</text></svg></figure>'
    )
