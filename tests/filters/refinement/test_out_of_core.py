"""Algorithm 1 in chunks: equal to the refinement of all rows together."""

import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.filters.refinement.out_of_core import OutOfCoreRefiner
from pairwright.filters.refinement.out_of_core_models import TextFile
from pairwright.filters.refinement.two_scorers import Refinement, RefineOptions, refine_rows
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from pairwright.generators.language.vocabulary import normalize_text, tokenize
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


def in_pieces(
    folder: Path, captions: pl.DataFrame, rows: pl.DataFrame, options: RefineOptions, size: int
) -> Refinement:
    with OutOfCoreRefiner(folder) as reference:
        for start in range(0, max(len(captions), len(rows)), size):
            reference.read_captions(captions.slice(start, size))
            reference.read_rows(rows.slice(start, size))
        return reference.refine(options)


@given(st.integers(0, 60), st.integers(0, 100), st.integers(1, 50))
@settings(max_examples=examples(40))
def test_chunks_of_any_size_give_the_same_refinement_as_all_rows_together(
    tmp_path_factory: pytest.TempPathFactory, groups: int, seed: int, size: int
) -> None:
    captions, rows = pool(groups, seed)
    distinct = captions.unique(maintain_order=True)
    corpus = CaptionCorpus(distinct["caption"].to_list(), distinct["group"].to_list(), pool=True)
    options = RefineOptions(cells=6, by_type=seed % 2 == 0, seed=seed, folds=2 + seed % 4)
    found = in_pieces(tmp_path_factory.getbasetemp(), captions, rows, options, size)
    expected = refine_rows(rows, corpus, options)
    assert found.gaps.equals(expected.gaps, null_equal=True)
    assert found.reasons == expected.reasons
    assert found.as_json() == expected.as_json()
    assert np.array_equal(found.kept, expected.kept)


def test_the_pool_of_the_test_keeps_and_rejects_for_every_reason() -> None:
    captions, rows = pool(60)
    corpus = CaptionCorpus(captions["caption"].to_list(), captions["group"].to_list(), pool=True)
    assert {"", "unbalanced_cell"} <= set(refine_rows(rows, corpus, RefineOptions(cells=6)).reasons)
    assert set(refine_rows(rows.head(1), CaptionCorpus([], [], pool=True)).reasons) == {"unscored"}


def test_an_id_in_two_chunks_is_an_error(tmp_path: Path) -> None:
    captions, rows = pool(3)
    with OutOfCoreRefiner(tmp_path) as reference:
        reference.read_captions(captions)
        reference.read_rows(rows)
        reference.read_rows(rows)
        with pytest.raises(UsageError, match="occurs twice"):
            reference.refine(RefineOptions())


def test_the_scratch_file_has_no_name(tmp_path: Path) -> None:
    with OutOfCoreRefiner(tmp_path) as reference:
        reference.read_captions(pool(9)[0])
        assert not list(tmp_path.iterdir())


@given(st.lists(st.lists(st.text("aAb .", max_size=6), max_size=5), max_size=4))
@settings(deadline=None)
def test_texts_that_differ_only_in_case_and_spacing_are_one_form(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[list[str]]
) -> None:
    with TextFile(tmp_path_factory.getbasetemp()) as file:
        numbers = [number for piece in pieces for number in file.add(piece).tolist()]
        forms = file.seal()[numbers].tolist()
        texts = [text for piece in pieces for text in piece]
        assert len(set(forms)) == file.forms == len({normalize_text(text) for text in texts})
        known, spelled = file.words, dict[int, list[str]]()
        for some in file.read(np.ones(file.forms, np.bool_)):
            ends = np.cumsum(some.lengths)
            for form, end, length in zip(some.forms.tolist(), ends.tolist(), some.lengths.tolist(), strict=True):
                assert form not in spelled
                spelled[form] = [known[id_] for id_ in some.flat[end - length : end]]
        assert all(spelled[form] == tokenize(text) for form, text in zip(forms, texts, strict=True))
