"""Algorithm 1 in parts: equal to the refinement of all rows together."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.filters.refinement.reference import fold_assignment, fold_sums
from pairwright.filters.refinement.reference.cell_quotas import (
    BalancedParts,
    choose_grids,
    count_rows,
    limit_rows,
    list_cells,
)
from pairwright.filters.refinement.reference.fold_assignment import (
    assign_batch,
    assign_folds,
    count_buckets,
    gather_batch,
    list_batch,
    number_all,
    split_batches,
    unite_bucket,
)
from pairwright.filters.refinement.reference.fold_sums import (
    count_entries,
    count_ranges,
    finish_fold,
    fit_fold,
    sum_range,
)
from pairwright.filters.refinement.reference.parts import count_part, encode_part, score_part
from pairwright.filters.refinement.reference.refine import RefineOptions, refine_rows
from pairwright.filters.scorers import shared_texts
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from pairwright.generators.language.vocabulary import IntArray, sum_by_key, tokenize
from tests.example_counts import examples

COLOURS, THINGS = ("red", "blue", "green", "Grey"), ("ball", "cat", "sofa", "man's hat", "tree")
ROWS = {"id": pl.String, "group": pl.String, "positive": pl.String, "negative": pl.String, "type": pl.String}


def sentence(rng: random.Random) -> str:
    one, other = (f"{rng.choice(COLOURS)} {rng.choice(THINGS)}" for _ in range(2))
    return rng.choice([f"a {one} and a {other}.", f"A {one}  beside the {other}", f"{one}, 2 {other}"])


def pool(groups: int, seed: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return captions of so many groups, some of them given twice, and rows of them."""
    rng = random.Random(seed)
    captions, rows = [], []
    for group in range(groups):
        texts = [sentence(rng) for _ in range(rng.randint(1, 3))]
        captions += [(f"g{group}", text) for text in [*texts, texts[0]]]
        rows += [
            (f"{rng.getrandbits(64):x}", f"g{group}", texts[0], sentence(rng), rng.choice("ab"))
            for _ in range(rng.randint(0, 4))
        ]
    schema = {"group": pl.String, "caption": pl.String}
    return pl.DataFrame(captions, schema, orient="row"), pl.DataFrame(rows, ROWS, orient="row")


def assign_in_batches(folder: Path, batches: dict[str, list[str]], options: RefineOptions, buckets: int) -> None:
    for batch, parts in batches.items():
        list_batch(folder, batch, parts)
    number_all(folder, list(batches), options)
    for batch, parts in batches.items():
        gather_batch(folder, batch, parts)
    for bucket in range(buckets):
        unite_bucket(folder, batches, bucket, buckets)
    for batch, parts in batches.items():
        assign_batch(folder, list(batches), batch, parts, buckets)


def fit(folder: Path, parts: Sequence[str], fold: int) -> bool:
    """Fit the models of a fold, in as many ranges of keys as a build does; return whether there are captions for them."""
    ranges = count_ranges(sum(count_entries(folder, part) for part in parts))
    if ranges == 1:
        return bool(fit_fold(folder, parts, fold)[1]["trained"])
    for number in reversed(range(ranges)):
        sum_range(folder, parts, fold, number, ranges)
    return bool(finish_fold(folder, fold, ranges)[1]["trained"])


def in_parts(  # noqa: PLR0917 - of the pool, and how it is divided
    folder: Path, captions: pl.DataFrame, rows: pl.DataFrame, options: RefineOptions, size: int, batches: int = 1
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return the verdicts on the rows, and the summary; more batches have as many buckets, and 3."""
    parts = [f"{start:03}" for start in range(0, max(len(captions), len(rows)), size)]
    for part in parts:
        encode_part(folder, part, captions.slice(int(part), size), rows.slice(int(part), size))
    if batches == 1:
        assign_folds(folder, parts, options)
    else:
        each = -(-len(parts) // batches)
        named = {f"b{start}": parts[start : start + each] for start in range(0, len(parts), max(each, 1))}
        assign_in_batches(folder, named or {"b0": []}, options, batches + 3)
    for part in reversed(parts):  # as parts are independent
        count_part(folder, part)
    fitted = [fold for fold in range(options.folds) if fit(folder, parts, fold)]
    grids = choose_grids([count_rows(folder, part) for part in parts], fitted, options)
    for part in reversed(parts):
        score_part(folder, part, fitted)
        list_cells(folder, part, grids, options)
    limit_rows(folder, parts)
    balanced = BalancedParts(grids, options)
    found = [balanced.read_verdicts(folder, part) for part in parts]
    verdicts = pl.concat([frame for frame, _ in found]) if parts else pl.DataFrame()
    return verdicts, json.loads(json.dumps(balanced.summarize([counts for _, counts in found])))


@given(st.integers(0, 60), st.integers(0, 100), st.integers(20, 100), st.integers(1, 4))
@settings(max_examples=examples(15), deadline=None)
def test_parts_and_batches_of_any_size_give_the_same_refinement_as_all_rows_together(
    tmp_path_factory: pytest.TempPathFactory, groups: int, seed: int, size: int, batches: int
) -> None:
    captions, rows = pool(groups, seed)
    distinct = captions.unique(maintain_order=True)
    corpus = CaptionCorpus(distinct["caption"].to_list(), distinct["group"].to_list(), pool=True)
    options = RefineOptions(cells=6, by_type=seed % 2 == 0, seed=seed, folds=2 + seed % 4)
    found, summary = in_parts(tmp_path_factory.mktemp("parts"), captions, rows, options, size, batches)
    expected = refine_rows(rows, corpus, options)
    assert summary == expected.as_json()
    if not found.is_empty():
        assert found.drop("reason").equals(expected.gaps)
        assert found["reason"].to_list() == list(expected.reasons)


def test_ranges_of_few_names_and_batches_of_one_part_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captions, rows = pool(60)
    expected = in_parts(tmp_path / "together", captions, rows, RefineOptions(cells=6), 40)
    monkeypatch.setattr(fold_assignment, "_RANGE_NAMES", 8)
    ranges: list[int] = []
    split = fold_assignment._split_ranges

    def counted(tables: Sequence[Any]) -> Iterator[list[slice]]:
        for slices in split(tables):
            ranges.append(sum(each.stop - each.start for each in slices))
            yield slices

    monkeypatch.setattr(fold_assignment, "_split_ranges", counted)
    found = in_parts(tmp_path / "apart", captions, rows, RefineOptions(cells=6), 40, batches=100)
    assert found[0].equals(expected[0])
    assert found[1] == expected[1]
    assert len(ranges) > 8  # of words and of names
    for name in ("folds", "counts", "gaps", "fold", "words"):
        one, other = (sorted((tmp_path / each).glob(f"{name}[-.]*")) for each in ("together", "apart"))
        assert [path.name for path in one] == [path.name for path in other]
        assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


@pytest.mark.parametrize(
    ("entries", "chunk", "images"), [(300, 1_000_000, 60), (10_000_000, 40, 60), (100, 7, 60), (5, 1, 12)]
)
def test_counts_summed_in_ranges_and_chunks_give_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int, chunk: int, images: int
) -> None:
    captions, rows = pool(images)
    expected = in_parts(tmp_path / "together", captions, rows, RefineOptions(cells=6), 40)
    monkeypatch.setattr(fold_sums, "RANGE_ENTRIES", entries)
    monkeypatch.setattr(fold_sums, "CHUNK_ENTRIES", chunk)
    found = in_parts(tmp_path / "apart", captions, rows, RefineOptions(cells=6), 40)
    assert found[0].equals(expected[0])
    assert found[1] == expected[1]
    assert (len(list((tmp_path / "apart").glob("sums-0-*"))) > 1) == (entries < 1000)


def test_a_fold_holds_a_chunk_of_the_counts_in_memory_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captions, rows = pool(200)
    summed: list[int] = []

    def counted(keys: IntArray, weights: IntArray | None = None) -> tuple[IntArray, IntArray]:
        summed.append(len(keys))
        return sum_by_key(keys, weights)

    monkeypatch.setattr(fold_sums, "CHUNK_ENTRIES", 100)
    monkeypatch.setattr(fold_sums, "sum_by_key", counted)
    in_parts(tmp_path, captions, rows, RefineOptions(cells=6), 200)
    assert sum(summed) > 5_000
    assert max(summed) <= 250  # a chunk, and the rest of a context


@pytest.mark.parametrize("most", [1, 8, 1000])
def test_a_range_of_names_has_all_that_are_equal_and_is_of_bounded_size(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(fold_assignment, "_RANGE_NAMES", most)
    rng = random.Random(most)
    names = [[f"{rng.randrange(200):03}" for _ in range(60)] for _ in range(3)]
    tables = [pa.array(sorted({*some, "same"}), pa.large_string()) for some in names]
    found = [
        [table[some].to_pylist() for table, some in zip(tables, slices, strict=True)]
        for slices in fold_assignment._split_ranges(tables)
    ]
    for table, some in zip(tables, zip(*found, strict=True), strict=True):
        assert [name for part in some for name in part] == table.to_pylist()
    ranges = [{name for part in parts for name in part} for parts in found]
    assert all(max(one) < min(other) for one, other in pairwise(filter(None, ranges)))
    assert all(sum(map(len, parts)) <= max(most, 2 * len(tables)) for parts in found)


def test_parts_are_taken_in_batches_of_so_many_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_assignment, "BATCH_TEXTS", 10)
    monkeypatch.setattr(fold_assignment, "BUCKET_FORMS", 10)
    assert split_batches(["a", "b", "c", "d"], [4, 6, 20, 1]) == [["a", "b"], ["c"], ["d"]]
    assert split_batches([], []) == [[]]
    assert [count_buckets(forms) for forms in (0, 10, 11)] == [1, 1, 2]


def test_the_pool_of_the_test_keeps_and_rejects_for_every_reason() -> None:
    captions, rows = pool(60)
    corpus = CaptionCorpus(captions["caption"].to_list(), captions["group"].to_list(), pool=True)
    assert {"", "unbalanced_cell"} <= set(refine_rows(rows, corpus, RefineOptions(cells=6)).reasons)
    assert set(refine_rows(rows.head(1), CaptionCorpus([], [], pool=True)).reasons) == {"unscored"}


def test_counts_that_wait_are_summed_like_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    counts = [(np.unique(rng.integers(0, 50, size)), size) for size in (0, 30, 1, 40, 5, 0, 60)]
    parts = [(keys, rng.integers(1, 9, len(keys))) for keys, _ in counts]
    once = shared_texts.sum_counts(parts)
    monkeypatch.setattr(shared_texts, "_LEAST_WAITING", 0)
    keys, times = shared_texts.sum_counts(iter(parts))
    assert (keys == once[0]).all()
    assert (times == once[1]).all()
    expected = Counter(dict.fromkeys(keys.tolist(), 0))
    for some, number in parts:
        expected.update(dict(zip(some.tolist(), number.tolist(), strict=True)))
    assert dict(zip(keys.tolist(), times.tolist(), strict=True)) == expected
    assert keys.tolist() == sorted(expected)


@pytest.mark.parametrize("batches", [1, 2])
def test_an_id_in_two_parts_is_an_error(tmp_path: Path, batches: int) -> None:
    captions, rows = pool(3)
    with pytest.raises(UsageError, match=f"{rows['id'][0]}' occurs twice"):
        in_parts(tmp_path, captions, pl.concat([rows, rows.head(1)]), RefineOptions(), len(rows), batches)


def test_more_words_than_ids_leave_the_most_frequent_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_assignment, "MAX_WORDS", 4)
    captions, rows = pool(20)
    found, _ = in_parts(tmp_path, captions, rows, RefineOptions(cells=6), 1000)
    counts = Counter(word for text in captions.unique()["caption"] for word in tokenize(text))
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:4]
    assert orjson.loads((tmp_path / "words.json").read_text()) == sorted(frequent)
    assert not found["grammar"].is_nan().any()
