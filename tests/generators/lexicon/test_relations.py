"""The lexicon of relation phrases: what excludes what, what says the same, and the converse of a phrase."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.lexicon.relations import load_relations
from pairwright.generators.lexicon.tables import read_rows

LEXICON = load_relations()
_PREPOSITIONS = [row["phrase"] for row in read_rows("prepositions")]
_VERBS = [(row["verb"], row["frame"]) for row in read_rows("verbs")]
_PLACES = [f"{verb} {phrase}" for verb, frame in _VERBS if frame == "i" for phrase in _PREPOSITIONS]
KEYS = sorted({*_PREPOSITIONS, *(verb for verb, frame in _VERBS if frame != "i"), *_PLACES})
"""All phrases that the tables allow; many are odd ("hang into")."""
PHRASES = st.sampled_from(KEYS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("on", "under"),
        ("sit on", "stand next to"),
        ("sit on", "under"),
        ("hold", "throw"),
        ("hold", "ride"),
        ("walk", "sit"),
        ("walk down", "lie on"),
        ("look at", "ride"),
        ("fill with", "next to"),
        ("walk into", "walk out of"),
        ("in the middle of", "on the edge of"),
        ("to the left of", "to the right of"),
    ],
)
def test_phrases_that_cannot_hold_together_exclude_each_other(one: str, other: str) -> None:
    assert LEXICON.exclusive(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("near", "next to"),
        ("near", "in front of"),
        ("on", "on top of"),
        ("on", "in"),
        ("with", "under"),
        ("with", "next to"),
        ("sit on", "on"),
        ("hold", "eat"),
        ("hold", "look at"),
        ("stand on", "ride"),
        ("walk down", "walk along"),
        ("sit in", "eat at"),
    ],
)
def test_phrases_that_may_hold_together_do_not(one: str, other: str) -> None:
    assert not LEXICON.exclusive(one, other)


@pytest.mark.parametrize("weak", ["near", "by", "close to", "stand near"])
def test_what_is_on_or_in_a_thing_is_near_it_though_a_captioner_would_not_say_so(weak: str) -> None:
    for strong in ("on", "in", "inside of", "stand on"):
        assert LEXICON.exclusive(strong, weak)
        assert LEXICON.refutes(weak, strong)
        assert not LEXICON.refutes(strong, weak)
    assert LEXICON.refutes("sit on", "stand near")


@given(PHRASES, PHRASES)
def test_a_phrase_refutes_none_that_it_does_not_exclude(one: str, other: str) -> None:
    assert LEXICON.exclusive(one, other) or not LEXICON.refutes(one, other)


def test_unknown_phrases_exclude_nothing() -> None:
    assert LEXICON.analyse("frobnicate on") is None
    assert not LEXICON.exclusive("frobnicate on", "under")


@given(PHRASES, PHRASES)
def test_exclusion_is_symmetric_and_no_phrase_excludes_itself(one: str, other: str) -> None:
    assert LEXICON.exclusive(one, other) == LEXICON.exclusive(other, one)
    assert not LEXICON.exclusive(one, one)


@given(PHRASES, PHRASES, st.sampled_from(["", "street", "table", "wave", "umbrella", "bus", "hand"]))
def test_paraphrases_never_exclude_each_other(one: str, other: str, noun: str) -> None:
    assert LEXICON.paraphrase(one, other, noun) == LEXICON.paraphrase(other, one, noun)
    assert not (LEXICON.paraphrase(one, other, noun) and LEXICON.exclusive(one, other, thing=noun))


@given(
    st.lists(PHRASES | st.just("frobnicate on"), max_size=12, unique=True),
    st.sampled_from(["", "man", "train"]),
    st.sampled_from(["", "street", "table"]),
)
def test_a_row_holds_what_pairs_say(keys: list[str], subject: str, noun: str) -> None:
    for one in keys:
        row = LEXICON.refuted(one, tuple(keys), LEXICON.noun_classes(subject, noun))
        assert row.tolist() == [LEXICON.refutes(one, other, subject, noun) for other in keys]


@pytest.mark.parametrize(
    ("one", "other", "subject", "noun"),
    [
        ("inside", "on", "man", "train"),
        ("inside", "on", "man", "passenger train"),
        ("on", "next to", "hydrant", "street"),
        ("under", "hold", "woman", "umbrella"),
        ("sit on", "stand on", "vase", "table"),
        ("in front of", "behind", "man", "cake"),
    ],
)
def test_nouns_may_lift_an_exclusion(one: str, other: str, subject: str, noun: str) -> None:
    assert LEXICON.exclusive(one, other)
    assert not LEXICON.exclusive(one, other, subject, noun)


def test_nouns_may_add_an_exclusion() -> None:
    assert not LEXICON.exclusive("in", "on")
    assert LEXICON.exclusive("in", "on", thing="suitcase")


def test_paraphrases_share_verb_and_meaning_of_the_preposition() -> None:
    assert LEXICON.paraphrase("sit near", "seat next to")
    assert LEXICON.paraphrase("above", "over")
    assert not LEXICON.paraphrase("sit near", "stand near")
    assert LEXICON.paraphrase("in", "on", "train")
    assert not LEXICON.paraphrase("in", "on")


def test_converses_say_the_same_from_the_other_side() -> None:
    assert "under" in LEXICON.converse("sit on")
    assert "behind" in LEXICON.converse("in front of")
    assert LEXICON.converse("hold") == {"hold by"}
    assert not LEXICON.converse("look at")


def test_analysis_takes_a_phrase_apart() -> None:
    relation = LEXICON.analyse("sit down on top of")
    assert relation is not None
    assert (relation.verb, relation.preposition) == ("sit", "on top of")
    assert LEXICON.refutes("sit down on top of", "under")
    assert LEXICON.refutes("sit down on top of", "stand on")


@pytest.mark.parametrize(
    ("words", "length"),
    [("on top of a car", 3), ("on a car", 1), ("in front of it", 3), ("in", 1), ("car on", 0), ("", 0)],
)
def test_the_longest_preposition_is_found(words: str, length: int) -> None:
    assert LEXICON.match_preposition(words.split(), 0) == length


def test_all_phrases_of_the_tables_are_known() -> None:
    assert all(LEXICON.analyse(key) for key in KEYS)


@pytest.mark.parametrize(("name", "key"), [("prepositions", ("phrase",)), ("verbs", ("verb", "frame"))])
def test_no_row_of_a_table_is_written_twice(name: str, key: tuple[str, ...]) -> None:
    rows = [tuple(row[column] for column in key) for row in read_rows(name)]
    assert sorted(rows) == sorted(set(rows))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("above", "next to"),
        ("below", "beside"),
        ("over", "by"),
        ("hit", "wait for"),
        ("hit", "reach"),
        ("kick", "chase"),
    ],
)
def test_what_a_picture_does_not_tell_apart_is_not_refuted(one: str, other: str) -> None:
    assert not LEXICON.refutes(one, other)
    assert not LEXICON.refutes(other, one)


def test_verbs_without_states_take_those_of_their_meaning() -> None:
    stroll, walk = LEXICON.analyse("stroll down"), LEXICON.analyse("walk down")
    assert stroll is not None
    assert walk is not None
    assert np.array_equal(stroll.states, walk.states)


def test_nouns_of_a_class_are_known_by_the_last_word_of_a_compound() -> None:
    assert "road" in {each.name for each in LEXICON.noun_classes("", "gravel road")}
    assert [each.name for each in LEXICON.noun_classes("zebra", "")] == ["animal"]
    assert [each.name for each in LEXICON.noun_classes("lampshade", "")] == ["thing"]
    assert LEXICON.noun_classes("", "") == ()


@pytest.mark.parametrize("phrase", ["away from", "far from", "without", "walk away from", "stand far from"])
def test_denials_are_no_relations(phrase: str) -> None:
    assert LEXICON.analyse(phrase) is None


@pytest.mark.parametrize("phrase", ["near", "talk to", "next to", "among", "kiss"])
def test_mutual_relations_may_hold_in_both_directions(phrase: str) -> None:
    assert LEXICON.is_mutual(phrase)


@pytest.mark.parametrize("phrase", ["behind", "on", "carry", "chase"])
def test_other_relations_hold_in_one_direction(phrase: str) -> None:
    assert not LEXICON.is_mutual(phrase)


def test_some_relations_keep_two_things_apart() -> None:
    assert all(map(LEXICON.keeps_apart, ("behind", "drive in front of", "past")))
    assert not any(map(LEXICON.keeps_apart, ("on", "inside", "carry", "with", "qwertz")))
