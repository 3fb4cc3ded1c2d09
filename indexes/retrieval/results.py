"""Options and results of retrieval."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import UsageError
from pairwright.indexes.retrieval.batched_search import (
    MODALITY_OF,
    Mode,
)
from pairwright.indexes.retrieval.coverage import (
    ScoreFloor,
    list_uncovered,
)
from pairwright.indexes.retrieval.exclusion import count_by_field

ModeChoice = Literal["t2t", "t2i", "both"]


KUnit = Literal["query", "concept"]


_HITS_PER_BATCH = 1_000_000  # hits joined with their texts at a time


@dataclass(frozen=True)
class RetrieveOptions:
    """Options of a retrieval.

    Attributes:
        k: pairs per query or concept in each mode; at least 1.
        mode: t2t (captions), t2i (images) or both.
        per: unit of ``k``, query or concept; see `retrieve`.
        cap: maximum distinct pairs per concept, best first; None for unlimited.
        min_score: minimum cosine of a hit. For both modes a mapping, since their scores are not comparable.
        floor: minimum cosine of a near pair with the bare name of its concept; for both modes a mapping; None for that
            of the encoder (`coverage.py`).
        recall: recall@k in (0, 1] to which the effort is tuned; None for the default effort of the index, unmeasured.
        ef_search: effort; 0 to tune it.
    """

    k: int = 50
    mode: ModeChoice = "t2t"
    per: KUnit = "query"
    cap: int | None = None
    min_score: float | Mapping[Mode, float] = -1.0
    floor: float | Mapping[Mode, float] | None = None
    recall: float | None = 0.95
    ef_search: int = 0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k {self.k}: must be at least 1.")
        if self.mode not in get_args(ModeChoice) or self.per not in get_args(KUnit):
            raise UsageError(
                f"mode {self.mode}, per {self.per}: modes are t2t, t2i and both; k is per query or concept."
            )
        if self.cap is not None and self.cap < 1:
            raise UsageError(f"cap {self.cap}: must be at least 1.")
        if self.recall is not None and not 0 < self.recall <= 1:
            raise UsageError(f"recall {self.recall}: must be above 0 and at most 1.")
        if self.ef_search < 0:
            raise UsageError(f"ef_search {self.ef_search}: must be 0 or more.")
        for name, value in (("min_score", self.min_score), ("floor", self.floor)):
            if self.mode == "both" and isinstance(value, float | int) and value > -1:
                raise UsageError(f"{name} {value}: scores of t2t and t2i are not comparable; set one for each mode.")

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The requested modes."""
        return tuple(MODALITY_OF) if self.mode == "both" else (self.mode,)

    def of(self, name: Literal["min_score", "floor"], mode: Mode) -> float | None:
        """Return ``min_score`` or ``floor`` of a mode, None if not given."""
        value: float | Mapping[Mode, float] | None = getattr(self, name)
        return value.get(mode) if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class ModeReport:
    """Search settings and counts of a mode.

    Attributes:
        ef_search: effort; 0 for exact search or the default of the index.
        exact: every vector was compared, because there is no graph or the necessary effort costs more.
        recall: recall@k on a sample of the queries; None if not measured.
        sample: number of queries in the sample.
        floor: floor of its coverage.
        below: number of hits below the minimum score.
        short: number of queries with fewer than K hits because too many were excluded.
    """

    ef_search: int
    exact: bool
    recall: float | None
    sample: int
    floor: ScoreFloor
    below: int
    short: int


@dataclass(frozen=True)
class Retrieval:
    """Result of `retrieve`.

    Attributes:
        options: options of the retrieval.
        queries: text, concept, template, by number.
        hit_codes: hits without texts: query, mode, rank, pair (position in ``keys``), caption_index, score; by query,
            mode and rank.
        keys: keys of all found pairs, sorted.
        pairs: one row per pair, best first: key, place (best within a concept and mode), rank (best), score_t2t and
            score_t2i (best; null if not found in that mode), and parallel lists with one entry per hit, by mode and
            query: queries (numbers), concepts, templates, modes, ranks, caption_indexes, scores.
        coverage: one row per concept and mode, least covered first: concept, mode, queries, hits, pairs (distinct),
            best, p90, p50, p10 (of the scores of its hits), name_score (best cosine of a returned pair with the bare
            name; -1 without pairs), near (pairs whose cosine with the name reaches the floor), floor, covered, cut
            (pairs beyond K or cap), excluded (pairs).
        excluded: excluded pairs that were found: key, by, copy_of.
        uncompared: number of pairs whose images could not be compared with the exclusion by content.
        searches: settings and counts by mode.
        name_source: source of the bare name of a concept: ``name``, or ``mean of its queries`` if only vectors are given.
        seconds: duration.
    """

    options: RetrieveOptions
    queries: pl.DataFrame
    hit_codes: pl.DataFrame
    keys: pl.Series
    pairs: pl.DataFrame
    coverage: pl.DataFrame
    excluded: pl.DataFrame
    uncompared: int
    searches: dict[Mode, ModeReport]
    name_source: str
    seconds: float

    @cached_property
    def hits(self) -> pl.DataFrame:
        """All hits, by query, mode, rank.

        Columns query (number), text, concept, template, mode, rank (from 1), key, caption_index (of the found caption:
        0 the pair's ``caption``, n the n-th of its ``captions``; 0 for images), score.
        """
        return pl.concat(self.hit_batches())

    def hit_batches(self, size: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield `hits` in pieces of at most ``size`` rows, at least one."""
        size = size or _HITS_PER_BATCH
        for start in range(0, max(1, self.hit_codes.height), size):
            part = self.hit_codes.slice(start, size)
            texts = self.queries[part["query"].to_numpy()]
            yield pl.DataFrame(
                [
                    part["query"],
                    *texts.select("text", "concept", "template").get_columns(),
                    part["mode"].cast(pl.String),
                    part["rank"],
                    self.keys.gather(part["pair"]).alias("key"),
                    part["caption_index"],
                    part["score"],
                ]
            )

    def write_hits(self, path: Path) -> None:
        """Write `hits` as Parquet, piece by piece and atomically."""
        import pyarrow.parquet as pq

        pieces = (piece.to_arrow(compat_level=pl.CompatLevel.oldest()) for piece in self.hit_batches())
        first = next(pieces)
        with (
            replace_atomically(path) as temporary,
            pq.ParquetWriter(temporary, first.schema, compression="zstd") as writer,
        ):
            writer.write_table(first)
            for piece in pieces:
                writer.write_table(piece)

    @property
    def uncovered(self) -> list[str]:
        """Concepts not covered in any mode, worst first."""
        return list_uncovered(self.coverage)

    def summary(self) -> dict[str, Any]:
        """Return what ``pairwright retrieve --json`` prints."""
        options = self.options
        each = f" in each of {', '.join(options.modes)}" if len(options.modes) > 1 else ""
        return {
            "queries": self.queries.height,
            "k": options.k,
            "k_counts": f"pairs a {options.per}{each}",
            "cap": options.cap,
            "hits": self.hit_codes.height,
            "unique_pairs": self.pairs.height,
            "beyond_k_or_cap": int(self.coverage["cut"].sum()),
            "excluded": count_by_field(self.excluded),
            "uncompared": self.uncompared,
            "modes": {
                mode: {
                    "ef_search": search.ef_search,
                    "exact": search.exact,
                    "recall": search.recall,
                    "sample": search.sample,
                    "floor": search.floor.score,
                    "floor_rule": search.floor.rule,
                    "below_min_score": search.below,
                    "short": search.short,
                }
                for mode, search in self.searches.items()
            },
            "uncovered": self.uncovered,
            "seconds": self.seconds,
        }
