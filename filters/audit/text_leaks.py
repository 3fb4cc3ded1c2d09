"""Leaks that need no scorer: differences in format, length and words, edit positions, and repeated rows.

All counts are over rows of a positive (the caption, or the hard positive where there is one) and a negative.
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
from pairwright.generators.edits.written.sentence_extraction import comparison_key

TextPairs = Sequence[tuple[str, str]]  # positive, negative

POSITION_BINS: Final = 10
_MIN_ROWS: Final = 5  # minimum number of differing rows for a word to be listed
_MAX_WORDS: Final = 30  # listed

# Properties of the writing that do not change the meaning.
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
    """A format property in which the two texts of some rows differ.

    Attributes:
        rows: in which exactly one text has it.
        negative: of these, rows in which the negative has it.
    """

    rows: int
    negative: int


@dataclass(frozen=True, slots=True)
class WordLeak:
    """A word or pair of words in one text of a row and not in the other.

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
        """Standard deviations by which it favours the negative; negative numbers favour the positive."""
        return (self.negative - self.positive) / sqrt(self.negative + self.positive)


@dataclass(frozen=True, slots=True)
class TextLeaks:
    """All counts.

    Attributes:
        identical: rows whose texts are equal except for capitals, spacing and punctuation.
        repeated: rows with the same two texts as an earlier row.
        shared: rows whose negative is the positive of another row: true of another image.
        formats: format property to its `FormatLeak`; only properties that differ in some row.
        format_rows: rows that differ in any of them.
        longer: rows whose negative has more words.
        shorter: rows whose negative has fewer words.
        words: the words with the largest weights, the largest first.
        positions: `POSITION_BINS` counts of where in the positive the texts begin to differ, from its start to its end.
    """

    identical: int
    repeated: int
    shared: int
    formats: Mapping[str, FormatLeak]
    format_rows: int
    longer: int
    shorter: int
    words: tuple[WordLeak, ...]
    positions: tuple[int, ...]


def find_text_leaks(pairs: TextPairs) -> TextLeaks:
    """Count the differences between the two texts of rows.

    Args:
        pairs: (positive, negative) of each row.
    """
    with open_step("describing rows", unit=""):  # groups steps that are too short for their own progress bars
        formal = [
            (comparison_key(positive), comparison_key(negative))
            for positive, negative in track(pairs, "comparing texts")
        ]
        seen = Counter(formal)
        positives = {positive for positive, _ in formal}
        lengths = [len(negative.split()) - len(positive.split()) for positive, negative in pairs]
        leaks = {name: leak for name, has in FORMATS.items() if (leak := _count_format_leak(pairs, has)).rows}
        return TextLeaks(
            identical=sum(positive == negative for positive, negative in formal),
            repeated=sum(count - 1 for count in seen.values()),
            shared=sum(negative in positives and negative != positive for positive, negative in formal),
            formats=leaks,
            format_rows=sum(any(has(one) != has(other) for has in FORMATS.values()) for one, other in pairs),
            longer=sum(length > 0 for length in lengths),
            shorter=sum(length < 0 for length in lengths),
            words=_find_leaking_words(formal),
            positions=_count_edit_positions(formal),
        )


def _count_format_leak(pairs: TextPairs, has: Callable[[str], bool]) -> FormatLeak:
    sides = [(has(positive), has(negative)) for positive, negative in pairs]
    return FormatLeak(sum(one != other for one, other in sides), sum(other and not one for one, other in sides))


def _find_leaking_words(formal: TextPairs) -> tuple[WordLeak, ...]:
    ours, theirs = Counter[str](), Counter[str]()
    for positive, negative in track(formal, "counting words"):
        one, other = _split_into_ngrams(positive), _split_into_ngrams(negative)
        ours.update(one - other)
        theirs.update(other - one)
    found = (WordLeak(words, ours[words], theirs[words]) for words in ours.keys() | theirs.keys())
    strong = sorted(
        (leak for leak in found if leak.positive + leak.negative >= _MIN_ROWS and leak.positive != leak.negative),
        key=lambda leak: (-abs(leak.weight), leak.words),
    )
    return tuple(_drop_parts(strong))


def _drop_parts(found: Iterable[WordLeak]) -> list[WordLeak]:
    """Skip words that share a word with a stronger entry of the same direction: "a single" after "single"."""
    chosen: list[WordLeak] = []
    used: set[tuple[str, bool]] = set()
    for leak in found:
        parts = {(word, leak.weight > 0) for word in leak.words.split()}
        if used.isdisjoint(parts):
            chosen.append(leak)
            used |= parts
        if len(chosen) == _MAX_WORDS:
            break
    return chosen


def _split_into_ngrams(text: str) -> set[str]:
    words = [word for word in text.split() if any(letter.isalnum() for letter in word)]
    return {*words, *(f"{one} {other}" for one, other in pairwise(words))}


def _count_edit_positions(formal: TextPairs) -> tuple[int, ...]:
    found = [0] * POSITION_BINS
    for positive, negative in track(formal, "locating edits"):
        one, other = positive.split(), negative.split()
        if one == other or not one:
            continue
        matcher = SequenceMatcher(None, one, other, autojunk=False)
        start = next(block[1] for block in matcher.get_opcodes() if block[0] != "equal")
        found[min(POSITION_BINS - 1, start * POSITION_BINS // max(len(one), 1))] += 1
    return tuple(found)
