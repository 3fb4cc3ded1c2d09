"""Data of a coverage page: concepts by set, sample captions, and the search settings of a retrieval.

Concepts that are all named ``set/class`` are grouped by set; otherwise there is one group without a name. The page has at
most `MAX_ROWS` rows of uncovered concepts and as many of all concepts, distributed over the groups, worst covered first.

Samples of a concept and mode are the found captions of its best pairs, each caption once. `PAIRS_LOOKED_UP` pairs per
concept and mode are looked up, so a pool with many duplicates may give fewer than `MAX_SAMPLES` samples.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pairwright.indexes.retrieval.coverage import MIN_NEAR_PAIRS
from pairwright.indexes.retrieval.exclusion import count_by_field
from pairwright.indexes.retrieval.results import ModeReport, Retrieval, RetrieveOptions

MAX_ROWS = 5000
MAX_SAMPLES = 3
PAIRS_LOOKED_UP = 8

CaptionLookup = Callable[[Sequence[str]], pl.DataFrame | None]
"""Returns the pairs of keys as a frame with columns key, caption and captions; None if no pairs are stored."""

CaptionSample = tuple[float, str]

_MODE_DESCRIPTIONS = {"t2t": "Queries against captions", "t2i": "Queries against images"}


@dataclass(frozen=True, slots=True)
class ConceptRow:
    """A concept in one mode: the displayed columns of `Retrieval.coverage`.

    Attributes:
        label: name without its set.
        mode: t2t or t2i.
        hits: number of hits of its queries.
        pairs: number of distinct pairs.
        best: best score; None without hits.
        spread: p10, p50 and p90 of the scores; None without hits.
        name_score: best cosine of a pair with the bare name.
        near: number of pairs whose cosine with the name reaches the floor.
        floor: floor of the name.
        covered: whether this mode covers the concept.
        lost: whether no mode covers the concept.
        samples: score and caption of found pairs, best first.
    """

    label: str
    mode: str
    hits: int
    pairs: int
    best: float | None
    spread: tuple[float, float, float] | None
    name_score: float
    near: int
    floor: float
    covered: bool
    lost: bool
    samples: tuple[CaptionSample, ...]


@dataclass(frozen=True)
class ConceptGroup:
    """Concepts of a set.

    Attributes:
        name: name of the set; empty without sets.
        concepts: number of concepts.
        uncovered: number of concepts not covered in any mode.
        hits: number of hits.
        pairs: number of distinct pairs.
        lost: rows of uncovered concepts, worst first, possibly truncated.
        rows: rows of all concepts, worst covered first, possibly truncated.
        omitted: numbers of rows missing in ``lost`` and in ``rows``.
    """

    name: str
    concepts: int
    uncovered: int
    hits: int
    pairs: int
    lost: list[ConceptRow]
    rows: list[ConceptRow]
    omitted: tuple[int, int]


@dataclass(frozen=True)
class CoveragePageData:
    """Data of a coverage page.

    Attributes:
        name: heading.
        numbers: headline counts, each (label, count).
        facts: search settings, each (label, description).
        modes: searched modes.
        groups: groups of concepts, in order of their worst covered concept.
    """

    name: str
    numbers: list[tuple[str, int]]
    facts: list[tuple[str, str]]
    modes: tuple[str, ...]
    groups: list[ConceptGroup]


def make_coverage_page_data(found: Retrieval, lookup: CaptionLookup, name: str) -> CoveragePageData:
    """Return the page data of a retrieval.

    Args:
        found: a retrieval.
        lookup: lookup of captions, such as `IndexWithEncoder.pairs`.
        name: heading of the page.
    """
    table = _add_set_columns(found.coverage)
    lost = table["concept"].is_in(found.uncovered)
    table = table.with_columns(lost=lost)
    lost_rows, rows = _select_rows(table.filter(lost)), _select_rows(table)
    codes = table.select("concept", "set").unique("concept", maintain_order=True).with_row_index("code")
    hits = _hits_by_concept(found, codes)
    shown = codes.join(pl.concat([lost_rows, rows]), on="concept", how="semi")
    samples = _sample_captions(hits.join(shown, on="code", how="semi"), shown, found.keys, lookup)
    facts = _describe_search(found)
    if samples is None:
        facts.append(("captions", "The index does not store its pairs, so no captions are shown."))
    pairs = _pairs_by_set(hits, codes)
    sizes = table.group_by("set", maintain_order=True).agg(
        concepts=pl.col("concept").n_unique(),
        uncovered=pl.col("concept").filter("lost").n_unique(),
        hits=pl.col("hits").sum(),
        rows=pl.len(),
        lost_rows=pl.col("lost").sum(),
    )
    groups = []
    for size in sizes.iter_rows(named=True):
        of_lost, of_all = (_make_rows(frame, size["set"], samples or {}) for frame in (lost_rows, rows))
        omitted = size["lost_rows"] - len(of_lost), size["rows"] - len(of_all)
        counts = size["concepts"], size["uncovered"], size["hits"], pairs.get(size["set"], 0)
        groups.append(ConceptGroup(size["set"], *counts, of_lost, of_all, omitted))
    concepts, uncovered = sum(group.concepts for group in groups), len(found.uncovered)
    numbers = [
        ("concepts", concepts),
        ("not covered", uncovered),
        ("covered", concepts - uncovered),
        ("queries", found.queries.height),
        ("hits", found.hit_codes.height),
        ("distinct pairs", found.pairs.height),
    ]
    return CoveragePageData(name, numbers, facts, found.options.modes, groups)


def _add_set_columns(coverage: pl.DataFrame) -> pl.DataFrame:
    """Add the columns set and label."""
    name = pl.col("concept")
    if coverage["concept"].str.contains("/", literal=True).all():
        parts = name.str.splitn("/", 2)
        return coverage.with_columns(set=parts.struct.field("field_0"), label=parts.struct.field("field_1"))
    return coverage.with_columns(set=pl.lit(""), label=name)


def _select_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Return the first rows of each set: all, or an equal share for larger sets."""
    left, shares = MAX_ROWS, {}
    sizes = table.group_by("set").len().sort("len", "set").rows()
    for done, (name, size) in enumerate(sizes):
        shares[name] = min(size, max(1, left // (len(sizes) - done)))
        left -= shares[name]
    share = pl.col("set").replace_strict(shares, default=0, return_dtype=pl.Int64)
    return table.filter(pl.int_range(pl.len()).over("set") < share)


def _hits_by_concept(found: Retrieval, codes: pl.DataFrame) -> pl.DataFrame:
    """Return columns code (of the concept), mode, rank, pair, caption_index and score, one row per hit."""
    of_query = found.queries.select("concept").join(codes, on="concept", how="left", maintain_order="left")["code"]
    columns = "mode", "rank", "pair", "caption_index", "score"
    return found.hit_codes.select(columns).with_columns(of_query[found.hit_codes["query"].to_numpy()])


def _pairs_by_set(hits: pl.DataFrame, codes: pl.DataFrame) -> dict[str, int]:
    of_set = codes["set"].cast(pl.Categorical)[hits["code"].to_numpy()]
    counts = hits.select("pair").with_columns(of_set).group_by("set").agg(pl.col("pair").n_unique())
    return dict(counts.cast({"set": pl.String}).iter_rows())


def _sample_captions(
    hits: pl.DataFrame, codes: pl.DataFrame, keys: pl.Series, lookup: CaptionLookup
) -> dict[tuple[str, str], tuple[CaptionSample, ...]] | None:
    """Return the samples by concept and mode; None if no captions are stored."""
    on = ["code", "mode"]
    best = hits.filter(pl.col("rank") <= PAIRS_LOOKED_UP).sort("score", "caption_index", descending=[True, False])
    best = best.group_by(*on, "pair", maintain_order=True).agg(pl.col("score", "caption_index").first())
    best = best.sort("score", "pair", descending=[True, False]).group_by(on, maintain_order=True).head(PAIRS_LOOKED_UP)
    wanted = best["pair"].unique().sort()
    found = lookup(keys.gather(wanted).to_list())
    if found is None:
        return None
    texts = found.select("key", texts=pl.concat_list("caption", "captions"))
    captions = pl.DataFrame({"pair": wanted, "key": keys.gather(wanted)}).join(texts, on="key")
    sampled = best.join(captions, on="pair", maintain_order="left")
    sampled = sampled.with_columns(caption=pl.col("texts").list.get(pl.col("caption_index")))
    sampled = sampled.unique([*on, "caption"], keep="first", maintain_order=True)
    samples: dict[tuple[str, str], tuple[CaptionSample, ...]] = {}
    sampled = sampled.join(codes, on="code", maintain_order="left")
    for concept, mode, score, caption in sampled.select("concept", "mode", "score", "caption").iter_rows():
        so_far = samples.get((concept, mode), ())
        if len(so_far) < MAX_SAMPLES:
            samples[concept, mode] = (*so_far, (score, caption))
    return samples


def _make_rows(
    table: pl.DataFrame, name: str, samples: Mapping[tuple[str, str], tuple[CaptionSample, ...]]
) -> list[ConceptRow]:
    return [
        ConceptRow(
            label=row["label"],
            mode=row["mode"],
            hits=row["hits"],
            pairs=row["pairs"],
            best=row["best"],
            spread=(row["p10"], row["p50"], row["p90"]) if row["hits"] else None,
            name_score=row["name_score"],
            near=row["near"],
            floor=row["floor"],
            covered=row["covered"],
            lost=row["lost"],
            samples=samples.get((row["concept"], row["mode"]), ()),
        )
        for row in table.filter(pl.col("set") == name).iter_rows(named=True)
    ]


def _describe_search(found: Retrieval) -> list[tuple[str, str]]:
    """Return descriptions of the search settings and of dropped pairs."""
    options, cut = found.options, int(found.coverage["cut"].sum())
    facts = [("K", _describe_k(options))]
    if options.cap is not None:
        facts.append(("cap", f"At most {options.cap:,} distinct pairs per concept."))
    if cut:
        facts.append(("dropped", f"{cut:,} pairs of concepts, beyond K or the cap."))
    for mode, search in found.searches.items():
        facts.append(
            (
                mode,
                f"{_MODE_DESCRIPTIONS[mode]}. {_describe_effort(search, options)}{_describe_limits(mode, search, options)}",
            )
        )
        facts.append((f"{mode} floor", _describe_floor(search, found.name_source)))
    if found.excluded.height:
        reasons = ", ".join(f"{count:,} by {by}" for by, count in count_by_field(found.excluded).items())
        facts.append(("excluded", f"{found.excluded.height:,} pairs of the exclusion list: {reasons}."))
    if found.uncompared:
        facts.append(("not compared", f"{found.uncompared:,} pairs whose images are not local, by content."))
    return facts


def _describe_k(options: RetrieveOptions) -> str:
    each = ", in each mode" if len(options.modes) > 1 else ""
    if options.per == "concept":
        return f"{options.k:,} pairs per concept{each}: the best of all its queries."
    return (
        f"{options.k:,} pairs per query{each}: a concept with several queries has more hits, on fewer distinct pairs."
    )


def _describe_effort(search: ModeReport, options: RetrieveOptions) -> str:
    effort = f"Effort (ef_search) {search.ef_search:,}" if search.ef_search else "Default effort of the index"
    if search.recall is None:
        return f"{effort}; its recall was not measured."
    return (
        f"{effort}; recall@{options.k} {search.recall:.3f} against exact search, on {search.sample:,} of the queries."
    )


def _describe_limits(mode: str, search: ModeReport, options: RetrieveOptions) -> str:
    least = options.of("min_score", mode)  # type: ignore[arg-type]
    below = f" {search.below:,} hits below the minimum score, {least:g}, were dropped." if search.below else ""
    short = f" {search.short:,} queries got fewer than K hits: too many were excluded." if search.short else ""
    return below + short


def _describe_floor(search: ModeReport, name_source: str) -> str:
    reference = "the bare name of the concept" if name_source == "name" else f"the {name_source}"
    floor = search.floor
    phrase = f", {floor.phrase:.2g} for names of several words" if floor.phrase is not None else ""
    return (
        f"{floor.score:.2g}{phrase} ({floor.rule}). A pair is near if its cosine with {reference} reaches the floor; a concept is covered"
        f" if {MIN_NEAR_PAIRS} of its pairs are near, or half of fewer."
    )
