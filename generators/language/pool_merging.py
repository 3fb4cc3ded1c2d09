"""Merging of the word counts of the parts of a pool, from their files.

The counts are summed kind by kind in polars, so the memory is that of the distinct entries of one kind, and pruned
once, after all parts: the result does not depend on how the pool is divided. Of many parts, some can be merged into one
file first (`merge_counts`).
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.generators.language.pool_statistics import (
    LEAST_PAIR,
    MOST_TYPES,
    VOCABULARY,
    PoolStatistics,
    split_place,
)

_KINDS = ("lemma", "form", "pair", "adjacent", "run", "link")
_KEYS = ("a", "b")


def merge_counts(paths: Sequence[Path], out: Path) -> None:
    """Write the sums of the counts of some parts, unpruned, in the format of `PoolStatistics.save`."""
    frames = [_summed(paths, kind).with_columns(kind=pl.lit(kind)) for kind in ("captions", *_KINDS)]
    with replace_atomically(out) as temporary:
        merged = pl.concat(frame.select("kind", "a", "b", "count") for frame in frames)
        merged.write_parquet(temporary, compression="zstd", statistics=False)


def merged_statistics(paths: Sequence[Path]) -> PoolStatistics:
    """Return the pruned statistics of a pool, as `PoolCounts.frozen`, from the counts of its parts.

    Args:
        paths: files of unpruned counts, at least one.
    """
    pairs = _summed(paths, "pair")
    words = pairs.filter(pl.col("a") == pl.col("b"))
    kept = _top(words, VOCABULARY)["a"].implode()
    often = (pl.col("count") >= LEAST_PAIR) | (pl.col("a") == pl.col("b"))
    pairs = pairs.filter(often & pl.col("a").is_in(kept) & pl.col("b").is_in(kept))
    lemmas, forms, links = (_top(_summed(paths, kind), MOST_TYPES) for kind in ("lemma", "form", "link"))
    adjacent, runs = (_summed(paths, kind).filter(pl.col("count") >= LEAST_PAIR) for kind in ("adjacent", "run"))
    return PoolStatistics(
        captions=count_all_captions(paths),
        lemmas=_counts(lemmas),
        forms={form: count for (form, _), count in _counts(forms).items()},
        pairs=_counts(pairs),
        adjacent=_counts(adjacent),
        runs=_counts(runs),
        links=dict(sorted(((left, *split_place(place)), count) for (left, place), count in _counts(links).items())),
    )


def count_all_captions(paths: Sequence[Path]) -> int:
    """Return the number of captions that the counts in some files are of."""
    return int(_summed(paths, "captions")["count"].sum())


def _summed(paths: Sequence[Path], kind: str) -> pl.DataFrame:
    """Return a, b and count of the entries of a kind, in order."""
    rows = pl.scan_parquet(list(paths)).filter(pl.col("kind") == kind)
    return rows.group_by(_KEYS).agg(pl.col("count").sum()).collect(engine="streaming").sort(_KEYS)


def _top(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return the most frequent entries, in order."""
    if rows.height <= most:
        return rows
    return rows.sort(pl.col("count"), *_KEYS, descending=[True, False, False]).head(most).sort(_KEYS)


def _counts(rows: pl.DataFrame) -> dict[tuple[str, str], int]:
    return dict(zip(zip(rows["a"], rows["b"], strict=True), rows["count"], strict=True))
