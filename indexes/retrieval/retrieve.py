"""Retrieval of the pairs whose captions (T2T) or images (T2I) are nearest to each query (REACT eq. 2.2, 2.3).

K applies to each mode separately:

- *per query* (default): each query returns its K best pairs. A concept with 80 templates gets up to 80 K hits on fewer
  distinct pairs.
- *per concept*: a concept keeps the K best distinct pairs of all its queries, each of which is searched for K.

A cap then limits the distinct pairs of a concept over both modes. A *hit* is a pair found by a query, with mode, rank
and score; a pair is one row with all its hits, ordered by `hit_ranking`. Dropped pairs are counted: below the minimum
score, beyond K or cap, excluded (`exclusion`).

Effort is tuned for each mode on a sample of the queries to a wanted recall@K against exact search: text queries against
image vectors need far more effort than vectors of the pool suggest. If the necessary effort costs more than exact
search, exact search is used.

Memory: at the peak, while pairs are merged, about 350 bytes per hit besides the index (84,525 queries with 50 hits each
against 100,000 pairs: 1.6 GiB in total). Hits with their texts are produced in bounded pieces (`Retrieval.hit_batches`).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
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
    search_some,
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
_COMPARISONS_PER_EFFORT = 200  # sequential comparisons in the time of one step of ef_search; measured, 512 dimensions
_MAX_EXACT_COMPARISONS = 2**30  # always affordable: a minute or less
_MAX_EXACT_VECTORS = 2**22  # vectors read for few queries: 8 GiB in float32 at 512 dimensions


@dataclass(frozen=True)
class TunedMode:
    """Search settings of a mode.

    Attributes:
        effort: of the search.
        recall: recall@K against exact search on a sample of the queries; None if not measured.
        sample: number of queries of the sample.
    """

    effort: SearchEffort
    recall: float | None
    sample: int


def tune_search(
    index: Index, encoding: TextEncoder | Vectors | None, queries: Sequence[Query], options: RetrieveOptions
) -> dict[Mode, TunedMode]:
    """Return the search settings that `retrieve` chooses; arguments and errors as there."""
    _check_modes(index, options.modes)
    return _tune_modes(index, prepare_queries(index.info, encoding, queries), options)


def search_range(  # noqa: PLR0913, PLR0917 - of a search
    index: Index,
    encoding: TextEncoder | Vectors | None,
    queries: Sequence[Query],
    options: RetrieveOptions,
    tuned: Mapping[Mode, TunedMode],
    asks: range,
) -> dict[Mode, pl.DataFrame]:
    """Search with a range of the distinct query vectors, so that several jobs share the search of `retrieve`.

    Args:
        index: an open index.
        encoding: as of `retrieve`.
        queries: all queries.
        options: of the retrieval.
        tuned: from `tune_search`.
        asks: numbers of query vectors; those beyond the last are ignored.

    Returns:
        For each mode the hits, to be passed on to `retrieve`; without rows where the range is beyond the last vector.
    """
    vectors = prepare_queries(index.info, encoding, queries).asks
    numbers = np.arange(asks.start, min(asks.stop, vectors.count))
    efforts = {mode: one.effort for mode, one in tuned.items()}
    return search_some(index, vectors, options.k, efforts, numbers) if len(numbers) else {}


def retrieve(  # noqa: PLR0913, PLR0917 - of a search
    index: Index,
    encoding: TextEncoder | Vectors | None,
    queries: Sequence[Query],
    options: RetrieveOptions | None = None,
    guard: ExclusionFilter | None = None,
    tuned: Mapping[Mode, TunedMode] | None = None,
    searched: Mapping[Mode, pl.DataFrame] | None = None,
) -> Retrieval:
    """Search ``index`` with every query.

    Args:
        index: an open index.
        encoding: the encoder of the index, or the vectors of the queries, unit rows, float32 (queries, dim), from
            `queries.read_query_vectors`.
        queries: at least one query.
        options: options of the retrieval.
        guard: filter of pairs that must not be retrieved.
        tuned: from `tune_search`; without, it is called here.
        searched: results of `search_range` for all query vectors, in their order; without, they are searched here.

    Raises:
        StorageError: if the encoder is not that of the index, or a found pair is unknown to the lookup of the guard.
        UsageError: if there are no queries, they cannot be encoded, or the index has no vectors for a mode.
    """
    started = time.perf_counter()
    options = options or RetrieveOptions()
    _check_modes(index, options.modes)
    questions = prepare_queries(index.info, encoding, queries)
    tuned = _tune_modes(index, questions, options) if tuned is None else tuned
    efforts = {mode: one.effort for mode, one in tuned.items()}
    floors = {mode: choose_floor(index, mode, efforts[mode], options.of("floor", mode)) for mode in efforts}
    answers = search_with_exclusion(index, questions.asks, options.k, efforts, guard, searched)
    of_names = list_name_floors(questions, floors)
    searches = {mode: _mode_report(mode, one, floors[mode], answers) for mode, one in tuned.items()}
    with open_step("ranking hits", unit=""):
        hits, keys, excluded = _assign_hits_to_queries(answers, questions)
        del answers  # 29 bytes per hit
        found = rank_pairs(hits)
        kept = limit_pairs(found, options.k if options.per == "concept" else None, options.cap)
        if kept.height < found.height:
            hits = hits.join(kept, on=["concept", "mode", "pair"], how="semi", maintain_order="left")
        pairs = merge_hits(hits, kept, keys, questions.texts)
    with open_step("computing coverage", unit=""):
        coverage = make_coverage_table(
            questions.concepts,
            CoverageInputs(hits, found, score_against_names(index, hits, questions, of_names), excluded),
            of_names.group_by("mode", "concept").agg(pl.col("floor").min()),
        )
    return Retrieval(
        options=options,
        queries=questions.texts,
        hit_codes=hits.drop("concept", "number"),
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


def _mode_report(mode: Mode, tuned: TunedMode, floor: ScoreFloor, answers: FilteredHits) -> ModeReport:
    effort = tuned.effort
    below, short = answers.below[mode], answers.short[mode]
    return ModeReport(effort.ef_search, effort.exact, tuned.recall, tuned.sample, floor, below, short)


def _tune_modes(index: Index, questions: PreparedQueries, options: RetrieveOptions) -> dict[Mode, TunedMode]:
    """Tune the effort of each mode on a sample of the queries, or measure the recall of the given one."""
    wanted, tuned = options.recall, dict[Mode, TunedMode]()
    vectors = None if wanted is None else questions.asks.rows(questions.sample(_TUNING_SAMPLE))
    for mode in options.modes:
        effort, reached, modality = options.ef_search, None, MODALITY_OF[mode]
        pool = index.pool(modality)
        affordable = not options.ef_search and _is_exact_affordable(pool, questions.asks.count)
        if vectors is not None and wanted is not None and not affordable:
            if effort:
                reached = _measure_recall(pool, vectors, options.k, effort)
            else:
                tuning = index.tune(vectors, options.k, wanted, modality=modality)
                effort, reached = tuning.ef_search, tuning.recall
        exact = not pool.efforts or affordable or (options.ef_search == 0 and _is_exact_cheaper(pool, effort))
        if exact:
            effort, reached = 0, None if vectors is None else 1.0
        min_score = options.of("min_score", mode)
        settings = SearchEffort(effort, exact, -1.0 if min_score is None else min_score)
        tuned[mode] = TunedMode(settings, reached and round(reached, 4), 0 if vectors is None else len(vectors))
    return tuned


def _is_exact_cheaper(pool: PartPool, effort: int) -> bool:
    """Return whether exact search costs less than the effort, by a rule that is the same on every machine."""
    graphs = sum(part.info.kind == "hnsw" for part in pool.parts)
    return graphs == len(pool.parts) and pool.vectors <= effort * graphs * _COMPARISONS_PER_EFFORT


def _is_exact_affordable(pool: PartPool, asks: int) -> bool:
    """Return whether there are few enough queries for exact search: a graph misses what is rare in the pool.

    With ef_search 32 on 100,000 captions it missed 661 of 2,536 names that exact search finds.
    """
    return pool.vectors <= _MAX_EXACT_VECTORS and asks * pool.vectors <= _MAX_EXACT_COMPARISONS


def _measure_recall(pool: PartPool, vectors: Vectors, k: int, effort: int) -> float:
    k = min(k, pool.vectors)
    return score_recall(pool.search(vectors, k, effort)[0], pool.exact(vectors, k)[0])


def _assign_hits_to_queries(
    answers: FilteredHits, questions: PreparedQueries
) -> tuple[pl.DataFrame, pl.Series, pl.DataFrame]:
    """Assign the hits of distinct vectors to their queries.

    Returns:
        Hits (query, concept, mode, rank, pair, caption_index, number, score; by query, mode, rank), the keys of the
        pairs, and one row (concept, mode) per excluded pair.
    """
    halves = answers.hits.select("high", "low").unique().sort("high", "low").with_row_index("pair")
    hits = answers.hits.join(halves, on=["high", "low"]).drop("high", "low")
    queries = questions.queries.select("query", "ask", "concept")
    hits = hits.join(queries, on="ask").sort("query", "mode", "rank")
    excluded = answers.excluded.join(queries.select("ask", "concept").unique(), on="ask")
    return (
        hits.select("query", "concept", "mode", "rank", "pair", "caption_index", "number", "score"),
        decode_keys(halves),
        excluded.select("concept", "mode", "high", "low").unique().select("concept", "mode"),
    )
