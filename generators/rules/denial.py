"""What a caption denies: there no edit can be known to be false.

"No dogs in the picture" is true of most pictures with any other animal in the place of the dogs, and "a man without a
red hat" of most men without a blue one. So words that are denied are never changed. "No", "without" and the like deny
what follows; "not" and "isn't" the whole clause ("an owl isn't there"). An edit that replaces the denying word itself
("without" by "with") is as good as any.

Known by words alone, up to the next mark of punctuation: that is too much rather than too little, of captions of which
one in two hundred denies anything.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pairwright.generators.edits.realisation import Change

_MARKS = re.compile(r"[.,;:!?()\"]")
_DENIES = re.compile(
    r"\b(?:(?P<after>no|without|none|nothing|nobody|neither|nor|lacking|missing)|not|never|cannot|\w+n['’]t)\b",
    re.IGNORECASE,
)
NO_WORD = -1  # where no word can be changed so that the rest holds


@dataclass(frozen=True, slots=True)
class Denied:
    """Code points ``start`` to ``end`` of a caption are denied by the word that starts at ``word``, or by none."""

    word: int
    start: int
    end: int


def denied_in(caption: str) -> tuple[Denied, ...]:
    """Return what a caption denies, from left to right; none as a rule."""
    found = []
    for word in _DENIES.finditer(caption):
        mark = _MARKS.search(caption, word.end())
        start = word.end() if word["after"] else _clause_start(caption, word.start())
        found.append(Denied(word.start(), start, mark.start() if mark else len(caption)))
    return tuple(found)


def _clause_start(caption: str, at: int) -> int:
    return max((mark.end() for mark in _MARKS.finditer(caption, 0, at)), default=0)


def touches(denied: Sequence[Denied], changes: Sequence[Change]) -> bool:
    """Whether one of the changes stands in what is denied and leaves the denying word as it is.

    What is put in right behind is denied as well ("no dog on the couch | with a cat"), but for a comma.
    """
    return any(
        each.start <= change.start < each.end + _joins_on(change) and not change.start <= each.word < change.end
        for each in denied
        for change in changes
    )


def _joins_on(change: Change) -> bool:
    return change.start == change.end and not change.after.lstrip().startswith(",")
