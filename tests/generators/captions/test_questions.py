"""Captions that ask."""

import pytest

from pairwright.generators.captions.questions import is_question
from pairwright.generators.edit_types import NEGATIVE_TYPES
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.positives import RulePositives
from tests.generators.rule_fixtures import annotate, pair_of, small_pool


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("What is the man holding?", True),
        ("is this a cat?", True),
        ("Exactly what does this sign mean? ", True),
        ("Can you see a dog on the bed?!", True),
        ("Isn't that a cat on a couch?", True),
        ("a bus sitting by the curb??", False),
        ("Can of soda on a table?", False),
        ("What a man holds.", False),
        ('A sheet cake displays the words, "What is the Pickup Line Today?"', False),
        ("", False),
        ("?", False),
    ],
)
def test_a_question_is_known_by_its_first_word_and_its_mark(caption: str, *, expected: bool) -> None:
    assert is_question(caption) is expected


@pytest.mark.parametrize("both_sides", [False, True])
def test_of_a_question_nothing_is_made(*, both_sides: bool) -> None:
    pair = pair_of("Is this a cat on a couch or a big dog next to a car?", "a cat and a dog")
    options = NegativeOptions(types=NEGATIVE_TYPES, both_sides=both_sides)
    rows = annotate(RuleNegatives(load_wordnet(), small_pool(), options), pair)
    rows += annotate(RulePositives(small_pool()), pair)
    assert len(rows) == len(NEGATIVE_TYPES) + 4
    assert {(row.status, row.reason) for row in rows} == {("rejected", "question")}
