"""Facts from boxes: nearer edges, counts in halves, extents, and edges."""

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.records import Box
from pairwright.generators.conversations import question_templates
from pairwright.generators.conversations.box_facts import measurement_facts
from pairwright.generators.conversations.facts import Fact

Corners = tuple[float, ...]


def facts(things: Mapping[str, Corners], groups: Mapping[str, Sequence[Corners]], seed: int = 0) -> list[Fact]:
    boxes: dict[str, tuple[Box, ...]] = {label: (Box(label, *corners),) for label, corners in things.items()}
    boxes |= {label: tuple(Box(label, *corners) for corners in several) for label, several in groups.items()}
    found = measurement_facts(list(things), list(groups), boxes, random.Random(seed))
    return [fact for kind in found for fact in kind]


def sentences(found: list[Fact], wordings: tuple[str, ...]) -> set[str]:
    return {fact.full() for fact in found if fact.wordings is wordings}


def test_the_nearer_edge_is_asked_for_things_in_both_halves() -> None:
    found = facts({"dog": (0.1, 0.3, 0.6, 0.95)}, {})
    assert sentences(found, question_templates.NEARER_EDGE) == {
        "The dog is nearer to the left edge of the image.",
        "The dog is nearer to the bottom edge of the image.",
    }


@pytest.mark.parametrize(
    "box",
    [
        (0.3, 0.3, 0.66, 0.72),  # about in the middle
        (0.05, 0.05, 0.4, 0.4),  # in a half: that says it
        (0.0, 0.0, 0.7, 0.7),  # at an edge: that says it
    ],
)
def test_an_unclear_or_known_nearer_edge_is_not_asked(box: tuple[float, ...]) -> None:
    assert not sentences(facts({"dog": box}, {}), question_templates.NEARER_EDGE)


def test_members_of_a_group_in_a_half_are_counted() -> None:
    zebras = [(0.1, 0.2, 0.3, 0.4), (0.1, 0.6, 0.3, 0.9), (0.6, 0.2, 0.9, 0.9)]
    seen = set().union(
        *(sentences(facts({}, {"zebra": zebras}, seed), question_templates.HOW_MANY_IN_HALF) for seed in range(20))
    )
    assert seen == {
        "Two of the three zebras are entirely in the left half of the image.",
        "One of the three zebras is entirely in the right half of the image.",
        "One of the three zebras is entirely in the upper half of the image.",
        "One of the three zebras is entirely in the lower half of the image.",
    }
    pair = facts({}, {"zebra": [(0.6, 0.1, 0.9, 0.9), (0.3, 0.1, 0.7, 0.9)]}, seed=1)
    assert sentences(pair, question_templates.HOW_MANY_IN_HALF) <= {
        "Neither of the two zebras is entirely in the left half of the image.",
        "One of the two zebras is entirely in the right half of the image.",
    }


def test_a_group_with_a_box_near_the_middle_is_not_counted() -> None:
    assert not sentences(
        facts({}, {"zebra": [(0.1, 0.1, 0.49, 0.6), (0.6, 0.1, 0.9, 0.6)]}), question_templates.HOW_MANY_IN_HALF
    )


def test_two_things_of_similar_size_are_compared_by_height_and_width() -> None:
    found = facts({"dog": (0.1, 0.1, 0.5, 0.3), "vase": (0.6, 0.1, 0.8, 0.5)}, {})
    [sentence] = sentences(found, question_templates.WHICH_EXTENDS)
    assert sentence in {
        "The dog takes up more of the width of the image.",
        "The vase takes up more of the height of the image.",
    }
    assert not sentences(
        facts({"dog": (0.1, 0.1, 0.9, 0.9), "vase": (0.6, 0.1, 0.8, 0.5)}, {}), question_templates.WHICH_EXTENDS
    )


def test_whether_one_of_several_reaches_an_edge_is_asked_where_yes_and_no_are_possible() -> None:
    dogs = [(0.0, 0.3, 0.2, 0.6), (0.4, 0.3, 0.8, 0.6)]
    seen = set().union(
        *(sentences(facts({}, {"dog": dogs}, seed), question_templates.IS_ANY_AT_EDGE) for seed in range(30))
    )
    assert seen == {
        "Yes, at least one of the dogs reaches the left edge of the image.",
        *(f"No, none of the dogs reaches the {edge} edge of the image." for edge in ("top", "right", "bottom")),
    }
    assert not sentences(
        facts({}, {"dog": [(0.05, 0.3, 0.2, 0.6), (0.4, 0.3, 0.8, 0.6)]}), question_templates.IS_ANY_AT_EDGE
    )


SIDE = st.floats(0, 1)
BOX = st.tuples(SIDE, SIDE, SIDE, SIDE).map(
    lambda x: (min(x[0], x[2]), min(x[1], x[3]), max(x[0], x[2]), max(x[1], x[3]))
)


@given(st.lists(BOX, min_size=2, max_size=5), BOX, BOX, st.integers(0, 99))
def test_any_boxes_give_consistent_facts(
    several: list[tuple[float, ...]], one: tuple[float, ...], other: tuple[float, ...], seed: int
) -> None:
    for fact in facts({"dog": one, "cat": other}, {"cup": several}, seed):
        assert fact.question(random.Random(seed)).endswith("?")
        assert fact.full().endswith(".")
        assert fact.brief()
