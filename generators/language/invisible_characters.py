"""Letters that nobody sees: marks without width, soft hyphens, marks of direction.

Captions from the web hold them ("red[U+200B] car"), and to a tagger they are letters like others, so that the words they
stand in are in no table. They are no part of a word: captions are read without them, and where a word stands is told
by its place in the caption as written. The joiner that makes one picture of several emoji, or binds the letters of
other scripts, is seen and stays.
"""

import re
from bisect import bisect_left
from typing import Final

_MARKS: Final = "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_JOINERS: Final = "\u200c\u200d"
# Joiners are unseen among other such marks, and wherever a Latin letter, a digit, a blank or nothing stands beside them.
_UNSEEN: Final = re.compile(
    f"[{_JOINERS}]*[{_MARKS}][{_JOINERS}{_MARKS}]*|(?<![^\0-\u02ff])[{_JOINERS}]+|[{_JOINERS}]+(?![^\0-\u02ff])"
)


def has_invisible(text: str) -> bool:
    """Whether a text holds letters that nobody sees."""
    return not text.isascii() and _UNSEEN.search(text) is not None


def remove_invisible(text: str) -> str:
    """Return what one sees of a text: itself, where it holds nothing else."""
    return text if text.isascii() else _UNSEEN.sub("", text)


class OffsetMap:
    """Where what one sees of a text stands in the text as written; places are code points."""

    def __init__(self, text: str) -> None:
        unseen = {at for found in _UNSEEN.finditer(text) for at in range(*found.span())}
        self._written = [at for at in range(len(text)) if at not in unseen]
        self._length = len(text)

    def written(self, start: int, end: int) -> tuple[int, int]:
        """Return where a stretch of the seen text stands; marks around it are none of it."""
        if start < end:
            return self._written[start], self._written[end - 1] + 1
        at = self._written[start - 1] + 1 if start else self._written[0] if self._written else self._length
        return at, at

    def to_visible(self, start: int, end: int) -> tuple[int, int]:
        """Return where a stretch of the written text stands in what one sees of it."""
        return bisect_left(self._written, start), bisect_left(self._written, end)
