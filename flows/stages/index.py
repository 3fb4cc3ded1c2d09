"""Stages ``index`` and ``retrieve``: the captions or images become a searchable pool, and queries choose from it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import NothingKeptError, PairwrightError
from pairwright.datasets.progress import report_named_steps
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.flows.config.sections import IndexSection, RetrieveSection
from pairwright.flows.state.inputs import file_state, named_state
from pairwright.flows.state.layout import pairs_path, read_pair_parts, rejected_path, retrieved_keys_path
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.building.pair_vectors import PairVectors
from pairwright.indexes.building.part_jobs import BuildParts, IndexProgress, PartJob, PartResult, build_part
from pairwright.indexes.building.precomputed_vectors import PrecomputedVectors
from pairwright.indexes.encoders.registry import BUILT_IN, ENCODERS, EncoderOptions
from pairwright.indexes.hnsw.metadata import METADATA_FILE
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.retrieval.coverage_page import write_coverage_page
from pairwright.indexes.retrieval.exclusion import ExclusionFilter, make_exclusion_rejects, read_exclusions
from pairwright.indexes.retrieval.queries import read_queries, read_query_vectors
from pairwright.indexes.retrieval.results import RetrieveOptions
from pairwright.indexes.retrieval.retrieve import retrieve

PRECOMPUTED = "precomputed"


@dataclass(frozen=True)
class IndexStage:
    """Builds the index: the pairs are read in this process, and the parts of the index are built by a pool.

    Attributes:
        side_by_side: returns for a number of parts the pool that builds them, and the threads of each; 0: FAISS's own.
        stop: set when the stage is to end early.
    """

    side_by_side: Callable[[int], tuple[Executor, int]]
    stop: Event

    def __call__(  # noqa: PLR0913, PLR0917 - a job's arguments
        self, root: Path, parts: list[str], section: IndexSection, source: str, seed: int, like: Path | None = None
    ) -> JobResult:
        """Build it; arguments as in `build_index`.

        Raises:
            PairwrightError: when it cannot be built, a worker died, or it was stopped.
        """
        return build_index(root, parts, section, source, seed, like, build=self._build, stop=self.stop)

    def _build(self, jobs: Sequence[PartJob], vectors: PairVectors, watch: IndexProgress) -> list[PartResult]:
        pool, threads = self.side_by_side(len(jobs))
        owner = ("index", "all") if len(jobs) == 1 else None  # of several parts, those that are done count
        futures = {pool.submit(build_part, job, vectors, threads, owner): job.end - job.first for job in jobs}
        total, done = sum(futures.values()), 0
        try:
            for future in as_completed(futures):
                future.result()
                done += futures[future]
                watch("vectors", done, total)
            return [future.result() for future in futures]
        finally:
            for future in futures:  # when one failed
                future.cancel()


def build_index(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path,
    parts: list[str],
    section: IndexSection,
    source: str,
    seed: int,
    like: Path | None = None,
    *,
    build: BuildParts | None = None,
    stop: Event | None = None,
) -> JobResult:
    """Fit or load the encoder and build the FAISS index.

    The unit is a pair, found by any of its captions. A caption or image whose vector equals an earlier one's, or nearly,
    is found with it; a pair that has no vector of a modality is a rejected row, and goes on all the same, since another stage may do without.

    Args:
        root: the build directory.
        parts: of the pairs.
        section: of the config.
        source: the input's path; the folder of vectors when they are there already.
        seed: of the build.
        like: the folder of an index whose encoder is used as it is; a new one is made without.
        build: builds the parts of the index; this process when left out.
        stop: set when the stage is to end early.
    """
    folder = root / "index"
    rejects: list[Reject] = []
    with report_named_steps("pairs") as follow:
        info = build_index_from_pairs(
            lambda: _until(stop, read_pair_parts(root, parts)),
            folder,
            encoder=None if like else _encoder(section, seed),
            encoder_from=like,
            vectors=PrecomputedVectors(Path(source)) if section.encoder == PRECOMPUTED else None,
            modalities=section.modalities,
            options=IndexOptions(
                m=section.m,
                ef_construction=section.ef_construction,
                recall=section.recall,
                storage=section.storage,
                memory_gib=section.memory,
                near=section.near_duplicates,
            ),
            shards=section.shards,
            build=build,
            keep_pairs=False,
            rejected=rejects.append,
            watch=follow,
        )
    rejected = rejected_path(root, "index", "all")
    REJECTS.write(rejects, rejected)
    outputs = [*(folder / name for name in sorted(info.files)), folder / METADATA_FILE, rejected]
    told = (
        "kind",
        "storage",
        "dim",
        "captions",
        "vectors",
        "duplicates",
        "near_duplicates",
        "ef_search",
        "bytes",
        "modalities",
    )
    facts = {name: value for name, value in info.summary().items() if name in told}
    return JobResult(outputs, Counts("pair", info.pairs, info.pairs), {**facts, "without_vector": dict(info.rejected)})


def _until(stop: Event | None, batches: Iterable[list[Pair]]) -> Iterator[list[Pair]]:
    """Yield the batches until ``stop`` is set."""
    for batch in batches:
        if stop is not None and stop.is_set():
            raise PairwrightError("the index was stopped before it was built. Start the same build again.")
        yield batch


def index_state(section: IndexSection, source: str) -> str:
    """Return the state of what the index is built from besides the pairs: checkpoints, and vectors that stand in ``source``."""
    folders = [Path(section.model)] if section.model and Path(section.model).exists() else []
    if section.encoder == PRECOMPUTED:
        folders += [path for kind in ("img_emb", "text_emb") if (path := Path(source) / kind).is_dir()]
    state = file_state(folders)
    if section.encoder not in (*BUILT_IN, PRECOMPUTED):
        state += ENCODERS.fingerprint(section.encoder)
    return state


def retrieve_state(section: RetrieveSection) -> str:
    """Return the state of the queries and of the evaluation data."""
    named = [section.queries, *filter(None, [section.query_vectors]), *section.exclude]
    return named_state(named)


def retrieve_pairs(
    root: Path, parts: list[str], section: RetrieveSection, device: str, home: Path | None = None
) -> JobResult:
    """Search the index with every query and choose the pairs that are hit.

    Writes every hit, the pairs with all that found them, the coverage by concept as a table and as a page, and the
    chosen keys; pairs that no query reached, or that are excluded, are rejected rows.

    Args:
        root: the folder of the index and of the parts.
        parts: of the pairs.
        section: of the config.
        device: of the encoder.
        home: a build directory to whose pairs these are added. They compete with what was found there (`best_new_hits`),
            and the keys that were chosen there stay among the chosen ones.
    """
    opened = open_index_with_encoder(root / "index", device=device)
    queries = read_queries(Path(section.queries))
    vectors = None
    if section.query_vectors:
        vectors = read_query_vectors(Path(section.query_vectors), len(queries), opened.index.info.dim)
    pool = _PairLookup(root, parts)
    exclusion = read_exclusions(section.exclude)
    guard = ExclusionFilter(exclusion, pool.of) if exclusion else None
    found = retrieve(
        opened.index, vectors if vectors is not None else opened.encoder, queries, _options(section), guard
    )
    folder = root / "retrieval"
    found.write_hits(folder / "hits.parquet")
    keys, stay = set(found.pairs["key"]), set[str]()
    if home:
        before = pl.read_parquet(home / "retrieval" / "hits.parquet")
        keys = set(best_new_hits(pl.read_parquet(folder / "hits.parquet"), before, section)["key"])
        stay = set(pl.read_parquet(retrieved_keys_path(home))["key"])
    if not keys and not home:
        raise NothingKeptError(
            "no query found a pair",
            where=section.queries,
            fix="Lower `min_score` under retrieve, or change the queries.",
        )
    tables = {
        folder / "pairs.parquet": found.pairs,
        folder / "coverage.parquet": found.coverage,
        retrieved_keys_path(root): pl.DataFrame({"key": sorted({*keys, *stay})}, schema={"key": pl.String}),
    }
    for path, frame in tables.items():
        with replace_atomically(path) as temporary:
            frame.write_parquet(temporary)
    write_coverage_page(folder / "coverage.html", found, pool.of, "What the pool covers")
    leaks = {row.place.removeprefix("pair "): row for row in make_exclusion_rejects(found.excluded, pool.of)}
    reasons, rejected = _reject_unretrieved(root, parts, keys, leaks)
    summary = found.summary()
    facts = {
        name: summary[name] for name in ("queries", "hits", "k_counts", "excluded", "uncompared", "modes", "uncovered")
    }
    outputs = [*tables, folder / "hits.parquet", folder / "coverage.html", *rejected]
    counts = Counts("pair", len(keys) + sum(reasons.values()), len(keys), reasons)
    return JobResult(outputs, counts, facts)


def best_new_hits(hits: pl.DataFrame, before: pl.DataFrame, section: RetrieveSection) -> pl.DataFrame:
    """Return the ``hits`` that would have been among the best of those ``before``; columns as `Retrieval.write_hits`."""
    unit = ["mode", "query"] if section.per == "query" else ["mode", "concept"]
    places = before.group_by("key", *unit).agg(pl.col("score").max())
    hits = hits.join(_score_threshold(places, unit, section.k), on=unit, how="left", maintain_order="left")
    hits = hits.filter(pl.col("bar").is_null() | (pl.col("score") > pl.col("bar"))).drop("bar")
    if section.cap is None:
        return hits
    concepts = before.group_by("key", "concept").agg(pl.col("score").max())
    hits = hits.join(
        _score_threshold(concepts, ["concept"], section.cap), on=["concept"], how="left", maintain_order="left"
    )
    return hits.filter(pl.col("bar").is_null() | (pl.col("score") > pl.col("bar"))).drop("bar")


def _score_threshold(places: pl.DataFrame, unit: list[str], full: int) -> pl.DataFrame:
    """Return the lowest score that was taken, of the units that took as many as they may."""
    bars = places.group_by(unit).agg(pl.len().alias("n"), pl.col("score").min().alias("bar"))
    return bars.filter(pl.col("n") >= full).drop("n")


class _PairLookup:
    """The pairs of a build, looked up by key."""

    def __init__(self, root: Path, parts: Sequence[str]) -> None:
        self._files = [pairs_path(root, part) for part in parts]

    def of(self, keys: Sequence[str]) -> pl.DataFrame:
        """Return the pairs of ``keys``."""
        wanted = pl.col("key").is_in(pl.Series(keys, dtype=pl.String).implode())
        return pl.scan_parquet(self._files).filter(wanted).collect()


def _encoder(section: IndexSection, seed: int) -> EncoderOptions | None:
    if section.encoder == PRECOMPUTED and not section.model:
        return None
    name = "clip" if section.encoder == PRECOMPUTED else section.encoder
    return EncoderOptions(name, seed=seed, model=section.model, device=section.device)


def _options(section: RetrieveSection) -> RetrieveOptions:
    return RetrieveOptions(**section.model_dump(exclude={"queries", "query_vectors", "exclude"}))


def _reject_unretrieved(
    root: Path, parts: list[str], keys: set[str], leaks: dict[str, Any]
) -> tuple[dict[str, int], list[Path]]:
    reasons: Counter[str] = Counter()
    written = []
    for part in parts:
        pairs = PAIRS.read_frame(pairs_path(root, part)).select("key", "caption").iter_rows()
        rows = [
            leaks.get(key) or make_reject(f"pair {key}", "not_retrieved", "no query found it", caption)
            for key, caption in pairs
            if key not in keys
        ]
        path = rejected_path(root, "retrieve", part)
        REJECTS.write(rows, path)
        written.append(path)
        reasons.update(row.reason for row in rows)
    return dict(sorted(reasons.items())), written
