"""Hits in another order: the first of each query, by what a model makes of their captions.

The index knows what lies near to a query; whoever reads query and captions may know better which of the nearest is meant.
The first ``top`` hits of a query in a mode are read together and put in order among themselves; the others stay behind
them as they were.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

CaptionScorer = Callable[[str, Sequence[str]], npt.NDArray[np.float64]]


def rerank_hits(
    hits: pl.DataFrame, captions: Mapping[tuple[str, int], str], scorer: CaptionScorer, top: int
) -> pl.DataFrame:
    """Return the hits with new ranks, in the order of query, mode and rank.

    Adds ``first_rank``, the rank by the index, and ``rerank_score``, which is null for hits that were not read: those
    behind the first ``top``, and those without a caption, which stand behind all that were read.

    Args:
        hits: `Retrieval.hits`.
        captions: by key and caption_index; missing or empty where a pair has none.
        scorer: of a query and captions, one number a caption, higher is better.
        top: hits of a query in a mode that are read, at least 1.
    """
    groups = hits.partition_by("query", "mode", maintain_order=True)
    found = [_rerank_query(group.sort("rank"), captions, scorer, top) for group in groups]
    return pl.concat(found) if found else _set_ranks(hits, [], [])


def _rerank_query(
    group: pl.DataFrame, captions: Mapping[tuple[str, int], str], scorer: CaptionScorer, top: int
) -> pl.DataFrame:
    texts = [(captions.get(place) or "").strip() for place in group.select("key", "caption_index").iter_rows()]
    read = [place for place, text in enumerate(texts[:top]) if text]
    scores: list[float | None] = [None] * len(texts)
    values = scorer(group["text"][0], [texts[place] for place in read]) if read else np.empty(0)
    for place, value in zip(read, values, strict=True):
        scores[place] = float(value)
    silent = [place for place in range(len(texts)) if scores[place] is None]
    best = sorted(read, key=lambda place: -(scores[place] or 0.0))  # stable: of equals the nearer
    order = best + silent
    return _set_ranks(group[order], group["rank"].to_list(), [scores[place] for place in order])


def _set_ranks(hits: pl.DataFrame, ranks: Sequence[int], scores: Sequence[float | None]) -> pl.DataFrame:
    return hits.with_columns(
        pl.Series("rank", ranks, dtype=hits["rank"].dtype),
        hits["rank"].alias("first_rank"),
        pl.Series("rerank_score", scores, dtype=pl.Float64),
    )
