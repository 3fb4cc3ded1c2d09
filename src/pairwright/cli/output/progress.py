"""Progress bars on stderr.

`with_progress` adds the option ``--quiet`` to a command and opens a `Display` while it runs. The display receives the
steps that library code reports (`pairwright.datasets.progress`) and draws one bar for each:

- on a terminal, bars that disappear when their step ends; a step shorter than `DELAY` seconds draws none;
- elsewhere (a pipe, a log file), at most one line every `LINE_EVERY` seconds;
- with ``--quiet``, nothing.
"""

import functools
import inspect
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from pairwright.cli.output.console import duration, note, printable
from pairwright.datasets.progress import ProgressReport, use_listener

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from pairwright.generators.llm.session import Snapshot

DELAY = 0.7  # seconds before a bar is drawn
WINDOW = 20.0  # seconds over which the rate is measured
LINE_EVERY = 30.0  # seconds between two lines without a terminal
_RESERVED_COLUMNS = (
    3  # on the right, for the "^C" of Ctrl-C: wrapped to the next line, it would keep bars on the screen
)
_SHORTEST = 8  # columns of a bar
_WIDTH = 80  # columns of a terminal of unknown width

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.", rich_help_panel="Output")]


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


class Display:
    """Context manager that draws bars. Reports may come from any thread.

    Args:
        quiet: draw nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet or os.environ.get("RANK", "0") not in {"", "0"}  # only the first rank draws
        self._bars: dict[object, Bar] = {}
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._live: Live | None = None
        self._console: Console | None = None
        self._last_line = time.monotonic()
        self._terminal = not self.quiet and sys.stderr.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._stop()
            self._bars.clear()

    def __call__(self, report: ProgressReport) -> None:
        """Draw the report of a step."""
        if report.ended:
            self.end(report.id)
            return
        self.show(
            report.id,
            report.name,
            done=report.done,
            total=report.total,
            counted=report.done,
            of=report.total,
            unit=report.unit,
        )

    def show(self, key: object, name: str, **figures: Any) -> None:
        """Draw or update a bar; figures are attributes of `Bar`."""
        with self._lock:
            bar = self._bars.get(key)
            if bar is None:
                bar = self._bars[key] = Bar(name, started=time.monotonic())
            if bar.name != name:
                bar.name = name
                bar.marks.clear()
            for figure, value in figures.items():
                setattr(bar, figure, value)
            bar.mark()
            self._draw(bar)

    def end(self, key: object) -> None:
        """Remove a bar."""
        with self._lock:
            if set(self._bars) <= {key}:
                self._stop()  # before the bar is removed: rich erases what it drew last
            self._bars.pop(key, None)

    def note(self, message: str) -> None:
        """Print one line above the bars, even with ``quiet``."""
        note(message)  # rich prints stderr above the bars

    def _draw(self, bar: Bar) -> None:
        if self._terminal:
            if self._live is None and self._timer is None:
                self._timer = threading.Timer(DELAY, self._start)
                self._timer.daemon = True
                self._timer.start()
        elif not self.quiet and time.monotonic() - self._last_line >= LINE_EVERY:
            self._last_line = time.monotonic()
            note(f"  {bar.line()}")

    def _start(self) -> None:
        from rich.console import Console
        from rich.live import Live

        with self._lock:
            if self._live is not None or not self._bars:
                return
            self._console = Console(file=sys.stderr, highlight=False)
            self._live = Live(
                console=self._console,
                get_renderable=self._table,
                refresh_per_second=5,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start(refresh=True)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _table(self) -> "RenderableType":
        # The refreshing thread holds rich's lock here: taking ours as well could deadlock with `_stop`.
        from rich.constrain import Constrain

        width = (self._console.width if self._console else _WIDTH) - _RESERVED_COLUMNS
        return Constrain(_table(list(self._bars.values()), width), width)


def _table(bars: list[Bar], width: int) -> "RenderableType":
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


def _render_bar(bar: Bar) -> "RenderableType":
    from rich.progress_bar import ProgressBar

    return ProgressBar(total=bar.total or None, completed=bar.done, pulse=not bar.total)


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


class _Current:
    """Holder of the running command's display; a process runs one command."""

    display: Display | None = None


def display() -> Display:
    """Return the running command's display; a silent one outside of `with_progress`."""
    return _Current.display or Display(quiet=True)


def with_progress(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--quiet`` to a command and open a `Display` while it runs."""

    @functools.wraps(command)
    def with_display(*args: Any, quiet: bool = False, **values: Any) -> None:
        before = _Current.display
        with Display(quiet=quiet) as opened, use_listener(opened):
            _Current.display = opened
            try:
                command(*args, **values)
            finally:
                _Current.display = before

    own = inspect.signature(command).parameters
    option = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption)
    with_display.__signature__ = inspect.Signature([*own.values(), option])  # type: ignore[attr-defined]  # read by Typer
    return with_display


class StageBars:
    """Bars of a build (`pairwright.flows.progress.BuildProgress`): one line per stage, and a bar for the running one.

    A stage of one job shows the step inside it; a stage of several shows parts, with fractions of the running ones.
    """

    def __init__(self) -> None:
        self._display = display()
        self._stages: dict[str, _Stage] = {}

    def begin(self, stage: str, jobs: int) -> None:
        """Open the bar of a stage, or add a further group of jobs to it."""
        if stage in self._stages:
            self._stages[stage].jobs += jobs
        else:
            self._stages[stage] = _Stage(jobs)
        self._draw(stage)

    def advance(self, stage: str, *, reused: bool) -> None:
        """Count one job as done."""
        current = self._stages[stage]
        current.done += 1
        current.reused += reused
        self._draw(stage)

    def report_step(self, report: ProgressReport) -> None:
        """Update the bar of a stage by a report from one of its jobs."""
        if not report.owner:
            self._display(report)
            return
        stage, _ = report.owner
        if stage in self._stages:
            self._stages[stage].hear(report)
            self._draw(stage)

    def report_model(self, stage: str, now: "Snapshot") -> None:
        """Update the bar of a stage that asks a model."""
        self._display.show(stage, stage, **model_run_figures(now))

    def end(self, stage: str, summary: str) -> None:
        """Close the bar and print the stage's line."""
        ended = self._stages.pop(stage)
        self._display.end(stage)
        earlier = f" ({ended.reused} of {ended.jobs} parts from an earlier run)" if ended.reused else ""
        self.note(f"  {stage:<14}{time.monotonic() - ended.started:6.1f} s  {summary}{earlier}")

    def note(self, message: str) -> None:
        """Print one line."""
        if not self._display.quiet:
            self._display.note(message)

    def _draw(self, stage: str) -> None:
        name, figures = self._stages[stage].figures()
        self._display.show(stage, f"{stage}: {name}" if name else stage, **figures)


@dataclass
class _Stage:
    """State of a running stage."""

    jobs: int
    done: int = 0
    reused: int = 0
    counted: int = 0
    started: float = field(default_factory=time.monotonic)
    open: dict[tuple[int, int], ProgressReport] = field(default_factory=dict)

    def hear(self, report: ProgressReport) -> None:
        """Record the report of a step."""
        if report.ended:
            self.open.pop(report.id, None)
            self.counted += report.done
        else:
            self.open[report.id] = report

    def figures(self) -> tuple[str, Mapping[str, Any]]:
        """Return the name of the step and the figures of the bar."""
        steps = list(self.open.values())
        if self.jobs == 1 and steps:
            now = steps[-1]
            return now.name, {
                "done": now.done,
                "total": now.total,
                "counted": now.done,
                "of": now.total,
                "unit": now.unit,
            }
        within = sum(min(1.0, each.done / each.total) for each in steps if each.total)
        return "", {
            "done": min(self.jobs, self.done + within),
            "total": self.jobs,
            "counted": self.done,
            "of": self.jobs,
            "unit": "parts" if self.jobs > 1 else "part",
        }


def model_run_figures(now: "Snapshot", most: float | None = None) -> Mapping[str, Any]:
    """Return the figures of the bar of a run with a model.

    Args:
        now: progress of the run.
        most: limit of the cost in USD; None: unlimited.
    """
    return {
        "done": now.rows,
        "total": now.of or None,
        "counted": now.rows,
        "of": now.of or None,
        "unit": "rows",
        "note": ", ".join(_spent(now, most)),
    }


def _spent(now: "Snapshot", most: float | None) -> list[str]:
    from pairwright.generators.llm.budget import format_usd

    spent = now.spent
    figures = [f"{spent.requests:,} billed" + (f" + {spent.cached:,} cached" if spent.cached else "")]
    figures.append(f"{spent.prompt_tokens + spent.completion_tokens:,} tokens")
    if now.cost is not None and spent.requests:
        figures.append(format_usd(now.cost) + (f" of {format_usd(most)}" if most is not None else ""))
    return [*figures, f"{now.failed:,} failed"]
