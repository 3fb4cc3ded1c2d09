"""How commands speak: results on stdout (text, or one JSON object), progress and notes on stderr.

Captions, names of columns and paths are anybody's: what in them would steer a terminal (colours, a cleared screen, text
that runs backwards) is shown as an escape. Files hold it as it was written.
"""

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairwright.generators.llm.session import Snapshot

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)  # control characters, and of direction
_EVERY = 10.0  # seconds between two lines where there is no terminal


def shown(text: str) -> str:
    """Return a text as a terminal may print it: what would steer it, as an escape such as ``\\x1b``."""
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def _as_json(result: Mapping[str, Any]) -> str:
    # Only within its strings can such characters stand, and there JSON has an escape of its own for them.
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(result, ensure_ascii=False))


def emit(result: Mapping[str, Any], lines: Sequence[str], *, as_json: bool) -> None:
    """Print a command's result: one JSON object for a machine, or lines for a person."""
    if as_json:
        print(_as_json(result))  # noqa: T201 - stdout is where results go
    else:
        print(shown("\n".join(lines)))  # noqa: T201 - stdout is where results go


def note(message: str) -> None:
    """Print one line on stderr."""
    print(shown(message), file=sys.stderr, flush=True)  # noqa: T201 - stderr is where progress goes


def columns(rows: Sequence[Sequence[object]], *, indent: str = "  ") -> list[str]:
    """Return rows as lines of aligned columns; numbers are set right."""
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in texts) for i in range(len(texts[0]))] if texts else []
    return [
        (
            indent
            + "  ".join(_cell(cell, width, given) for cell, width, given in zip(row, widths, source, strict=True))
        ).rstrip()
        for row, source in zip(texts, rows, strict=True)
    ]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _cell(text: str, width: int, given: object) -> str:
    return text.rjust(width) if isinstance(given, int | float) else text.ljust(width)


class BuildProgress:
    """Draws a build on stderr: one line a stage, rewritten in place on a terminal."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._started: dict[str, float] = {}
        self._jobs: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._reused: dict[str, int] = {}
        self._told = time.monotonic()

    def begin(self, stage: str, jobs: int) -> None:
        """A stage starts, with so many jobs."""
        self._started[stage] = time.monotonic()
        self._jobs[stage], self._done[stage], self._reused[stage] = jobs, 0, 0
        self._draw(stage)

    def advance(self, stage: str, *, reused: bool) -> None:
        """One job is done."""
        self._done[stage] += 1
        self._reused[stage] += reused
        self._draw(stage)

    def far(self, stage: str, now: "Snapshot") -> None:
        """A stage that asks a model has come so far."""
        told = ", ".join(far(now))
        if self._live:
            self._line(f"  {stage:<14}{told}", final=False)
        elif time.monotonic() - self._told >= _EVERY:
            self._told = time.monotonic()
            self._line(f"  {stage:<14}{told}", final=True)

    def end(self, stage: str, summary: str) -> None:
        """The stage is done."""
        seconds = time.monotonic() - self._started[stage]
        kept = (
            f" ({self._reused[stage]} of {self._jobs[stage]} parts from an earlier run)" if self._reused[stage] else ""
        )
        self._line(f"  {stage:<14}{seconds:6.1f} s  {summary}{kept}", final=True)

    def note(self, message: str) -> None:
        """Something worth a line of its own."""
        self._line(message, final=True)

    def _draw(self, stage: str) -> None:
        if self._live:
            self._line(f"  {stage:<14}{self._done[stage]}/{self._jobs[stage]} parts", final=False)

    def _line(self, text: str, *, final: bool) -> None:
        start, end = ("\r\x1b[2K", "\n" if final else "") if self._live else ("", "\n")
        print(start + shown(text), end=end, file=sys.stderr, flush=True)  # noqa: T201 - stderr is where progress goes


class Progress:
    """Draws what is going on: one line, rewritten in place on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._what, self._drawn = "", 0.0

    def __call__(self, what: str, done: int, of: int) -> None:
        """Draw the line anew; ``of`` is 0 where the end is not known."""
        self.draw(what, f"{done:,}" + (f" of {of:,}" if of else ""))

    def draw(self, what: str, told: str) -> None:
        """Draw the line anew: what is going on, and how far it is."""
        now = time.monotonic()
        if what == self._what and not self._live and now - self._drawn < _EVERY:
            return
        if what != self._what:
            self.end()
        self._what, self._drawn = what, now
        start, end = ("\r\x1b[2K", "") if self._live else ("", "\n")
        print(f"{start}  {shown(what)}: {shown(told)}", end=end, file=sys.stderr, flush=True)  # noqa: T201 - where progress goes

    def note(self, message: str) -> None:
        """Print a line of its own; the drawn one goes on below."""
        self.end()
        self._what = ""
        note(message)

    def end(self) -> None:
        """Leave the line as it stands."""
        if self._live and self._what:
            print(file=sys.stderr, flush=True)  # noqa: T201 - stderr is where progress goes


def far(now: "Snapshot", most: float | None = None) -> Iterator[str]:
    """Yield how far a run is that asks a model: rows, rate, answers, tokens, cost, time to go."""
    from pairwright.generators.llm.budget import usd

    spent = now.spent
    yield f"{now.rows:,}" + (f" of {now.of:,}" if now.of else "")
    yield f"{now.rate:,.0f}/s"
    yield f"{spent.requests:,} answers paid" + (f", {spent.cached:,} from the cache" if spent.cached else "")
    yield f"{spent.prompt_tokens + spent.completion_tokens:,} tokens"
    if now.cost is not None and spent.requests:
        yield usd(now.cost) + (f" of {usd(most)}" if most is not None else "")
    if now.eta is not None and now.rows < now.of:
        yield f"{duration(now.eta)} left"


def duration(seconds: float) -> str:
    """Return a time as it is said: 41 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
