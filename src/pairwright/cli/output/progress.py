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
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from pairwright.cli.output.bars import Bar, render_bars
from pairwright.cli.output.console import note
from pairwright.datasets.progress import ProgressReport, use_listener

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from pairwright.generators.llm.session import Snapshot

DELAY = 0.7  # seconds before a bar is drawn
LINE_EVERY = 30.0  # seconds between two lines without a terminal
_RESERVED_COLUMNS = (
    3  # on the right, for the "^C" of Ctrl-C: wrapped to the next line, it would keep bars on the screen
)
_WIDTH = 80  # columns of a terminal of unknown width

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.", rich_help_panel="Output")]


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
        return Constrain(render_bars(list(self._bars.values()), width), width)


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
