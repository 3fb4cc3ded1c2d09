"""How near returned pairs are to the bare names of the concepts that they were returned for.

A score compares a pair with a query, and a query may hold more than the concept: "a black and white photo of a koala" finds
black and white photos at 0.5. So each returned pair is compared once more, by the caption or image that was found, with
the bare names of the concept, template left off. Nothing is searched: pairs that were not returned do not count.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.indexes.hnsw.search import Index
from pairwright.indexes.retrieval.batched_search import MODALITY_OF, MODE_ENUM, Mode
from pairwright.indexes.retrieval.coverage import ScoreFloor
from pairwright.indexes.retrieval.prepared_queries import PreparedQueries

_NAMES_PER_BATCH = 1024  # that are encoded at a time
_VECTORS_PER_BATCH = 16_384  # stored vectors that are read at a time: 32 MB at 512 dimensions


def list_name_floors(questions: PreparedQueries, floors: Mapping[Mode, ScoreFloor]) -> pl.DataFrame:
    """Return the floor of each name of each concept: columns mode, concept, name, floor."""
    names = questions.queries.select("concept", "name").unique()
    words = questions.name_word_counts[names["name"].to_numpy()].tolist()
    frames = [
        names.select(pl.lit(mode, MODE_ENUM).alias("mode"), "concept", "name").with_columns(
            pl.Series("floor", [floor.of(count) for count in words], dtype=pl.Float32)
        )
        for mode, floor in floors.items()
    ]
    return pl.concat(frames)


def score_against_names(
    index: Index, hits: pl.DataFrame, questions: PreparedQueries, floors: pl.DataFrame
) -> pl.DataFrame:
    """Return how near each returned pair is to the names of its concept.

    Args:
        index: that was searched.
        hits: columns concept, mode, pair and number (of the stored vector in the pool of its mode).
        questions: what was asked.
        floors: as `list_name_floors` gives them.

    Returns:
        Columns concept, mode, pair, name_score (best cosine with a name), near (a name's floor is reached); a row each
        concept, mode and pair.
    """
    on = ["concept", "mode", "pair"]
    judged = hits.select(*on, "number").unique().join(floors, on=["concept", "mode"])
    judged = judged.sort("mode", "name", "number", "pair", "concept")
    scores = np.empty(judged.height, np.float32)
    modes, name_of, numbers = (judged[name].to_numpy() for name in ("mode", "name", "number"))
    for mode in judged["mode"].unique(maintain_order=True):
        pool = index.pool(MODALITY_OF[mode])
        mine = np.flatnonzero(modes == mode)
        for places in _group_by_name(mine, name_of[mine]):
            wanted, which = np.unique(name_of[places], return_inverse=True)
            rows = questions.names.rows(wanted.astype(np.int64))
            for start in range(0, len(places), _VECTORS_PER_BATCH):
                some = slice(start, start + _VECTORS_PER_BATCH)
                stored = pool.stored(numbers[places[some]].astype(np.int64))
                scores[places[some]] = np.clip(np.einsum("nd,nd->n", stored, rows[which[some]]), -1, 1)
    told = judged.select(*on, "floor").with_columns(pl.Series("name_score", scores))
    near = (pl.col("name_score") >= pl.col("floor")).any().alias("near")
    return told.group_by(on).agg(pl.col("name_score").max(), near)


def _group_by_name(places: NDArray[np.int64], names: NDArray[np.uint32]) -> list[NDArray[np.int64]]:
    """Return places, ascending by name, in groups of at most `_NAMES_PER_BATCH` names."""
    first = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]])) if len(names) else np.empty(0, np.int64)
    return np.split(places, first[_NAMES_PER_BATCH::_NAMES_PER_BATCH])
