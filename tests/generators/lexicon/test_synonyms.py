"""Rewordings that keep a caption true, and words for the same thing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.lexicon.attributes import AttributeLexicon
from pairwright.generators.lexicon.nouns import NounLexicon, loosely_same
from pairwright.generators.lexicon.synonyms import (
    other_senses,
    reword_each_other,
    rewording_rows,
    rewordings,
)

WORDNET = load_wordnet()
NOUNS = NounLexicon(WORDNET)
ATTRIBUTES = AttributeLexicon(WORDNET, NOUNS)
a_row = st.sampled_from([(pos, word, row) for (pos, word), rows in rewording_rows().items() for row in rows])


def test_a_rewording_holds_beside_the_nouns_of_its_condition() -> None:
    assert rewordings("old", "adjective", "woman") == ("elderly",)
    assert rewordings("old", "adjective", "car") == ()
    assert rewordings("big", "adjective", "bus") == ("large",)
    assert rewordings("big", "adjective", "brother") == ()
    assert "beside" in rewordings("next to", "relation", "tree")
    assert "on top of" in rewordings("on", "relation", "coffee table")


def test_a_rewording_has_a_direction() -> None:
    assert "baby" in rewordings("infant", "noun")
    assert "infant" not in rewordings("baby", "noun")


@given(a_row)
def test_a_rewording_never_excludes_the_word(entry: tuple[str, str, object]) -> None:
    pos, word, _ = entry
    others = [other for row in rewording_rows()[pos, word] for other in row.others]
    assert word not in others
    if pos == "noun":
        assert not any(NOUNS.exclusive(word, other) for other in others)
    if pos == "adjective":
        assert not any(ATTRIBUTES.exclusive(word, other, "car") for other in others)


@pytest.mark.parametrize(("one", "other"), [("couch", "sofa"), ("man", "guy"), ("street", "road"), ("large", "big")])
def test_what_captions_mix_up_rewords_each_other(one: str, other: str) -> None:
    assert reword_each_other(one, other)
    assert reword_each_other(other, one)
    assert not reword_each_other(one, "giraffe")


def test_loosely_same_holds_the_noun_itself() -> None:
    assert {"street", "road"} <= loosely_same("street")
    assert loosely_same("giraffe") == {"giraffe"}


def test_nouns_of_two_senses() -> None:
    assert "scooter" in other_senses()["bike"]
