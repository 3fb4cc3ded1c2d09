"""Boxes against counts that a negative would put in."""

import pytest

from pairwright.datasets.records import Box
from pairwright.generators.captions.box_checks import count_in_doubt, count_may_hold
from pairwright.generators.captions.image_words import ImageWords
from tests.generators.rule_fixtures import pair_of


def words(*boxes: Box, crowds: tuple[str, ...] = ()) -> ImageWords:
    return ImageWords(pair_of("x", boxes=boxes, crowds=crowds))


def dogs(number: int) -> tuple[Box, ...]:
    return tuple(Box("dog", n / 20, 0.1, n / 20 + 0.04, 0.2) for n in range(number))


@pytest.mark.parametrize(
    ("said", "new", "boxes", "doubt"),
    [
        (2, 3, 2, False),  # all are counted
        (2, 3, 3, True),  # two of the three were spoken of
        (2, 3, 5, True),
        (2, 6, 5, False),
        (3, 2, 3, False),
        (4, 3, 3, True),  # one has no box, or the caption counts wrong
        (4, 5, 3, False),
        (20, 2, 2, True),  # "many"
    ],
)
def test_a_number_that_boxes_bear_out_is_in_doubt(said: int, new: int, boxes: int, *, doubt: bool) -> None:
    assert count_in_doubt(words(*dogs(boxes)), "dog", said, new) is doubt


def test_boxes_of_other_things_tell_no_number_and_a_crowd_has_none() -> None:
    assert not count_in_doubt(words(*dogs(3)), "horse", 2, 3)
    assert count_in_doubt(words(crowds=("dog",)), "dog", 2, 3)


def test_people_by_any_name_are_persons() -> None:
    three = tuple(Box("person", n / 5, 0.1, n / 5 + 0.1, 0.9) for n in range(3))
    assert count_in_doubt(words(*three), "man", 2, 3)
    assert not count_in_doubt(words(*three), "man", 2, 4)


@pytest.mark.parametrize(
    ("word", "said", "boxes", "borne_out"),
    [
        ("three", 2, 3, True),
        ("three", 3, 3, False),
        ("3", 0, 3, True),
        ("four", 0, 3, False),
        ("several", 0, 2, True),
        ("several", 0, 1, False),
        ("red", 0, 3, False),
    ],
)
def test_a_written_count_is_held_against_the_same_boxes(word: str, said: int, boxes: int, *, borne_out: bool) -> None:
    assert count_may_hold(words(*dogs(boxes)), ["dog"], word, said) is borne_out


def test_a_written_count_that_another_caption_gives_is_borne_out() -> None:
    assert count_may_hold(ImageWords(pair_of("two dogs", "three dogs on a bed")), ["dog"], "three", 2)
