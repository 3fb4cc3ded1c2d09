"""Coverage of concepts by a pool: score floors, similarity to concept names, and the coverage table.

Each pair returned for a concept is compared with the bare names of the concept, without template; a pair whose cosine
reaches the floor is *near*. (Scores with the query are not enough: "a black and white photo of a koala" finds black and
white photos at 0.5.) A concept is *covered* if `MIN_NEAR_PAIRS` of its pairs are near, or half of them if it has fewer.
Training on the hits of an uncovered concept would teach noise, as in REACT's experiment with PatchCamelyon.

Scores are cosines in the space of an encoder, so each encoder has its floor. Without a measured floor it is relative to
the pool: the score that 99% of the sample queries of the index reach with their nearest pair. On COCO captions this rule
gives 0.31 for the lexical encoder and 0.53 for MiniLM, close to the measured 0.3 and 0.5; it has not been measured with
CLIP or against images.
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

# (floor of one-word names, floor of longer names)
# lexical: names of 7 vision sets, the 20 best of 10,132 COCO images with all captions. One-word names: 99.9% of the pairs
#   above 0.3 name the class, and 95% of the pairs that name it are above. Longer names: half of the words may reach 0.4
#   ("railroad car", a car; "horse-drawn vehicle", a horse); 60% of the pairs above 0.45 name the class, 15% of those
#   above 0.3, and 93% of the pairs that name it are above 0.45. Random pairs reach 0.2.
# minilm: names of 13 vision sets, one caption of each of 20,264 COCO images. Of 192 names in at least five captions 90%
#   score at least 0.5 (cat 0.75, pizza 0.76; below: "stop", "plaza", "2"); of 890 names without a word in any caption
#   10% do, nearly all described in other words (teapot, taxicab, corridor). "lymph node tissue" 0.28, aircraft variants
#   0.29 in the median, car models 0.38, textures 0.37.
MEASURED_FLOORS: Mapping[tuple[str, Mode], tuple[float, float]] = {
    ("lexical", "t2t"): (0.3, 0.45),
    ("minilm", "t2t"): (0.5, 0.5),
}
SAMPLE_QUERY_SHARE = 0.01
_SELF_COSINE = 0.999  # cosine from which a sample query is itself a vector of the pool

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
_NAMES_PER_BATCH = 1024  # names encoded at a time
_VECTORS_PER_BATCH = 16_384  # stored vectors read at a time: 32 MB at 512 dimensions
MIN_NEAR_PAIRS = 5  # near pairs that suffice to cover a concept


@dataclass(frozen=True)
class ScoreFloor:
    """Minimum cosine of a near pair with the bare name of a concept.

    Attributes:
        score: floor of one-word names.
        rule: origin of the floor, for messages.
        phrase: floor of longer names; None for the same.
    """

    score: float
    rule: str
    phrase: float | None = None

    def of(self, words: int) -> float:
        """Return the floor of a name of ``words`` words."""
        return self.score if words < 2 or self.phrase is None else self.phrase


def choose_floor(index: Index, mode: Mode, effort: SearchEffort, given: float | None) -> ScoreFloor:
    """Return the floor of a mode: the given one, else that of the encoder, else one relative to the pool."""
    if given is not None:
        return ScoreFloor(given, "given")
    name = index.info.encoder_name
    known = MEASURED_FLOORS.get((name, mode))
    if known is not None:
        return ScoreFloor(known[0], f"measured for {name}", known[1] if known[1] != known[0] else None)
    reached, of_images = _best_sample_query_scores(index.pool(MODALITY_OF[mode]), effort)
    if not len(reached) or (mode == "t2i" and of_images):
        return ScoreFloor(-1.0, "none: the index has no sample texts, so all concepts count as covered; set a floor")
    score = float(np.quantile(reached, SAMPLE_QUERY_SHARE, method="lower"))
    return ScoreFloor(
        round(score, 4),
        f"relative to the pool: {1 - SAMPLE_QUERY_SHARE:.0%} of its {len(reached)} sample queries reach it",
    )


def _best_sample_query_scores(pool: PartPool, effort: SearchEffort) -> tuple[NDArray[np.float32], bool]:
    """Return the best score of each sample query, and whether the queries are themselves vectors of the pool.

    For a query that is itself in the pool, the second best score is used.
    """
    paths = [part.folder / GROUND_TRUTH_FILE for part in pool.parts]
    samples = [read_ground_truth(path).queries for path in paths if path.is_file()]
    if not sum(map(len, samples)):
        return np.empty(0, np.float32), False
    rows = np.unique(np.concatenate(samples), axis=0)
    k = min(2, pool.vectors)
    scores, _ = search_exact(pool, rows, k) if effort.exact else pool.search(rows, k, effort.ef_search)
    itself = scores[:, 0] >= _SELF_COSINE
    best = np.where(itself, scores[:, -1], scores[:, 0])
    return best[np.isfinite(best) & (best < _SELF_COSINE)], bool(itself.mean() > 0.5)


@dataclass(frozen=True)
class CoverageInputs:
    """Inputs of the coverage table: frames with columns concept (code) and mode.

    Attributes:
        hits: one row per kept hit, with its score.
        found: one row per found pair.
        kept: one row per kept pair, with name_score and near from `score_against_names`.
        excluded: one row per excluded pair.
    """

    hits: pl.DataFrame
    found: pl.DataFrame
    kept: pl.DataFrame
    excluded: pl.DataFrame


def make_coverage_table(concepts: pl.DataFrame, inputs: CoverageInputs, floors: pl.DataFrame) -> pl.DataFrame:
    """Return one row per concept and mode, uncovered and low scores first; columns as in `Retrieval.coverage`.

    Args:
        concepts: columns concept (code), words and queries (count).
        inputs: hits and pairs of the concepts.
        floors: columns mode, concept, floor (the lowest of the names of a concept).
    """
    on, score = ["concept", "mode"], pl.col("score")
    quantiles = [score.quantile(share, "lower").alias(name) for name, share in _QUANTILES.items()]
    scores = inputs.hits.group_by(on).agg(pl.len().alias("hits"), score.max().alias("best"), *quantiles)
    table = concepts.join(floors, on="concept").join(scores, on=on, how="left")
    for name, frame in (("found", inputs.found), ("excluded", inputs.excluded)):
        table = table.join(frame.group_by(on).agg(pl.len().alias(name)), on=on, how="left")
    kept = inputs.kept.group_by(on)
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
    """Return the concepts not covered in any mode, worst first."""
    covered = coverage.group_by("concept", maintain_order=True).agg(pl.col("covered").any())
    return covered.filter(~pl.col("covered"))["concept"].to_list()


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
    """Compare each returned pair with the names of its concept.

    Args:
        index: the searched index.
        hits: columns concept, mode, pair and number (of the stored vector in the pool of its mode).
        questions: the queries.
        floors: from `list_name_floors`.

    Returns:
        Columns concept, mode, pair, name_score (best cosine with a name), near (whether the floor of a name is
        reached); one row per concept, mode and pair.
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
    scored = judged.select(*on, "floor").with_columns(pl.Series("name_score", scores))
    near = (pl.col("name_score") >= pl.col("floor")).any().alias("near")
    return scored.group_by(on).agg(pl.col("name_score").max(), near)


def _group_by_name(places: NDArray[np.int64], names: NDArray[np.uint32]) -> list[NDArray[np.int64]]:
    """Return places, ascending by name, in groups of at most `_NAMES_PER_BATCH` names."""
    first = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]])) if len(names) else np.empty(0, np.int64)
    return np.split(places, first[_NAMES_PER_BATCH::_NAMES_PER_BATCH])
