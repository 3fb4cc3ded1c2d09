"""Proposals of swaps: attributes, numbers, nouns and noun phrases that change places."""

import sys
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.realisation import apply_changes, rewrite
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.table import applicable_constraints
from pairwright.generators.edits.edit_model import load_bundled_model, load_bundled_statistics
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.swaps.attributes import Modifier, Swap, swap_attributes, swapped_pairs
from pairwright.generators.edits.swaps.objects import swap_objects
from pairwright.generators.edits.swaps.swaps import SwapProposals, propose_swaps
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


CONSTRAINTS = applicable_constraints("hard_negative", "swap", "attribute", by_rules=True)
Exchange = Callable[[Caption, EditMaterials, Modifier, Modifier], Swap | str]


@pytest.fixture(scope="module")
def materials() -> EditMaterials:
    """Return WordNet, a pool that has each caption three times, and the bundled model."""
    return EditMaterials(Knowledge(load_wordnet(), counted(POOL * 3)), load_bundled_model())


def proposed(exchange: Exchange, materials: EditMaterials, text: str, *others: str) -> set[str]:
    """Return the texts of all proposals with a weight."""
    caption = Caption(pair_of(text, *others), tokens_of(text))
    pairs = swapped_pairs(caption, materials.knowledge, CONSTRAINTS)
    found = [exchange(caption, materials, one, other) for one, other, reason in pairs if not reason]
    return {rewrite(text, each.changes)[0] for each in found if not isinstance(each, str) and each.weight}


def written(materials: EditMaterials, name: str, text: str, *others: str) -> set[str]:
    """Return the texts of all swaps of one type."""
    found = propose_swaps(materials, (name,), [Caption(pair_of(text, *others), tokens_of(text))])[name][0]
    return {rewrite(text, found.outcome(at))[0] for at in range(len(found.changes))}


def swaps_of(materials: EditMaterials, name: str, texts: Sequence[str]) -> list[SwapProposals]:
    """Return the weighted swaps of one type for each caption."""
    captions = [Caption(pair_of(text), tokens_of(text)) for text in texts]
    return propose_swaps(materials, (name,), captions)[name]


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A red car behind a blue bus.", "A blue car behind a red bus."),
        ("A small cat in a large bowl", "A large cat in a small bowl"),
        ("Two dogs near a man", "A dog near two men"),
        ("A man is near two dogs.", "Two men are near a dog."),
    ],
)
def test_attributes_of_two_things_change_places(materials: EditMaterials, caption: str, expected: str) -> None:
    assert proposed(swap_attributes, materials, caption) == {expected}


@pytest.mark.parametrize(
    ("caption", "others"),
    [
        ("A red car behind a blue bus.", ("a blue car and a red bus",)),
        ("A black man with a white car.", ()),
        ("a red and blue car on a street", ()),
        ("A red car behind a bus.", ()),
        ("A red car behind an odd bus.", ()),
        ("A small bathroom has a green toilet.", ()),
        ("Two dogs near a man", ("two men and some dogs",)),
        ("A dog between two men", ()),
        ("Two men in a field", ()),
        ("Two dogs near each other and a man", ()),
    ],
)
def test_attributes_stay_where_a_swap_may_be_true_or_odd(
    materials: EditMaterials, caption: str, others: tuple[str, ...]
) -> None:
    assert proposed(swap_attributes, materials, caption, *others) == set()


def test_one_false_attribute_makes_a_swap_false(materials: EditMaterials) -> None:
    """Another caption may call another bus red; the car is still not blue."""
    assert proposed(swap_attributes, materials, "A red car behind a blue bus.", "a red bus on a street")


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A red car behind a blue bus.", "A red bus behind a blue car."),
        ("Two giraffes and a zebra", "Two zebras and a giraffe"),
    ],
)
def test_things_change_places(materials: EditMaterials, caption: str, expected: str) -> None:
    assert expected in proposed(swap_objects, materials, caption)


@pytest.mark.parametrize(
    ("caption", "others"),
    [
        ("A cat next to a dog", ()),
        ("A cat and a dog", ()),
        ("A red car behind a blue bus.", ("a blue car and a red bus",)),
        ("A bed with two pillows", ()),
    ],
)
def test_things_stay_where_a_swap_may_be_true_or_odd(
    materials: EditMaterials, caption: str, others: tuple[str, ...]
) -> None:
    assert proposed(swap_objects, materials, caption, *others) == set()


def test_attributes_that_the_pool_gives_to_other_things_only_are_not_exchanged() -> None:
    couches = (
        *("a black cat on a red couch", "a white cat on a blue couch", "a black cat on a blue couch"),
        *("a cat near a dog", "a white bird near a black dog", "a black bird near a white dog"),
    )
    pool = counted(couches * 100)
    materials = EditMaterials(Knowledge(load_wordnet(), pool), load_bundled_model())
    texts = "a black cat on a red couch", "a white bird near a black dog"
    found = swaps_of(materials, "swap-attribute", texts)
    assert [[rewrite(text, each)[0] for each in own.changes] for text, own in zip(texts, found, strict=True)] == [
        [],
        ["a black bird near a white dog"],
    ]
    assert found[0].reasons == ["no_candidate"]


def test_nouns_that_a_language_model_finds_unlikely_in_their_places_are_not_exchanged() -> None:
    materials = EditMaterials.of(load_wordnet(), counted(POOL * 3), load_bundled_model())
    texts = "A blue car driving in front of a red truck.", "Two street signs atop a post beneath several trees."
    likely, unlikely = swaps_of(materials, "swap-object", texts)
    assert [rewrite(texts[0], each)[0] for each in likely.changes] == ["A blue truck driving in front of a red car."]
    assert not unlikely.changes
    assert "no_candidate" in unlikely.reasons


@pytest.fixture(scope="module")
def photographs() -> EditMaterials:
    """Return the bundled statistics and model."""
    return EditMaterials.of(load_wordnet(), load_bundled_statistics(), load_bundled_model())


@pytest.mark.parametrize(
    ("caption", "other", "expected"),
    [
        ("A black cat on a couch.", "a cat on a white couch", "A cat on a black couch."),
        ("An orange suitcase beside a car.", "a suitcase and a blue car", "A suitcase beside an orange car."),
        ("A fire hydrant beside a yellow car.", "a red fire hydrant", "A yellow fire hydrant beside a car."),
        ("A large bus beside a green suitcase.", "a blue bus", "A green bus beside a large suitcase."),
    ],
)
def test_an_attribute_goes_to_a_thing_of_which_another_caption_states_another_one(
    photographs: EditMaterials, caption: str, other: str, expected: str
) -> None:
    assert expected in written(photographs, "swap-attribute", caption, other)
    assert expected not in written(photographs, "swap-attribute", caption)


@pytest.mark.parametrize(
    ("caption", "others"),
    [
        ("A black cat on a couch.", ("a cat on a white couch", "a black couch")),
        ("A black cat on a couch.", ("a cat on a white couch", "two couches in a room")),
        ("A black cat on a couch near another couch.", ("a cat on a white couch",)),
        ("A kitchen with white walls.", ("a black kitchen",)),
        ("A cat with green eyes beside a car.", ("a cat and a blue car",)),
        ("A blue car beside a dog.", ("a brown dog",)),
        ("A green car beside a bus that is yellow.", ("a yellow bus",)),
        ("The bus is yellow and beside a green car.", ("a yellow bus",)),
        ("A man in a white shirt and shorts.", ("a man in blue shorts",)),
        ("A red shirt beside a man.", ("a black man",)),
    ],
)
def test_an_attribute_stays_where_it_may_hold_elsewhere_or_is_odd_there(
    photographs: EditMaterials, caption: str, others: tuple[str, ...]
) -> None:
    assert written(photographs, "swap-attribute", caption, *others) == set()


def test_colours_are_exchanged_with_things_that_have_any(photographs: EditMaterials) -> None:
    """The pool has neither a silver podium nor a green cat."""
    assert written(photographs, "swap-attribute", "A silver podium beside a purple mailbox.")
    assert written(photographs, "swap-attribute", "A white cat beside a green purse.") == set()


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A man smiles as a woman holds a cake.", "A woman smiles as a man holds a cake."),
        ("A motorcycle parked behind a car.", "A car parked behind a motorcycle."),
        ("A catcher smiles as the umpire watches.", "An umpire smiles as the catcher watches."),
        ("A woman with an umbrella and a man taking pictures.", "A man with an umbrella and a woman taking pictures."),
        ("Two men are serving wine to three women.", "Two women are serving wine to three men."),
    ],
)
def test_persons_and_vehicles_exchange_their_roles(photographs: EditMaterials, caption: str, expected: str) -> None:
    assert written(photographs, "swap-object", caption) == {expected}


@pytest.mark.parametrize(
    ("caption", "others"),
    [
        ("A man sitting on a couch next to a woman.", ()),
        ("An elderly man and woman sit on a bench.", ()),
        ("A man talking to a woman.", ()),
        ("A woman bathing a baby.", ()),
        ("A skier jumps as a man watches.", ()),
        ("A truck towing a bus.", ()),
        ("Zebras stand among bison.", ()),
        ("A man with his dog behind a woman.", ()),
        ("A man behind a person.", ()),
        ("A man behind a woman and another man.", ()),
        ("A man behind a woman.", ("a woman behind a man",)),
        ("No man is behind a woman.", ()),
    ],
)
def test_roles_stay_where_an_exchange_may_be_true_or_odd(
    photographs: EditMaterials, caption: str, others: tuple[str, ...]
) -> None:
    assert written(photographs, "swap-object", caption, *others) == set()


@given(st.integers(0, 3), st.integers(1, 3), st.integers(0, 3), st.integers(1, 3), st.integers(0, 3))
def test_an_exchange_of_two_spans_is_undone_by_another(before: int, one: int, gap: int, other: int, after: int) -> None:
    text = " ".join("abcdefghijklmno"[: before + one + gap + other + after])
    first, second = (before, before + one), (before + one + gap, before + one + gap + other)
    moved = (before, before + other), (before + other + gap, before + one + gap + other)
    caption = Caption(pair_of(text), tokens_of(text))
    made = apply_changes(text, caption.exchange(first, second))[0]
    assert sorted(made) == sorted(text)
    assert apply_changes(made, Caption(pair_of(made), tokens_of(made)).exchange(*moved))[0] == text


def test_pairs_of_a_long_caption_grow_with_its_length(materials: EditMaterials) -> None:
    counts = []
    for sentences in (40, 80, 160):
        text = "A red car is behind a blue bus. " * sentences
        caption = Caption(pair_of(text), tokens_of(text))
        counts.append(len(swapped_pairs(caption, materials.knowledge, ())))
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0]) > 0


def test_the_work_for_a_phrase_grows_with_its_adjectives(materials: EditMaterials) -> None:
    """Every two adjectives of a phrase were compared, which cannot be exchanged."""

    def calls(adjectives: int) -> int:
        text = f"A {'red ' * adjectives}car is behind a blue bus."
        caption = Caption(pair_of(text), tokens_of(text))
        count = 0

        def watch(_: object, event: str, __: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(watch)
        try:
            swapped_pairs(caption, materials.knowledge, ())
        finally:
            sys.setprofile(None)
        return count

    short, longer, long = map(calls, (50, 100, 200))
    assert long - longer < 2.5 * (longer - short)


def test_a_caption_that_calls_one_thing_several_names_keeps_its_numbers(photographs: EditMaterials) -> None:
    """Two girls on an elephant are no two elephants, and the trailers of a truck no trucks."""
    washed = "Two women wash an elephant.", ("two girls on an elephant", "the women wash it")
    assert written(photographs, "swap-attribute", washed[0], *washed[1]) == {"A woman washes two elephants."}
    assert written(photographs, "swap-attribute", washed[0], "two elephants") == set()
    assert written(photographs, "swap-attribute", "A truck pulling two trailers.", "a truck with two trailers")
