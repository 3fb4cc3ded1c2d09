"""Construction of the true text for a negative of a model: its new words replaced by true ones."""

import re
from typing import Final

from pairwright.generators.language.inflection import article

_ARTICLE: Final = re.compile(r"\b(an?)(\s+)\Z", re.IGNORECASE)


def with_other_words(source: str, edited: str, new: str, other: str) -> str:
    """Return an edited caption with other words in the place of its new ones; empty if the place is not found.

    Args:
        source: the caption.
        edited: the caption with one edit.
        new: its new words, as a model states them.
        other: the words to write instead.
    """
    new, other = new.strip(), other.strip()
    start = _common_length(source, edited)
    end = len(edited) - _common_length(source[start:][::-1], edited[start:][::-1])
    places = [found.span() for found in re.finditer(re.escape(new), edited, re.IGNORECASE)] if new and other else []
    places = [(first, last) for first, last in places if first <= max(start, end - 1) and last >= start]
    if not places:
        return ""
    first, last = max(places, key=lambda place: min(place[1], end) - max(place[0], start))
    before = _ARTICLE.sub(lambda found: _article(found[1], other) + found[2], edited[:first])
    if not first and edited[:1].isupper():
        other = other[:1].upper() + other[1:]
    return before + other + edited[last:]


def _common_length(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return next(
        (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
        min(len(one), len(other)),
    )


def _article(written: str, word: str) -> str:
    made = article(word.split(maxsplit=1)[0])
    return made.capitalize() if written[0].isupper() else made
