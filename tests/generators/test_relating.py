"""Relations that exclude the one that stands there."""

import pytest

from pairwright.generators.language.pool import PoolStatistics, count
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.verbs import ALWAYS, INSTEAD, INSTEAD_OF_THINGS, PARTICIPLES, SAME, same_act
from tests.generators.trial import POOL, SmallThesaurus, annotate, pair_of, texts

SAID = (
    "a man holding a horse", "a man leading a horse", "a woman feeding a horse", "a person leads a horse",
    "a dog next to a table", "a man standing behind a bed", "a bus driving on a street", "a bus parked on a street",
    "a woman looking away from a horse", "a dog without a bed", "a dog sleeping on a bed", "a dog running in a field",
)  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> PoolStatistics:
    """A pool with some deeds in it."""
    return count(load_tagger().tag([*POOL, *SAID] * 4)).frozen()


def made(pool: PoolStatistics, kind: str, caption: str, *others: str) -> set[str]:
    """Return all texts of one type that thirty seeds give."""
    generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=(kind,), minimum=2))
    return texts(lambda seed: annotate(generator, pair_of(caption, *others), seed), 30)


@pytest.mark.parametrize(
    ("caption", "negative"),
    [
        ("a man riding a horse", "a man leading a horse"),
        ("A man rides a horse.", "A man leads a horse."),
        ("a bus parked on a street", "a bus driving on a street"),
        ("a woman looking at a horse", "a woman looking away from a horse"),
        ("a dog with a bed", "a dog without a bed"),
    ],
)
def test_a_relation_gives_way_to_one_that_excludes_it(pool: PoolStatistics, caption: str, negative: str) -> None:
    assert negative in made(pool, "replace-relation", caption)


def test_a_deed_that_another_caption_tells_in_any_form_is_not_put_in(pool: PoolStatistics) -> None:
    assert not any("leading" in text for text in made(pool, "replace-relation", "a man riding a horse", "he leads it"))


def test_what_captions_never_do_with_such_a_thing_is_not_put_in(pool: PoolStatistics) -> None:
    assert not any("eating a horse" in text for text in made(pool, "replace-relation", "a man riding a horse"))


def test_another_place_is_put_in_where_there_is_no_opposite(pool: PoolStatistics) -> None:
    found = made(pool, "replace-relation", "a dog in a bed")
    assert any(" next to a bed" in text or " behind a bed" in text for text in found)


def test_figures_in_a_plane_stay_beside_each_other(pool: PoolStatistics) -> None:
    assert made(pool, "replace-relation", "a circle next to a square") == set()


def test_no_verb_is_set_against_one_for_the_same_act() -> None:
    tables = (INSTEAD, INSTEAD_OF_THINGS, PARTICIPLES, ALWAYS)
    assert not [(one, other) for table in tables for one, others in table.items() for other in others if one == other]
    assert not [(one, other) for one, others in ALWAYS.items() for other in others if same_act(one, other)]
    assert all(len(group) > 0 for group in SAME)


def test_owners_trade_what_they_have(pool: PoolStatistics) -> None:
    found = made(pool, "swap-object", "a man in a suit and a woman in a dress")
    assert found == {"a man in a dress and a woman in a suit"}
    assert made(pool, "swap-object", "a man in a suit and a woman in a suit") == set()


def test_counts_change_places(pool: PoolStatistics) -> None:
    assert made(pool, "swap-attribute", "Two dogs and three cats") == {"Three dogs and two cats"}


@pytest.mark.parametrize(
    ("caption", "negative"),
    [
        ("several dogs in a field", "two dogs in a field"),
        ("a black and white dog", "a black and red dog"),
        ("a window with its door open", "a window with its door closed"),
    ],
)
def test_amounts_lists_of_colours_and_states_are_attributes(pool: PoolStatistics, caption: str, negative: str) -> None:
    assert negative in made(pool, "replace-attribute", caption)
