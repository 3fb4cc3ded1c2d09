"""Bars of progress: their figures, and their layout on a terminal."""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pairwright.cli.output.console import duration, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

WINDOW = 20.0  # seconds over which the rate is measured
_SHORTEST = 8  # columns of a bar


@dataclass
class Bar:
    """One bar.

    Attributes:
        name: the step.
        unit: unit of ``counted``.
        done: progress in the unit of ``total``, fractions of a part included.
        total: value of ``done`` at the end; None: unknown.
        counted: units done, for the count and the rate.
        of: units in total; None: unknown.
        note: figures after the bar: cost, tokens, failures.
        started: start, by the monotonic clock.
        marks: time, ``done`` and ``counted`` of the updates in the last `WINDOW` seconds, for the rate.
    """

    name: str
    unit: str = ""
    done: float = 0
    total: float | None = None
    counted: int = 0
    of: int | None = None
    note: str = ""
    started: float = field(default_factory=time.monotonic)
    marks: deque[tuple[float, float, int]] = field(default_factory=deque)

    @property
    def fraction(self) -> float | None:
        """Share done, in [0, 1]; None when the total is unknown."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def mark(self) -> None:
        """Record the figures of an update."""
        now = time.monotonic()
        if not self.marks:
            self.marks.append((now, self.done, self.counted))
        self.marks.append((now, self.done, self.counted))
        while len(self.marks) > 2 and now - self.marks[1][0] > WINDOW:
            self.marks.popleft()

    def percent(self) -> str:
        """Return the share done as text."""
        return f"{self.fraction:.0%}" if self.fraction is not None else ""

    def count(self) -> str:
        """Return the count and the total as text."""
        if not self.unit:
            return ""
        return f"{self.counted:,}" + (f"/{self.of:,}" if self.of else "") + f" {self.unit}"

    def rate(self) -> str:
        """Return units per second as text."""
        rate = self._speed(2)
        return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s" if rate else ""

    def left(self) -> str:
        """Return the remaining time at the mean rate as text."""
        speed = self._speed(1)
        return f"{duration((self.total - self.done) / speed)} left" if self.total and speed else ""

    def _speed(self, figure: int) -> float:
        first, last = self.marks[0], self.marks[-1]
        seconds = max(time.monotonic(), last[0]) - first[0]
        return max(0.0, last[figure] - first[figure]) / seconds if seconds > 0.5 else 0.0

    def line(self) -> str:
        """Return all figures as one line."""
        fields = [self.count() + (f" ({self.percent()})" if self.percent() else ""), self.rate(), self.note]
        fields += [f"{duration(self.elapsed)} elapsed", self.left()]
        return f"{self.name}: " + ", ".join(filter(None, (each.strip() for each in fields)))


def render_bars(bars: list[Bar], width: int) -> "RenderableType":
    """Return all bars: one row each where the figures fit, else with the figures below the bar."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    layouts = _BarLayout(), _BarLayout(unit=False), _BarLayout(unit=False, word=False)
    layout = next((each for each in layouts if each.width(bars) <= width), None)
    if layout is None:
        return Group(*(part for bar in bars for part in _render_stacked(bar, width)))
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(ratio=1, min_width=_SHORTEST)
    for _ in layout.figures(bars[0]) if bars else ():
        table.add_column(no_wrap=True, justify="right")
    for bar in bars:
        table.add_row(Text(f"  {printable(bar.name)}"), _render_bar(bar), *map(Text, layout.figures(bar)))
    return table


@dataclass(frozen=True)
class _BarLayout:
    """Words in the row of a bar: the unit after the count, and "elapsed" after the time."""

    unit: bool = True
    word: bool = True

    def figures(self, bar: Bar) -> list[str]:
        """Return the figures of a row, one per column."""
        count = bar.count() if self.unit else bar.count().removesuffix(f" {bar.unit}")
        elapsed = duration(bar.elapsed) + (" elapsed" if self.word else "")
        return [bar.percent(), count, bar.rate(), bar.note, elapsed, bar.left()]

    def width(self, bars: list[Bar]) -> int:
        """Return the greatest width of the rows while their figures grow, so that the layout stays the same."""
        names = max((len(printable(bar.name)) for bar in bars), default=0)
        widest = [max(map(len, column)) for column in zip(*map(self._widest, bars), strict=True)]
        return 2 + names + 1 + _SHORTEST + sum(1 + each for each in widest)

    def _widest(self, bar: Bar) -> list[str]:
        percent, count, rate, note_, _, _ = self.figures(bar)
        most = count.replace(f"{bar.counted:,}", f"{bar.of:,}", 1) if bar.of else count
        return [
            percent or "100%",
            most,
            rate or "100/s",
            note_,
            "60 min" + (" elapsed" if self.word else ""),
            "60 min left",
        ]


def _render_bar(bar: Bar) -> "RenderableType":
    from rich.progress_bar import ProgressBar

    return ProgressBar(total=bar.total or None, completed=bar.done, pulse=not bar.total)


def _render_stacked(bar: Bar, width: int) -> "list[RenderableType]":
    """Return the name and the bar in one line, and the figures in lines below."""
    from rich.table import Table
    from rich.text import Text

    head = Table.grid(padding=(0, 1), expand=True)
    head.add_column(no_wrap=True, overflow="ellipsis")
    head.add_column(ratio=1, min_width=_SHORTEST)
    head.add_column(no_wrap=True, justify="right")
    head.add_row(Text(f"  {printable(bar.name)}"), _render_bar(bar), Text(bar.percent()))
    lines = [""]
    _, count, rate, note_, elapsed, left = _BarLayout(unit=False).figures(bar)
    for figure in filter(None, (count, rate, *note_.split(", "), elapsed, left)):
        if lines[-1] and len(lines[-1]) + 2 + len(figure) > width - 4:
            lines.append("")
        lines[-1] += f"{'  ' if lines[-1] else ''}{figure}"
    return [head, *(Text(f"    {line}", no_wrap=True, overflow="ellipsis") for line in lines)]
