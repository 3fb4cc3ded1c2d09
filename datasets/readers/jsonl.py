"""Reader of JSON Lines: one object per line, plain or compressed. Blank lines are skipped; a JSON list is an error."""

import re
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.text_files import MAX_LINE, NO_TRANSCODING, Transcoder, iter_lines, parse_object
from pairwright.datasets.rejects import RejectError, make_reject

_LIST_OF_ROWS = re.compile(rb"\s*\[\s*(?:\{|$)")
_BEGIN_OF_OBJECT = re.compile(rb"\s*\{\s*$")
_ENDS_WITH_COMMA = re.compile(rb"\}\s*,\s*$")


def read_jsonl(
    path: Path,
    option_names: OptionNames = COMMAND_LINE,
    stretch: tuple[int, int, int] = (0, 0, 0),
    transcoder: Transcoder = NO_TRANSCODING,
) -> InputRowIterator:
    """Yield the rows of a JSON Lines file; places are ``file:line``.

    Args:
        path: of the file.
        option_names: how messages name options.
        stretch: only the lines of a stretch, as in `text_files.iter_lines`.
        transcoder: of lines that are not UTF-8.

    Raises:
        InputError: if the file cannot be read, is a JSON list, or its first object has several lines.
    """
    first = stretch[0] == 0
    for number, line in iter_lines(path, stretch):
        if line.isspace():
            continue
        if first and _LIST_OF_ROWS.match(line):
            raise _json_list_error(path, option_names)
        if first and _BEGIN_OF_OBJECT.fullmatch(line):
            fix = f"Write a row per line: jq -c . {path.name} > rows.jsonl."
            raise InputError("an object over several lines, expected one per line", where=f"{path}:{number}", fix=fix)
        first = False
        place = f"{path}:{number}"
        if len(line) > MAX_LINE:
            yield make_reject(place, "field_too_long", f"the line is longer than {MAX_LINE} bytes", line[:2000])
            continue
        try:
            yield InputRow(place, parse_object(transcoder.convert(line)))
        except RejectError as flaw:
            more = "; the line ends with a comma, which belongs to lists only" if _ENDS_WITH_COMMA.search(line) else ""
            yield make_reject(place, flaw.reason, flaw.detail + more, line[:2000])


def _json_list_error(path: Path, option_names: OptionNames) -> InputError:
    what = "a JSON list, expected one object per line"
    return InputError(what, where=str(path), fix=option_names.suggest_suffix("json"))
