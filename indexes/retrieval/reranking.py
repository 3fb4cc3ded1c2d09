"""Reranking of hits by a caption scorer, such as a language model.

The first ``top`` hits of each query and mode are scored together and reordered; the others keep their order after them.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

CaptionScorer = Callable[[str, Sequence[str]], npt.NDArray[np.float64]]


def rerank_hits(
    hits: pl.DataFrame, captions: Mapping[tuple[str, int], str], scorer: CaptionScorer, top: int
) -> pl.DataFrame:
    """Return the hits with new ranks, ordered by query, mode and rank.

    Adds ``first_rank``, the rank in the index, and ``rerank_score``, which is null for hits without a score: those after
    the first ``top``, and those without a caption, which are ranked after all scored hits.

    Args:
        hits: `Retrieval.hits`.
        captions: captions by key and caption_index; missing or empty if a pair has none.
        scorer: returns one score per caption of a query, higher is better.
        top: hits to score per query and mode, at least 1.
    """
    groups = hits.partition_by("query", "mode", maintain_order=True)
    found = [_rerank_query(group.sort("rank"), captions, scorer, top) for group in groups]
    return pl.concat(found) if found else _set_ranks(hits, [], [])


def _rerank_query(
    group: pl.DataFrame, captions: Mapping[tuple[str, int], str], scorer: CaptionScorer, top: int
) -> pl.DataFrame:
    texts = [(captions.get(place) or "").strip() for place in group.select("key", "caption_index").iter_rows()]
    scored = [place for place, text in enumerate(texts[:top]) if text]
    scores: list[float | None] = [None] * len(texts)
    values = scorer(group["text"][0], [texts[place] for place in scored]) if scored else np.empty(0)
    for place, value in zip(scored, values, strict=True):
        scores[place] = float(value)
    unscored = [place for place in range(len(texts)) if scores[place] is None]
    best = sorted(scored, key=lambda place: -(scores[place] or 0.0))  # stable: equal scores keep the index order
    order = best + unscored
    return _set_ranks(group[order], group["rank"].to_list(), [scores[place] for place in order])


def _set_ranks(hits: pl.DataFrame, ranks: Sequence[int], scores: Sequence[float | None]) -> pl.DataFrame:
    return hits.with_columns(
        pl.Series("rank", ranks, dtype=hits["rank"].dtype),
        hits["rank"].alias("first_rank"),
        pl.Series("rerank_score", scores, dtype=pl.Float64),
    )
