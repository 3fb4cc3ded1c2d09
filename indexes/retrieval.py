"""Text-to-text retrieval: the pairs whose captions are nearest to each query (REACT's T2T, eq. 2.2).

``k`` is per query: a concept with 80 templates gets up to 80 k hits, fewer distinct pairs. A *hit* is a pair found by a
query, with its rank and score; over all queries the hits of a pair are merged into one row, which keeps every concept
that found it. Nothing is cut by score.

A concept is *uncovered* when no caption of the pool is near its bare name, template left off: the pool has nothing on
it, and training on its hits would teach noise (in REACT's experiments the microscope images of PatchCamelyon were such
a domain). The score of the hits cannot tell: "a black and white photo of a koala" finds black and white photos at 0.5.
Scores are cosines of the encoder's space; the default floor suits the lexical encoder, whose chance scores reach about
0.2, so what lies just above it may still share only one word of a name ("purple finch", a purple donut).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.encoders import TextEncoder
from pairwright.indexes.queries import Query
from pairwright.indexes.search import Index

DEFAULT_FLOOR = 0.3
_BATCH = 1024


@dataclass(frozen=True)
class Retrieval:
    """What `retrieve` found.

    Attributes:
        hits: query (row in the given queries), text, concept, template, rank (from 1), key, score; by query and rank.
        pairs: one row a distinct pair: key, score (best), rank (best), queries (that found it), concepts
            (sorted list); best score first.
        coverage: one row a concept: concept, queries, hits, pairs (distinct), best and median (score of each
            query's best hit), name_score (best score of a bare name), covered; least covered first.
        seconds: of encoding, searching and merging.
    """

    hits: pl.DataFrame
    pairs: pl.DataFrame
    coverage: pl.DataFrame
    seconds: float

    @property
    def uncovered(self) -> list[str]:
        """The concepts whose bare names score below the floor, worst first."""
        return self.coverage.filter(~pl.col("covered"))["concept"].to_list()

    def summary(self) -> dict[str, Any]:
        """Return what ``pairwright retrieve --json`` prints."""
        return {
            "queries": int(self.coverage["queries"].sum()),
            "hits": self.hits.height,
            "unique_pairs": self.pairs.height,
            "uncovered": self.uncovered,
            "seconds": self.seconds,
        }


def retrieve(
    index: Index,
    encoder: TextEncoder,
    queries: Sequence[Query],
    k: int,
    *,
    floor: float = DEFAULT_FLOOR,
) -> Retrieval:
    """Search ``index`` with every query.

    Args:
        index: an open index.
        encoder: the one that the index was built with.
        queries: at least one.
        k: pairs a query.
        floor: score of a bare name, in [-1, 1], from which on its concept counts as covered.

    Raises:
        StorageError: when the encoder is not the index's.
        UsageError: when there are no queries or ``k`` is below 1.
    """
    if encoder.fingerprint != index.info.encoder:
        raise StorageError(
            f"the index was built with another encoder or state than this {encoder.name} version {encoder.version}. "
            "Open encoder and index from the same folder."
        )
    if not queries:
        raise UsageError("no queries.")
    started = time.perf_counter()
    hits = _searched(index, encoder, [query.text for query in queries], k)
    names = _searched(index, encoder, [query.name for query in queries], 1)
    asked = pl.DataFrame(
        {
            "query": np.arange(len(queries)),
            "text": [query.text for query in queries],
            "concept": [query.concept for query in queries],
            "template": [query.template for query in queries],
        }
    )
    hits = hits.join(asked, on="query", how="left", maintain_order="left").select(
        "query", "text", "concept", "template", "rank", "key", "score"
    )
    names = names.join(asked, on="query", how="left")
    merged, coverage = merged_pairs(hits), _coverage(hits, names, floor)
    return Retrieval(hits, merged, coverage, round(time.perf_counter() - started, 3))


def merged_pairs(hits: pl.DataFrame) -> pl.DataFrame:
    """Return one row a distinct pair of ``hits``; the columns are those of `Retrieval.pairs`."""
    return (
        hits.group_by("key")
        .agg(
            pl.col("score").max(),
            pl.col("rank").min(),
            pl.col("query").n_unique().alias("queries"),
            pl.col("concept").unique().sort().alias("concepts"),
        )
        .sort("score", "key", descending=[True, False])
    )


def _searched(index: Index, encoder: TextEncoder, texts: list[str], k: int) -> pl.DataFrame:
    """Search each distinct text once, and give every query its hits."""
    numbers: dict[str, int] = {}
    text_of = [numbers.setdefault(text, len(numbers)) for text in texts]
    distinct = list(numbers)
    parts = [
        index.search(encoder.encode_texts(distinct[start : start + _BATCH]), k)
        .frame()
        .with_columns(pl.col("query") + start)
        for start in range(0, len(distinct), _BATCH)
    ]
    found = pl.concat(parts).rename({"query": "distinct"})
    asked = pl.DataFrame({"query": np.arange(len(texts)), "distinct": np.array(text_of)})
    return asked.join(found, on="distinct", maintain_order="left_right").drop("distinct")


def _coverage(hits: pl.DataFrame, names: pl.DataFrame, floor: float) -> pl.DataFrame:
    """Bring hits and the best hit of each query's bare name together by concept; every query has a hit."""
    found = hits.group_by("concept").agg(
        pl.col("query").n_unique().alias("queries"),
        pl.len().alias("hits"),
        pl.col("key").n_unique().alias("pairs"),
        pl.col("score").max().alias("best"),
        pl.col("score").filter(pl.col("rank") == 1).median().alias("median"),
    )
    named = names.group_by("concept").agg(pl.col("score").max().alias("name_score"))
    return (
        found.join(named, on="concept")
        .with_columns((pl.col("name_score") >= floor).alias("covered"))
        .sort("name_score", "concept")
    )
