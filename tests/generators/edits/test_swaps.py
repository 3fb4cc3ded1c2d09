"""Proposals of swaps: attributes, nouns and noun phrases that change places."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.realisation import rewrite
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.table import applicable_constraints
from pairwright.generators.edits.swaps.attributes import Modifier, swap_attributes, swapped_pairs
from pairwright.generators.edits.swaps.objects import swap_objects
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.rule_fixtures import counted, pair_of, tokens_of

POOL = (
    "a red car on a street", "a blue car on a street", "a red bus on a street", "a blue bus on a street",
    "a large bowl on a table", "a small bowl on a table", "a small cat on a bed", "a large cat on a bed",
    "two dogs in a field", "a dog in a field", "two men on a street", "a man on a street", "a woman on a street",
    "two women on a street", "a dog chasing a cat", "a cat chasing a dog", "a boy sitting on a rug", "a boy sitting on a bed",
    "a man in a suit", "a man in a dress", "a woman in a suit", "a woman in a dress", "a man sitting", "a woman sitting",
    "a man standing", "a woman standing", "a cat sitting on a laptop", "a black wall", "a white wall", "a black cabinet",
    "a white cabinet", "two giraffes and a zebra", "two zebras and a giraffe", "a green bathroom", "a blue bathroom",
    "a white bathroom", "a black bathroom", "a green toilet", "a small toilet", "a small bathroom", "a white toilet",
)  # fmt: skip


Exchange = Callable[[Caption, Knowledge, Modifier, Modifier], EditOutcome]


@pytest.fixture(scope="module")
def known() -> Knowledge:
    """Return WordNet and a pool that has each caption three times."""
    return Knowledge(load_wordnet(), counted(POOL * 3))


def proposed(exchange: Exchange, known: Knowledge, text: str, *others: str) -> set[str]:
    """Return the texts of all proposals."""
    caption = Caption(pair_of(text, *others), tokens_of(text))
    constraints = applicable_constraints("hard_negative", "swap", "attribute", by_rules=True)
    pairs = swapped_pairs(caption, known, constraints)
    found = [exchange(caption, known, one, other) for one, other, reason in pairs if not reason]
    return {rewrite(text, each)[0] for each in found if not isinstance(each, str)}


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A red car behind a blue bus.", "A blue car behind a red bus."),
        ("A small cat in a large bowl", "A large cat in a small bowl"),
    ],
)
def test_attributes_of_two_things_change_places(known: Knowledge, caption: str, expected: str) -> None:
    assert proposed(swap_attributes, known, caption) == {expected}


@pytest.mark.parametrize(
    ("caption", "others"),
    [
        ("A red car behind a blue bus.", ("a blue car and a red bus",)),
        ("A black man with a white car.", ()),
        ("a red and blue car on a street", ()),
        ("A red car behind a bus.", ()),
        ("A red car behind an odd bus.", ()),
        ("A small bathroom has a green toilet.", ()),
    ],
)
def test_attributes_stay_where_a_swap_may_be_true_or_odd(
    known: Knowledge, caption: str, others: tuple[str, ...]
) -> None:
    assert proposed(swap_attributes, known, caption, *others) == set()


def test_one_false_attribute_makes_a_swap_false(known: Knowledge) -> None:
    """Another caption may call another bus red; the car is still not blue."""
    assert proposed(swap_attributes, known, "A red car behind a blue bus.", "a red bus on a street")


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A red car behind a blue bus.", "A red bus behind a blue car."),
        ("Two giraffes and a zebra", "Two zebras and a giraffe"),
    ],
)
def test_things_change_places(known: Knowledge, caption: str, expected: str) -> None:
    assert expected in proposed(swap_objects, known, caption)


@pytest.mark.parametrize(
    ("caption", "others"),
    [
        ("A cat next to a dog", ()),
        ("A cat and a dog", ()),
        ("A red car behind a blue bus.", ("a blue car and a red bus",)),
        ("Two men and a woman in his car", ()),
        ("Two giraffes and a zebra", ("two zebras and some giraffes",)),
        ("A bed with two pillows", ()),
    ],
)
def test_things_stay_where_a_swap_may_be_true_or_odd(known: Knowledge, caption: str, others: tuple[str, ...]) -> None:
    assert proposed(swap_objects, known, caption, *others) == set()


@given(
    st.lists(st.sampled_from(["a red car", "two blue buses", "a small cat", "some big dogs"]), min_size=2, max_size=4)
)
def test_an_exchange_of_two_phrases_moves_nothing_else(phrases: list[str]) -> None:
    """The first and the last phrase change places; the words between them stay."""
    text = " near ".join(phrases)
    caption = Caption(pair_of(text), tokens_of(text))
    first, last = len(phrases[0].split()), len(caption.tokens) - len(phrases[-1].split())
    moved, _ = rewrite(text, caption.exchange((0, first), (last, len(caption.tokens))))
    assert moved == " near ".join([phrases[-1], *phrases[1:-1], phrases[0]])


def test_numbers_change_places_by_their_nouns_only(known: Knowledge) -> None:
    assert proposed(swap_attributes, known, "Two giraffes and a zebra") == set()
