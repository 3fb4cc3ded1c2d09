"""Reranking of hits."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.indexes.retrieval.reranking import rerank_hits

CAPTIONS = {
    ("a", 0): "one",
    ("b", 0): "not this caption of the image, which is longer than any other",
    ("b", 1): "three words here",
    ("c", 0): "two words",
    ("d", 0): "",
    ("e", 0): "far longer than all of these",
}


def hits() -> pl.DataFrame:
    rows = [
        (query, f"query {query}", mode, rank, key, int(key == "b"))
        for query, mode in ((0, "t2t"), (0, "t2i"), (1, "t2t"))
        for rank, key in enumerate("abcde", 1)
    ]
    return pl.DataFrame(
        rows, schema=["query", "text", "mode", "rank", "key", "caption_index"], orient="row"
    ).with_columns(pl.col("rank").cast(pl.Int32))


def words(query: str, captions: Sequence[str]) -> npt.NDArray[np.float64]:
    assert query.startswith("query")
    return np.asarray([len(caption.split()) for caption in captions], dtype=np.float64)


def test_the_first_of_each_query_and_mode_are_put_in_order_and_the_rest_stay_behind_them() -> None:
    found = rerank_hits(hits(), CAPTIONS, words, top=4)
    assert found.height == 15
    for group in found.partition_by("query", "mode", maintain_order=True):
        assert group["key"].to_list() == ["b", "c", "a", "d", "e"]
        assert group["rank"].to_list() == [1, 2, 3, 4, 5]
        assert group["first_rank"].to_list() == [2, 3, 1, 4, 5]
        assert group["rerank_score"].to_list() == [3.0, 2.0, 1.0, None, None]
    assert found["rank"].dtype == hits()["rank"].dtype


def test_hits_of_equal_score_keep_their_order() -> None:
    found = rerank_hits(hits(), CAPTIONS, lambda _, captions: np.ones(len(captions)), top=5)
    assert found["key"].to_list() == ["a", "b", "c", "e", "d"] * 3


def test_an_empty_result_has_the_columns() -> None:
    found = rerank_hits(hits().clear(), CAPTIONS, words, top=4)
    assert found.columns == [*hits().columns, "first_rank", "rerank_score"]
