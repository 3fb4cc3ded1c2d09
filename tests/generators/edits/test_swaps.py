"""Proposals of swaps: attributes, numbers, nouns and noun phrases that change places."""

import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.captions.caption import Caption, ParsedText
from pairwright.generators.captions.realisation import rewrite
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.table import applicable_constraints
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.learning import sample_slots
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.swaps.attributes import Modifier, swap_attributes, swapped_pairs
from pairwright.generators.edits.swaps.fit import ClozeFit, SpanSwap, exchanged_order
from pairwright.generators.edits.swaps.objects import swap_objects
from pairwright.generators.edits.swaps.proposal import SwapProposal
from pairwright.generators.edits.swaps.swaps import Swaps
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.cloze.training import train_cloze_model
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.rule_fixtures import counted, pair_of, tokens_of, tokens_of_all

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


Exchange = Callable[[Caption, Knowledge, Modifier, Modifier], SwapProposal | str]


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
    return {rewrite(text, each.changes)[0] for each in found if not isinstance(each, str)}


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A red car behind a blue bus.", "A blue car behind a red bus."),
        ("A small cat in a large bowl", "A large cat in a small bowl"),
        ("Two dogs near a man", "A dog near two men"),
        ("A man is near two dogs.", "Two men are near a dog."),
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
        ("Two dogs near a man", ("two men and some dogs",)),
        ("A dog between two men", ()),
        ("Two men in a field", ()),
        ("Two dogs near each other and a man", ()),
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
        ("A bed with two pillows", ()),
    ],
)
def test_things_stay_where_a_swap_may_be_true_or_odd(known: Knowledge, caption: str, others: tuple[str, ...]) -> None:
    assert proposed(swap_objects, known, caption, *others) == set()


COUCHES = (
    *("a black cat on a red couch", "a white cat on a blue couch", "a black cat on a blue couch"),
    *("a cat near a dog", "a dog near a cat", "a white bird near a black dog", "a black bird near a white dog"),
)


@pytest.fixture(scope="module")
def model() -> ClozeModel:
    """Return the cloze model of captions that have no red cat and no black couch."""
    captions = COUCHES * 80
    return train_cloze_model(sample_slots(captions, tokens_of_all(captions), load_wordnet()))


def test_what_a_language_model_finds_unlikely_is_not_proposed(model: ClozeModel) -> None:
    texts = "a black cat on a red couch", "a white bird near a black dog"
    pool = counted([*POOL, *COUCHES] * 40)
    swaps = Swaps(EditMaterials.of(load_wordnet(), pool, EditModel(model)), ("swap-attribute",))
    found = swaps.propose([Caption(pair_of(text), tokens_of(text)) for text in texts])["swap-attribute"]
    assert [[rewrite(text, each)[0] for each in own.changes] for text, own in zip(texts, found, strict=True)] == [
        [],
        ["a black bird near a white dog"],
    ]
    assert found[0].reasons == ["no_candidate"]


def test_a_cloze_model_compares_a_caption_before_and_after_a_swap(model: ClozeModel) -> None:
    fit = ClozeFit(model, load_wordnet())

    def ratio(text: str, first: tuple[int, int], second: tuple[int, int]) -> float:
        return fit.ratios([SpanSwap(ParsedText(tokens_of(text)), first, second)])[0]

    assert ratio("a black cat on a red couch", (1, 2), (5, 6)) < 0.05
    assert 0.3 < ratio("a cat near a dog", (1, 2), (4, 5)) < 3
    texts = [ParsedText(tokens_of(text)) for text in ("a black cat on a red couch", "a white cat on a blue couch")]
    exchanges = [SpanSwap(text, *spans) for text in texts for spans in (((1, 2), (5, 6)), ((2, 3), (6, 7)))]
    assert fit.ratios(exchanges) == [fit.ratios([each])[0] for each in exchanges]


@given(st.integers(0, 4), st.integers(1, 4), st.integers(0, 4), st.integers(1, 4), st.integers(0, 4))
def test_an_exchange_of_two_spans_is_undone_by_another(before: int, one: int, gap: int, other: int, after: int) -> None:
    first, second = (before, before + one), (before + one + gap, before + one + gap + other)
    length = second[1] + after
    order = exchanged_order(length, first, second)
    assert sorted(order) == list(range(length))
    moved_first, moved_second = (before, before + other), (before + other + gap, length - after)
    back = exchanged_order(length, moved_first, moved_second)
    assert [order[at] for at in back] == list(range(length))


def test_a_swap_in_a_long_text_is_compared_in_the_part_around_it(model: ClozeModel) -> None:
    fit, ratios = ClozeFit(model, load_wordnet()), list[float]()
    for sentences in (40, 80):
        around = "A dog is in a field. " * sentences
        tokens = tokens_of(f"{around}A black cat is on a red couch. {around}")
        black, red = (next(at for at, token in enumerate(tokens) if token.text == word) for word in ("black", "red"))
        exchange = SpanSwap(ParsedText(tokens), (black, black + 1), (red, red + 1))
        ratios += fit.ratios([exchange])
    assert 0 < ratios[0] < 0.05
    assert ratios[0] == pytest.approx(ratios[1])


def test_of_a_dense_text_the_nearest_swaps_are_compared(model: ClozeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pairwright.generators.edits.swaps.swaps.MAX_COMPARED", 2)
    text = "A red car is behind a blue bus. " * 3
    swaps = Swaps(EditMaterials.of(load_wordnet(), counted(POOL * 3), EditModel(model)), ("swap-attribute",))
    (found,) = swaps.propose([Caption(pair_of(text), tokens_of(text))])["swap-attribute"]
    compared = [changes[1].start - changes[0].end for changes in found.changes]
    assert 0 < len(compared) <= 2
    assert all(distance < len("A red car is behind a blue bus.") for distance in compared)
    assert list(found.reasons).count("no_candidate") >= 3


def test_pairs_of_a_long_caption_grow_with_its_length(known: Knowledge) -> None:
    counts = []
    for sentences in (40, 80, 160):
        text = "A red car is behind a blue bus. " * sentences
        counts.append(len(swapped_pairs(Caption(pair_of(text), tokens_of(text)), known, ())))
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0]) > 0


def test_the_work_for_a_phrase_grows_with_its_adjectives(known: Knowledge) -> None:
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
            swapped_pairs(caption, known, ())
        finally:
            sys.setprofile(None)
        return count

    short, longer, long = map(calls, (50, 100, 200))
    assert long - longer < 2.5 * (longer - short)
