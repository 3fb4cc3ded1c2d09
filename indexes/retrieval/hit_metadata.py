"""What was retrieved, as pairs to go on with: each says in its `meta` by what it was found.

``meta.retrieved`` holds lists with one entry a hit, side by side: concepts, templates, modes, ranks, caption_indexes (0
the pair's ``caption``, n the n-th of its ``captions``) and scores. The pair itself, its key included, is as it was indexed, so a table of these pairs is an input like any other.
"""

import orjson
import polars as pl

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import compact_json

HIT_COLUMNS = ("concepts", "templates", "modes", "ranks", "caption_indexes", "scores")


def add_hit_metadata(pairs: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs that were found, best first, each with what found it.

    Args:
        pairs: of `PAIRS`, holding every key of ``found``; in any order.
        found: `Retrieval.pairs`.
    """
    joined = found.select("key", *HIT_COLUMNS).join(pairs, on="key", maintain_order="left")
    metas = [
        compact_json({**orjson.loads(meta), "retrieved": dict(zip(HIT_COLUMNS, lists, strict=True))})
        for meta, *lists in joined.select("meta", *HIT_COLUMNS).iter_rows()
    ]
    return joined.with_columns(pl.Series("meta", metas, dtype=pl.String)).select(PAIRS.schema.names())
