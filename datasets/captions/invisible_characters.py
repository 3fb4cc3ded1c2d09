"""Detection and removal of invisible characters: zero-width characters, soft hyphens, bidirectional marks.

Web captions contain them ("red[U+200B] car"); a tagger treats them as letters, so words with them are unknown. Captions
are tagged without them, and token offsets refer to the caption as written. Joiners that combine emoji or the letters of
other scripts are visible and kept.
"""

import re
from bisect import bisect_left
from typing import Final

_MARKS: Final = "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_JOINERS: Final = "\u200c\u200d"
# Joiners are invisible next to such marks, and next to a Latin letter, a digit, a space or the end of the text.
_INVISIBLE: Final = re.compile(
    f"[{_JOINERS}]*[{_MARKS}][{_JOINERS}{_MARKS}]*|(?<![^\0-\u02ff])[{_JOINERS}]+|[{_JOINERS}]+(?![^\0-\u02ff])"
)


def has_invisible(text: str) -> bool:
    """Return whether a text contains invisible characters."""
    return not text.isascii() and _INVISIBLE.search(text) is not None


def remove_invisible(text: str) -> str:
    """Return a text without invisible characters."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


class OffsetMap:
    """Mapping between offsets in a text and in the same text without invisible characters; in code points."""

    def __init__(self, text: str) -> None:
        invisible = {at for found in _INVISIBLE.finditer(text) for at in range(*found.span())}
        self._written = [at for at in range(len(text)) if at not in invisible]
        self._length = len(text)

    def written(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the text as written of a span of the visible text; surrounding marks are excluded."""
        if start < end:
            return self._written[start], self._written[end - 1] + 1
        at = self._written[start - 1] + 1 if start else self._written[0] if self._written else self._length
        return at, at

    def to_visible(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the visible text of a span of the text as written."""
        return bisect_left(self._written, start), bisect_left(self._written, end)
