"""Noun phrases, relations and the word tables."""

import pytest

from pairwright.generators.captions.phrases import noun_phrases
from pairwright.generators.words.attributes import CLASSES, contrary, exclude_each_other, same_concept
from pairwright.generators.words.nouns import FRAMES, KINDS
from pairwright.generators.words.relations import INSTEAD_OF, RELATIONS, relations_in
from pairwright.generators.words.synonyms import ATTRIBUTES, OBJECTS, reword_each_other
from pairwright.generators.words.synonyms import RELATIONS as REWORDED
from tests.generators.rule_fixtures import tokens_of


@pytest.mark.parametrize(
    ("caption", "phrases"),
    [
        ("two small red fire hydrants near a wall", ["two small red fire hydrants", "a wall"]),
        ("a man riding a brown horse", ["a man", "a brown horse"]),
        ("a green star left of a square", ["a green star", "a square"]),
        ("The black and white cat sleeps.", ["The black and white cat"]),
        ("a dog on a large snow covered slope", ["a dog", "a large snow covered slope"]),
        ("snow covered mountains behind a house", ["snow covered mountains", "a house"]),
        ("a table covered with plates", ["a table", "plates"]),
        ("a bear in a lush green field", ["a bear", "a lush green field"]),
        ("an orange and white bus on a street", ["an orange and white bus", "a street"]),
        ("an orange and a white bus", ["an orange", "a white bus"]),
    ],
)
def test_noun_phrases_are_flat_and_whole(caption: str, phrases: list[str]) -> None:
    tokens = tokens_of(caption)
    assert [caption[tokens[p.start].start : tokens[p.end - 1].end] for p in noun_phrases(tokens)] == phrases


def test_joined_adjectives_are_marked() -> None:
    (phrase,) = noun_phrases(tokens_of("The black and white cat"))
    assert phrase.joined


def test_the_longest_wording_of_a_relation_is_found() -> None:
    found = relations_in(tokens_of("a ball on the left side of a box on a table"))
    assert [(hit.relation.name, hit.end - hit.start) for hit in found] == [("left", 5), ("on", 1)]


def test_every_opposite_is_written_for_a_known_wording_and_means_another_relation() -> None:
    name = {wording: relation.name for relation in RELATIONS for wording in relation.wordings}
    for wording, others in INSTEAD_OF.items():
        assert wording in name
        assert all(name[other] != name[wording] for other in others)


def test_a_rewording_of_a_relation_is_never_its_opposite() -> None:
    for wording, others in REWORDED.items():
        assert set(others).isdisjoint(INSTEAD_OF.get(wording, ()))
        assert wording not in others


def test_words_of_one_concept_never_exclude_each_other() -> None:
    for concepts in CLASSES.values():
        for words in concepts.values():
            assert not any(exclude_each_other(one, other) for one in words for other in words)


def test_a_contrary_is_never_a_rewording() -> None:
    for word, rewording in ATTRIBUTES.items():
        assert set(rewording.others).isdisjoint(contrary(word))


def test_large_and_big_are_one_concept() -> None:
    assert {"large", "big"} <= set(same_concept("big"))
    assert "small" in contrary("big")
    assert "orange" not in contrary("red")


def test_kinds_hold_no_frames_and_tables_no_loops() -> None:
    assert FRAMES.isdisjoint(KINDS)
    assert all(noun not in others for noun, others in [*KINDS.items(), *OBJECTS.items()])


@pytest.mark.parametrize(("one", "other"), [("couch", "sofa"), ("man", "guy"), ("street", "road"), ("large", "big")])
def test_what_captions_mix_up_is_no_negative(one: str, other: str) -> None:
    assert reword_each_other(one, other)
    assert reword_each_other(other, one)
