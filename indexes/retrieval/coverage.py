"""Which concepts the pool covers: a table for `Retrieval`, and the floors that it is judged by.

Judged are the pairs that were returned for a concept, each by its cosine with the concept's bare name (`judging.py`); a
pair that reaches the floor is *near*. A concept is *covered* when `MIN_NEAR_PAIRS` of its pairs are near, or half of them if it
has fewer. Training on the hits of an uncovered concept would teach noise (in REACT's experiments the microscope images of
PatchCamelyon were such a domain). How many pairs are near is told for each concept.

Scores are cosines of an encoder's space, so each encoder has a floor of its own. Where none was measured, the floor is
relative to the pool: what 99 in 100 of the index's own probes reach (texts like those of the pool, each asked for what is
nearest). That is a rule of thumb: on captions of COCO it gives 0.31 for the lexical encoder and 0.53 for MiniLM, next to
the measured 0.3 and 0.5; with CLIP, and against images, nobody has measured it.

----
How near returned pairs are to the bare names of the concepts that they were returned for.

A score compares a pair with a query, and a query may hold more than the concept: "a black and white photo of a koala" finds
black and white photos at 0.5. So each returned pair is compared once more, by the caption or image that was found, with
the bare names of the concept, template left off. Nothing is searched: pairs that were not returned do not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.indexes.hnsw.ground_truth import read_ground_truth
from pairwright.indexes.hnsw.metadata import GROUND_TRUTH_FILE
from pairwright.indexes.hnsw.search import Index, PartPool
from pairwright.indexes.retrieval.batched_search import MODALITY_OF, MODE_ENUM, Mode, SearchEffort, search_exact
from pairwright.indexes.retrieval.prepared_queries import PreparedQueries

# lexical, names of 7 vision sets, the 20 best of 10,132 COCO images with all their captions: of the pairs found by a name of
#   one word 99.9% of those above 0.3 name the class, and 95% of those that name it are above. Of a name of several words
#   half may be enough for 0.4 ("railroad car", a car; "horse-drawn vehicle", a horse): above 0.45 60% name the class, of
#   those above 0.3 15%, and 93% of those that name it are above 0.45. Chance reaches 0.2.
# minilm, names of 13 vision sets against one caption each of 20,264 COCO images: of 192 names that stand in at least five
#   captions 90% score at least 0.5 (cat 0.75, pizza 0.76; below are "stop", "plaza", "2"); of 890 names none of whose words
#   stands in any caption 10% do, nearly all there under other words (teapot, taxicab, corridor). "lymph node tissue" 0.28,
#   aircraft variants 0.29 in the median, car models 0.38, textures 0.37.
MEASURED_FLOORS: Mapping[tuple[str, Mode], tuple[float, float]] = {
    ("lexical", "t2t"): (0.3, 0.45),
    ("minilm", "t2t"): (0.5, 0.5),
}
SAMPLE_QUERY_SHARE = 0.01
_SELF_COSINE = 0.999  # cosine from which a probe counts as a vector of the pool

_QUANTILES = {"p90": 0.9, "p50": 0.5, "p10": 0.1}
_COLUMNS = (
    "queries",
    "hits",
    "pairs",
    "best",
    *_QUANTILES,
    "name_score",
    "near",
    "floor",
    "covered",
    "cut",
    "excluded",
)
MIN_NEAR_PAIRS = 5  # near pairs that cover a concept in any case


@dataclass(frozen=True)
class ScoreFloor:
    """From which cosine with a concept's bare name a pair is near to it, and where that comes from.

    Attributes:
        score: for a name of one word.
        rule: where it comes from, in words.
        phrase: for a name of several words; None for the same.
    """

    score: float
    rule: str
    phrase: float | None = None

    def of(self, words: int) -> float:
        """Return the floor of a name of so many words."""
        return self.score if words < 2 or self.phrase is None else self.phrase


def choose_floor(index: Index, mode: Mode, effort: SearchEffort, given: float | None) -> ScoreFloor:
    """Return the floor of a mode: the given one, else the encoder's, else what the index's probes reach."""
    if given is not None:
        return ScoreFloor(given, "given")
    name = index.info.encoder_name
    known = MEASURED_FLOORS.get((name, mode))
    if known is not None:
        return ScoreFloor(known[0], f"measured for {name}", known[1] if known[1] != known[0] else None)
    reached, of_images = _best_sample_query_scores(index.pool(MODALITY_OF[mode]), effort)
    if not len(reached) or (mode == "t2i" and of_images):
        return ScoreFloor(
            -1.0, "none: the index has no sample texts to judge by, so all count as covered; give a floor"
        )
    score = float(np.quantile(reached, SAMPLE_QUERY_SHARE, method="lower"))
    return ScoreFloor(
        round(score, 4), f"relative to the pool: {1 - SAMPLE_QUERY_SHARE:.0%} of its {len(reached)} probes reach it"
    )


def _best_sample_query_scores(pool: PartPool, effort: SearchEffort) -> tuple[NDArray[np.float32], bool]:
    """Return the best score of each probe, and whether the probes are themselves vectors of the pool.

    A probe that is itself in the pool does not count as what it finds: then its second best is taken.
    """
    paths = [part.folder / GROUND_TRUTH_FILE for part in pool.parts]
    probes = [read_ground_truth(path).queries for path in paths if path.is_file()]
    if not sum(map(len, probes)):
        return np.empty(0, np.float32), False
    rows = np.unique(np.concatenate(probes), axis=0)
    k = min(2, pool.vectors)
    scores, _ = search_exact(pool, rows, k) if effort.exact else pool.search(rows, k, effort.ef_search)
    itself = scores[:, 0] >= _SELF_COSINE
    best = np.where(itself, scores[:, -1], scores[:, 0])
    return best[np.isfinite(best) & (best < _SELF_COSINE)], bool(itself.mean() > 0.5)


@dataclass(frozen=True)
class CoverageInputs:
    """What was found for concepts, as frames with columns concept (code) and mode.

    Attributes:
        hits: a row a hit that was kept, with its score.
        found: a row a pair that was found.
        kept: a row a pair that was kept, with name_score and near, as `judging.name_scores` gives them.
        excluded: a row an excluded pair that was met.
    """

    hits: pl.DataFrame
    found: pl.DataFrame
    kept: pl.DataFrame
    excluded: pl.DataFrame


def make_coverage_table(concepts: pl.DataFrame, tallies: CoverageInputs, floors: pl.DataFrame) -> pl.DataFrame:
    """Return one row a concept and mode, uncovered ones and low scores first; columns as in `Retrieval.coverage`.

    Args:
        concepts: columns concept (code), words and queries (asked).
        tallies: what was found.
        floors: columns mode, concept, floor: the lowest of a concept's names.
    """
    on, score = ["concept", "mode"], pl.col("score")
    quantiles = [score.quantile(share, "lower").alias(name) for name, share in _QUANTILES.items()]
    scores = tallies.hits.group_by(on).agg(pl.len().alias("hits"), score.max().alias("best"), *quantiles)
    table = concepts.join(floors, on="concept").join(scores, on=on, how="left")
    for name, frame in (("found", tallies.found), ("excluded", tallies.excluded)):
        table = table.join(frame.group_by(on).agg(pl.len().alias(name)), on=on, how="left")
    kept = tallies.kept.group_by(on)
    kept_table = kept.agg(pl.len().alias("pairs"), pl.col("near").sum(), pl.col("name_score").max())
    table = table.join(kept_table, on=on, how="left")
    table = table.with_columns(
        pl.col("hits", "pairs", "near", "found", "excluded").fill_null(0), pl.col("name_score").fill_null(-1.0)
    )
    enough = pl.min_horizontal((pl.col("pairs") + 1) // 2, MIN_NEAR_PAIRS).clip(1)
    table = table.with_columns(covered=pl.col("near") >= enough, cut=pl.col("found") - pl.col("pairs"))
    lost = ~pl.col("covered").any().over("concept")
    margin = (pl.col("name_score") - pl.col("floor")).max().over("concept")
    return table.sort(lost, margin, "words", "mode", descending=[True, False, False, False]).select(
        pl.col("words").alias("concept"), pl.col("mode").cast(pl.String), *_COLUMNS
    )


def list_uncovered(coverage: pl.DataFrame) -> list[str]:
    """Return the concepts that no mode covers, worst first."""
    covered = coverage.group_by("concept", maintain_order=True).agg(pl.col("covered").any())
    return covered.filter(~pl.col("covered"))["concept"].to_list()


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
    """Return places, ascending by name, in groups of at most `_COLUMNS` names."""
    first = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]])) if len(names) else np.empty(0, np.int64)
    return np.split(places, first[_NAMES_PER_BATCH::_NAMES_PER_BATCH])
