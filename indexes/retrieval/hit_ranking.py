"""Ranking of hits: the pairs kept per concept, one row per pair with all its hits, and hits in the pair's `meta`.

Within a concept and mode, pairs are ordered by their best score over the queries of the concept (then by best rank, then
by key); their *place* counts from 1. Scores of captions and images are not comparable (CLIP's cosines between texts are
far above those between texts and images), so lists of different modes or concepts are merged by best place, then by the
sum of reciprocal places (pairs in several lists first), then by key.

Frames hold codes: ``pair`` (position of its key in the sorted keys) and ``concept`` (in order of the queries).

``meta.retrieved`` of a retrieved pair holds parallel lists with one entry per hit: concepts, templates, modes, ranks,
caption_indexes (0 the pair's ``caption``, n the n-th of its ``captions``) and scores. The pair is otherwise unchanged,
so a table of retrieved pairs is a valid input.
"""

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import compact_json

_RECIPROCAL_SCALE = 2**32  # reciprocal places are integers over this, so that sums do not depend on the order


def rank_pairs(hits: pl.DataFrame) -> pl.DataFrame:
    """Rank the pairs of each concept and mode.

    Args:
        hits: columns concept, mode, pair, rank, score.

    Returns:
        Columns concept, mode, pair, score (best), rank (best) and place; one row per concept, mode and pair.
    """
    best = hits.group_by("concept", "mode", "pair").agg(pl.col("score").max(), pl.col("rank").min())
    best = best.sort("concept", "mode", "score", "rank", "pair", descending=[False, False, True, False, False])
    return best.with_columns(place=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("concept", "mode"))


def limit_pairs(places: pl.DataFrame, k: int | None, cap: int | None) -> pl.DataFrame:
    """Keep the ``k`` best pairs of each concept and mode, and of those the ``cap`` best over all modes."""
    if k is not None:
        places = places.filter(pl.col("place") <= k)
    if cap is not None:
        order = _best_places(places, "concept", "pair").sort(
            "concept", "place", "reciprocal", "pair", descending=[False, False, True, False]
        )
        first = order.filter(pl.int_range(pl.len()).over("concept") < cap)
        places = places.join(first, on=["concept", "pair"], how="semi", maintain_order="left")
    return places


def merge_hits(hits: pl.DataFrame, places: pl.DataFrame, keys: pl.Series, queries: pl.DataFrame) -> pl.DataFrame:
    """Return one row per pair, best first.

    Args:
        hits: columns query, concept, mode, pair, rank, caption_index, score.
        places: ranked pairs from `rank_pairs`.
        keys: keys of the pairs, by code.
        queries: columns concept and template, by query.

    Returns:
        The columns of `Retrieval.pairs`.
    """
    best = (
        _best_places(places, "pair")
        .join(places.group_by("pair").agg(pl.col("rank").min(), _best_score("t2t"), _best_score("t2i")), on="pair")
        .sort("place", "reciprocal", "pair", descending=[False, True, False])
    )
    order = best.select("pair").with_row_index("row")
    rows = hits.join(order, on="pair").sort("row", "mode", "query")
    ends = np.cumsum(np.bincount(rows["row"].to_numpy(), minlength=best.height), dtype=np.int64)
    hit_queries = queries[rows["query"].to_numpy()]
    return pl.DataFrame(
        [
            keys.gather(best["pair"]).alias("key"),
            *best.select("place", "rank", "score_t2t", "score_t2i").get_columns(),
            _list_column("queries", rows["query"], ends),
            _list_column("concepts", hit_queries["concept"], ends),
            _list_column("templates", hit_queries["template"], ends),
            _list_column("modes", rows["mode"].cast(pl.String), ends),
            _list_column("ranks", rows["rank"], ends),
            _list_column("caption_indexes", rows["caption_index"], ends),
            _list_column("scores", rows["score"], ends),
        ]
    )


def _best_places(places: pl.DataFrame, *by: str) -> pl.DataFrame:
    reciprocal = (_RECIPROCAL_SCALE // pl.col("place").cast(pl.UInt64)).sum().alias("reciprocal")
    return places.group_by(*by).agg(pl.col("place").min(), reciprocal)


def _best_score(mode: str) -> pl.Expr:
    return pl.col("score").filter(pl.col("mode") == mode).max().alias(f"score_{mode}")


def _list_column(name: str, values: pl.Series, ends: NDArray[np.int64]) -> pl.Series:
    """Return consecutive values as a list column; row n ends before ``ends[n]``."""
    import pyarrow as pa

    offsets = pa.array(np.concatenate([np.zeros(1, np.int64), ends]))
    return pl.Series(name, pl.from_arrow(pa.LargeListArray.from_arrays(offsets, values.to_arrow())))


HITS = "retrieved"  # member of `meta`
HIT_COLUMNS = ("concepts", "templates", "modes", "ranks", "caption_indexes", "scores")


def add_hit_metadata(pairs: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the found pairs, best first, with their hits in `meta`.

    Args:
        pairs: columns of `PAIRS`, with every key of ``found``, in any order.
        found: `Retrieval.pairs`.
    """
    joined = found.select("key", *HIT_COLUMNS).join(pairs, on="key", maintain_order="left")
    metas = [
        compact_json({**orjson.loads(meta), HITS: dict(zip(HIT_COLUMNS, lists, strict=True))})
        for meta, *lists in joined.select("meta", *HIT_COLUMNS).iter_rows()
    ]
    return joined.with_columns(pl.Series("meta", metas, dtype=pl.String)).select(PAIRS.schema.names())
