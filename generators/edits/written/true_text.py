"""Construction of the true text for a negative of a model: its new words replaced by true ones."""

import re
from itertools import takewhile

from pairwright.generators.captions.realisation import Change, rewrite


def with_other_words(source: str, edited: str, new: str, other: str) -> str:
    """Return an edited caption with other words in place of its new ones, as a model states them; empty if not found."""
    new, other = new.strip(), other.strip()
    start = _common_length(source, edited)
    end = len(edited) - _common_length(source[start:][::-1], edited[start:][::-1])
    places = [found.span() for found in re.finditer(re.escape(new), edited, re.IGNORECASE)] if new and other else []
    places = [(first, last) for first, last in places if first <= max(start, end - 1) and last >= start]
    if not places:
        return ""
    first, last = max(places, key=lambda place: min(place[1], end) - max(place[0], start))
    return rewrite(edited, [Change(first, last, other)])[0]


def _common_length(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
