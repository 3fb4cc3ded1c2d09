"""What captions put where, and that nothing is put where they would have it and never do."""

import pytest

from pairwright.generators.edits.general_english import GeneralEnglish
from pairwright.generators.knowledge.scenes import KNOWN, Scenes
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from tests.generators.rule_fixtures import POOL, SmallThesaurus, annotate, counted, pair_of, texts

SAID = (
    *["a bus in front of a church"] * 12, *["a clock on a church"] * 12, *["a bus on a street"] * 12,
    *["a bird sitting on a branch"] * 12, *["a man sitting on a chair"] * 12, *["a man standing near a branch"] * 6,
)  # fmt: skip


def pool_of(*said: str) -> PoolStatistics:
    return counted(said)


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    return Scenes(pool_of(*SAID), "bus".__ne__)


def test_what_is_often_at_a_place_and_never_so_is_strange(scenes: Scenes) -> None:
    assert scenes.is_strange("bus", "on", "church")
    assert not scenes.is_strange("bus", "in front of", "church")
    assert not scenes.is_strange("clock", "on", "church")


def test_of_what_captions_do_not_tell_nothing_is_strange(scenes: Scenes) -> None:
    assert not scenes.is_strange("unicorn", "on", "church")
    assert not scenes.is_strange("bus", "on", "castle")
    assert not scenes.is_strange("bus", "to the left of", "church")
    assert scenes.is_seen("bus", "on", "castle")
    assert scenes.is_seen("bus", "behind", "church"), "only asked of what is in, on or under a thing"


def test_things_of_a_kind_are_seen_where_one_of_them_is(scenes: Scenes) -> None:
    assert scenes.is_seen("woman", "on", "chair"), "as a man is"
    assert scenes.is_seen("truck", "on top of", "street"), "as a bus is on one"
    assert not scenes.is_seen("elephant", "on", "branch")


def test_without_a_pool_nothing_is_strange_and_all_is_seen() -> None:
    scenes = Scenes(GeneralEnglish(load_wordnet()), "bus".__ne__)
    assert not scenes.is_strange("bus", "on", "church")
    assert scenes.is_seen("elephant", "on", "branch")


def made(kind: str, caption: str, *said: str) -> set[str]:
    generator = RuleNegatives(SmallThesaurus(), pool_of(*[*POOL, *said] * 4), NegativeOptions(types=(kind,), minimum=2))
    return texts(lambda seed: annotate(generator, pair_of(caption), seed), 30)


def test_a_relation_is_preferred_that_captions_have_of_such_things() -> None:
    boxed = ("a ball near a box", "a ball behind a box", "a cup on a box", "a cup in a box", "a bed in a box") * 2
    assert made("replace-relation", "a ball near a box", *boxed, "a ball in a box") == {"a ball in a box"}
    assert made("replace-relation", "a ball near a box", *boxed, "a ball on a box") == {"a ball on a box"}


def test_an_object_is_preferred_that_captions_have_in_such_a_place() -> None:
    said = ["a ball on a table"] * KNOWN
    under, on = (["a dog under a table"] * 8, ["a dog on a table"] * 8)
    assert "a dog on a table" in made("replace-object", "a dog on a bed", *said, *on)
    assert made("replace-object", "a dog on a bed", *said, *under) == {"a cat on a bed"}


@pytest.mark.parametrize(
    ("caption", "odd"),
    [
        ("a cat sleeping with its head on a book", "flying"),
        ("a man looking at a dog near a bench", "sleeping at"),
        ("two dogs running on top of a hill", "grazing"),
        ("a plate of apples sitting on a table", "moving"),
        ("a kite flying over a field", "building"),
        ("a boy holding a white game controller", "hitting"),
    ],
)
def test_without_a_pool_nothing_is_said_to_do_what_such_things_never_do(caption: str, odd: str) -> None:
    wordnet = load_wordnet()
    generator = RuleNegatives(wordnet, GeneralEnglish(wordnet), NegativeOptions(types=("replace-relation",)))
    found = texts(lambda seed: annotate(generator, pair_of(caption), seed), 30)
    assert found
    assert not any(odd in text for text in found)
