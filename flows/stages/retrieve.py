"""Stage ``retrieve``: the pairs that queries find in the index.

More than `QUERIES_PER_JOB` queries are searched in batches: one job tunes the search, others write the hits of a batch into
``retrieval/found-BATCH.parquet``. One job ranks all hits (few queries are searched there, with all cores of its node) and
writes ``chosen/PART.parquet``: the pairs of a part that later stages read. Then a job per part writes the rejected rows of
the others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import NothingKeptError
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.rejects import make_reject
from pairwright.flows.state.inputs import named_state
from pairwright.flows.state.layout import pairs_path, part_name, rejected_path, retrieved_keys_path, retrieved_part_path
from pairwright.flows.state.receipts import Counts, JobResult, Receipt, contents_of, total_counts
from pairwright.indexes.building.open import IndexWithEncoder, open_index_with_encoder
from pairwright.indexes.encoders.protocols import TextEncoder, Vectors
from pairwright.indexes.retrieval.batched_search import Mode, SearchEffort
from pairwright.indexes.retrieval.coverage_page import write_coverage_page
from pairwright.indexes.retrieval.exclusion import ExclusionFilter, make_exclusion_rejects, read_exclusions
from pairwright.indexes.retrieval.queries import read_queries, read_query_vectors
from pairwright.indexes.retrieval.results import RetrieveOptions
from pairwright.indexes.retrieval.retrieve import TunedMode, retrieve, search_range, tune_search

if TYPE_CHECKING:
    from pairwright.flows.config.sections import RetrieveSection
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

_FACTS = ("queries", "hits", "k_counts", "excluded", "uncompared", "modes", "uncovered")
QUERIES_PER_JOB = 4096
_CHOSEN = ["key", *REJECTS.schema.names()]


def retrieve_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``retrieve``: the search, the rejected rows of each part, and the sum of the counts."""
    section, index = run.config.retrieve, run.config.index_section
    assert section is not None
    assert index is not None
    args = (run.parts, section, index.device, *([run.base.root] if run.base else []))
    named = [section.queries, *filter(None, [section.query_vectors]), *section.exclude, *section.exclude_images]
    state = f"{named_state(named)} {run.base_state}"
    tuned: Mapping[str, Any] = {}
    found: Sequence[Receipt] = ()
    batches = range(0, len(read_queries(Path(section.queries))), QUERIES_PER_JOB)
    if len(batches) > 1:
        own = (section, index.device)
        (planned,) = yield [run.job(plan_search, *own, part="plan", state=state, multi_core=True)]
        tuned, names = dict(planned.facts), [part_name(number) for number in range(len(batches))]
        found = yield [
            run.job(search_batch, name, start, *own, tuned, part=f"found-{name}", state=state, after=[planned])
            for name, start in zip(names, batches, strict=True)
        ]
        args = (*args[:3], args[3] if run.base else None, tuned, tuple(names))
    (searched,) = yield [run.job(search_index, *args, part="search", state=state, multi_core=True, after=found)]
    chosen = contents_of([searched])
    rejected = yield [
        run.job(reject_unretrieved, part, part=part, state=chosen[f"chosen/{part}.parquet"]) for part in run.parts
    ]
    return [run.total_job(total_counts(rejected), searched.facts, after=(searched, *rejected))]


def plan_search(root: Path, section: "RetrieveSection", device: str) -> JobResult:
    """Tune the search; the facts are the settings of each mode."""
    opened, queries = open_index_with_encoder(root / "index", device=device), read_queries(Path(section.queries))
    tuned = tune_search(opened.index, _encoding(opened, section, len(queries)), queries, _options(section))
    facts: dict[str, Any] = {
        mode: [one.effort.ef_search, one.effort.exact, one.effort.min_score, one.recall, one.sample]
        for mode, one in tuned.items()
    }
    return JobResult([], Counts("pair"), facts)


def search_batch(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path, name: str, start: int, section: "RetrieveSection", device: str, tuned: Mapping[str, Sequence[Any]]
) -> JobResult:
    """Search the index with a batch of the queries and write their hits.

    Args:
        root: the folder of the index.
        name: of the batch.
        start: number of its first query vector.
        section: of the config.
        device: of the encoder.
        tuned: facts of `plan_search`.
    """
    opened, queries = open_index_with_encoder(root / "index", device=device), read_queries(Path(section.queries))
    encoding, asks = _encoding(opened, section, len(queries)), range(start, start + QUERIES_PER_JOB)
    found = search_range(opened.index, encoding, queries, _options(section), _tuned_modes(tuned), asks)
    path = _found_path(root, name)
    frames = [frame.with_columns(mode=pl.lit(mode)) for mode, frame in found.items()]
    with replace_atomically(path) as temporary:
        (pl.concat(frames) if frames else pl.DataFrame()).write_parquet(temporary)
    return JobResult([path], Counts("pair"))


def _found_path(root: Path, name: str) -> Path:
    return root / "retrieval" / f"found-{name}.parquet"


def _encoding(opened: IndexWithEncoder, section: "RetrieveSection", queries: int) -> TextEncoder | Vectors | None:
    """Return the vectors of the queries if the config names them, else the encoder of the index."""
    if section.query_vectors:
        return read_query_vectors(Path(section.query_vectors), queries, opened.index.info.dim)
    return opened.encoder


def _tuned_modes(facts: Mapping[str, Sequence[Any]]) -> dict[Mode, TunedMode]:
    return {
        cast("Mode", mode): TunedMode(SearchEffort(ef_search, exact, min_score), recall, sample)
        for mode, (ef_search, exact, min_score, recall, sample) in facts.items()
    }


def _read_found(root: Path, names: Sequence[str], modes: Iterable[Mode]) -> dict[Mode, pl.DataFrame]:
    """Return the hits of all batches by mode."""
    frames = [frame for name in names if (frame := pl.read_parquet(_found_path(root, name))).width]
    return {mode: pl.concat([frame.filter(pl.col("mode") == mode).drop("mode") for frame in frames]) for mode in modes}


def search_index(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path,
    parts: list[str],
    section: "RetrieveSection",
    device: str,
    home: Path | None = None,
    tuned: Mapping[str, Sequence[Any]] | None = None,
    batches: Sequence[str] = (),
) -> JobResult:
    """Search the index with every query and select the pairs among the hits.

    Writes the hits, the pairs with the queries that found them, the coverage by concept (a table and a page), the
    selected keys, and for each part the selected pairs and, with the fields of a rejected row, the excluded ones.

    Args:
        root: the folder of the index and of the parts.
        parts: of the pairs.
        section: of the config.
        device: of the encoder.
        home: the build directory that these pairs are added to. They compete with the hits there (`best_new_hits`), and
            the keys that were selected there stay selected.
        tuned: facts of `plan_search`, if the queries were searched in batches.
        batches: names of the batches; none: the index is searched here.

    Raises:
        NothingKeptError: when no query found a pair.
    """
    opened = open_index_with_encoder(root / "index", device=device)
    queries = read_queries(Path(section.queries))
    lookup = _PairLookup(root, parts)
    exclusion = read_exclusions(section.exclude, images=section.exclude_images)
    exclusion_filter = ExclusionFilter(exclusion, lookup.of) if exclusion else None
    modes = _tuned_modes(tuned or {})
    found = retrieve(
        *(opened.index, _encoding(opened, section, len(queries)), queries, _options(section), exclusion_filter),
        modes or None,
        _read_found(root, batches, modes) if batches else None,
    )
    folder = root / "retrieval"
    found.write_hits(folder / "hits.parquet")
    keys, old_keys = _selected_keys(folder / "hits.parquet", found.pairs["key"], section, home)
    tables = {
        folder / "pairs.parquet": found.pairs,
        folder / "coverage.parquet": found.coverage,
        retrieved_keys_path(root): pl.DataFrame({"key": pl.concat([keys, old_keys]).unique().sort()}),
    }
    for path, frame in tables.items():
        with replace_atomically(path) as temporary:
            frame.write_parquet(temporary)
    write_coverage_page(folder / "coverage.html", found, lookup.of, "What the pool covers")
    leaks = _leaks(found.excluded, lookup)
    written = [_write_chosen(root, part, keys, leaks) for part in parts]
    summary = found.summary()
    outputs = [*tables, folder / "hits.parquet", folder / "coverage.html", *written]
    return JobResult(outputs, Counts("pair"), {name: summary[name] for name in _FACTS})


def _selected_keys(
    hits: Path, found: pl.Series, section: "RetrieveSection", home: Path | None
) -> tuple[pl.Series, pl.Series]:
    """Return the keys of the pairs found that are selected, and those that were selected in ``home``."""
    if home:
        before = pl.read_parquet(home / "retrieval" / "hits.parquet")
        new = best_new_hits(pl.read_parquet(hits), before, section)["key"]
        return new, pl.read_parquet(retrieved_keys_path(home))["key"]
    if not len(found):
        raise NothingKeptError(
            "no query found a pair",
            where=section.queries,
            fix="Lower `min_score` under retrieve, or change the queries.",
        )
    return found, pl.Series([], dtype=pl.String)


def _leaks(excluded: pl.DataFrame, lookup: "_PairLookup") -> pl.DataFrame:
    """Return key and rejected row of each excluded pair that was found."""
    rows = list(make_exclusion_rejects(excluded, lookup.of))
    keys = pl.Series("key", [row.place.removeprefix("pair ") for row in rows], pl.String)
    return REJECTS.frame(rows).insert_column(0, keys)


def _write_chosen(root: Path, part: str, keys: pl.Series, leaks: pl.DataFrame) -> Path:
    """Write the selected and the excluded pairs of a part, in the order of its pairs; a selected one has no reason."""
    own = pl.read_parquet(pairs_path(root, part), columns=["key"])
    selected = keys.unique().to_frame("key").with_columns(pl.lit("").alias(name) for name in REJECTS.schema.names())
    marked = pl.concat([selected, leaks.select(_CHOSEN).join(selected, on="key", how="anti")])
    path = retrieved_part_path(root, part)
    with replace_atomically(path) as temporary:
        own.join(marked, on="key", how="inner", maintain_order="left").write_parquet(temporary)
    return path


def reject_unretrieved(root: Path, part: str) -> JobResult:
    """Write the rejected rows of a part: excluded pairs, and those that no query found; the unit is a pair."""
    chosen = pl.read_parquet(retrieved_part_path(root, part))
    kept = set(chosen.filter(pl.col("reason") == "")["key"])
    excluded = chosen.filter(pl.col("reason") != "")
    leaks = dict(zip(excluded["key"], REJECTS.records(excluded.select(REJECTS.schema.names())), strict=True))
    pairs = PAIRS.read_frame(pairs_path(root, part)).select("key", "caption").iter_rows()
    rows = [
        leaks.get(key) or make_reject(f"pair {key}", "not_retrieved", "no query found it", caption)
        for key, caption in pairs
        if key not in kept
    ]
    path = rejected_path(root, "retrieve", part)
    REJECTS.write(rows, path)
    reasons = dict(sorted(Counter(row.reason for row in rows).items()))
    return JobResult([path], Counts("pair", len(kept) + len(rows), len(kept), reasons))


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


def _options(section: "RetrieveSection") -> RetrieveOptions:
    return RetrieveOptions(**section.model_dump(exclude={"queries", "query_vectors", "exclude", "exclude_images"}))
