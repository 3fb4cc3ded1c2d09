"""What frozen scorers promise: they stay as they were, and never judge what they have read by heart."""

from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.errors import StorageError
from pairwright.filters.attacks.evidence import RowTexts, build_classifier_evidence
from pairwright.filters.attacks.text_features import VIEWS, compute_named_differences
from pairwright.filters.refinement.appended.frozen_scorers import (
    CLASSIFIER_WEIGHTS,
    GRAMMAR,
    PLAUSIBILITY,
    FrozenScorers,
)
from pairwright.filters.scorers.text_scorers import CaptionCorpus, CrossFittedScorer, GrammarScorer, PlausibilityScorer

CAPTIONS = [
    f"a {size} {what} on the {where}"
    for size in ("big", "small")
    for what in ("dog", "cat", "horse")
    for where in ("road", "grass")
]
CORPUS = CaptionCorpus(CAPTIONS, [str(number) for number in range(len(CAPTIONS))])
ROWS = RowTexts(
    [f"{caption} today" for caption in CAPTIONS],
    [caption.replace("dog", "lamp").replace("cat", "lamp").replace("horse", "cloud") for caption in CAPTIONS],
    [f"new {number}" for number in range(len(CAPTIONS))],
    ["replace-object"] * len(CAPTIONS),
)


@pytest.fixture(scope="module")
def frozen() -> FrozenScorers:
    return FrozenScorers.of(CORPUS, ROWS)


def test_saved_and_loaded_it_scores_the_same_and_equal_content_is_equal_bytes(
    frozen: FrozenScorers, tmp_path: Path
) -> None:
    files = frozen.save(tmp_path / "one")
    loaded = FrozenScorers.load(tmp_path / "one")
    for name, gaps in frozen.gaps(ROWS, CORPUS).items():
        np.testing.assert_array_equal(loaded.gaps(ROWS, CORPUS)[name], gaps)
    loaded.save(tmp_path / "two")
    assert all((tmp_path / "two" / file.name).read_bytes() == file.read_bytes() for file in files)


@pytest.mark.parametrize("name", [GRAMMAR, PLAUSIBILITY, CLASSIFIER_WEIGHTS])
def test_a_corrupt_file_is_an_error_with_its_name(frozen: FrozenScorers, tmp_path: Path, name: str) -> None:
    frozen.save(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:40])
    with pytest.raises(StorageError, match=name):
        FrozenScorers.load(tmp_path)


def test_unseen_rows_are_scored_by_the_language_models_of_the_captions(frozen: FrozenScorers) -> None:
    gaps = frozen.gaps(ROWS, CORPUS)
    for name, scorer in (("grammar", GrammarScorer), ("plausibility", PlausibilityScorer)):
        expected = CrossFittedScorer(name, scorer.train, CORPUS).gaps(ROWS.positives, ROWS.negatives, ROWS.groups, 0)
        np.testing.assert_array_equal(gaps[name], expected)


def test_a_training_caption_is_scored_by_a_model_trained_without_it(frozen: FrozenScorers) -> None:
    met = RowTexts(
        [CAPTIONS[0], ROWS.positives[1]], ["a big lamp on the road", ROWS.negatives[1]], ["x", "3"], ["t", "t"]
    )
    expected = CrossFittedScorer("grammar", GrammarScorer.train, CORPUS).gaps(
        met.positives, met.negatives, met.groups, 0
    )
    gaps = frozen.gaps(met, CORPUS)["grammar"]
    np.testing.assert_array_equal(gaps, expected)
    by_heart = GrammarScorer(frozen.trigrams).score([met.positives[0]]) - GrammarScorer(frozen.trigrams).score(
        [met.negatives[0]]
    )
    assert gaps[0] < by_heart[0]


def test_frozen_classifiers_detect_the_same_negatives_again(frozen: FrozenScorers) -> None:
    gaps = frozen.gaps(ROWS, CORPUS)
    assert (gaps["words"] > 0).all()
    turned = RowTexts(ROWS.negatives, ROWS.positives, ROWS.groups, ROWS.types)
    np.testing.assert_allclose(frozen.gaps(turned, CORPUS)["words"], -gaps["words"])


def test_without_rows_only_language_models_are_fitted() -> None:
    assert set(FrozenScorers.of(CORPUS, None).gaps(ROWS, CORPUS)) == {"length", "grammar", "likelihood", "plausibility"}


@pytest.mark.parametrize("view", VIEWS)
def test_named_features_equal_those_of_the_classifiers(view: str) -> None:
    matrix, names = compute_named_differences(view, ROWS.positives, ROWS.negatives)
    assert len(names) == len(set(names)) == matrix.shape[1]
    often = np.bincount(matrix.indices, minlength=matrix.shape[1]) >= (1 if view == "format" else 2)
    read = build_classifier_evidence(view, ROWS.positives, ROWS.negatives).features
    assert (read != 0).nnz == (matrix[:, np.flatnonzero(often)] != 0).nnz


def test_a_name_means_the_same_in_any_rows() -> None:
    for view in ("words", "letters"):
        whole, names = compute_named_differences(view, ROWS.positives, ROWS.negatives)
        one, own = compute_named_differences(view, ROWS.positives[5:6], ROWS.negatives[5:6])
        expected = {names[column]: value for column, value in zip(whole[5].indices, whole[5].data, strict=True)}
        assert expected == {own[column]: value for column, value in zip(one.indices, one.data, strict=True)}
