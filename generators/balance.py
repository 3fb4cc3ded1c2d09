"""Balance of a set of hard negatives: quotas by type, a cap on each replacement word, and a table of what came of it.

Both are operations over a set, done after the makers in the order of keys, which are hashes: so what is left is a fair
sample, the same for any order in which rows were made. First the cap (no replacement word may be in more than a share
of the rows of its type), then the quota. What goes is rejected with a reason, `overused_word` or `over_quota`; a hard
positive that only rejected negatives named goes too, as `without_negative`.

Memory: one `Line` a kept row (about 200 bytes), whatever the length of the texts.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pairwright.datasets.contents import type_of
from pairwright.datasets.records import Annotation
from pairwright.generators.tally import Tally

BINS = 10
_LEAST_USES = 5  # of a word, however few rows there are
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What a set may hold.

    Attributes:
        quota: type to the most rows of it that are kept; types that are not named have none.
        share: of the kept rows of a type, the most that one replacement word may have, 0-1; 1 for no cap.
    """

    quota: Mapping[str, int] = field(default_factory=dict)
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Line:
    """What balance has to know of a kept hard negative."""

    key: str
    id: str
    type: str
    word: str


def replacement_word(row: Annotation) -> str:
    """Return what the edit put in, lower-case without its article; empty for a swap or shuffle, which put in nothing."""
    if row.form in {"swap", "shuffle"} or not row.edits:
        return ""
    words = row.edits[0].after.lower().strip(" ,").split()
    while len(words) > 1 and words[0] in {"a", "an", "with", "and"}:
        words = words[1:]
    return " ".join(words)


def line_of(row: Annotation) -> Line:
    """Return the line of a kept hard negative."""
    return Line(row.key, row.id, type_of(row), replacement_word(row))


def surplus(lines: Iterable[Line], limits: Limits) -> dict[str, str]:
    """Return the ids of the rows that have to go, with the reason."""
    by_type: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_type[line.type].append(line)
    gone: dict[str, str] = {}
    for kind, rows in by_type.items():
        rows.sort(key=lambda line: (line.key, line.id))
        gone.update(_overused(rows, limits.share))
        left = [line for line in rows if line.id not in gone]
        gone.update((line.id, "over_quota") for line in left[limits.quota.get(kind, len(left)) :])
    return gone


def _overused(rows: Sequence[Line], share: float) -> Iterator[tuple[str, str]]:
    """Yield the rows beyond the cap. The cap is set such that it holds of what is left, not of what came."""
    counts = Counter(line.word for line in rows if line.word)
    cap = _cap(counts, len(rows) - counts.total(), share)
    used: Counter[str] = Counter()
    for line in rows:
        used[line.word] += 1
        if line.word and used[line.word] > cap:
            yield line.id, "overused_word"


def _cap(counts: Counter[str], others: int, share: float) -> float:
    """Return the largest number of uses that is within the share of all rows left under it."""
    if share >= 1:
        return math.inf
    low, high = 0, max(counts.values(), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        left = others + sum(min(count, middle) for count in counts.values())
        low, high = (middle, high) if middle <= share * left else (low, middle - 1)
    return max(low, _LEAST_USES)


def balanced(rows: Iterable[Annotation], gone: Mapping[str, str]) -> Iterator[Annotation]:
    """Yield the rows of one pair, or of whole pairs, with those of `surplus` rejected.

    Args:
        rows: annotations in any order; a negative and the positive that it names are both among them.
        gone: id to reason.
    """
    found = list(rows)
    negatives = [row for row in found if row.kind == "hard_negative" and row.positive_id]
    named = {row.positive_id for row in negatives}
    wanted = {row.positive_id for row in negatives if row.status == "kept" and row.id not in gone}
    for row in found:
        if row.status == "kept" and row.id in gone:
            yield replace(row, status="rejected", reason=gone[row.id])
        elif row.status == "kept" and row.id in named - wanted:
            yield replace(row, status="rejected", reason="without_negative")
        else:
            yield row


@dataclass
class Account:
    """What was asked for, made and rejected, by type; which words were put in, and where. It grows by `add`."""

    tally: Tally = field(default_factory=Tally)
    words: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    places: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, rows: Iterable[Annotation]) -> None:
        """Count annotations; only hard negatives count."""
        for row in rows:
            if row.kind != "hard_negative":
                continue
            self.tally.add([row])
            if row.status == "kept":
                self._add_kept(row)

    def _add_kept(self, row: Annotation) -> None:
        word = replacement_word(row)
        if word:
            self.words[type_of(row)][word] += 1
        for edit in row.edits:
            place = edit.before_span[0] / max(len(row.source_text), 1)
            self.places[type_of(row)][min(int(place * BINS), BINS - 1)] += 1

    def as_json(self) -> dict[str, Any]:
        """Return, for each type, its counts, words and places.

        Returns:
            type to ``asked``, ``kept``, ``rejected`` (reason to number), ``words`` (number of different ones),
            ``most_used`` (list of word and number, most used first), ``top_share`` (of the most used word among those
            rows, 0-1) and ``positions`` (edits that begin in each tenth of the caption).
        """
        return {
            kind: {
                "asked": counts["made"],
                "kept": counts["kept"],
                "rejected": counts["rejected"],
                "words": len(self.words[kind]),
                "most_used": [list(item) for item in _most(self.words[kind])],
                "top_share": round(max(self.words[kind].values(), default=0) / max(self.words[kind].total(), 1), 4),
                "positions": [self.places[kind][place] for place in range(BINS)],
            }
            for kind, counts in self.tally.by_type().items()
        }


def _most(words: Counter[str]) -> list[tuple[str, int]]:
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN]
