"""Counts in messages agree with their nouns and verbs."""

import pytest

from pairwright.datasets.count_phrases import count_phrase, format_size, verb_form


@pytest.mark.parametrize(
    ("number", "unit", "shown"),
    [
        (1, "caption", "1 caption"),
        (0, "caption", "0 captions"),
        (2_000, "new row", "2,000 new rows"),
        (2, "query", "2 queries"),
        (2, "key", "2 keys"),
        (2, "batch", "2 batches"),
        (2, "box", "2 boxes"),
    ],
)
def test_a_unit_is_in_the_plural_except_for_one(number: int, unit: str, shown: str) -> None:
    assert count_phrase(number, unit) == shown


@pytest.mark.parametrize(
    ("verb", "of_one"), [("are", "is"), ("have", "has"), ("were", "was"), ("match", "matches"), ("keep", "keeps")]
)
def test_a_verb_agrees_with_the_number(verb: str, of_one: str) -> None:
    assert (verb_form(1, verb), verb_form(2, verb), verb_form(0, verb)) == (of_one, verb, verb)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 bytes"), (1_630, "1.6 kB"), (18_400_000, "18.4 MB"), (512_000_000, "512 MB"), (3 * 10**12, "3.0 TB")],
)
def test_sizes_are_formatted_for_people(count: int, shown: str) -> None:
    assert format_size(count) == shown
