"""ADD edits: where words are added, which ones are absent, and what is true beside them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.records import Box
from pairwright.generators.captions.realisation import rewrite
from pairwright.generators.edits.additions.absence import unnamed_share
from pairwright.generators.edits.additions.insertion_points import (
    ATTRIBUTE,
    OBJECT,
    attribute_insertions,
    object_insertions,
)
from pairwright.generators.language.wordnet import wordnet_status
from tests.generators.edits.additions.small_world import (
    caption_of,
    false_texts,
    proposals_of,
    small_additions,
    true_texts,
    words_added,
)

pytestmark = pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])

SILENT = ("the weather is nice", "nice weather today", "a sunny day")  # other captions that name no object

images = st.lists(st.integers(0, 500), min_size=5, max_size=5).filter(any)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man on a street.", "A man on a street with an umbrella."),
        ("A man on a street", "A man on a street near an umbrella"),
        ("a man on a street.", "an umbrella and a man on a street."),
        ("A man on a street.", "An umbrella and a man on a street."),
        ("A MAN ON A STREET", "A MAN ON A STREET WITH AN UMBRELLA IN THE BACKGROUND"),
    ],
)
def test_objects_are_added_where_captions_have_them(text: str, expected: str) -> None:
    assert expected in {
        rewrite(text, [place.change(caption_of(text), "umbrella")])[0] for place in object_insertions(caption_of(text))
    }


@pytest.mark.parametrize(
    "text", ["a man between a dog and a cat", "Is there a dog?", "the man walks his dog slowly", "a dog at a"]
)
def test_no_object_is_added_at_the_end_where_it_would_not_belong(text: str) -> None:
    assert not [place for place in object_insertions(caption_of(text)) if place.token == len(caption_of(text).tokens)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a dog on a bed", {"a red dog on a bed", "a dog on a red bed"}),
        ("a big dog on a bed", {"a big dog on a red bed"}),
        ("the bed is empty", set()),
        ("two dogs and a dog", set()),
    ],
)
def test_attributes_are_added_before_nouns_without_one(text: str, expected: set[str]) -> None:
    assert {
        rewrite(text, [place.change(caption_of(text), "red")])[0] for place in attribute_insertions(caption_of(text))
    } == expected


def test_what_captions_have_beside_the_caption_is_added() -> None:
    texts = false_texts(caption_of("a man on a lawn", *SILENT), OBJECT)
    assert "a man on a lawn with a zebra" in texts
    assert not any("refrigerator" in text for text in texts)


@pytest.mark.parametrize("said", ["a dog on a lawn", "two dogs here", "a puppy sits", "an animal stands", "his pets"])
def test_what_another_caption_may_mean_is_not_added(said: str) -> None:
    assert "dog" in words_added(caption_of("a man on a lawn", *SILENT), OBJECT)
    assert "dog" not in words_added(caption_of("a man on a lawn", said, *SILENT), OBJECT)


def test_what_a_box_shows_is_not_added() -> None:
    assert "dog" not in words_added(caption_of("a man on a lawn", *SILENT, boxes=(Box("dog", 0, 0, 1, 1),)), OBJECT)


def test_what_may_be_there_unsaid_is_not_added() -> None:
    assert "chair" not in words_added(caption_of("a table in a kitchen", *SILENT), OBJECT)


def test_nobody_is_added_beside_somebody_who_is_alone() -> None:
    assert "dog" not in words_added(caption_of("a lone man on a lawn", *SILENT), OBJECT)


def test_an_attribute_is_added_that_another_caption_excludes() -> None:
    texts = false_texts(caption_of("a bus on a street", "a red bus on a street"), ATTRIBUTE)
    assert "a blue bus on a street" in texts
    assert "a red bus on a street" not in texts


def test_a_common_attribute_that_nobody_excludes_is_not_added() -> None:
    assert not false_texts(caption_of("a bus on a street", "a big bus"), ATTRIBUTE)


def test_no_attribute_is_added_to_one_of_several_things() -> None:
    assert not false_texts(caption_of("a bus on a street", "a red bus and two buses"), ATTRIBUTE)


def test_a_pair_adds_a_true_and_a_false_object_in_one_place() -> None:
    caption = caption_of("a man on a street", "a man on a street with a dog.", "a dog next to him", *SILENT)
    assert true_texts(caption, OBJECT)
    assert all("dog" in text for text in true_texts(caption, OBJECT))
    assert "a man on a street with a cat" in false_texts(caption, OBJECT, pairs=True)
    found = proposals_of(caption, OBJECT, pairs=True)
    for at in range(len(found)):
        false, true = found.false_change(at), found.true_change(at)
        assert (false.start, false.end) == (true.start, true.end)
        assert len(false.after.split()) == len(true.after.split())


@pytest.mark.parametrize("said", ["a toy dog on a street", "no dog here", "a sign for a dog park", "a hot dog stand"])
def test_what_is_only_mentioned_is_no_true_object(said: str) -> None:
    assert not proposals_of(caption_of("a man on a street", said, *SILENT), OBJECT, pairs=True)


def test_a_pair_adds_a_true_and_a_false_attribute() -> None:
    caption = caption_of("a bus on a street", "a red bus on a street")
    assert true_texts(caption, ATTRIBUTE) == {"a red bus on a street"}
    assert "a blue bus on a street" in false_texts(caption, ATTRIBUTE, pairs=True)


def test_scores_do_not_depend_on_the_other_captions() -> None:
    captions = [caption_of(text) for text in ("a man on a street", "kites", "a dog next to a cat on a bed")]
    together = small_additions().propose(captions, OBJECT)
    alone = [small_additions().propose([caption], OBJECT)[0] for caption in captions]
    for one, same in zip(alone, together, strict=True):
        assert one.slots == same.slots
        assert np.array_equal(one.new, same.new)
        assert np.array_equal(one.log_ratio, same.log_ratio)
    assert any(map(len, together))


@given(images)
def test_the_more_captions_are_silent_the_surer_an_object_is_absent(counts: list[int]) -> None:
    shares = [unnamed_share(counts, captions) for captions in range(6)]
    assert shares[0] == pytest.approx(1)
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares, reverse=True)
