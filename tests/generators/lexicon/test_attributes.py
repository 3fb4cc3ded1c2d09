"""Classes of adjectives and number words, what excludes what, and what may replace what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.lexicon.attributes import (
    AttributeLexicon,
    concepts,
    counts,
    number_ranges,
    opposites,
    same_concept,
    untouched_words,
)
from pairwright.generators.lexicon.nouns import NounLexicon
from pairwright.generators.lexicon.tables import read_rows

WORDNET = load_wordnet()
LEXICON = AttributeLexicon(WORDNET, NounLexicon(WORDNET))
WORDS = tuple(dict.fromkeys([*concepts(), *number_ranges(), *untouched_words(), *(w for p in opposites() for w in p)]))
a_word = st.sampled_from(WORDS)
a_noun = st.sampled_from(["car", "dog", "man", "street", "sky", "door", "grass", "shirt", "pizza", "city bus", "x"])


@pytest.mark.parametrize(
    ("one", "other", "noun"),
    [
        ("red", "blue", "car"),
        ("large", "tiny", "dog"),
        ("wooden", "metal", "bench"),
        ("open", "closed", "door"),
        ("old", "young", "man"),
        ("old", "modern", "building"),
        ("busy", "empty", "street"),
        ("two", "four", "dog"),
        ("several", "two", "dog"),
        ("two", "many", "dog"),
        ("three", "five", "dog"),
        ("brown", "orange", "car"),
        ("rural", "urban", "street"),
        ("cloudy", "clear", "sky"),
        ("indoor", "outdoor", "pool"),
    ],
)
def test_words_that_exclude_each_other(one: str, other: str, noun: str) -> None:
    assert LEXICON.exclusive(one, other, noun)
    assert other in LEXICON.substitutes(one, noun, WORDS)


@pytest.mark.parametrize(
    ("one", "other", "noun"),
    [
        ("large", "big", "dog"),  # one concept
        ("red", "orange", "car"),  # taken for each other
        ("open", "closed", "field"),  # no opposites beside it
        ("white", "black", "man"),  # tells of something else
        ("old", "young", "boy"),  # "an old boy" is none
        ("green", "brown", "grass"),  # withered
        ("two", "2", "dog"),
        ("several", "three", "dog"),  # three are several
        ("two", "couple", "dog"),
        ("one", "three", "dog"),  # one of three
        ("three", "four", "dog"),  # somebody counts one more
        ("brown", "orange", "cat"),
        ("other", "same", "dog"),  # describe nothing
        ("red", "large", "car"),  # of different classes
    ],
)
def test_words_that_may_be_said_of_the_same(one: str, other: str, noun: str) -> None:
    assert not LEXICON.exclusive(one, other, noun)


@given(a_word, a_word, a_noun)
def test_exclusion_and_substitution_are_symmetric(one: str, other: str, noun: str) -> None:
    vocabulary = (one, other)
    assert LEXICON.exclusive(one, other, noun) == LEXICON.exclusive(other, one, noun)
    mine, theirs = LEXICON.substitutes(one, noun, vocabulary), LEXICON.substitutes(other, noun, vocabulary)
    assert (other in mine) == (one in theirs) == LEXICON.exclusive(one, other, noun)


@given(a_word, a_noun)
def test_words_of_one_concept_never_exclude_each_other(word: str, noun: str) -> None:
    assert not any(LEXICON.exclusive(word, other, noun) for other in same_concept(word))


def test_antonyms_of_wordnet_are_opposites_of_words_that_no_table_has() -> None:
    assert LEXICON.substitutes("masculine", "voice", ("feminine", "red")) == ("feminine",)


def test_classes() -> None:
    assert LEXICON.class_of("red") == "colour"
    assert LEXICON.class_of("seven") == "number"
    assert LEXICON.class_of("qwertz") == ""
    assert "red" not in untouched_words()
    assert "other" in untouched_words()


def test_every_class_and_neighbour_of_the_tables_is_known() -> None:
    classes = {row["class"] for row in read_rows("attribute_classes")}
    assert {group for found in concepts().values() for group, _ in found} == classes
    names = {name for found in concepts().values() for _, name in found}
    assert {row[column] for row in read_rows("attribute_neighbours") for column in ("one", "other")} <= names


def test_a_number_word_may_be_said_of_the_number_that_it_names() -> None:
    assert (counts()["two"], counts()["7"], counts()["pair"]) == (2, 7, 2)
    assert "several" not in counts()
    for word, (least, greatest) in number_ranges().items():
        assert least <= counts().get(word, least) <= greatest


def test_some_things_have_any_attribute_of_a_class() -> None:
    assert LEXICON.is_usual("purple", "purse")
    assert not LEXICON.is_usual("purple", "cat")
    assert not LEXICON.is_usual("wooden", "purse")
