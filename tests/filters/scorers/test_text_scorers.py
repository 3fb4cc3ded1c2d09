"""What the two weight-free scorers know, and what they are never shown."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.records import Pair
from pairwright.filters.attacks.registry import build_paper_scorers
from pairwright.filters.scorers.cooccurrence import Cooccurrence, extract_content_words
from pairwright.filters.scorers.image_groups import build_corpus, image_group, text_group
from pairwright.filters.scorers.text_scorers import (
    CaptionCorpus,
    CrossFittedScorer,
    GrammarScorer,
    PlausibilityScorer,
    assign_folds,
)
from pairwright.generators.language.vocabulary import FloatArray, normalize_text
from tests.example_counts import examples

POOL = [
    "A brown dog catches a red ball.",
    "a brown dog with a red ball in the park",
    "A black cat sleeps on a blue sofa",
    "a black cat on the blue sofa in a room",
    "The brown dog runs after a red ball",
    "two black cats on a sofa",
]


class Witness:
    """A scorer that records its training captions."""

    def __init__(self) -> None:
        self.read: list[set[str]] = []
        self.scored: list[set[str]] = []

    def train(self, captions: Sequence[str]) -> "Witness":
        """Note the captions; they are all that it learns."""
        self.read.append({normalize_text(caption) for caption in captions})
        self.scored.append(set())
        return self

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Note the texts, and find all of them alike."""
        self.scored[-1] |= set(texts)
        return np.full(len(texts), 0.5)


# Few images and few texts, so that texts are shared between images and negatives equal positives of others.
texts = st.integers(0, 9).map(lambda number: f"caption {number}")
cases = st.lists(st.tuples(texts, texts, st.integers(0, 5).map(str)), min_size=1, max_size=30)


@settings(deadline=None)
@given(cases, st.integers(2, 5), st.integers(0, 5))
def test_no_row_is_scored_by_a_scorer_that_read_its_image_or_its_texts(
    rows: list[tuple[str, str, str]], folds: int, seed: int
) -> None:
    positives, negatives, groups = (list(column) for column in zip(*rows, strict=True))
    witness = Witness()
    gaps = CrossFittedScorer("witness", witness.train, folds=folds).gaps(positives, negatives, groups, seed)
    fold = assign_folds(groups, folds, seed)
    scored_folds = [number for number in np.unique(fold) if not np.isnan(gaps[fold == number]).any()]
    assert len(witness.read) == len(scored_folds)
    for number, read, scored in zip(scored_folds, witness.read, witness.scored, strict=True):
        tested = {text for row, text in enumerate(positives) if fold[row] == number}
        tested |= {text for row, text in enumerate(negatives) if fold[row] == number}
        images = {group for row, group in enumerate(groups) if fold[row] == number}
        assert scored == tested
        assert not read & tested
        assert read == {p for p, group in zip(positives, groups, strict=True) if group not in images} - tested


def test_a_corpus_from_elsewhere_is_used_without_all_texts_under_test() -> None:
    witness = Witness()
    corpus = CaptionCorpus(["one", "two", "THREE", "four", "five"], ["7", "8", "9", "10", "11"])
    CrossFittedScorer("witness", witness.train, corpus).gaps(["a", "three"], ["b", "five"], ["7", "20"], 0)
    assert witness.read == [{"two", "four"}]


def test_negatives_never_train() -> None:
    witness = Witness()
    CrossFittedScorer("witness", witness.train).gaps(["a", "b", "c"], ["x", "y", "z"], ["1", "2", "3"], 0)
    assert set.union(*witness.read) <= {"a", "b", "c"}


def test_rows_of_a_single_image_cannot_be_scored_from_themselves() -> None:
    gaps = CrossFittedScorer("grammar", GrammarScorer.train).gaps(["a dog", "a cat"], ["dog a", "cat a"], ["1", "1"], 0)
    assert np.isnan(gaps).all()


def test_a_corpus_with_only_captions_under_test_is_an_error() -> None:
    with pytest.raises(InputError, match="Give captions of other images"):
        CrossFittedScorer("grammar", GrammarScorer.train, CaptionCorpus(["a dog"], ["1"])).gaps(
            ["a dog"], ["dog a"], ["1"], 0
        )


def test_a_corpus_needs_a_group_for_each_caption_and_cross_fitting_two_folds() -> None:
    with pytest.raises(UsageError, match="as many groups"):
        CaptionCorpus(["a", "b"], ["1"])
    with pytest.raises(UsageError, match="at least 2 folds"):
        CrossFittedScorer("grammar", GrammarScorer.train, folds=1)


@given(st.lists(st.integers(0, 40).map(str), min_size=1), st.integers(2, 7), st.integers(0, 3))
def test_folds_follow_the_group_and_not_the_order(groups: list[str], folds: int, seed: int) -> None:
    fold = dict(zip(groups, assign_folds(groups, folds, seed).tolist(), strict=True))
    again = sorted(groups)
    assert fold == dict(zip(again, assign_folds(again, folds, seed).tolist(), strict=True))
    sizes = np.bincount(list(fold.values()), minlength=folds)
    assert sizes.max() - sizes.min() <= 1


def test_grammar_prefers_the_usual_word_order() -> None:
    usual, odd = GrammarScorer.train(POOL).score(["a brown dog with a red ball", "ball dog red a a with brown"])
    assert usual > odd


def test_plausibility_prefers_words_that_co_occur() -> None:
    usual, odd = PlausibilityScorer.train(POOL).score(["the brown dog has a red ball", "the black dog has a blue ball"])
    assert usual > odd


def test_plausibility_ignores_words_beyond_its_window() -> None:
    scorer = PlausibilityScorer.train(POOL)
    assert scorer.score(["brown dog"])[0] == scorer.score(["a dog that is brown"])[0]


@settings(max_examples=examples(50))  # it trains models: no time limit on an example
@given(st.lists(st.text(max_size=60)))
def test_every_text_has_a_score_between_0_and_1(given_texts: list[str]) -> None:
    for scorer in (GrammarScorer.train(POOL), PlausibilityScorer.train(POOL), PlausibilityScorer.train([])):
        scores = scorer.score(given_texts)
        assert scores.shape == (len(given_texts),)
        assert ((scores >= 0) & (scores <= 1)).all()


def test_words_that_co_occur_more_often_than_expected_are_associated() -> None:
    counts = Cooccurrence.fit(POOL)
    together, apart = counts.association(["red ball", "red sofa"])
    assert together > 0 > apart
    assert counts.association(["", "red", "red red", "unheard words"]).tolist() == [0, 0, 0, 0]


def test_content_words_exclude_function_words_digits_and_punctuation() -> None:
    assert extract_content_words("There are 2 dogs, on the man's Sofa!") == ["dogs", "man's", "sofa"]


def test_the_two_scorers_are_named_grammar_and_plausibility() -> None:
    assert [scorer.name for scorer in build_paper_scorers()] == ["grammar", "plausibility"]


@pytest.mark.parametrize(
    ("image", "group"),
    [
        ("C:\\coco\\COCO_val2014_000000549674.jpg", "549674"),
        ("COCO_val2014_000000549674.jpg", "549674"),
        ("val2017/000000549674.jpg", "549674"),
        ("549674", "549674"),
        ("00000.tar::000000012.jpg", "12"),
        ("train.parquet::image/row-00000012", "train.parquet::image/row-00000012"),
        ("train.parquet::image/row-00000012/COCO_val2014_000000549674.jpg", "549674"),
        ("a.parquet::images/row-00000012/9d1ddcc8d08421fa2f8e852ff6a22466.jpg", "9d1ddcc8d08421fa2f8e852ff6a22466"),
        ("photos/img_3_of_9.jpg", "photos/img_3_of_9.jpg"),
        ("", ""),
    ],
)
def test_the_group_of_an_image_is_its_number_or_key_however_written(image: str, group: str) -> None:
    assert image_group(image) == group


def test_a_row_without_image_is_grouped_by_its_key_else_by_its_caption() -> None:
    assert text_group("", "cafe", "A dog") == "cafe"
    assert text_group("", "", "A  dog") == text_group("", "", "a dog")


def test_a_corpus_of_pairs_has_each_caption_once_per_image() -> None:
    pairs = [
        Pair(key="a", source_id="000000000007", caption="one", captions=("two",)),
        Pair(key="b", source_id="7", caption="two", captions=("one",)),
        Pair(key="c", caption="one"),
    ]
    corpus = build_corpus(pairs)
    assert list(zip(corpus.groups, corpus.captions, strict=True)) == [("7", "one"), ("7", "two"), ("c", "one")]


def test_captions_without_texts_under_test_are_compared_as_words_whatever_their_case_and_spacing() -> None:
    captions = ["A  Cat's hat.", "a cats hat.", "a ca t's hat.", "a cat's\u2003hat .", "a dog"]
    corpus = CaptionCorpus(captions, ["1", "2", "3", "4", "5"])
    assert corpus.without({"5"}, {"a cat's hat ."}) == ["a cats hat.", "a ca t's hat."]
