"""Coverage page: uncovered concepts first, complete and readable for one or thousands of concepts."""

from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.records import Pair
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import IndexWithEncoder, open_index_with_encoder
from pairwright.indexes.building.precomputed_vectors import PrecomputedVectors
from pairwright.indexes.retrieval import coverage_page_data
from pairwright.indexes.retrieval.coverage_page import MAX_CAPTION_LENGTH, write_coverage_page
from pairwright.indexes.retrieval.coverage_page_data import MAX_SAMPLES
from pairwright.indexes.retrieval.exclusion import ExclusionFilter, exclusion_from_pairs
from pairwright.indexes.retrieval.queries import Query, queries_from_classes, queries_from_lines
from pairwright.indexes.retrieval.results import Retrieval, RetrieveOptions
from pairwright.indexes.retrieval.retrieve import retrieve
from tests.indexes.corpus import ANIMALS, batches, captions, pairs
from tests.indexes.embedding_folder import write_part

STRANGE = '<script src="x">alert("1") & <u>bold'
LONG = "a walrus that " + "waits and " * 40
POOL = pairs([*captions(), f"a walrus {STRANGE}", LONG, *["a walrus on the ice"] * 4])
CAPTIONS = {pair.key: pair.caption for pair in POOL}


class Page(HTMLParser):
    """The words of a page, its tags, its tables' rows, and unclosed tags."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.size = path.stat().st_size
        self.words: list[str] = []
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.attributes: list[str] = []
        self.open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.text = " ".join(self.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag, and begin rows and cells."""
        self.tags.append(tag)
        self.attributes += [f"{name}={value}" for name, value in attrs]
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
        if tag not in {"meta", "rect", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes the last open tag."""
        if tag != "rect":
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Take words."""
        if self.open and self.open[-1] not in {"style", "title"} and data.strip():
            self.words.append(data.strip())
            if "td" in self.open:
                self.rows[-1][-1] += f"{data.strip()} "

    def part(self, first: str, last: str = "\0") -> str:
        """Return the text from one heading to before another."""
        return self.text.partition(first)[2].partition(last)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> IndexWithEncoder:
    directory = tmp_path_factory.mktemp("index")
    build_index_from_pairs(lambda: batches(POOL), directory)
    return open_index_with_encoder(directory)


def asked(
    folder: IndexWithEncoder, queries: Sequence[Query], options: RetrieveOptions, guard: ExclusionFilter | None = None
) -> Retrieval:
    return retrieve(folder.index, folder.encoder, queries, options, guard)


def paged(folder: IndexWithEncoder, found: Retrieval, path: Path, name: str = "Coverage") -> Page:
    write_coverage_page(path / "page.html", found, folder.pairs, name)
    page = Page(path / "page.html")
    assert page.open == []
    return page


def test_uncovered_concepts_come_first_with_the_captions_found_instead(
    folder: IndexWithEncoder, tmp_path: Path
) -> None:
    content = {"classes": [*ANIMALS, "lymph node tissue"], "templates": ["a {}", "a {} in a kitchen"]}
    found = asked(folder, queries_from_classes(content), RetrieveOptions(k=5))
    assert found.uncovered == ["lymph node tissue"]
    page = paged(folder, found, tmp_path)
    missing = page.part("Not covered", "All concepts")
    assert f"1 of {len(ANIMALS) + 1} not covered" in missing
    (row,) = [row for row in page.rows if row and row[0] == "lymph node tissue "]
    best = found.hits.filter(concept="lymph node tissue").sort("score", descending=True)
    assert CAPTIONS[best["key"][0]] in row[-1]
    assert row[2:5] == [
        "0 ",
        f"{found.pairs.filter(pl.col('concepts').list.contains('lymph node tissue')).height} ",
        f"{best['score'][0]:.2f} ",
    ]
    later = page.part("All concepts")
    assert later.index("lymph node tissue not covered") < min(later.index(f" {animal} ") for animal in ANIMALS)


def test_a_concept_with_too_few_near_pairs_shows_their_number(tmp_path: Path) -> None:
    build_index_from_pairs(
        lambda: batches(pairs([*captions(), "a heron on a post", "a heron in a marsh"])), tmp_path / "index"
    )
    folder = open_index_with_encoder(tmp_path / "index")
    found = asked(folder, queries_from_classes({"classes": ["heron"], "templates": ["a {}"]}), RetrieveOptions(k=10))
    assert found.uncovered == ["heron"]
    page = paged(folder, found, tmp_path)
    (row, _) = [row for row in page.rows if row and row[0].startswith("heron ")]
    assert row[2:4] == ["2 ", "10 "]
    missing = page.part("Not covered", "All concepts")
    assert "Too few of the pairs returned for these concepts are near their bare names" in missing
    assert "Nothing in the pool" not in missing


def test_every_concept_is_shown_with_its_counts_spread_and_samples(folder: IndexWithEncoder, tmp_path: Path) -> None:
    content = {"classes": ANIMALS, "templates": ["a {}", "a {} sleeping"]}
    found = asked(folder, queries_from_classes(content), RetrieveOptions(k=10))
    page = paged(folder, found, tmp_path)
    assert "None: enough pairs of every concept are near its bare name." in page.text
    shown = {row[0].strip(): row for row in page.rows if row}
    for row in found.coverage.iter_rows(named=True):
        _, hits, distinct, near, best, wide = shown[row["concept"]]
        assert (hits, distinct, best) == (f"{row['hits']} ", f"{row['pairs']} ", f"{row['best']:.2f} ")
        assert near == f"{row['near']} " == distinct
        assert f"p10 {row['p10']:.2f} · p50 {row['p50']:.2f} · p90 {row['p90']:.2f}" in wide
        assert wide.count(f"a {row['concept']} ") == MAX_SAMPLES
    for name, count in (("queries", 16), ("hits", 160), ("distinct pairs", found.pairs.height), ("concepts", 8)):
        assert f"{count} {name}" in page.text


def test_a_caption_is_shown_once_and_a_long_one_is_cut(folder: IndexWithEncoder, tmp_path: Path) -> None:
    page = paged(
        folder, asked(folder, queries_from_lines(["a walrus", "a walrus that waits"]), RetrieveOptions(k=5)), tmp_path
    )
    samples = next(row for row in page.rows if row and row[0] == "a walrus ")[-1]
    assert samples.count("a walrus on the ice") == 1
    assert max(map(len, page.words)) < 400
    (cut,) = [word for word in page.words if word.endswith("…")]
    assert len(cut) <= MAX_CAPTION_LENGTH
    assert LONG.startswith(cut[:-1])


def test_user_text_is_escaped_and_the_page_loads_nothing(folder: IndexWithEncoder, tmp_path: Path) -> None:
    queries = [Query(f"a walrus {STRANGE}", f"set{STRANGE}/{STRANGE}", STRANGE), Query("a dog", "other/a dog", "a dog")]
    page = paged(folder, asked(folder, queries, RetrieveOptions(k=3)), tmp_path, STRANGE)
    assert page.text.count(STRANGE) >= 4
    assert not {"script", "link", "img", "a", "iframe", "u"} & set(page.tags)
    assert not [one for one in page.attributes if "//" in one]
    assert "Content-Security-Policy" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_sets_are_listed_with_their_distinct_pairs(folder: IndexWithEncoder, tmp_path: Path) -> None:
    content = {
        "pets": {"classes": ["dog", "cat"], "templates": ["{}", "a {}"]},
        "wild": {"classes": ["zebra", "nebula", "quasar"], "templates": ["a {}"]},
    }
    found = asked(folder, queries_from_classes(content), RetrieveOptions(k=8))
    page = paged(folder, found, tmp_path)
    for name, concepts in (("pets", 2), ("wild", 3)):
        hits = found.hits.filter(pl.col("concept").str.starts_with(name))
        said = f"{concepts} concepts, {hits.height} hits, {hits['key'].n_unique()} distinct pairs"
        assert f"{name} {said}" in page.part("All concepts")
    missing = page.part("Not covered", "All concepts")
    assert "wild 2 of 3 not covered" in missing
    assert "pets" not in missing


def test_the_page_describes_the_search_and_dropped_pairs(folder: IndexWithEncoder, tmp_path: Path) -> None:
    known = [pair for pair in POOL if pair.caption in {"a dog running in a kitchen", "a dog sleeping in a kitchen"}]

    def lookup(keys: Sequence[str]) -> pl.DataFrame:
        frame = folder.pairs(keys)
        assert frame is not None
        return frame

    guard = ExclusionFilter(exclusion_from_pairs([known], by=("caption",)), lookup)
    options = RetrieveOptions(k=20, cap=7, min_score=0.1, floor=0.25)
    page = paged(folder, asked(folder, queries_from_lines(["a dog in a kitchen"]), options, guard), tmp_path)
    assert "20 pairs per query" in page.text
    assert "At most 7 distinct pairs per concept." in page.text
    assert "13 pairs of concepts, beyond K or the cap." in page.text
    assert "2 pairs of the exclusion list: 2 by caption." in page.text
    assert (
        "0.25 (given). A pair is near if its cosine with the bare name of the concept reaches the floor; a concept is covered"
        in page.text
    )
    assert "recall@20 1.000 against exact search, on 1 of the queries." in page.text
    per_concept = asked(folder, queries_from_lines(["a dog"]), RetrieveOptions(k=20, per="concept", recall=None))
    page = paged(folder, per_concept, tmp_path)
    assert "20 pairs per concept: the best of all its queries." in page.text
    assert "its recall was not measured" in page.text


def test_a_long_page_shows_the_worst_of_each_set_and_counts_the_rest(
    folder: IndexWithEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a fifth of the rows that a page may have: all of them take seconds to read."""
    most = coverage_page_data.MAX_ROWS // 5
    monkeypatch.setattr(coverage_page_data, "MAX_ROWS", most)
    sizes = {"small": 9, "large": 1200, "larger": 1500}
    queries = [
        Query(f"thing {n % 50}", f"{name}/thing {n}", f"thing {n % 50}")
        for name, size in sizes.items()
        for n in range(size)
    ]
    found = asked(folder, queries, RetrieveOptions(k=4, recall=None, floor=2))
    page = paged(folder, found, tmp_path)
    half = (most - 9) // 2
    for title in ("Not covered", "All concepts"):
        said = page.part(title)
        assert f"{1200 - half:,} more rows, better covered than these, are not shown." in said
        assert f"{1500 - (most - 9 - half):,} more rows" in said
    assert sum(map(bool, page.rows)) == 2 * most
    assert page.size < 6_000_000 // 5


def test_modes_are_shown_apart_on_scales_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts, images = rng.normal(size=(2, 40, 8)).astype(np.float32)
    write_part(tmp_path / "laion", "0", [f"caption {n}" for n in range(40)], {"text_emb": texts, "img_emb": images})
    read: list[list[Pair]] = [batch.pairs for batch in read_pairs(ReadOptions(str(tmp_path / "laion")))]
    source = PrecomputedVectors(tmp_path / "laion")
    build_index_from_pairs(lambda: read, tmp_path / "index", vectors=source, modalities=("text", "image"))
    folder = open_index_with_encoder(tmp_path / "index")
    vectors = source.rows(read[0][:2], "text").vectors
    options = RetrieveOptions(k=2, mode="both", floor={"t2t": 0.9, "t2i": 0.95})
    found = retrieve(folder.index, vectors, queries_from_lines(["caption 0", "caption 1"]), options)
    page = paged(folder, found, tmp_path)
    assert "2 pairs per query, in each mode" in page.text
    assert "0.9 (given). A pair is near if its cosine with the mean of its queries reaches the floor" in page.text
    rows = [row[0].split() for row in page.rows if row]
    assert sorted(rows) == sorted(
        [["caption", n, *said.split()] for n in "01" for said in ("t2t", "t2i not covered in t2i")]
    )


def test_an_index_without_its_pairs_is_shown_without_captions(tmp_path: Path) -> None:
    build_index_from_pairs(lambda: batches(POOL), tmp_path / "index", keep_pairs=False)
    folder = open_index_with_encoder(tmp_path / "index")
    page = paged(folder, asked(folder, queries_from_lines(["a dog", "nebula"]), RetrieveOptions(k=3)), tmp_path)
    assert "The index does not store its pairs, so no captions are shown." in page.text


def test_the_same_retrieval_gives_the_same_page(folder: IndexWithEncoder, tmp_path: Path) -> None:
    pages = []
    for name in ("a", "b"):
        found = asked(folder, queries_from_lines(["a dog", "a walrus", "nebula"]), RetrieveOptions(k=10))
        write_coverage_page(tmp_path / name, found, lambda keys: folder.pairs(keys[::-1]))
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]
