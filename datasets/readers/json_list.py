"""Reader of JSON files that are a list of rows, plain or compressed, in constant memory.

LLaVA's instruction files are such lists of a gigabyte and more.

Limits: `MAX_LINE` bytes per row (16 MiB). Broken list syntax fails the whole file, as the start of the next row is
unknown; a row with a lone surrogate or a number too large is rejected alone.
"""

import codecs
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.text_files import BOM, MAX_LINE, READ_ERRORS, open_text, parse_json, parse_object
from pairwright.datasets.rejects import RejectError, make_reject

_CHUNK = 2**20
_WHITESPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def read_json_list(path: Path) -> InputRowIterator:
    """Yield the items of a JSON list; places are ``file:item N``, from 1.

    Raises:
        InputError: if the file is not a complete JSON list, or not UTF-8.
    """
    for number, text in enumerate(_items(path), 1):
        place = f"{path}:item {number}"
        try:
            yield InputRow(place, parse_object(text))
        except RejectError as flaw:
            yield make_reject(place, flaw.reason, flaw.detail, text[:2000])


def read_first_items(path: Path, most: int) -> list[Any] | None:
    """Return the first items of a JSON list, those that are invalid as None; None for a file that is no list.

    Raises:
        InputError: as `read_json_list`.
    """
    if _JsonWindow(path).peek_char() != "[":
        return None
    return [_parse_item(text) for text in islice(_items(path), most)]


def _parse_item(text: str) -> Any:
    try:
        return parse_json(text)
    except RejectError:  # a reject when the rows are read
        return None


def _items(path: Path) -> Iterator[str]:
    """Yield the text of each item."""
    window = _JsonWindow(path)
    if window.peek_char() != "[":
        raise InputError("the file is not a JSON list", where=str(path), fix="Give a list of rows, or JSON Lines.")
    window.place += 1
    number = 0
    while (sign := window.peek_char()) != "]":
        if number:
            if sign != ",":
                raise window.broken(number)
            window.place += 1
        number += 1
        yield window.value(number)
    window.place += 1
    if window.peek_char():
        raise window.broken(number)


class _JsonWindow:
    """A window of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text, self.place, self.ended = "", 0, False
        self._pieces = _read_chunks(path)

    def peek_char(self) -> str:
        """Return the next character that is not whitespace without consuming it; empty at the end."""
        while True:
            gap = _WHITESPACE.match(self.text, self.place)
            self.place = gap.end() if gap else self.place
            if self.place < len(self.text):
                return self.text[self.place]
            if not self._more():
                return ""

    def value(self, number: int) -> str:
        """Consume one JSON value and return its text."""
        wanted = 0
        while True:
            if self.peek_char() == "":
                raise self.broken(number, "ends before the list does")
            try:
                _, end = _DECODER.raw_decode(self.text, self.place)
            except (json.JSONDecodeError, RecursionError):
                end = len(self.text)
                whole = False
            else:
                whole = True
            if whole and (end < len(self.text) or self.ended):  # a number may continue in the next chunk
                text, self.place = self.text[self.place : end], end
                return text
            # Doubling, so that a long row is not parsed from its start for every chunk.
            wanted = max(2 * wanted, len(self.text) - self.place + _CHUNK)
            if len(self.text) - self.place > MAX_LINE or not self._fill(wanted):
                raise self.broken(number)

    def broken(self, number: int, how: str = "is not JSON") -> InputError:
        """Return the error of a list that is broken at or after item ``number``."""
        return InputError(
            f"broken_json: the list {how} at item {number}", where=str(self.path), fix="Fix the file, or copy it again."
        )

    def _fill(self, wanted: int) -> bool:
        before = len(self.text) - self.place
        while len(self.text) - self.place < wanted and self._more():
            pass
        return len(self.text) - self.place > before

    def _more(self) -> bool:
        piece = next(self._pieces, None)
        if piece is None:
            self.ended = True
            return False
        self.text, self.place = self.text[self.place :] + piece, 0
        return True


def _read_chunks(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_text(path) as handle:
            first = True
            while data := handle.read(_CHUNK):
                yield decoder.decode(data.removeprefix(BOM) if first else data)
                first = False
            yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise InputError(f"not_utf8: {error.reason}", where=str(path), fix="Save the file as UTF-8.") from None
    except READ_ERRORS as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read ({why})", where=str(path), fix="Copy the file again.") from None
