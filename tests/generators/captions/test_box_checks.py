"""Boxes against counts and places that a negative would put in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.records import Box
from pairwright.generators.captions.box_checks import count_in_doubt, count_may_hold, position_in_doubt
from pairwright.generators.captions.image_words import ImageWords
from tests.generators.rule_fixtures import pair_of

HIGH, LOW = Box("dog", 0.4, 0.1, 0.6, 0.3), Box("table", 0.3, 0.5, 0.7, 0.9)
LEFT, RIGHT = Box("dog", 0.0, 0.4, 0.2, 0.6), Box("table", 0.6, 0.4, 0.9, 0.6)


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
    ("boxes", "wording", "doubt"),
    [
        ((LEFT, RIGHT), "to the right of", False),
        ((LEFT, RIGHT), "to the left of", True),
        ((HIGH, LOW), "under", False),
        ((HIGH, LOW), "above", True),
        ((LEFT, RIGHT), "far from", True),
        ((HIGH, Box("table", 0.3, 0.3, 0.7, 0.9)), "far from", False),
        ((HIGH, LOW), "next to", True),  # below it, but close
        ((HIGH, Box("table", 0.3, 0.1, 0.7, 0.9)), "next to", False),
        ((Box("dog", 0.1, 0.5, 0.28, 0.9), LOW), "next to", True),
        ((Box("dog", 0.4, 0.6, 0.5, 0.7), LOW), "inside", True),
        ((LEFT, RIGHT), "inside", False),
        ((LEFT, RIGHT), "on top of", False),
        ((LEFT, RIGHT), "behind", False),  # no flat picture tells
        ((LEFT,), "to the left of", False),
        ((LEFT, RIGHT, Box("table", 0.0, 0.4, 0.05, 0.6)), "to the right of", True),  # of that table it is true
    ],
)
def test_a_place_that_boxes_do_not_refute_is_in_doubt(boxes: tuple[Box, ...], wording: str, *, doubt: bool) -> None:
    assert position_in_doubt(words(*boxes), "dog", wording, "table") is doubt


side = st.floats(0, 0.5).map(lambda low: (low, low + 0.3))


@given(side, side, side, side)
def test_of_two_opposite_sides_one_is_always_in_doubt(
    across: tuple[float, float], down: tuple[float, float], far: tuple[float, float], deep: tuple[float, float]
) -> None:
    both = words(Box("dog", across[0], down[0], across[1], down[1]), Box("table", far[0], deep[0], far[1], deep[1]))
    for one, other in (("left of", "right of"), ("above", "below"), ("far from", "near")):
        assert position_in_doubt(both, "dog", one, "table") or position_in_doubt(both, "dog", other, "table")


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
