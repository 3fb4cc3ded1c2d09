"""Noun phrases."""

import pytest

from pairwright.generators.captions.phrases import noun_phrases
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
