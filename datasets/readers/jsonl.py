"""JSON Lines: one object a line, plain or gzipped. Blank lines are no rows."""

from pathlib import Path

from pairwright.datasets.readers.rows import Row, Rows
from pairwright.datasets.readers.text import MAX_LINE, lines_of, parse_object
from pairwright.datasets.rejects import Refused, reject


def read_jsonl(path: Path) -> Rows:
    """Yield the rows of a JSON Lines file; places are ``file:line``."""
    for number, line in lines_of(path):
        if line.isspace():
            continue
        place = f"{path}:{number}"
        if len(line) > MAX_LINE:
            yield reject(place, "huge_field", f"the line is longer than {MAX_LINE} bytes", line[:2000])
            continue
        try:
            yield Row(place, parse_object(line))
        except Refused as flaw:
            yield reject(place, flaw.reason, flaw.detail, line[:2000])
