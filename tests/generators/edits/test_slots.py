"""Slots of captions: what may be replaced, and by which key it is known."""

import pytest

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.slots import ADJECTIVE, NOUN, find_slots
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.rule_fixtures import pair_of, tokens_of


@pytest.mark.parametrize(
    ("text", "nouns", "adjectives"),
    [
        ("A brick wall near a street", ["wall", "street"], ["brick"]),
        ("A red fire hydrant on a street", ["fire hydrant", "street"], ["red"]),
        ("A school ticket on two tables", ["ticket", "table"], ["two"]),
        ("A few big tables", ["table"], ["big"]),  # no "a five big tables"
    ],
)
def test_nouns_of_a_class_before_another_are_slots_of_attributes(
    text: str, nouns: list[str], adjectives: list[str]
) -> None:
    slots = find_slots(Caption(pair_of(text), tokens_of(text)), load_wordnet())
    assert [slot.key for slot in slots if slot.kind == NOUN] == nouns
    assert [slot.key for slot in slots if slot.kind == ADJECTIVE] == adjectives


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("A cute fuzzy sheep standing in a field", "NN"),  # the tagger says NNS
        ("a few sheep in a field", "NNS"),
        ("two sheep in a field", "NNS"),
    ],
)
def test_number_of_a_noun_without_plural_follows_from_its_determiner(text: str, tag: str) -> None:
    slots = find_slots(Caption(pair_of(text), tokens_of(text)), load_wordnet())
    assert next(slot.tag for slot in slots if slot.key == "sheep") == tag
