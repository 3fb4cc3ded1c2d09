"""Printing: results on stdout (text, or one JSON object), progress and notes on stderr.

Captions, column names and paths come from anywhere. Characters in them that control a terminal (colours, a cleared
screen, right-to-left text) are printed as escapes; files keep them.
"""

import json
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # control and direction characters
_CODES = {"bold": "1", "faint": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class StyledLine(str):
    """A line with a tone, a name of `_CODES`, which is printed as a colour where the terminal shows colours."""

    __slots__ = ("tone",)
    tone: str

    def __new__(cls, text: str, tone: str) -> Self:
        """Return the line."""
        line = super().__new__(cls, text)
        line.tone = tone
        return line


def colours_enabled() -> bool:
    """Return whether stdout shows colours: a terminal that is not dumb, without NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """Return a text with its control characters escaped, such as ``\\x1b``."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _as_json(result: Mapping[str, Any]) -> str:
    # Control characters occur only within strings of the JSON, which has its own escape for them.
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(result, ensure_ascii=False))


def emit(result: Mapping[str, Any], lines: Sequence[str], *, as_json: bool) -> None:
    """Print the result of a command: one JSON object, or lines for a person."""
    if as_json:
        print(_as_json(result))  # noqa: T201 - results go to stdout
    else:
        coloured = colours_enabled()
        for line in lines or [""]:
            text = printable(line)
            tone = _CODES[line.tone] if coloured and isinstance(line, StyledLine) else ""
            print(f"\x1b[{tone}m{text}\x1b[0m" if tone else text)  # noqa: T201 - results go to stdout


def note(message: str) -> None:
    """Print one line on stderr."""
    print(printable(message), file=sys.stderr, flush=True)  # noqa: T201 - notes go to stderr


def note_hub_models(models: Sequence[str]) -> None:
    """Print a line for each model that is no local folder and so is requested from the Hugging Face hub."""
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it logs a line for each of its retries
    for name in models:
        if not Path(name).exists() and not Path(name).is_absolute() and not name.startswith((".", "~")):
            note(f"{name}: no such folder. Requesting it from the Hugging Face hub ...")


def columns(rows: Sequence[Sequence[object]], *, indent: str = "  ") -> list[str]:
    """Return rows as lines of aligned columns, numbers to the right."""
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in texts) for i in range(len(texts[0]))] if texts else []
    return [
        (indent + "  ".join(_cell(*each) for each in zip(row, widths, source, strict=True))).rstrip()
        for row, source in zip(texts, rows, strict=True)
    ]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _cell(text: str, width: int, value: object) -> str:
    return text.rjust(width) if isinstance(value, int | float) else text.ljust(width)


def duration(seconds: float) -> str:
    """Return a time in seconds as text: ``41 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def list_counts(counts: Mapping[str, int]) -> str:
    """Return ``cola 3, length 1,200`` in the order of the mapping."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
