"""Algorithm 1 in parts: equal to the refinement of all rows together."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.filters.refinement import out_of_core
from pairwright.filters.refinement.out_of_core import (
    assign_folds,
    balance_parts,
    count_part,
    encode_part,
    fit_fold,
    read_verdicts,
    score_part,
)
from pairwright.filters.refinement.two_scorers import RefineOptions, refine_rows
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from pairwright.generators.language.vocabulary import tokenize
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


def in_parts(
    folder: Path, captions: pl.DataFrame, rows: pl.DataFrame, options: RefineOptions, size: int
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return the verdicts on the rows, and the summary."""
    parts = [f"{start:03}" for start in range(0, max(len(captions), len(rows)), size)]
    for part in parts:
        encode_part(folder, part, captions.slice(int(part), size), rows.slice(int(part), size))
    assign_folds(folder, parts, options)
    for part in reversed(parts):  # as parts are independent
        count_part(folder, part)
    fitted = [fold for fold in range(options.folds) if fit_fold(folder, parts, fold)]
    for part in reversed(parts):
        score_part(folder, part, fitted)
    _, summary = balance_parts(folder, parts, options)
    return pl.concat([read_verdicts(folder, part) for part in parts]) if parts else pl.DataFrame(), summary


@given(st.integers(0, 60), st.integers(0, 100), st.integers(20, 100))
@settings(max_examples=examples(15), deadline=None)
def test_parts_of_any_size_give_the_same_refinement_as_all_rows_together(
    tmp_path_factory: pytest.TempPathFactory, groups: int, seed: int, size: int
) -> None:
    captions, rows = pool(groups, seed)
    distinct = captions.unique(maintain_order=True)
    corpus = CaptionCorpus(distinct["caption"].to_list(), distinct["group"].to_list(), pool=True)
    options = RefineOptions(cells=6, by_type=seed % 2 == 0, seed=seed, folds=2 + seed % 4)
    found, summary = in_parts(tmp_path_factory.mktemp("parts"), captions, rows, options, size)
    expected = refine_rows(rows, corpus, options)
    assert summary == expected.as_json()
    if not found.is_empty():
        assert found.drop("reason").equals(expected.gaps)
        assert found["reason"].to_list() == list(expected.reasons)


def test_the_pool_of_the_test_keeps_and_rejects_for_every_reason() -> None:
    captions, rows = pool(60)
    corpus = CaptionCorpus(captions["caption"].to_list(), captions["group"].to_list(), pool=True)
    assert {"", "unbalanced_cell"} <= set(refine_rows(rows, corpus, RefineOptions(cells=6)).reasons)
    assert set(refine_rows(rows.head(1), CaptionCorpus([], [], pool=True)).reasons) == {"unscored"}


def test_an_id_in_two_parts_is_an_error(tmp_path: Path) -> None:
    captions, rows = pool(3)
    with pytest.raises(UsageError, match="occurs twice"):
        in_parts(tmp_path, captions, pl.concat([rows, rows]), RefineOptions(), len(rows))


def test_more_words_than_ids_leave_the_most_frequent_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out_of_core, "MAX_WORDS", 4)
    captions, rows = pool(20)
    found, _ = in_parts(tmp_path, captions, rows, RefineOptions(cells=6), 1000)
    counts = Counter(word for text in captions.unique()["caption"] for word in tokenize(text))
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:4]
    assert orjson.loads((tmp_path / "words.json").read_text()) == sorted(frequent)
    assert not found["grammar"].is_nan().any()
