"""JSON Lines: one object a line, plain or gzipped. Blank lines are no rows. A list under this name is told as one."""

import re
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.rows import Row, Rows
from pairwright.datasets.readers.text import MAX_LINE, lines_of, parse_object
from pairwright.datasets.rejects import Refused, reject
from pairwright.datasets.wording import COMMAND_LINE, Wording

_LIST_OF_ROWS = re.compile(rb"\s*\[\s*(?:\{|$)")


def read_jsonl(path: Path, wording: Wording = COMMAND_LINE) -> Rows:
    """Yield the rows of a JSON Lines file; places are ``file:line``.

    Raises:
        InputError: when the file cannot be read, or is one JSON list.
    """
    first = True
    for number, line in lines_of(path):
        if line.isspace():
            continue
        if first and _LIST_OF_ROWS.match(line):
            raise _a_list(path, wording)
        first = False
        place = f"{path}:{number}"
        if len(line) > MAX_LINE:
            yield reject(place, "huge_field", f"the line is longer than {MAX_LINE} bytes", line[:2000])
            continue
        try:
            yield Row(place, parse_object(line))
        except Refused as flaw:
            yield reject(place, flaw.reason, flaw.detail, line[:2000])


def _a_list(path: Path, wording: Wording) -> InputError:
    what = "a JSON list, where each line is to be an object of its own"
    return InputError(what, where=str(path), mend=wording.named("json"))
