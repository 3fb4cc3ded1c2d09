"""Proposals of swaps: attributes, numbers, nouns and noun phrases that change places."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.captions.caption import Caption, ParsedText
from pairwright.generators.captions.realisation import rewrite
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.learning import sample_slots
from pairwright.generators.edits.swaps.attributes import swap_attributes
from pairwright.generators.edits.swaps.fit import ClozeFit, SpanSwap, exchanged_order, weigh_swaps
from pairwright.generators.edits.swaps.objects import swap_objects
from pairwright.generators.edits.swaps.proposal import SwapMaterials, SwapProposal
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
Proposer = Callable[[Caption, SwapMaterials], Iterator[SwapProposal | str]]


@dataclass(frozen=True, slots=True)
class SameFit:
    """A language model to which every order of words is as likely."""

    value: float

    def ratios(self, exchanges: Sequence[SpanSwap]) -> list[float]:
        """Return the same for all swaps."""
        return [self.value for _ in exchanges]


@pytest.fixture(scope="module")
def materials() -> SwapMaterials:
    """Return materials whose pool has each caption three times."""
    wordnet = load_wordnet()
    return SwapMaterials(Knowledge(wordnet, counted(POOL * 3)))


def proposed(propose: Proposer, materials: SwapMaterials, caption: str, *others: str) -> set[str]:
    """Return the texts of all proposals."""
    found = propose(Caption(pair_of(caption, *others), tokens_of(caption)), materials)
    return {rewrite(caption, each.changes)[0] for each in found if not isinstance(each, str)}


@pytest.mark.parametrize(
    ("caption", "swapped"),
    [
        ("A red car behind a blue bus.", "A blue car behind a red bus."),
        ("A small cat in a large bowl", "A large cat in a small bowl"),
        ("A small bathroom has a green toilet.", "A green bathroom has a small toilet."),
        ("Two dogs near a man", "A dog near two men"),
        ("A man is near two dogs.", "Two men are near a dog."),
    ],
)
def test_attributes_of_two_things_change_places(materials: SwapMaterials, caption: str, swapped: str) -> None:
    assert proposed(swap_attributes, materials, caption) == {swapped}


@pytest.mark.parametrize(
    ("caption", "others"),
    [
        ("A red car behind a blue bus.", ("a blue car and a red bus",)),
        ("A red car behind a blue automobile.", ()),
        ("a red and blue car on a street", ()),
        ("A red car behind a bus.", ()),
        ("A red car behind an odd bus.", ()),
        ("Two dogs near a man", ("two men and some dogs",)),
        ("A dog between two men", ()),
        ("Two men in a field", ()),
        ("Two dogs near each other and a man", ()),
    ],
)
def test_attributes_stay_where_a_swap_may_be_true_or_odd(
    materials: SwapMaterials, caption: str, others: tuple[str, ...]
) -> None:
    assert proposed(swap_attributes, materials, caption, *others) == set()


def test_one_false_attribute_makes_a_swap_false(materials: SwapMaterials) -> None:
    """Another caption may call another bus red; the car is still not blue."""
    assert proposed(swap_attributes, materials, "A red car behind a blue bus.", "a red bus on a street")


def test_a_colour_in_a_picture_without_colours_stays(materials: SwapMaterials) -> None:
    caption = "A black and white photo of a red car and a blue bus"
    assert proposed(swap_attributes, materials, caption) == set()


@pytest.mark.parametrize(
    ("caption", "swapped"),
    [
        ("A red car behind a blue bus.", "A red bus behind a blue car."),
        ("Two giraffes and a zebra", "Two zebras and a giraffe"),
    ],
)
def test_things_change_places(materials: SwapMaterials, caption: str, swapped: str) -> None:
    assert swapped in proposed(swap_objects, materials, caption)


@pytest.mark.parametrize(
    ("caption", "others"),
    [
        ("A cat next to a dog", ()),
        ("A cat and a dog", ()),
        ("A red car behind a blue bus.", ("a blue car and a red bus",)),
        ("Two men and a woman in his car", ()),
        ("A bed with two pillows", ()),
    ],
)
def test_things_stay_where_a_swap_may_be_true_or_odd(
    materials: SwapMaterials, caption: str, others: tuple[str, ...]
) -> None:
    assert proposed(swap_objects, materials, caption, *others) == set()


def test_what_a_language_model_finds_unlikely_is_not_proposed(materials: SwapMaterials) -> None:
    text = "A red car behind a blue bus."
    caption = Caption(pair_of(text), tokens_of(text))
    swaps = [*swap_attributes(caption, materials)]
    assert [each.weight for each in weigh_swaps(SameFit(0.5), [caption], [swaps])[0] if not isinstance(each, str)] == [
        0.5
    ]
    assert weigh_swaps(SameFit(0.001), [caption], [swaps]) == [["no_candidate"]]


def test_a_cloze_model_compares_a_caption_before_and_after_a_swap() -> None:
    captions = [
        *("a black cat on a red couch", "a white cat on a blue couch", "a black cat on a blue couch"),
        *("a cat near a dog", "a dog near a cat"),
    ] * 80
    wordnet = load_wordnet()
    fit = ClozeFit(train_cloze_model(sample_slots(captions, tokens_of_all(captions), wordnet)), wordnet)

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
