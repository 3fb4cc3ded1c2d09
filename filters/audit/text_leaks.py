"""What gives the answer away before any scorer is asked: format, length, words, places, and rows that repeat.

All of it is counted over rows of a positive (the caption, or the hard positive where there is one) and a negative.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from math import sqrt
from typing import Final

from pairwright.datasets.progress import open_step, track
from pairwright.generators.edit_checks.unwrapping import sameness

TextPairs = Sequence[tuple[str, str]]  # positive, negative

POSITION_BINS: Final = 10
_MIN_ROWS: Final = 5  # rows that a word has to tell apart to be listed

# What people and models do to a text without saying anything by it.
FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "final mark": lambda text: text.rstrip().endswith((".", "!", "?")),
    "first letter is a capital": lambda text: text.lstrip()[:1].isupper(),
    "capitals inside": lambda text: any(word[:1].isupper() for word in text.split()[1:]),
    "space at an end": lambda text: text != text.strip(),
    "two spaces": lambda text: "  " in text.strip(),
    "space before a mark": lambda text: bool(re.search(r"\s[.,;:!?]", text.rstrip())),
    "curly quotes or dashes": lambda text: bool(re.search("[‘’“”–—]", text)),
    "line break": lambda text: "\n" in text,
}


@dataclass(frozen=True, slots=True)
class FormatLeak:
    """A trait of format in which the two texts of some rows differ.

    Attributes:
        rows: in which one text has it and the other has not.
        negative: of these, rows in which it is the negative that has it.
    """

    rows: int
    negative: int


@dataclass(frozen=True, slots=True)
class WordLeak:
    """A word or a run of two that stands in one text of a row and not in the other.

    Attributes:
        words: in lower case.
        positive: rows in which only the positive has it.
        negative: rows in which only the negative has it.
    """

    words: str
    positive: int
    negative: int

    @property
    def weight(self) -> float:
        """By how many standard deviations it leans to the negative; below 0 to the positive."""
        return (self.negative - self.positive) / sqrt(self.negative + self.positive)


@dataclass(frozen=True, slots=True)
class TextLeaks:
    """All that was counted.

    Attributes:
        identical: rows whose texts are the same but for capitals, spacing and marks.
        repeated: rows that say what an earlier row says, both texts.
        shared: rows whose negative is the positive of another row: true of some other image.
        leaks: trait of format to its `Leak`; traits that no row shows are left out.
        format_rows: rows that differ in any of them.
        longer: rows whose negative has more words.
        shorter: rows whose negative has fewer words.
        words: the most telling ones, the strongest first.
        places: `POSITION_BINS` counts: where in the positive the texts begin to differ, from its start to its end.
    """

    identical: int
    repeated: int
    shared: int
    leaks: Mapping[str, FormatLeak]
    format_rows: int
    longer: int
    shorter: int
    words: tuple[WordLeak, ...]
    places: tuple[int, ...]


def find_text_leaks(pairs: TextPairs, most: int = 30) -> TextLeaks:
    """Count what rows give away.

    Args:
        pairs: (positive, negative) a row.
        most: telling words to name, at most.
    """
    with open_step("describing rows", unit=""):  # around steps that are too short for bars of their own
        formal = [(sameness(positive), sameness(negative)) for positive, negative in track(pairs, "comparing texts")]
        seen = Counter(formal)
        positives = {positive for positive, _ in formal}
        lengths = [len(negative.split()) - len(positive.split()) for positive, negative in pairs]
        leaks = {name: leak for name, has in FORMATS.items() if (leak := _format_leak(pairs, has)).rows}
        return TextLeaks(
            identical=sum(positive == negative for positive, negative in formal),
            repeated=sum(count - 1 for count in seen.values()),
            shared=sum(negative in positives and negative != positive for positive, negative in formal),
            leaks=leaks,
            format_rows=sum(any(has(one) != has(other) for has in FORMATS.values()) for one, other in pairs),
            longer=sum(length > 0 for length in lengths),
            shorter=sum(length < 0 for length in lengths),
            words=_leaking_words(formal, most),
            places=_edit_positions(formal),
        )


def _format_leak(pairs: TextPairs, has: Callable[[str], bool]) -> FormatLeak:
    sides = [(has(positive), has(negative)) for positive, negative in pairs]
    return FormatLeak(sum(one != other for one, other in sides), sum(other and not one for one, other in sides))


def _leaking_words(formal: TextPairs, most: int) -> tuple[WordLeak, ...]:
    ours, theirs = Counter[str](), Counter[str]()
    for positive, negative in track(formal, "counting words"):
        one, other = _ngrams(positive), _ngrams(negative)
        ours.update(one - other)
        theirs.update(other - one)
    told = (WordLeak(words, ours[words], theirs[words]) for words in ours.keys() | theirs.keys())
    strong = sorted(
        (tell for tell in told if tell.positive + tell.negative >= _MIN_ROWS and tell.positive != tell.negative),
        key=lambda tell: (-abs(tell.weight), tell.words),
    )
    return tuple(_without_parts(strong, most))


def _without_parts(tells: Iterable[WordLeak], most: int) -> list[WordLeak]:
    """Leave out what shares a word with a stronger one that leans the same way: "a single" beside "single"."""
    taken: list[WordLeak] = []
    told: set[tuple[str, bool]] = set()
    for tell in tells:
        parts = {(word, tell.weight > 0) for word in tell.words.split()}
        if told.isdisjoint(parts):
            taken.append(tell)
            told |= parts
        if len(taken) == most:
            break
    return taken


def _ngrams(text: str) -> set[str]:
    words = [word for word in text.split() if any(letter.isalnum() for letter in word)]
    return {*words, *(f"{one} {other}" for one, other in pairwise(words))}


def _edit_positions(formal: TextPairs) -> tuple[int, ...]:
    found = [0] * POSITION_BINS
    for positive, negative in track(formal, "locating edits"):
        one, other = positive.split(), negative.split()
        if one == other or not one:
            continue
        matcher = SequenceMatcher(None, one, other, autojunk=False)
        start = next(block[1] for block in matcher.get_opcodes() if block[0] != "equal")
        found[min(POSITION_BINS - 1, start * POSITION_BINS // max(len(one), 1))] += 1
    return tuple(found)
