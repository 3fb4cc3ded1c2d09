"""How commands speak: results on stdout (text, or one JSON object), progress and notes on stderr.

Captions, names of columns and paths are anybody's: what in them would steer a terminal (colours, a cleared screen, text
that runs backwards) is shown as an escape. Files hold it as it was written.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)  # control characters, and of direction


_CODES = {"bold": "1", "faint": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class StyledLine(str):
    """A line with a tone, a name of `_CODES`: it is printed in colour where that can be shown."""

    __slots__ = ("tone",)
    tone: str

    def __new__(cls, text: str, tone: str) -> Self:
        """Return the line."""
        line = super().__new__(cls, text)
        line.tone = tone
        return line


def colours_enabled() -> bool:
    """Say whether stdout shows colours: it is a terminal, and neither NO_COLOR nor a dumb terminal forbids them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
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
        coloured = colours_enabled()
        for line in lines or [""]:
            text = printable(line)
            tone = _CODES[line.tone] if coloured and isinstance(line, StyledLine) else ""
            print(f"\x1b[{tone}m{text}\x1b[0m" if tone else text)  # noqa: T201 - stdout is where results go


def note(message: str) -> None:
    """Print one line on stderr."""
    print(printable(message), file=sys.stderr, flush=True)  # noqa: T201 - stderr is where progress goes


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


def duration(seconds: float) -> str:
    """Return a time as it is said: 41 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
