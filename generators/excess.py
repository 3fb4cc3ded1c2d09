"""Rows of one type that exceed a quota or the cap on a word, found in bounded memory.

Rows are ordered by key and id. A word may be in the first ``most`` of its rows; a row that has a later occurrence is
*beyond* the cap. Of the others, the first ``size`` are kept. So a *cut* states what to reject: for each word that is in
too many rows, the first one beyond the cap, and the last row that is kept. Any part of the rows can be cut alone.

The cut is found in two passes over the rows in *buckets*, ranges of keys in ascending order. Memory is that of a bucket,
of the different words, and 8 bytes for each row with the most frequent word.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

IntArray = npt.NDArray[np.int64]
Place = tuple[str, str]
"""Key and id of a row."""

Buckets = Callable[[], Iterable[pl.DataFrame]]
"""Returns the rows of one type in buckets, from the first one at every call; columns ``key``, ``id`` and ``words`` (list of strings)."""

_WORDS: Final = {"word": pl.String(), "key": pl.String(), "id": pl.String()}


@dataclass(frozen=True)
class Cut:
    """Which rows of a type to reject.

    Attributes:
        words: ``word``, ``key``, ``id`` of the first row beyond the cap, for each word that is in too many rows.
        last: key and id of the last row that is kept; rows behind it exceed the quota. None if the quota is not reached.
    """

    words: pl.DataFrame
    last: Place | None = None

    def reasons(self, rows: pl.DataFrame) -> pl.Series:
        """Return the reason to reject each row, or an empty string.

        Args:
            rows: of the type, in any order; columns as in `Buckets`.
        """
        places = rows.select("key", "id", pl.col("words").cast(pl.List(pl.String))).with_row_index("row")
        at = self.words.rename({"word": "words", "key": "from_key", "id": "from_id"})
        beyond = (
            places.explode("words")
            .join(at, on="words", how="inner")
            .filter(_is_behind("key", "id", pl.col("from_key"), pl.col("from_id"), or_at=True))
        )
        over = pl.lit(False) if self.last is None else _is_behind("key", "id", *map(pl.lit, self.last), or_at=False)
        reason = (
            pl.when(over)
            .then(pl.lit("over_quota"))
            .when(pl.col("row").is_in(beyond["row"].implode()))
            .then(pl.lit("overused_word"))
            .otherwise(pl.lit(""))
        )
        return places.select(reason.alias("reason"))["reason"]


class CutCounts(NamedTuple):
    """Counts of a type: rows before and after the cut, and the most rows that one word may be in (None: any) and is in."""

    available: int
    given: int
    most: int | None
    used: int


def find_cut(buckets: Buckets, quota: int | None, share: float) -> tuple[Cut, CutCounts]:
    """Return the cut that leaves as many rows as possible, and the counts.

    Args:
        buckets: the rows of a type.
        quota: maximum number of kept rows; None for no limit.
        share: maximum share of the kept rows with one word, 0-1; 1 for no cap. One row is always allowed.
    """
    places = np.zeros(1, np.int64)  # at n: rows whose most frequent word has been in n rows with this one; 0: no word
    for each in _ranked(buckets()):
        counts = np.bincount(each.rows["nth"].fill_null(-1).to_numpy() + 1)
        places = np.pad(places, (0, max(0, len(counts) - len(places))))
        places[: len(counts)] += counts
    available = int(places.sum())
    size, most = _max_size(places, available if quota is None else min(quota, available), share)
    full, left = size == quota, size
    first, last, used = [pl.DataFrame(schema=_WORDS)], ("", "") if full else None, _WordCounts()
    for each in _ranked(buckets()):
        kept = each.rows["nth"].fill_null(-1).to_numpy() < (available if most is None else most)
        if full:
            kept &= np.cumsum(kept) <= left
            last = each.rows.select("key", "id").row(int(np.flatnonzero(kept)[-1])) if kept.any() else last
        if most is not None:
            at = each.words.filter(pl.col("nth") == most)
            first.append(at.select(pl.col("words").alias("word"), "key", "id"))
        used.add(each.words.filter(pl.Series(kept).gather(each.words["row"]))["words"])
        left -= int(kept.sum())
    return Cut(pl.concat(first), last), CutCounts(available, size, most, used.most())


class _RankedRows(NamedTuple):
    """Rows of a bucket in order.

    Attributes:
        rows: ``key``, ``id``, and ``nth``: how many earlier rows have the same word; the maximum for a row with two
            words, null without any.
        words: ``row`` (position in ``rows``), ``words``, ``nth`` (of the word), ``key``, ``id`` for each word of each row.
    """

    rows: pl.DataFrame
    words: pl.DataFrame


def _ranked(buckets: Iterable[pl.DataFrame]) -> Iterator[_RankedRows]:
    seen = _WordCounts()
    for bucket in buckets:
        rows = bucket.select("key", "id", pl.col("words").cast(pl.List(pl.String))).sort("key", "id")
        rows = rows.with_row_index("row")
        words = rows.explode("words").drop_nulls("words")
        words = words.join(seen.counts, on="words", how="left", maintain_order="left").with_columns(
            nth=pl.int_range(pl.len()).over("words") + pl.col("count").fill_null(0)
        )
        nth = words.group_by("row").agg(pl.col("nth").max())
        yield _RankedRows(rows.join(nth, on="row", how="left", maintain_order="left"), words)
        seen.add(words["words"])


class _WordCounts:
    """Number of rows with each word: ``words`` and ``count``."""

    def __init__(self) -> None:
        self.counts = pl.DataFrame(schema={"words": pl.String, "count": pl.Int64})

    def add(self, words: pl.Series) -> None:
        """Count words, once for each row that has them."""
        new = words.to_frame("words").with_columns(count=pl.lit(1, pl.Int64))
        self.counts = pl.concat([self.counts, new]).group_by("words").agg(pl.col("count").sum())

    def most(self) -> int:
        """Return the number of rows with the most frequent word."""
        return max(self.counts["count"].to_list(), default=0)


def _max_size(places: IntArray, wanted: int, share: float) -> tuple[int, int | None]:
    """Return the largest possible number of kept rows, at most ``wanted``, and the cap on a word at that size.

    A size n is possible if at least n rows are within the cap *for n*, max(1, floor(share n)). Of all sizes with the same
    cap the largest possible one is the number of rows within it, or the end of their range.

    Args:
        places: at c, rows whose most frequent word is in c - 1 earlier ones; at 0, rows without words.
        wanted: upper limit.
        share: maximum share of rows with one word.
    """
    if share >= 1:
        return wanted, None
    within = np.cumsum(places)  # at c: rows when no word has more than c
    exact = Fraction(str(share))  # 0.29 of 100 is 29, but less as a float
    above, below = exact.numerator, exact.denominator
    for most in range(max(1, above * wanted // below), 0, -1):
        least = 1 if most == 1 else -(-most * below // above)
        limit = wanted if not above else min(wanted, -(-(most + 1) * below // above) - 1)
        size = min(limit, int(within[min(most, len(within) - 1)]))
        if size >= least:
            return size, most
    return 0, 1


def _is_behind(key: str, id_: str, from_key: pl.Expr, from_id: pl.Expr, *, or_at: bool) -> pl.Expr:
    """Return whether rows come behind a place, or are at it."""
    rest = pl.col(id_) >= from_id if or_at else pl.col(id_) > from_id
    return (pl.col(key) > from_key) | ((pl.col(key) == from_key) & rest)
