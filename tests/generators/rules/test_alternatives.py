"""What a caption leaves open by "or"."""

import pytest

from pairwright.generators.captions.caption import Caption
from pairwright.generators.negatives import FOR_BENCHMARKS, NegativeOptions, RuleNegatives
from pairwright.generators.rules.alternatives import alternatives_in
from tests.generators.rule_fixtures import SmallThesaurus, annotate, pair_of, small_pool, texts, tokens_of


@pytest.mark.parametrize(
    ("caption", "open_"),
    [
        ("a cat or a dog on a bed", ["a cat or a dog"]),
        ("a bench with cats, birds or dogs near it", ["cats, birds or dogs"]),
        ("a cat, or a dog, on a bed", ["a cat, or a dog"]),
        ("a black or white dog on a bed", ["black or white"]),
        ("two or more dogs on a bed", ["two or more"]),
        ("a man riding a horse or walking on a street", ["riding a horse or walking on a street"]),
        ("sheep walking or standing in a field", ["walking or standing in a field"]),
        ("a cat and a dog on a bed", []),
        ("or a dog", []),
        ("a dog or", []),
    ],
)
def test_the_sides_of_an_or_are_left_open(caption: str, open_: list[str]) -> None:
    found = alternatives_in(Caption(pair_of(caption), tokens_of(caption)))
    assert [caption[each.start : each.end] for each in found] == open_


def negatives(caption: str, *, both_sides: bool = False) -> set[str]:
    """Return the negatives of all types that twenty seeds give."""
    options = NegativeOptions(types=FOR_BENCHMARKS, minimum=1, both_sides=both_sides)
    generator = RuleNegatives(SmallThesaurus(), small_pool(), options)
    return texts(lambda seed: annotate(generator, pair_of(caption), seed))


@pytest.mark.parametrize("both_sides", [False, True])
@pytest.mark.parametrize("caption", ["a cat or a dog on a bed", "a man on a bench with a cat or a dog"])
def test_neither_side_of_an_or_is_changed(caption: str, *, both_sides: bool) -> None:
    """The caption is as true where the other side alone is there."""
    found = negatives(caption, both_sides=both_sides)
    assert found
    assert [text for text in found if "a cat or a dog" not in text] == []
    assert not [text for text in found if "a dog and" in text or "a dog with" in text]


def test_what_both_sides_have_in_common_is_changed() -> None:
    found = negatives("a black or white dog on a bed")
    assert any("or white cat" in text or "or white horse" in text for text in found)
    assert all("black or white" in text for text in found)
