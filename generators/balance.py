"""Balance of a set of edited texts: quotas by type, a cap on each new word, and an account of what came of it.

Both are operations over a set, done after the makers in the order of keys, which are hashes: so what is left is a fair
sample, the same for any order and any number of parts in which rows were made. Of each type as many rows are left as
quota and cap allow together, and both hold of what is *left*: of n rows of a type no word is in more than share x n.
(Of rows with two new words, `new_words.py`, a few more might be left: each is counted with all that have one of its words.)
A word may always be in one row, though: in a set of fewer than 1 / share rows (20, for 0.05) each word stands once.
What goes is rejected with a reason, `overused_word` or `over_quota`; a hard positive that only rejected negatives named
goes too, as `without_negative`.

Memory: about 100 bytes a kept row by `find_excess_in_frame`, and a `Line` of 200 more by `judge`, whatever the length of the texts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import polars as pl

from pairwright.datasets.records import Annotation
from pairwright.datasets.shards.content_counts import annotation_type
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.edits.inserted_words import inserted_words

POSITION_BINS = 10
ROW_SCHEMA: dict[str, pl.DataType] = {
    "key": pl.String(),
    "id": pl.String(),
    "type": pl.Categorical(),
    "words": pl.List(pl.Categorical()),
}
_MAX_LISTED_WORDS = 20
_KINDS = {"negatives": "hard_negative", "positives": "hard_positive"}


def balanced_kind(generator: str) -> str:
    """Return the kind of the rows of a generator that can be balanced (``hard_negative``); empty when there is none.

    Hard positives that stand beside negatives go with these; they are not balanced by themselves.
    """
    return _KINDS.get(generator.rpartition("-")[2], "")  # "rules-negatives", "llm-positives"


def is_balanced(row: Annotation, generator: str) -> bool:
    """Say whether limits on what a generator made are for this row: of its kind, or any of its conversations."""
    kind = balanced_kind(generator)
    return row.kind == kind if kind else bool(row.turns)


@dataclass(frozen=True, slots=True)
class BalanceLimits:
    """What a set may hold.

    Attributes:
        quota: type to the most rows of it that are kept; types that are not named have none.
        share: of the kept rows of a type, the most that one new word may be in, 0-1; 1 for no cap. One row is always
            allowed.
    """

    quota: Mapping[str, int] = field(default_factory=dict)
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """What balance has to know of a kept row."""

    key: str
    id: str
    type: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TypeBalance:
    """What limits left of the rows of a type.

    Attributes:
        asked: the quota; None when the type has none.
        available: rows that came.
        given: rows that are left, never more than asked.
        most: rows that one word may be in; None without a cap.
        used: rows that the word used most is in.
    """

    asked: int | None
    available: int
    given: int
    most: int | None
    used: int

    def as_json(self) -> dict[str, int | None]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class BalanceResult:
    """Which rows have to go (id to reason), and what that leaves of each type."""

    gone: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, TypeBalance] = field(default_factory=dict)

    def as_json(self) -> dict[str, dict[str, int | None]]:
        """Return for each type ``asked``, ``available``, ``given``, ``most`` and ``used``, as `Given` tells."""
        return {kind: given.as_json() for kind, given in sorted(self.types.items())}


def balance_row(row: Annotation) -> BalanceRow:
    """Return the line of a kept row."""
    return BalanceRow(row.key, row.id, annotation_type(row), inserted_words(row))


def find_excess_rows(lines: Iterable[BalanceRow], limits: BalanceLimits) -> BalanceResult:
    """Return which rows have to go such that the others are within the limits, and as many as can be.

    The verdict tells of all types that rows or the quotas name.
    """
    named = [(line.key, line.id, line.type, line.words) for line in lines]
    gone, types = find_excess_in_frame(pl.DataFrame(named, ROW_SCHEMA, orient="row"), limits)
    return BalanceResult(dict(gone.iter_rows()), types)


def find_excess_in_frame(lines: pl.DataFrame, limits: BalanceLimits) -> tuple[pl.DataFrame, dict[str, TypeBalance]]:
    """Judge as `judge`, a hundred bytes a line.

    Args:
        lines: columns as ``ROW_SCHEMA``, the fields of `Line`.
        limits: of the set.

    Returns:
        ``id`` and ``reason`` of each row that has to go, and what is left of each type.
    """
    gone = [pl.DataFrame(schema={"id": pl.String, "reason": pl.String})]
    types = {kind: TypeBalance(quota, 0, 0, None, 0) for kind, quota in limits.quota.items()}
    for kind in lines["type"].unique().cast(pl.String).sort().to_list():
        rows = _with_word_ranks(lines.filter(pl.col("type") == kind).drop("type").sort("key", "id"))
        quota = limits.quota.get(kind)
        left, most = _max_size(
            rows["nth"].to_list(), len(rows) if quota is None else min(quota, len(rows)), limits.share
        )
        if left == len(rows):
            types[kind] = TypeBalance(quota, len(rows), left, most, _top_word_count(rows))
            continue
        judged = _assign_reasons(rows, left, most, full=left == quota)
        gone.append(judged.filter(pl.col("reason") != "").select("id", "reason"))
        types[kind] = TypeBalance(quota, len(rows), left, most, _top_word_count(judged.filter(pl.col("reason") == "")))
    return pl.concat(gone), types


def _with_word_ranks(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with ``nth``: before how many others in their order a row has a word; the most, where it has two."""
    word = rows.with_row_index("row").select("row", "words").explode("words").drop_nulls()
    nth = word.with_columns(nth=pl.int_range(pl.len()).over("words")).group_by("row").agg(pl.col("nth").max())
    return rows.with_row_index("row").join(nth, on="row", how="left", maintain_order="left").drop("row")


def _top_word_count(rows: pl.DataFrame) -> int:
    """Return in how many rows the word is that most have."""
    used = rows.select(pl.col("words").explode()).drop_nulls().group_by("words").len()["len"]
    return max(used.to_list(), default=0)


def _assign_reasons(rows: pl.DataFrame, left: int, most: int | None, *, full: bool) -> pl.DataFrame:
    """Return rows of one type in their order with the ``reason`` for which each goes, empty for the first ``left`` others.

    ``full``: that many fill the quota, and what comes after them is over it.
    """
    free = pl.lit(True) if most is None else pl.col("nth").is_null() | (pl.col("nth") < most)
    before = pl.col("free").cum_sum() - pl.col("free")
    return rows.with_columns(free=free).with_columns(
        reason=pl.when(pl.lit(full) & (before >= left))
        .then(pl.lit("over_quota"))
        .when("free")
        .then(pl.lit(""))
        .otherwise(pl.lit("overused_word"))
    )


def _max_size(places: Sequence[int | None], wanted: int, share: float) -> tuple[int, int | None]:
    """Return how many rows can be left, ``wanted`` at most, and in how many of them a word may be then.

    A size n is possible when the rows that are within the cap *of n* are n or more. The largest such n is found from
    above: the cap falls with n, so one pass is enough.

    Args:
        places: of each row, before how many others it has a word; None for one that has none.
        wanted: see above.
        share: of the rows that a word may be in.
    """
    if share >= 1:
        return wanted, None
    at = Counter(0 if place is None else place + 1 for place in places)
    within = list(
        accumulate(at[place] for place in range(max(at, default=0) + 1))
    )  # [c]: rows when no word has more than c
    exact = Fraction(str(share))  # 0.29 of 100 is 29, which the float falls short of
    for size in range(wanted, 0, -1):
        most = max(1, int(exact * size))
        if size <= within[min(most, len(within) - 1)]:
            return size, most
    return 0, 1


def reject_excess_rows(rows: Iterable[Annotation], gone: Mapping[str, str]) -> Iterator[Annotation]:
    """Yield the rows of one pair, or of whole pairs, with those that `judge` found rejected.

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
class BalanceReport:
    """What was asked for, made and rejected, by type; which words were put in, and where. It grows by `add`.

    Only rows of its kind count; there is nothing to tell when that is empty.
    """

    kind: str = "hard_negative"
    asked: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    tally: AnnotationCounts = field(default_factory=AnnotationCounts)
    words: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    places: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, rows: Iterable[Annotation]) -> None:
        """Count annotations."""
        own = [row for row in rows if row.kind == self.kind]
        self.tally.add(own)
        for row in own:
            kind = annotation_type(row)
            self.asked[kind] += 1
            self.made[kind] += bool(row.text)
            if row.status == "kept":
                self._add_kept(kind, row)

    def _add_kept(self, kind: str, row: Annotation) -> None:
        places = self.places[kind]
        self.words[kind].update(inserted_words(row))
        for edit in row.edits:
            place = edit.before_span[0] / max(len(row.source_text), 1)
            places[min(int(place * POSITION_BINS), POSITION_BINS - 1)] += 1

    def as_json(self) -> dict[str, Any]:
        """Return, for each type, its counts, words and places.

        Returns:
            type to ``asked`` (attempts), ``made`` (that have a text), ``kept``, ``rejected`` (reason to number), ``words``
            (number of different ones), ``most_used`` (list of word and number, most used first), ``top_share`` (of the
            most used word among the kept rows, 0-1) and ``positions`` (edits that begin in each tenth of the caption).
        """
        return {
            kind: {
                "asked": self.asked[kind],
                "made": self.made[kind],
                "kept": counts["kept"],
                "rejected": counts["rejected"],
                "words": len(self.words[kind]),
                "most_used": [list(item) for item in _top_words(self.words[kind])],
                "top_share": round(max(self.words[kind].values(), default=0) / max(counts["kept"], 1), 4),
                "positions": [self.places[kind][place] for place in range(POSITION_BINS)],
            }
            for kind, counts in self.tally.by_type().items()
        }


def _top_words(words: Counter[str]) -> list[tuple[str, int]]:
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))[:_MAX_LISTED_WORDS]
