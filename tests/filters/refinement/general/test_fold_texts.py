"""Gaps of one fold from words on disk: equal to those of scorers that are trained on the texts in memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pairwright.datasets.errors import InputError
from pairwright.datasets.rng import make_rng
from pairwright.filters.attacks.registry import build_auxiliary_scorers, build_fixed_scorers
from pairwright.filters.refinement.general import fold_texts
from pairwright.filters.refinement.general.attacked_rows import load_texts, order_rows, store_texts
from pairwright.filters.refinement.general.fold_texts import FoldTexts
from pairwright.filters.refinement.general.stored_words import CaptionSource
from pairwright.filters.scorers import shared_texts
from pairwright.filters.scorers.text_scorers import (
    CaptionCorpus,
    CrossFittedScorer,
    assign_folds,
    collect_unique_captions,
    compute_gaps,
    score_held_out_rows,
)

PARTS = ("00000", "00001", "00002")
WORDS = ("a", "the", "Red", "red", "blue", "ball", "cat", "man's hat", "tree", "sits", "on", "near", ",", "42", "İ")
SCORERS = [each for each in (*build_fixed_scorers(), *build_auxiliary_scorers()) if isinstance(each, CrossFittedScorer)]


def text(*seed: str | int) -> str:
    rng = make_rng("guards", *seed)
    return rng.choice([" ", "  "]).join(rng.choices(WORDS, k=rng.randint(2, 9)))


def store(folder: Path, source: CaptionSource) -> CaptionCorpus:
    """Store rows and captions in parts, some captions twice and some of them under test; return the captions."""
    captions, rows = [], []
    for number, part in enumerate(PARTS):
        groups = [f"{make_rng('guards', 'group', number, row).randint(0, 40)}" for row in range(60)]
        pool = pl.DataFrame({"group": groups, "caption": [text("caption", number, row // 2) for row in range(60)]})
        table = pl.DataFrame(
            {
                "id": [f"{row * 7919 % 1000}-{part}" for row in range(40)],
                "group": [f"{group}x" if source == "elsewhere" else group for group in groups[:40]],
                "positive": [text("positive", number, row) if row % 2 else pool["caption"][row] for row in range(40)],
                "negative": [text("negative", number, row) if row % 9 else pool["caption"][-1] for row in range(40)],
                "type": ["kind"] * 40,
            }
        )
        store_texts(folder, part, pool, table)
        captions.append(pool)
        rows.append(table)
    order_rows(folder, PARTS, by_type=True, source=source)
    under_attack = load_texts(folder, PARTS)
    if source == "rows":
        return collect_unique_captions(under_attack.positives, under_attack.groups)
    every = pl.concat(captions)
    every = every.unique(maintain_order=True) if source == "pool" else every
    return CaptionCorpus(every["caption"].to_list(), every["group"].to_list(), source == "pool")


def half_of(corpus: CaptionCorpus, half: int) -> CaptionCorpus:
    """Return the captions of every other group, or those of the rest."""
    groups = sorted(set(corpus.groups))[half::2]
    rows = [row for row in zip(corpus.captions, corpus.groups, strict=True) if row[1] in groups]
    return CaptionCorpus([text for text, _ in rows], [group for _, group in rows], corpus.pool)


@pytest.mark.parametrize("source", ["pool", "elsewhere", "rows"])
@pytest.mark.parametrize("half", [None, 0, 1])
def test_gaps_are_those_of_scorers_that_hold_all_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: CaptionSource, half: int | None
) -> None:
    corpus = store(tmp_path, source)
    texts = load_texts(tmp_path, PARTS)
    fold = assign_folds(texts.groups, 3, 5)
    rows = np.arange(len(fold)) if source == "elsewhere" else np.flatnonzero(fold == 1)
    columns = ([column[row] for row in rows.tolist()] for column in (texts.positives, texts.negatives, texts.groups))
    expected = score_held_out_rows(SCORERS, corpus if half is None else half_of(corpus, half), *columns)
    for module in (shared_texts, fold_texts):
        monkeypatch.setattr(module, "CHUNK_SIZE", 7)
    found = FoldTexts.load(tmp_path, PARTS, source, rows)
    training = found.training(half)
    gaps = compute_gaps(SCORERS, training, len(rows), found.batches)
    assert 0 < len(training) < len(corpus.captions)
    assert sorted(training) == sorted(training[:]) == sorted(training[place] for place in range(len(training)))
    for own, gap, scorer in zip(gaps, expected, SCORERS, strict=True):
        assert np.isfinite(gap).all()
        assert own.tobytes() == gap.tobytes(), scorer.name


def test_texts_of_a_batch_are_positives_then_negatives_and_can_be_read(tmp_path: Path) -> None:
    store(tmp_path, "pool")
    rows = np.arange(3, 50)
    texts = load_texts(tmp_path, PARTS)
    read: dict[int, tuple[str, str]] = {}
    for places, batch in FoldTexts.load(tmp_path, PARTS, "pool", rows).batches():
        some = list(batch)
        read.update(zip(rows[places].tolist(), zip(some[: len(places)], some[len(places) :], strict=True), strict=True))
    assert read == {row: (texts.positives[row], texts.negatives[row]) for row in rows.tolist()}


def test_captions_from_elsewhere_that_are_all_under_test_are_refused(tmp_path: Path) -> None:
    captions = pl.DataFrame({"group": ["g", "h"], "caption": ["a red cat", "A  Red cat"]})
    row = {"id": "1", "group": "x", "positive": "a red cat", "negative": "a blue cat", "type": "kind"}
    store_texts(tmp_path, "00000", captions, pl.DataFrame([row]))
    order_rows(tmp_path, ("00000",), by_type=True, source="elsewhere")
    texts = FoldTexts.load(tmp_path, ("00000",), "elsewhere", np.arange(1))
    with pytest.raises(InputError, match="no caption is left"):
        texts.training(None)
    assert not texts.training(1)


def test_memory_does_not_grow_with_the_number_of_captions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same words: what grows are the n-grams that no caption had before."""
    for module in (shared_texts, fold_texts):
        monkeypatch.setattr(module, "CHUNK_SIZE", 200)
    monkeypatch.setattr(shared_texts, "_LEAST_WAITING", 1_000)
    _, small, large = (measure_peak(tmp_path / str(captions), captions) for captions in (200, 1_000, 4_000))
    assert (large - small) / 3_000 < 100  # bytes a caption; 200 if a part is counted at once, thousands if all are


def measure_peak(folder: Path, captions: int) -> int:
    """Return the peak of the memory while scorers are trained on so many captions, and score 50 rows."""
    scorers = [each for each in SCORERS if each.name in {"grammar", "cooccurrence"}]
    folder.mkdir()
    for number in range(0, captions, 200):
        texts = [text("memory", row) for row in range(200)]
        groups = [f"{number + row}" for row in range(200)]
        rows = pl.DataFrame(
            {
                "id": groups[:50],
                "group": groups[:50],
                "positive": texts[:50],
                "negative": [text("other", row) for row in range(50)],
                "type": ["kind"] * 50,
            }
        ).head(0 if number else 50)
        store_texts(folder, f"{number:05}", pl.DataFrame({"group": groups, "caption": texts}), rows)
    parts = tuple(f"{number:05}" for number in range(0, captions, 200))
    order_rows(folder, parts, by_type=True, source="pool")
    tracemalloc.start()
    found = FoldTexts.load(folder, parts, "pool", np.arange(50))
    gaps = compute_gaps(scorers, found.training(None), 50, found.batches)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(gaps).all()
    return peak
