"""Balance of a set of edited texts: quotas by type, and a cap on the share of each inserted word.

Both are applied to the whole set after generation, in the order of keys. Keys are hashes, so the kept rows are a fair
sample, the same for any order and number of parts. As many rows of a type are kept as quota and cap allow together; both
hold for the *kept* rows: of n rows of a type no word is in more than share x n. A word may always be in one row, so in a
set of fewer than 1 / share rows (20, for 0.05) each word is used once. A row with two inserted words
(`edits/inserted_words.py`) counts for both, so a few more rows might be possible.
Removed rows are rejected as `overused_word` or `over_quota`; a hard positive whose negatives are all rejected is rejected
as `without_negative`.

Memory: about 300 bytes a kept row in `find_excess_rows`, whatever the text length; that of a bucket in `limit_type`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pairwright.datasets.records import Annotation
from pairwright.datasets.shards.content_counts import annotation_type
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.edits.inserted_words import inserted_words

if TYPE_CHECKING:
    from pairwright.generators.excess import Buckets, Cut

POSITION_BINS = 10
_MAX_LISTED_WORDS = 20
_KINDS = {"negatives": "hard_negative", "positives": "hard_positive"}


def balanced_kind(generator: str) -> str:
    """Return the kind of a generator's rows that can be balanced (``hard_negative``), or an empty string.

    Hard positives that belong to negatives follow these; they are not balanced on their own.
    """
    return _KINDS.get(generator.rpartition("-")[2], "")  # "rules-negatives", "llm-positives"


def is_balanced(row: Annotation, generator: str) -> bool:
    """Return whether limits apply to this row: one of the generator's balanced kind, or a conversation."""
    kind = balanced_kind(generator)
    return row.kind == kind if kind else bool(row.turns)


@dataclass(frozen=True, slots=True)
class BalanceLimits:
    """Limits on a set.

    Attributes:
        quota: type to the maximum number of kept rows; types not listed are unlimited.
        share: maximum share of a type's kept rows with one inserted word, 0-1; 1 for no cap. One row is always
            allowed.
    """

    quota: Mapping[str, int] = field(default_factory=dict)
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """The fields of a kept row that balance needs."""

    key: str
    id: str
    type: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TypeBalance:
    """Counts of one type after balancing.

    Attributes:
        asked: the quota; None if unlimited.
        available: rows before balancing.
        given: kept rows, at most ``asked``.
        most: maximum number of rows with one word; None without a cap.
        used: rows with the most used word.
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
    """Rows to reject (id to reason), and the counts of each type."""

    gone: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, TypeBalance] = field(default_factory=dict)

    def as_json(self) -> dict[str, dict[str, int | None]]:
        """Return for each type ``asked``, ``available``, ``given``, ``most`` and ``used`` (`TypeBalance`)."""
        return {kind: given.as_json() for kind, given in sorted(self.types.items())}


def balance_row(row: Annotation) -> BalanceRow:
    """Return the fields of a kept row that balance needs."""
    return BalanceRow(row.key, row.id, annotation_type(row), inserted_words(row))


def find_excess_rows(lines: Iterable[BalanceRow], limits: BalanceLimits) -> BalanceResult:
    """Return the rows to reject so that as many as possible are kept within the limits.

    The result has counts for all types of the rows and the quotas.
    """
    import polars as pl  # slow to import, and only limits need it

    schema = {"key": pl.String(), "id": pl.String(), "type": pl.Categorical(), "words": pl.List(pl.Categorical())}
    named = [(line.key, line.id, line.type, line.words) for line in lines]
    gone = dict[str, str]()
    types = {kind: TypeBalance(quota, 0, 0, None, 0) for kind, quota in limits.quota.items()}
    every = pl.DataFrame(named, schema, orient="row").with_columns(pl.col("type").cast(pl.String))
    for (kind,), rows in every.partition_by("type", as_dict=True).items():
        cut, types[kind] = limit_type(partial(iter, [rows]), kind, limits)
        reasons = rows.select("id", reason=cut.reasons(rows))
        gone.update(reasons.filter(pl.col("reason") != "").iter_rows())
    return BalanceResult(gone, types)


def limit_type(buckets: "Buckets", kind: str, limits: BalanceLimits) -> "tuple[Cut, TypeBalance]":
    """Return which rows of a type to reject, and its counts.

    Args:
        buckets: rows of the type in ranges of keys.
        kind: the type.
        limits: of the set.
    """
    from pairwright.generators.excess import find_cut  # imports polars

    quota = limits.quota.get(kind)
    cut, counts = find_cut(buckets, quota, limits.share)
    return cut, TypeBalance(quota, *counts)


def reject_excess_rows(rows: Iterable[Annotation], gone: Mapping[str, str]) -> Iterator[Annotation]:
    """Yield the rows of whole pairs, with those in ``gone`` rejected.

    Args:
        rows: annotations in any order; a negative and its positive are both included.
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
    """Counts by type: attempts, texts, rejections, inserted words and positions of edits. It grows by `add`.

    Only rows of ``kind`` count; the report is empty without any.
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

    def as_counts(self) -> dict[str, Any]:
        """Return all counts as JSON values, for `add_counts`."""
        return {
            "asked": self.asked,
            "made": self.made,
            "kept": self.tally.kept,
            "rejected": self.tally.rejected,
            "words": self.words,
            "places": {kind: {str(at): count for at, count in each.items()} for kind, each in self.places.items()},
        }

    def add_counts(self, counts: Mapping[str, Any]) -> None:
        """Add the counts of another report, from `as_counts`."""
        self.asked.update(counts["asked"])
        self.made.update(counts["made"])
        self.tally.kept.update(counts["kept"])
        for kind, reasons in counts["rejected"].items():
            self.tally.rejected[kind].update(reasons)
        for kind, words in counts["words"].items():
            self.words[kind].update(words)
        for kind, places in counts["places"].items():
            self.places[kind].update({int(at): count for at, count in places.items()})

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
