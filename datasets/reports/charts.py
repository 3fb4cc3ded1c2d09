"""Charts of the report as SVG or HTML text: bars, a stacked bar, a histogram of two states.

Colours are classes of the style sheet (``kept``, ``rejected``, ``before``, ``after``), so charts follow light and dark
mode. Widths are percentages, so they follow the window. Every figure also has its numbers as text.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatSequence: TypeAlias = Sequence[float] | npt.NDArray[np.float64]

BINS = 41
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 420, 190, 6, 22, 8


def draw_stacked_bar(parts: Sequence[tuple[str, int]], whole: int) -> str:
    """Return a bar of ``whole`` split into ``parts`` (class, count), in order."""
    x, rects = 0.0, []
    for css_class, count in parts:
        width = 100 * count / whole if whole else 0.0
        rects.append(f'<rect class="{css_class}" x="{x:.3f}%" width="{width:.3f}%" height="100%"/>')
        x += width
    said = ", ".join(f"{css_class} {count:,}" for css_class, count in parts)
    return f'<svg class="bar" role="img" aria-label="{escape(said)}"><rect class="ground" width="100%" height="100%"/>{"".join(rects)}</svg>'


def draw_bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Return a list of named bars; each row is (name, value, value as text)."""
    largest = max((value for _, value, _ in rows), default=0.0)
    lines = []
    for name, value, written in rows:
        width = 100 * value / largest if largest else 0.0
        bar = f'<svg class="bar thin" aria-hidden="true"><rect class="kept" width="{width:.3f}%" height="100%"/></svg>'
        lines.append(
            f'<div class="row"><span class="name">{escape(name)}</span>{bar}<span class="value">{escape(written)}</span></div>'
        )
    return f'<div class="rows">{"".join(lines)}</div>'


def draw_histogram(name: str, before: FloatSequence, after: FloatSequence) -> str:
    """Return a figure of two histograms around 0, each normalised by its own total.

    The axis covers 99% of the values before, rounded up to a tenth; values beyond it count in the outermost bin.

    Args:
        name: what was measured.
        before: values before, outlined.
        after: values after, filled.
    """
    reach = _axis_limit(before)
    shares = [_shares(values, reach) for values in (before, after)]
    tallest = max(float(share.max()) for share in shares) or 1.0
    filled = "".join(_column(number, float(value) / tallest) for number, value in enumerate(shares[1]))
    outline = " ".join(_step(number, float(value) / tallest) for number, value in enumerate(shares[0]))
    ground = _HEIGHT - _BOTTOM
    middle = _x(BINS / 2)
    ticks = "".join(
        f'<text x="{_x((tick + 1) / 2 * BINS):.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{text}</text>'
        for tick, text, anchor in ((-1, f"−{reach:g}", "start"), (0, "0", "middle"), (1, f"+{reach:g}", "end"))
    )
    return (
        f'<figure class="histogram"><figcaption>{escape(name)}</figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(_describe_histogram(name, before, after))}">'
        f'<line class="axis" x1="{middle:.1f}" x2="{middle:.1f}" y1="{_TOP}" y2="{ground}"/>'
        f'<g class="after">{filled}</g><path class="before" d="M{_LEFT} {ground} {outline} L{_WIDTH - _LEFT} {ground}"/>'
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _LEFT}" y1="{ground}" y2="{ground}"/>{ticks}</svg>'
        f'<p class="note">{escape(_describe_histogram("", before, after))}</p></figure>'
    )


def _axis_limit(values: FloatSequence) -> float:
    far = float(np.quantile(np.abs(values), 0.99)) if len(values) else 1.0
    return min(1.0, max(0.1, math.ceil(far * 10) / 10))


def _shares(values: FloatSequence, reach: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    inside = np.clip(np.asarray(values, dtype=np.float64), -reach, reach)
    counts, _ = np.histogram(inside, bins=BINS, range=(-reach, reach))
    return counts / max(len(values), 1)


def _x(bins: float) -> float:
    return _LEFT + bins * (_WIDTH - 2 * _LEFT) / BINS


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def _column(number: int, share: float) -> str:
    if not share:
        return ""
    top = _y(share)
    width = _x(1) - _x(0) - 1
    return (
        f'<rect x="{_x(number) + 0.5:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_HEIGHT - _BOTTOM - top:.1f}"/>'
    )


def _step(number: int, share: float) -> str:
    return f"L{_x(number):.1f} {_y(share):.1f} L{_x(number + 1):.1f} {_y(share):.1f}"


def _describe_histogram(name: str, before: FloatSequence, after: FloatSequence) -> str:
    if np.array_equal(before, after):  # nothing was removed: one state, not two
        return (f"{name}, " if name else "") + f"{len(after):,} rows, {_pairwise_accuracy(after)}"
    states = [
        f"{state} {len(values):,} rows, {_pairwise_accuracy(values)}"
        for state, values in (("before:", before), ("after:", after))
    ]
    return (f"{name}, " if name else "") + "; ".join(states)


def _pairwise_accuracy(values: FloatSequence) -> str:
    """Return the accuracy of the scorer alone: the share of gaps above 0, ties counting half."""
    if not len(values):
        return "nothing to guess"
    signs = np.sign(np.asarray(values, dtype=np.float64))
    return f"{(signs.mean() + 1) / 2:.1%} guessed right"
