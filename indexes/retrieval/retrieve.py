"""Retrieval: the pairs whose captions (T2T) or images (T2I) are nearest to each query (REACT eq. 2.2, 2.3).

K counts for each mode on its own:

- *per query* (the default): each query brings its K best pairs. A concept with 80 templates gets up to 80 K hits on fewer
  distinct pairs.
- *per concept*: each query is asked for K, and of all that its queries found a concept keeps the K best distinct pairs.

A cap then bounds the distinct pairs of a concept over both modes together. A *hit* is a pair found by a query, with mode,
rank and score; a pair is one row, whatever found it, with all its hits (`merging_hits.py` says in which order). What is
not taken is counted: below the score floor, beyond K or cap, excluded (`exclusion.py`).

Effort is tuned on a sample of the queries themselves, for each mode, to a wanted recall@K against exact search: text
against image vectors needs far more of it than vectors of the pool suggest. Where that much effort in a graph costs more
than comparing with every vector, every vector is compared.

Memory: at the peak, while pairs are merged, some 350 bytes a hit besides what the index takes (84,525 queries with 50
hits each against 100,000 pairs: 1.6 GiB in all). Hits with their texts are made and written in bounded pieces
(`Retrieval.hit_batches`, `Retrieval.write_hits`).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.datasets.progress import open_step
from pairwright.indexes.encoders.protocols import TextEncoder, Vectors
from pairwright.indexes.hnsw.search import Index, PartPool, score_recall
from pairwright.indexes.retrieval.batched_search import (
    MODALITY_OF,
    FilteredHits,
    Mode,
    SearchEffort,
    decode_keys,
    search_with_exclusion,
)
from pairwright.indexes.retrieval.coverage import (
    CoverageInputs,
    ScoreFloor,
    choose_floor,
    list_name_floors,
    make_coverage_table,
    score_against_names,
)
from pairwright.indexes.retrieval.exclusion import NO_EXCLUDED_PAIRS, ExclusionFilter
from pairwright.indexes.retrieval.hit_ranking import limit_pairs, merge_hits, rank_pairs
from pairwright.indexes.retrieval.prepared_queries import PreparedQueries, prepare_queries
from pairwright.indexes.retrieval.queries import Query
from pairwright.indexes.retrieval.results import ModeReport, Retrieval, RetrieveOptions

_TUNING_SAMPLE = 200
_COMPARISONS_PER_EFFORT = (
    200  # comparisons in sequence that cost what one step of ef_search does; measured, 512 dimensions
)
_MAX_EXACT_COMPARISONS = 2**30  # comparisons that are made in any case: a minute or less
_MAX_EXACT_VECTORS = 2**22  # vectors that are read for few queries: 8 GiB in float32 at 512 dimensions


def retrieve(
    index: Index,
    encoding: TextEncoder | Vectors | None,
    queries: Sequence[Query],
    options: RetrieveOptions | None = None,
    guard: ExclusionFilter | None = None,
) -> Retrieval:
    """Search ``index`` with every query.

    Args:
        index: an open index.
        encoding: the encoder that the index was built with, or else the vectors of the queries, unit rows, float32
            (queries, dim), as `queries.read_query_vectors` gives them.
        queries: at least one.
        options: what to bring.
        guard: of pairs that must not be brought; `asking.DEEPEST` times K are looked through to bring K others.

    Raises:
        StorageError: when the encoder is not the index's, or the guard's lookup does not know a pair of the index.
        UsageError: when there are no queries, no way to encode them, or the index has no vectors for the mode.
    """
    started = time.perf_counter()
    options = options or RetrieveOptions()
    _check_modes(index, options.modes)
    questions = prepare_queries(index.info, encoding, queries)
    tuned = _tune_modes(index, questions, options)
    efforts = {mode: one.effort for mode, one in tuned.items()}
    floors = {mode: choose_floor(index, mode, efforts[mode], options.of("floor", mode)) for mode in efforts}
    answers = search_with_exclusion(index, questions.asks, options.k, efforts, guard)
    of_names = list_name_floors(questions, floors)
    searches = {mode: _mode_report(mode, one, floors[mode], answers) for mode, one in tuned.items()}
    with open_step("ranking hits", unit=""):
        hits, keys, excluded = _assign_hits_to_queries(answers, questions)
        del answers  # 29 bytes a hit
        found = rank_pairs(hits)
        kept = limit_pairs(found, options.k if options.per == "concept" else None, options.cap)
        if kept.height < found.height:
            hits = hits.join(kept, on=["concept", "mode", "pair"], how="semi", maintain_order="left")
        pairs = merge_hits(hits, kept, keys, questions.texts)
    with open_step("judging coverage", unit=""):
        coverage = make_coverage_table(
            questions.concepts,
            CoverageInputs(hits, found, score_against_names(index, hits, questions, of_names), excluded),
            of_names.group_by("mode", "concept").agg(pl.col("floor").min()),
        )
    return Retrieval(
        options=options,
        asked=questions.texts,
        found=hits.drop("concept", "number"),
        keys=keys,
        pairs=pairs,
        coverage=coverage,
        excluded=guard.excluded if guard else NO_EXCLUDED_PAIRS,
        uncompared=guard.uncompared if guard else 0,
        searches=searches,
        name_source=questions.name_source,
        seconds=round(time.perf_counter() - started, 3),
    )


def _check_modes(index: Index, modes: Sequence[Mode]) -> None:
    for mode in modes:
        if MODALITY_OF[mode] not in index.info.modalities:
            raise UsageError(f"mode {mode}: the index holds no {MODALITY_OF[mode]} vectors. Build it with them.")


@dataclass(frozen=True)
class _TunedMode:
    effort: SearchEffort
    recall: float | None
    sample: int


def _mode_report(mode: Mode, tuned: _TunedMode, floor: ScoreFloor, answers: FilteredHits) -> ModeReport:
    effort = tuned.effort
    below, short = answers.below[mode], answers.short[mode]
    return ModeReport(effort.ef_search, effort.exact, tuned.recall, tuned.sample, floor, below, short)


def _tune_modes(index: Index, questions: PreparedQueries, options: RetrieveOptions) -> dict[Mode, _TunedMode]:
    """Choose the effort of each mode on a sample of the queries, or measure the given one."""
    wanted, tuned = options.recall, dict[Mode, _TunedMode]()
    vectors = None if wanted is None else questions.asks.rows(questions.sample(_TUNING_SAMPLE))
    for mode in options.modes:
        effort, reached, modality = options.ef_search, None, MODALITY_OF[mode]
        pool = index.pool(modality)
        few = not options.ef_search and _is_exact_affordable(pool, questions.asks.count)
        if vectors is not None and wanted is not None and not few:
            if effort:
                reached = _measure_recall(pool, vectors, options.k, effort)
            else:
                tuning = index.tune(vectors, options.k, wanted, modality=modality)
                effort, reached = tuning.ef_search, tuning.recall
        exact = not pool.efforts or few or (options.ef_search == 0 and _is_exact_cheaper(pool, effort))
        if exact:
            effort, reached = 0, None if vectors is None else 1.0
        min_score = options.of("min_score", mode)
        spent = SearchEffort(effort, exact, -1.0 if min_score is None else min_score)
        tuned[mode] = _TunedMode(spent, reached and round(reached, 4), 0 if vectors is None else len(vectors))
    return tuned


def _is_exact_cheaper(pool: PartPool, effort: int) -> bool:
    """Say whether comparing with every vector costs less than the effort; by a rule, so that it is so on any machine."""
    graphs = sum(part.info.kind == "hnsw" for part in pool.parts)
    return graphs == len(pool.parts) and pool.vectors <= effort * graphs * _COMPARISONS_PER_EFFORT


def _is_exact_affordable(pool: PartPool, asks: int) -> bool:
    """Say whether there are so few queries that every vector is compared: a graph misses what is rare in the pool.

    At ef_search 32 in 100,000 captions it found nothing for 661 of 2,536 names that exact search finds.
    """
    return pool.vectors <= _MAX_EXACT_VECTORS and asks * pool.vectors <= _MAX_EXACT_COMPARISONS


def _measure_recall(pool: PartPool, vectors: Vectors, k: int, effort: int) -> float:
    k = min(k, pool.vectors)
    return score_recall(pool.search(vectors, k, effort)[0], pool.exact(vectors, k)[0])


def _assign_hits_to_queries(
    answers: FilteredHits, questions: PreparedQueries
) -> tuple[pl.DataFrame, pl.Series, pl.DataFrame]:
    """Give every query its hits.

    Returns:
        Hits (query, concept, mode, rank, pair, caption_index, number, score; by query, mode, rank), the keys of the
        pairs, and a row (concept, mode) each excluded pair that was met.
    """
    halves = answers.hits.select("high", "low").unique().sort("high", "low").with_row_index("pair")
    hits = answers.hits.join(halves, on=["high", "low"]).drop("high", "low")
    asked = questions.queries.select("query", "ask", "concept")
    hits = hits.join(asked, on="ask").sort("query", "mode", "rank")
    met = answers.excluded.join(asked.select("ask", "concept").unique(), on="ask")
    return (
        hits.select("query", "concept", "mode", "rank", "pair", "caption_index", "number", "score"),
        decode_keys(halves),
        met.select("concept", "mode", "high", "low").unique().select("concept", "mode"),
    )
