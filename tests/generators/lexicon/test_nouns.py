"""Classes of nouns, what excludes what, and what may replace what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.lexicon.nouns import NounLexicon, flagged, noun_features
from pairwright.generators.lexicon.tables import cell_words, read_rows

LEXICON = NounLexicon(load_wordnet())
NOUNS = tuple(noun_features())
a_noun = st.sampled_from(NOUNS)


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("seagull", "bird"),
        ("seagull", "animal"),
        ("surfer", "person"),
        ("fire hydrant", "street furniture"),
        ("sofa", "furniture"),
        ("controller", "electronics"),
        ("wave", "water"),
        ("city bus", "vehicle"),
        ("mug", "container"),
        ("broccoli", "food"),
    ],
)
def test_a_noun_has_the_class_of_its_sense_in_captions(noun: str, expected: str) -> None:
    assert expected in LEXICON.classes(noun)


def test_what_is_no_thing_has_no_class() -> None:
    assert not LEXICON.classes("qwertz")
    assert not LEXICON.substitutes("qwertz", NOUNS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("dog", "cat"),
        ("man", "woman"),
        ("boy", "woman"),
        ("baby", "man"),
        ("surfer", "skateboarder"),
        ("tennis player", "baseball player"),
        ("bus", "fire truck"),
        ("bicycle", "motorcycle"),
        ("chair", "table"),
        ("kitchen", "bathroom"),
        ("tennis court", "baseball field"),
        ("circle", "square"),
        ("man", "dog"),
    ],
)
def test_nouns_that_exclude_each_other(one: str, other: str) -> None:
    assert LEXICON.exclusive(one, other)
    assert other in LEXICON.substitutes(one, (*NOUNS, other))


@pytest.mark.parametrize(
    ("one", "other"), [("day", "night"), ("clock", "watch"), ("church", "store"), ("river", "wave"), ("pond", "ocean")]
)
def test_nouns_that_captioners_tell_apart_exclude_each_other(one: str, other: str) -> None:
    """Also words that speak of the whole picture, which are never replaced by rules."""
    assert LEXICON.exclusive(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("couch", "sofa"),  # synonyms
        ("dog", "animal"),  # a kind of the other
        ("street", "road"),  # used for the same
        ("man", "surfer"),  # both of one person
        ("boy", "man"),
        ("surfboard", "surf board"),  # spellings
        ("toilet", "toilet seat"),  # a compound and its words
        ("window", "church"),  # a part
        ("table", "restaurant"),  # "sitting at" both
        ("city bus", "bus"),
        ("close", "cat"),  # no thing: "a close up"
    ],
)
def test_nouns_that_may_be_said_of_the_same(one: str, other: str) -> None:
    assert not LEXICON.exclusive(one, other)


@given(st.lists(a_noun, unique=True, max_size=30), a_noun)
def test_substitutes_exclude_each_other(vocabulary: list[str], noun: str) -> None:
    assert all(LEXICON.exclusive(noun, other) for other in LEXICON.substitutes(noun, vocabulary))


@given(a_noun, a_noun)
def test_exclusion_and_substitution_are_symmetric(one: str, other: str) -> None:
    vocabulary = (one, other)
    assert LEXICON.exclusive(one, other) == LEXICON.exclusive(other, one)
    assert (other in LEXICON.substitutes(one, vocabulary)) == (one in LEXICON.substitutes(other, vocabulary))


@given(a_noun)
def test_a_noun_never_excludes_itself_or_replaces_a_frame(noun: str) -> None:
    assert not LEXICON.exclusive(noun, noun)
    assert not any(other in flagged("non_object") for other in LEXICON.substitutes(noun, NOUNS))


def test_substitutes_keep_the_order_of_the_vocabulary() -> None:
    vocabulary = ("zebra", "cat", "kitchen", "horse", "dog")
    assert LEXICON.substitutes("dog", vocabulary) == ("zebra", "cat", "horse")


def test_flags() -> None:
    assert "luggage" in flagged("mass")
    assert "side" in flagged("non_object")
    assert LEXICON.is_alive("giraffe")
    assert not LEXICON.is_alive("monitor")
    assert "hat" in flagged("worn")


def test_every_class_of_the_tables_is_known() -> None:
    classes = {row["class"] for row in read_rows("noun_classes")}
    named = {name for features in noun_features().values() for name in features.classes}
    named |= {parent for row in read_rows("noun_classes") for parent in cell_words(row["parents"])}
    for table, columns in (
        ("noun_compatibility", ("nouns", "others")),
        ("attribute_classes", ("beside", "never", "usual")),
    ):
        cells = (word for row in read_rows(table) for column in columns for word in cell_words(row[column]))
        named |= {word[1:] for word in cells if word.startswith("@")}
    assert named <= classes


def test_no_noun_has_two_rows() -> None:
    nouns = [row["noun"] for row in read_rows("nouns")]
    assert len(nouns) == len(set(nouns))
