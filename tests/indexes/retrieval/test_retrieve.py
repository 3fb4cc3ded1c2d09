"""Retrieval: hits per query, ranking of pairs, and coverage."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.records import Pair
from pairwright.datasets.rng import make_numpy_rng
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import IndexWithEncoder, open_index_with_encoder
from pairwright.indexes.encoders.lexical import LexicalEncoder
from pairwright.indexes.encoders.protocols import TextEncoder, Vectors
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.search import Index, open_index
from pairwright.indexes.retrieval import batched_search, results
from pairwright.indexes.retrieval import retrieve as retrieval
from pairwright.indexes.retrieval.exclusion import Exclusion, ExclusionFilter
from pairwright.indexes.retrieval.queries import Query, queries_from_classes, queries_from_lines
from pairwright.indexes.retrieval.results import KUnit, ModeChoice, Retrieval, RetrieveOptions
from pairwright.indexes.retrieval.retrieve import retrieve
from tests.example_counts import examples
from tests.indexes.corpus import ANIMALS, Given, batches, captions, keys, mixture, numbered, pairs, unit

POOL = pairs()
CAPTIONS = {pair.key: pair.caption for pair in POOL}
MANY, DIM = 120, 16


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> IndexWithEncoder:
    directory = tmp_path_factory.mktemp("index")
    build_index_from_pairs(lambda: batches(POOL), directory, options=IndexOptions(flat_below=50))
    return open_index_with_encoder(directory)


@pytest.fixture(scope="module")
def rows() -> Given:
    """Captions and images of the same pairs; nothing ties the two, and images lie far from every query."""
    rng = make_numpy_rng("retrieval")
    text = unit(rng.normal(size=(MANY, DIM)))
    image = unit(rng.normal(size=(MANY, DIM)) - np.eye(1, DIM) * 6)
    return Given(text, image)


@pytest.fixture(scope="module")
def twofold(tmp_path_factory: pytest.TempPathFactory, rows: Given) -> Index:
    directory = tmp_path_factory.mktemp("twofold")
    build_index_from_pairs(lambda: [numbered(MANY)], directory, vectors=rows, modalities=("text", "image"), shards=2)
    return open_index(directory)


def asked(count: int) -> tuple[list[Query], Vectors]:
    """Queries of concepts of three each, and their vectors."""
    vectors = unit(make_numpy_rng("asked").normal(size=(count, DIM)) + np.eye(1, DIM) * 2)
    return [Query(f"query {n}", f"concept {n // 3}", f"concept {n // 3}", "a {}") for n in range(count)], vectors


@dataclass(frozen=True)
class _Fixed:
    """An encoder under another name, which reads queries whole, as models do."""

    encoder: TextEncoder
    name: str = "model"

    def __getattr__(self, name: str) -> Any:
        """Pass on to the encoder."""
        return getattr(self.encoder, name)


def stored(asked_for: Sequence[str]) -> pl.DataFrame:
    empty = {"source_id": "", "image": "", "caption": "x", "captions": [[]], "meta": "{}"}
    schema = {"captions": pl.List(pl.String)}
    one = pl.DataFrame(
        {name: value if name == "captions" else [value] for name, value in empty.items()}, schema_overrides=schema
    )
    return pl.DataFrame({"key": asked_for}, schema={"key": pl.String}).join(one, how="cross")


def without(excluded: set[int]) -> ExclusionFilter:
    return ExclusionFilter(Exclusion({"key": frozenset(f"{number:032x}" for number in excluded)}), stored)


def test_a_caption_finds_itself_first(opened: IndexWithEncoder) -> None:
    found = retrieve(opened.index, opened.encoder, queries_from_lines(captions()), RetrieveOptions(3))
    first = found.hits.filter(found.hits["rank"] == 1)
    assert [CAPTIONS[key] for key in first["key"]] == first["text"].to_list() == captions()
    assert first["score"].min() == pytest.approx(1, abs=1e-5)


def test_a_class_finds_the_captions_that_name_it(opened: IndexWithEncoder) -> None:
    """24 captions hold each animal."""
    queries = queries_from_classes({"classes": ANIMALS, "templates": ["{}", "a photo of a {}"]})
    found = retrieve(opened.index, opened.encoder, queries, RetrieveOptions(10))
    assert found.hits.height == len(ANIMALS) * 2 * 10
    for concept, key in found.hits.select("concept", "key").iter_rows():
        assert str(concept) in CAPTIONS[key].split()
    assert found.uncovered == []


def expected(
    given: Given, vectors: Vectors, queries: list[Query], options: RetrieveOptions, excluded: set[int]
) -> list[tuple[int, str, int, int]]:
    """Hits (query, mode, rank, pair), found the slow way."""
    hits: list[tuple[int, str, int, int, float]] = []
    for mode in options.modes:
        pool = given.image if mode == "t2i" and given.image is not None else given.text
        for query, scores in enumerate(vectors @ pool.T):
            order = [int(pair) for pair in np.argsort(-scores) if pair not in excluded][: options.k]
            hits += [
                (query, mode, rank, pair, float(scores[pair]))
                for rank, pair in enumerate(order, 1)
                if scores[pair] >= (options.of("min_score", mode) or -1)
            ]
    kept: set[tuple[str, str, int]] = set()
    for concept in {query.concept for query in queries}:
        places: dict[int, dict[str, int]] = defaultdict(dict)
        for mode in options.modes:
            best: dict[int, float] = defaultdict(lambda: -1.0)
            for query, of, _, pair, score in hits:
                if of == mode and queries[query].concept == concept:
                    best[pair] = max(best[pair], score)
            ordered = sorted(best, key=lambda pair: -best[pair])
            for place, pair in enumerate(ordered[: options.k if options.per == "concept" else None], 1):
                places[pair][mode] = place
        dealt = sorted(places, key=lambda p: (min(places[p].values()), -sum(1 / n for n in places[p].values()), p))
        kept |= {(concept, mode, pair) for pair in dealt[: options.cap] for mode in places[pair]}
    modes = ["t2t", "t2i"]
    left = [hit[:4] for hit in hits if (queries[hit[0]].concept, hit[1], hit[3]) in kept]
    return sorted(left, key=lambda hit: (hit[0], modes.index(hit[1]), hit[2]))


@settings(max_examples=examples(25))
@given(
    st.sampled_from(["t2t", "t2i", "both"]),
    st.sampled_from(["query", "concept"]),
    st.integers(1, 30),
    st.none() | st.integers(1, 20),
    st.sampled_from([-1.0, -0.4, 0.1]),
    st.sets(st.integers(0, MANY - 1), max_size=100),
)
def test_hits_are_those_of_a_slow_search(  # noqa: PLR0917 - fixtures and drawn values
    twofold: Index,
    rows: Given,
    mode: ModeChoice,
    per: KUnit,
    k: int,
    cap: int | None,
    low: float,
    excluded: set[int],
) -> None:
    """In any mode, with K per query or concept, a cap, a score floor and excluded pairs."""
    queries, vectors = asked(7)
    options = RetrieveOptions(k, mode, per, cap, {"t2t": low, "t2i": low - 0.3})
    found = retrieve(twofold, vectors, queries, options, without(excluded) if excluded else None)
    got = [(q, m, r, int(key, 16)) for q, m, r, key in found.hits.select("query", "mode", "rank", "key").iter_rows()]
    assert got == expected(rows, vectors, queries, options, excluded)
    check_pairs(found)
    if cap is not None:
        assert found.hits.group_by("concept").agg(pl.col("key").n_unique())["key"].max() <= cap  # type: ignore[operator]
    met = {int(key, 16) for key in found.excluded["key"]}
    assert met <= excluded


def check_pairs(found: Retrieval) -> None:
    """A pair is one row that holds all its hits, in order of mode and query."""
    assert found.pairs["key"].n_unique() == found.pairs.height == found.hits["key"].n_unique()
    order = {"t2t": 0, "t2i": 1}
    hits = defaultdict(list)
    for row in found.hits.iter_rows(named=True):
        hits[row["key"]].append(row)
    for pair in found.pairs.iter_rows(named=True):
        mine = sorted(hits[pair["key"]], key=lambda row: (order[row["mode"]], row["query"]))
        for lists, name in (
            ("queries", "query"),
            ("concepts", "concept"),
            ("templates", "template"),
            ("modes", "mode"),
            ("ranks", "rank"),
            ("caption_indexes", "caption_index"),
            ("scores", "score"),
        ):
            assert pair[lists] == [row[name] for row in mine]
        for mode in order:
            assert pair[f"score_{mode}"] == max((row["score"] for row in mine if row["mode"] == mode), default=None)
        assert pair["rank"] == min(pair["ranks"])


def test_lists_of_both_modes_alternate_regardless_of_scores(twofold: Index) -> None:
    """Every image scores below every caption here; still each mode has its best among the first two."""
    queries, vectors = asked(1)
    found = retrieve(twofold, vectors, queries, RetrieveOptions(10, "both", cap=6))
    assert found.hits.filter(mode="t2i")["score"].max() < found.hits.filter(mode="t2t")["score"].min()  # type: ignore[operator]
    assert found.hits.group_by("mode").len()["len"].min() >= 3  # type: ignore[operator]
    assert {modes[0] for modes in found.pairs["modes"].head(2)} == {"t2t", "t2i"}
    assert found.pairs["place"].to_list() == [1, 1, 2, 2, 3, 3]


def test_dropped_hits_are_counted(twofold: Index) -> None:
    queries, vectors = asked(6)
    whole = retrieve(twofold, vectors, queries, RetrieveOptions(20, per="query"))
    capped = retrieve(twofold, vectors, queries, RetrieveOptions(20, cap=5))
    assert capped.pairs["key"].is_in(whole.pairs["key"].implode()).all()
    for concept in ("concept 0", "concept 1"):
        before, after = (one.coverage.filter(concept=concept).row(0, named=True) for one in (whole, capped))
        assert (after["pairs"], after["cut"]) == (5, before["pairs"] - 5)
    floored = retrieve(twofold, vectors, queries, RetrieveOptions(20, min_score=0.5))
    assert floored.hits.height + floored.searches["t2t"].below == whole.hits.height == 120
    barred = {int(key, 16) for key in whole.hits["key"].head(3)}
    guarded = retrieve(twofold, vectors, queries, RetrieveOptions(20), without(barred))
    assert guarded.excluded.rows() == [(f"{number:032x}", "key", "") for number in sorted(barred)]
    assert guarded.coverage["excluded"].min() >= 0 < guarded.coverage["excluded"].max()  # type: ignore[operator]
    assert guarded.hits.height == whole.hits.height
    assert guarded.summary()["excluded"] == {"key": 3}


def test_past_the_deepest_search_a_query_gets_fewer_and_is_counted(
    twofold: Index, rows: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batched_search, "MIN_DEPTH_LIMIT", 8)
    monkeypatch.setattr(batched_search, "MAX_DEPTH_FACTOR", 2)
    queries, vectors = asked(1)
    best = [int(pair) for pair in np.argsort(-(vectors @ rows.text.T)[0])]
    found = retrieve(twofold, vectors, queries, RetrieveOptions(5), without(set(best[:7])))
    assert [int(key, 16) for key in found.hits["key"]] == best[7:10]
    assert found.searches["t2t"].short == 1


def test_a_pool_that_is_excluded_as_a_whole_gives_nothing(twofold: Index) -> None:
    queries, vectors = asked(3)
    found = retrieve(twofold, vectors, queries, RetrieveOptions(5, "both"), without(set(range(MANY))))
    assert (found.hits.height, found.pairs.height) == (0, 0)
    assert found.uncovered == ["concept 0"]
    assert found.coverage["excluded"].to_list() == [MANY, MANY]


def test_hits_are_produced_in_pieces_and_written_completely(
    opened: IndexWithEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = retrieve(opened.index, opened.encoder, queries_from_lines(captions()), RetrieveOptions(4))
    pieces = list(found.hit_batches(100))
    assert [piece.height for piece in pieces] == [100] * 7 + [68]
    assert pl.concat(pieces).equals(found.hits)
    monkeypatch.setattr(results, "_HITS_PER_BATCH", 100)
    found.write_hits(tmp_path / "hits.parquet")
    assert pl.read_parquet(tmp_path / "hits.parquet").equals(found.hits)


def test_a_concept_missing_from_the_pool_is_uncovered_with_any_template(opened: IndexWithEncoder) -> None:
    """The template's words are in every caption; the concept's are in none."""
    queries = queries_from_classes(
        {"classes": ["lymph node tissue", "zebra"], "templates": ["a {} sleeping on the beach"]}
    )
    found = retrieve(opened.index, opened.encoder, queries, RetrieveOptions(5))
    assert found.uncovered == ["lymph node tissue"]
    assert found.coverage["concept"].to_list() == ["lymph node tissue", "zebra"]
    assert found.coverage["near"].to_list() == [0, 5]
    assert found.coverage["floor"].to_list() == pytest.approx([0.45, 0.3])


PHOTOS = [f"a photo of item {n}" for n in range(30)]
TEMPLATES = ["a photo of a {}.", "a blurry photo of the {}.", "{} on the beach"]


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> IndexWithEncoder:
    """Captions of animals, and as many that hold the words of a template and no animal."""
    directory = tmp_path_factory.mktemp("album")
    build_index_from_pairs(lambda: batches(pairs([*captions(), *PHOTOS])), directory)
    return open_index_with_encoder(directory)


def test_the_words_of_a_template_do_not_decide_a_lexical_search(album: IndexWithEncoder) -> None:
    """Whatever the template, the same pairs come as for the bare name."""
    bare = retrieve(album.index, album.encoder, queries_from_lines(["zebra"]), RetrieveOptions(20)).hits
    queries = queries_from_classes({"classes": ["zebra"], "templates": TEMPLATES})
    found = retrieve(album.index, album.encoder, queries, RetrieveOptions(20)).hits
    for number, text in enumerate(["a photo of a zebra.", "a blurry photo of the zebra.", "zebra on the beach"]):
        mine = found.filter(query=number)
        assert mine["text"][0] == text
        assert mine.select("key", "score").equals(bare.select("key", "score"))


def test_words_that_all_lines_share_do_not_decide_a_lexical_search(album: IndexWithEncoder) -> None:
    queries = queries_from_lines(f"a photo of a {animal}" for animal in ANIMALS)
    found = retrieve(album.index, album.encoder, queries, RetrieveOptions(15)).hits
    known = {pair.key: pair.caption for pair in pairs([*captions(), *PHOTOS])}
    for animal, mine in zip(ANIMALS, found.partition_by("query", maintain_order=True), strict=True):
        assert all(animal in known[key].split() for key in mine["key"])


def test_words_of_all_lines_keep_some_weight(tmp_path: Path) -> None:
    """Lines of red, blue and green cars are about cars."""
    colours, things = ["red", "blue", "green"], ["car", "hat", "door", "boat"]
    pool = pairs([f"a {colour} {thing} in the sun" for colour in colours for thing in things])
    build_index_from_pairs(lambda: batches(pool), tmp_path)
    folder = open_index_with_encoder(tmp_path)
    found = retrieve(
        folder.index, folder.encoder, queries_from_lines([f"{c} car" for c in colours]), RetrieveOptions(1)
    )
    known = {pair.key: pair.caption for pair in pool}
    assert [known[key] for key in found.hits["key"]] == [f"a {colour} car in the sun" for colour in colours]


def test_models_read_a_template_as_it_is(album: IndexWithEncoder) -> None:
    queries = queries_from_classes({"classes": ["zebra"], "templates": TEMPLATES[:1]})
    found = retrieve(album.index, _Fixed(album.query_encoder), queries, RetrieveOptions(1)).hits
    rows = album.query_encoder.encode_texts(["a photo of a zebra.", "zebra"])
    assert found["score"][0] == pytest.approx(float(album.index.exact(rows, 1).scores[0]), abs=1e-6)
    assert found["score"][0] != pytest.approx(float(album.index.exact(rows, 1).scores[1]), abs=1e-3)


def test_coverage_judges_the_pairs_that_were_returned(opened: IndexWithEncoder) -> None:
    """The pool has zebras, but vectors of queries that find dogs return none; their scores are high all the same."""
    encoder = opened.query_encoder
    dogs = [text for text in captions() if "dog" in text][:4]
    queries = [Query(text, "zebra", "zebra", "{}") for text in dogs]
    stray = [replace(query, name=query.text) for query in queries]
    found = retrieve(opened.index, _Fixed(encoder), queries, RetrieveOptions(3))
    assert found.coverage["best"].min() > 0.9  # type: ignore[operator]  # polars types it as any scalar
    assert (found.uncovered, found.coverage["near"].to_list()) == (["zebra"], [0])
    assert retrieve(opened.index, _Fixed(encoder), stray, RetrieveOptions(3)).uncovered == []


def test_a_concept_of_which_most_returned_pairs_are_junk_is_uncovered(tmp_path: Path) -> None:
    """One caption of a zebra among 60 does not cover it; five do, however many others come with them."""
    others = [f"{n} apples on shelf {n}" for n in range(60)]
    for zebras, uncovered in ((1, ["zebra"]), (4, ["zebra"]), (5, [])):
        pool = pairs([*others, *(f"a zebra near tree {n}" for n in range(zebras))])
        build_index_from_pairs(lambda: batches(pool), tmp_path)  # noqa: B023 - called immediately
        folder = open_index_with_encoder(tmp_path)
        found = retrieve(folder.index, folder.encoder, queries_from_lines(["zebra"]), RetrieveOptions(40))
        assert (found.uncovered, found.coverage["near"].to_list()) == (uncovered, [zebras])
    assert retrieve(folder.index, folder.encoder, queries_from_lines(["zebra"]), RetrieveOptions(2)).uncovered == []


def test_a_concept_that_only_excluded_pairs_show_is_uncovered(opened: IndexWithEncoder) -> None:
    """What may not be trained on does not cover."""
    zebras = frozenset(pair.key for pair in POOL if "zebra" in pair.caption)
    guard = ExclusionFilter(Exclusion({"key": zebras}), stored)
    queries = queries_from_classes({"classes": ["zebra", "dog"], "templates": ["a {} running"]})
    found = retrieve(opened.index, opened.encoder, queries, RetrieveOptions(5), guard)
    assert found.uncovered == ["zebra"]
    assert found.hits.height == 10
    assert not set(found.hits["key"]) & zebras


def test_a_concept_for_which_nothing_is_returned_is_uncovered(opened: IndexWithEncoder) -> None:
    found = retrieve(opened.index, opened.encoder, queries_from_lines(["zebra"]), RetrieveOptions(5, min_score=0.99))
    assert (found.hits.height, found.uncovered) == (0, ["zebra"])


def test_an_unmeasured_floor_comes_from_the_sample_queries(tmp_path: Path) -> None:
    """A query where vectors are dense is covered; one that points away from all of them is not."""
    middle = mixture(300, 16, 5)
    build_index_from_pairs(lambda: [numbered(300)], tmp_path, vectors=Given(middle))
    vectors = unit(np.stack([middle[7] + 0.01, -middle.mean(axis=0)]).astype(np.float64))
    found = retrieve(open_index(tmp_path), vectors, queries_from_lines(["near", "far"]), RetrieveOptions(5))
    assert found.uncovered == ["far"]
    assert 0.3 < found.searches["t2t"].floor.score < 0.999
    assert "relative to the pool" in found.searches["t2t"].floor.rule
    assert found.name_source == "mean of its queries"


def test_image_samples_give_no_floor_for_texts(tmp_path: Path) -> None:
    """An index of image vectors alone has no texts to judge by, and says so."""
    given = Given(np.full((80, 16), np.nan, np.float32), mixture(80, 16, 5))
    build_index_from_pairs(lambda: [numbered(80)], tmp_path, vectors=given, modalities=("image",))
    queries, vectors = asked(3)
    found = retrieve(open_index(tmp_path), vectors, queries, RetrieveOptions(5, "t2i"))
    assert found.uncovered == []
    assert found.searches["t2i"].floor.rule.startswith("none")
    assert retrieve(open_index(tmp_path), vectors, queries, RetrieveOptions(5, "t2i", floor=0.99)).uncovered


def test_effort_is_tuned_on_the_queries_or_given_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_index_from_pairs(
        lambda: [numbered(3000)],
        tmp_path,
        vectors=Given(unit(make_numpy_rng("sphere").normal(size=(3000, 24)))),
        options=IndexOptions(flat_below=100, m=4, ef_construction=8),
    )
    index = open_index(tmp_path)
    queries, vectors = (
        queries_from_lines(f"q {n}" for n in range(300)),
        unit(make_numpy_rng("q").normal(size=(300, 24))),
    )
    monkeypatch.setattr(retrieval, "_COMPARISONS_PER_EFFORT", 0)
    monkeypatch.setattr(retrieval, "_MAX_EXACT_COMPARISONS", 0)
    tuned = retrieve(index, vectors, queries, RetrieveOptions(10)).searches["t2t"]
    assert tuned.recall is not None
    assert tuned.recall >= 0.95
    assert tuned.sample == 200
    little = retrieve(index, vectors, queries, RetrieveOptions(10, ef_search=16)).searches["t2t"]
    assert little.recall is not None
    assert (little.ef_search, little.exact) == (16, False)
    assert little.recall < tuned.recall
    assert little.ef_search < tuned.ef_search
    own = retrieve(index, vectors, queries, RetrieveOptions(10, recall=None)).searches["t2t"]
    assert (own.ef_search, own.exact, own.recall, own.sample) == (0, False, None, 0)


def test_where_effort_costs_more_than_comparing_with_all_all_are_compared(tmp_path: Path) -> None:
    given = Given(mixture(1500, 24))
    build_index_from_pairs(lambda: [numbered(1500)], tmp_path, vectors=given, options=IndexOptions(flat_below=100))
    index = open_index(tmp_path)
    vectors = mixture(50, 24, 40, "asked")
    found = retrieve(index, vectors, queries_from_lines(f"q {n}" for n in range(50)), RetrieveOptions(10))
    assert (found.searches["t2t"].exact, found.searches["t2t"].recall) == (True, 1.0)
    true = np.sort(vectors @ given.text.T, axis=1)[:, -10:]
    np.testing.assert_allclose(found.hits["score"].to_numpy().reshape(50, 10), true[:, ::-1], atol=1e-5)


def test_exact_search_gives_the_same_bytes_with_any_threads(tmp_path: Path) -> None:
    """A product of matrices does not."""
    import faiss

    rows = mixture(1100, 512)
    build_index_from_pairs(
        lambda: [numbered(1100)], tmp_path, vectors=Given(rows), options=IndexOptions(flat_below=5000)
    )
    index, vectors, before = open_index(tmp_path), mixture(900, 512, 40, "asked"), faiss.omp_get_max_threads()
    queries, found = queries_from_lines(f"q {n}" for n in range(900)), []
    try:
        for threads in (1, 2, 3):
            faiss.omp_set_num_threads(threads)
            found.append((index.exact(vectors, 20).scores, retrieve(index, vectors, queries, RetrieveOptions(20)).hits))
    finally:
        faiss.omp_set_num_threads(before)
    assert all(hits.equals(found[0][1]) for _, hits in found)
    assert found[0][1]["score"].to_numpy() == pytest.approx(found[0][0], abs=1e-6)


def test_the_summary_has_the_unit_of_k_and_the_counts(opened: IndexWithEncoder) -> None:
    queries = queries_from_classes({"classes": [["dog", "cat"], "zebra"], "templates": ["a {}", "the {}"]})
    summary = retrieve(opened.index, opened.encoder, queries, RetrieveOptions(4)).summary()
    assert (summary["queries"], summary["hits"], summary["uncovered"]) == (6, 24, [])
    assert (summary["k"], summary["k_counts"]) == (4, "pairs a query")
    assert 12 <= summary["unique_pairs"] <= 24
    assert summary["modes"]["t2t"]["recall"] >= 0.95
    assert summary["seconds"] > 0


def test_invalid_retrievals_are_refused(opened: IndexWithEncoder, twofold: Index) -> None:
    other = LexicalEncoder.fit(["something else"])
    with pytest.raises(StorageError, match="another encoder"):
        retrieve(opened.index, other, queries_from_lines(["a dog"]))
    with pytest.raises(UsageError, match="no queries"):
        retrieve(opened.index, opened.encoder, [])
    with pytest.raises(UsageError, match="no image vectors"):
        retrieve(opened.index, opened.encoder, queries_from_lines(["a dog"]), RetrieveOptions(mode="t2i"))
    with pytest.raises(UsageError, match="vectors of the queries"):
        retrieve(twofold, None, queries_from_lines(["a dog"]))
    with pytest.raises(UsageError, match=r"\(2, 16\): expected \(1, 16\)"):
        retrieve(twofold, np.ones((2, 16), np.float32), queries_from_lines(["a dog"]))
    guard = ExclusionFilter(Exclusion({"key": frozenset({"0" * 32})}), lambda _: stored([]))
    with pytest.raises(StorageError, match="not stored in the index"):
        retrieve(opened.index, opened.encoder, queries_from_lines(["a dog"]), guard=guard)


def test_invalid_options_are_refused() -> None:
    with pytest.raises(UsageError, match="k 0"):
        RetrieveOptions(k=0)
    with pytest.raises(UsageError, match="cap 0"):
        RetrieveOptions(cap=0)
    with pytest.raises(UsageError, match=r"recall 1\.5"):
        RetrieveOptions(recall=1.5)
    with pytest.raises(UsageError, match="ef_search -1"):
        RetrieveOptions(ef_search=-1)
    with pytest.raises(UsageError, match="not comparable"):
        RetrieveOptions(mode="both", min_score=0.3)
    with pytest.raises(UsageError, match="not comparable"):
        RetrieveOptions(mode="both", floor=0.3)


def test_real_captions_are_found_by_another_caption_of_their_image(real_data: Path, tmp_path: Path) -> None:
    """Of 1,000 images, at least half are among the ten best; the chance level is one in a hundred."""
    import json

    with (real_data / "coco_captions" / "captions.jsonl").open(encoding="utf-8") as lines:
        read = [json.loads(next(lines)) for _ in range(1000)]
    pool = [Pair(key, row["captions"][0]) for key, row in zip(keys(1000), read, strict=True)]
    build_index_from_pairs(lambda: batches(pool, 300), tmp_path)
    folder = open_index_with_encoder(tmp_path)
    queries = queries_from_lines([row["captions"][1] for row in read])
    found = retrieve(folder.index, folder.encoder, queries, RetrieveOptions(10))
    right = found.hits.filter(pl.col("key") == pl.Series(keys(1000)).gather(found.hits["query"]))
    assert right.height / 1000 >= 0.5
