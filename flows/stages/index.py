"""Stages ``index`` (a FAISS index over captions or images) and ``retrieve`` (the pairs that queries find in it)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import NothingKeptError, PairwrightError
from pairwright.datasets.progress import report_named_steps
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.flows.state.inputs import file_state, named_state
from pairwright.flows.state.layout import pairs_path, read_pair_parts, rejected_path, retrieved_keys_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
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

if TYPE_CHECKING:
    from pairwright.flows.config.sections import IndexSection, RetrieveSection
    from pairwright.flows.stages.definition import StageRun

PRECOMPUTED = "precomputed"


def index_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``index``; an increment uses the encoder of the full build's index."""
    config, section = run.config, run.config.index_section
    assert section is not None
    stage = IndexStage(run.engine.pool_for, run.engine.stop)
    encoder_of = [run.base.root / "index"] if run.base else []
    state = f"{_index_state(section, config.input.path)} {run.base_state}"
    args = (run.parts, section, config.input.path, config.seed, *encoder_of)
    return [run.job(stage, *args, state=state, in_build_process=True)]


def retrieve_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``retrieve``."""
    section, index = run.config.retrieve, run.config.index_section
    assert section is not None
    assert index is not None
    args = (run.parts, section, index.device, *([run.base.root] if run.base else []))
    named = [section.queries, *filter(None, [section.query_vectors]), *section.exclude, *section.exclude_images]
    return [run.job(retrieve_pairs, *args, state=f"{named_state(named)} {run.base_state}", multi_core=True)]


@dataclass(frozen=True)
class IndexStage:
    """Builds the index: pairs are read in this process, and a pool builds the parts of the index.

    Attributes:
        pool_for: returns the pool for a number of parts, and the threads per part (0 = FAISS's default).
        stop: set to end the stage early.
    """

    pool_for: Callable[[int], tuple[Executor, int]]
    stop: Event

    def __call__(  # noqa: PLR0913, PLR0917 - a job's arguments
        self,
        root: Path,
        parts: list[str],
        section: "IndexSection",
        source: str,
        seed: int,
        encoder_of: Path | None = None,
    ) -> JobResult:
        """Build the index; arguments as in `build_index`.

        Raises:
            PairwrightError: when it cannot be built, a worker died, or it was stopped.
        """
        return build_index(root, parts, section, source, seed, encoder_of, build=self._build, stop=self.stop)

    def _build(self, jobs: Sequence[PartJob], vectors: PairVectors, watch: IndexProgress) -> list[PartResult]:
        pool, threads = self.pool_for(len(jobs))
        owner = ("index", "all") if len(jobs) == 1 else None  # of several parts, finished ones are reported
        futures = {pool.submit(build_part, job, vectors, threads, owner): job.end - job.first for job in jobs}
        total, done = sum(futures.values()), 0
        try:
            for future in as_completed(futures):
                future.result()
                done += futures[future]
                watch("vectors", done, total)
            return [future.result() for future in futures]
        finally:
            for future in futures:  # after an error
                future.cancel()


def build_index(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path,
    parts: list[str],
    section: "IndexSection",
    source: str,
    seed: int,
    encoder_of: Path | None = None,
    *,
    build: BuildParts | None = None,
    stop: Event | None = None,
) -> JobResult:
    """Fit or load the encoder and build the FAISS index; the unit is a pair.

    A pair is found by any of its captions. Equal or nearly equal vectors share one entry of the index. A pair without
    a vector of a modality is listed among the rejected rows, but stays in the build.

    Args:
        root: the build directory.
        parts: of the pairs.
        section: of the config.
        source: path of the input; with precomputed vectors, their folder.
        seed: of the build.
        encoder_of: folder of an index whose encoder is used; by default a new encoder is made.
        build: builds the parts of the index; by default this process.
        stop: set to end the stage early.
    """
    folder = root / "index"
    rejects: list[Reject] = []
    with report_named_steps("pairs") as follow:
        info = build_index_from_pairs(
            lambda: _until(stop, read_pair_parts(root, parts)),
            folder,
            encoder=None if encoder_of else _encoder(section, seed),
            encoder_from=encoder_of,
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
    facts = {name: value for name, value in info.summary().items() if name in _INDEX_FACTS}
    return JobResult(outputs, Counts("pair", info.pairs, info.pairs), {**facts, "without_vector": dict(info.rejected)})


_INDEX_FACTS = frozenset(
    (
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
)


def _until(stop: Event | None, batches: Iterable[list[Pair]]) -> Iterator[list[Pair]]:
    """Yield the batches until ``stop`` is set."""
    for batch in batches:
        if stop is not None and stop.is_set():
            raise PairwrightError("stopped while building the index. Start the same build again to resume.")
        yield batch


def _index_state(section: "IndexSection", source: str) -> str:
    """Return the state of what the index is built from besides the pairs: checkpoints and precomputed vectors."""
    folders = [Path(section.model)] if section.model and Path(section.model).exists() else []
    if section.encoder == PRECOMPUTED:
        folders += [path for kind in ("img_emb", "text_emb") if (path := Path(source) / kind).is_dir()]
    state = file_state(folders)
    if section.encoder not in (*BUILT_IN, PRECOMPUTED):
        state += ENCODERS.fingerprint(section.encoder)
    return state


def retrieve_pairs(
    root: Path, parts: list[str], section: "RetrieveSection", device: str, home: Path | None = None
) -> JobResult:
    """Search the index with every query and select the pairs among the hits; the unit is a pair.

    Writes the hits, the pairs with the queries that found them, the coverage by concept (a table and a page), and the
    selected keys. Pairs that no query found, or that are excluded, become rejected rows.

    Args:
        root: the folder of the index and of the parts.
        parts: of the pairs.
        section: of the config.
        device: of the encoder.
        home: the build directory that these pairs are added to. They compete with the hits there (`best_new_hits`), and
            the keys that were selected there stay selected.
    """
    opened = open_index_with_encoder(root / "index", device=device)
    queries = read_queries(Path(section.queries))
    vectors = None
    if section.query_vectors:
        vectors = read_query_vectors(Path(section.query_vectors), len(queries), opened.index.info.dim)
    lookup = _PairLookup(root, parts)
    exclusion = read_exclusions(section.exclude, images=section.exclude_images)
    exclusion_filter = ExclusionFilter(exclusion, lookup.of) if exclusion else None
    found = retrieve(
        opened.index, vectors if vectors is not None else opened.encoder, queries, _options(section), exclusion_filter
    )
    folder = root / "retrieval"
    found.write_hits(folder / "hits.parquet")
    keys, old_keys = set(found.pairs["key"]), set[str]()
    if home:
        before = pl.read_parquet(home / "retrieval" / "hits.parquet")
        keys = set(best_new_hits(pl.read_parquet(folder / "hits.parquet"), before, section)["key"])
        old_keys = set(pl.read_parquet(retrieved_keys_path(home))["key"])
    if not keys and not home:
        raise NothingKeptError(
            "no query found a pair",
            where=section.queries,
            fix="Lower `min_score` under retrieve, or change the queries.",
        )
    tables = {
        folder / "pairs.parquet": found.pairs,
        folder / "coverage.parquet": found.coverage,
        retrieved_keys_path(root): pl.DataFrame({"key": sorted({*keys, *old_keys})}, schema={"key": pl.String}),
    }
    for path, frame in tables.items():
        with replace_atomically(path) as temporary:
            frame.write_parquet(temporary)
    write_coverage_page(folder / "coverage.html", found, lookup.of, "What the pool covers")
    leaks = {row.place.removeprefix("pair "): row for row in make_exclusion_rejects(found.excluded, lookup.of)}
    reasons, rejected = _reject_unretrieved(root, parts, keys, leaks)
    summary = found.summary()
    facts = {
        name: summary[name] for name in ("queries", "hits", "k_counts", "excluded", "uncompared", "modes", "uncovered")
    }
    outputs = [*tables, folder / "hits.parquet", folder / "coverage.html", *rejected]
    counts = Counts("pair", len(keys) + sum(reasons.values()), len(keys), reasons)
    return JobResult(outputs, counts, facts)


def best_new_hits(hits: pl.DataFrame, before: pl.DataFrame, section: "RetrieveSection") -> pl.DataFrame:
    """Return the ``hits`` that score high enough to be among the hits ``before``; columns as `Retrieval.write_hits`."""
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
    """Return as ``bar`` the lowest score of each unit that has ``full`` places or more."""
    bars = places.group_by(unit).agg(pl.len().alias("n"), pl.col("score").min().alias("bar"))
    return bars.filter(pl.col("n") >= full).drop("n")


class _PairLookup:
    """Lookup of the pairs of a build by key."""

    def __init__(self, root: Path, parts: Sequence[str]) -> None:
        self._files = [pairs_path(root, part) for part in parts]

    def of(self, keys: Sequence[str]) -> pl.DataFrame:
        """Return the pairs of ``keys``."""
        wanted = pl.col("key").is_in(pl.Series(keys, dtype=pl.String).implode())
        return pl.scan_parquet(self._files).filter(wanted).collect()


def _encoder(section: "IndexSection", seed: int) -> EncoderOptions | None:
    if section.encoder == PRECOMPUTED and not section.model:
        return None
    name = "clip" if section.encoder == PRECOMPUTED else section.encoder
    return EncoderOptions(name, seed=seed, model=section.model, device=section.device)


def _options(section: "RetrieveSection") -> RetrieveOptions:
    return RetrieveOptions(**section.model_dump(exclude={"queries", "query_vectors", "exclude", "exclude_images"}))


def _reject_unretrieved(
    root: Path, parts: list[str], keys: set[str], leaks: dict[str, Any]
) -> tuple[dict[str, int], list[Path]]:
    """Write the rejected rows of each part; return counts by reason and the files."""
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
