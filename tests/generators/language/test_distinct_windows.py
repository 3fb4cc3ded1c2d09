"""Tests of tags that are computed once for each distinct window."""

from collections.abc import Sequence

import spacy
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.language.distinct_windows import distinct_window_tagger
from pairwright.generators.language.tagger import BUNDLED_PIPELINE

PIPELINE = spacy.load(BUNDLED_PIPELINE)
WORDS = [
    "a",
    "an",
    "two",
    "red",
    "dogs",
    "dog",
    "run",
    "running",
    "on",
    "the",
    "bed",
    ",",
    ".",
    "Paris",
    "été",
    "1920s",
    "",
    "",
    "\n",
    "cat's",
]


def tags_of_pipeline(texts: Sequence[str]) -> list[list[str]]:
    """Return the tags that spaCy gives."""
    return [[token.tag_ for token in doc] for doc in PIPELINE.pipe(texts)]


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=12))
def test_tags_are_those_of_the_pipeline(texts: list[str]) -> None:
    tagger = distinct_window_tagger(PIPELINE)
    assert tagger is not None
    assert tagger.tags([PIPELINE.make_doc(text) for text in texts]) == tags_of_pipeline(texts)


def test_a_word_is_tagged_by_its_own_text_not_by_its_neighbours() -> None:
    tagger = distinct_window_tagger(PIPELINE)
    assert tagger is not None
    texts = ["dogs run", "a run", "run", "the dogs", "dogs run fast"]
    docs = [PIPELINE.make_doc(text) for text in texts]
    alone = [tags for doc in docs for tags in tagger.tags([doc])]
    assert tagger.tags(docs) == alone == tags_of_pipeline(texts)


def test_another_pipeline_is_left_to_spacy() -> None:
    other = spacy.blank("en")
    other.add_pipe("tagger").add_label("NN")  # type: ignore[attr-defined]
    other.initialize()
    other.add_pipe("sentencizer")
    assert distinct_window_tagger(other) is None
