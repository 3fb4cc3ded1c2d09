"""Hard positives by rules."""

import pytest

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_rng
from pairwright.generators.edit_types import POSITIVE_TYPES
from pairwright.generators.edits.learning import sample_slots
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.cloze.training import train_cloze_model
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.positives import PositiveOptions, RulePositives
from tests.generators.rule_fixtures import (
    POOL,
    annotate,
    assert_order_is_free,
    counted,
    pair_of,
    small_pool,
    texts,
    tokens_of,
    tokens_of_all,
)


def made(kind: str, caption: str, *others: str) -> set[str]:
    """Return all texts of one type that twenty seeds give."""
    generator = RulePositives(small_pool(), PositiveOptions(types=(kind,)))
    return texts(lambda seed: annotate(generator, pair_of(caption, *others), seed))


@pytest.mark.parametrize(
    ("kind", "caption", "positive"),
    [
        ("replace-object", "Two couches in a room", "Two sofas in a room"),
        ("replace-object", "a big motorbike", "a big motorcycle"),
        ("replace-object", "boats on the river", "boats on the water"),
        ("replace-attribute", "a large bus", "a big bus"),
        ("replace-attribute", "a very large bus", "a very big bus"),
        ("replace-attribute", "an enormous dog", "a huge dog"),
        ("replace-attribute", "an elderly man", "an old man"),
        ("replace-relation", "a car next to a truck", "a car beside a truck"),
        ("replace-relation", "a ball left of a box", "a ball to the left of a box"),
    ],
)
def test_words_give_way_to_words_for_the_same(kind: str, caption: str, positive: str) -> None:
    assert positive in made(kind, caption)


def test_a_mark_in_angle_brackets_is_no_word() -> None:
    """Datasets write <PERSON> where somebody's name stood."""
    assert not made("replace-object", "<COUCH> in a field")
    assert made("replace-object", "<COUCH> on a couch") == {"<COUCH> on a sofa"}
    assert not made("swap-object", "<cat> and <dog>")


@pytest.mark.parametrize(
    ("kind", "caption"),
    [
        ("replace-attribute", "my big brother"),
        ("replace-attribute", "an old house"),
        ("replace-attribute", "a large and red bus"),
        ("replace-attribute", "a view of Big Ben"),
        ("replace-attribute", "an assorted collection of clocks"),
        ("replace-attribute", "A tree that is lit up in a window"),
        ("replace-relation", "the shelf above"),
        ("replace-object", "a dog on a bed"),
        ("replace-attribute", "a 20 year old man"),
        ("replace-attribute", "a happy birthday cake"),
        ("replace-attribute", "The boy is happy to eat."),
        ("replace-attribute", "golden brown fries"),
        ("replace-attribute", "a sign says how many dogs there are"),
        ("replace-relation", "a clock on the side of a building"),
    ],
)
def test_a_sense_that_does_not_hold_is_left_alone(kind: str, caption: str) -> None:
    assert made(kind, caption) == set()


@pytest.mark.parametrize(
    ("caption", "other", "positive"),
    [
        ("a bike on a street", "a motorcycle in a city", ""),
        ("a bike on a street", "a dog beside it", "a bicycle on a street"),
        ("the last car on the tracks", "a train in a city", ""),
        ("a dog in a cab", "a yellow truck", ""),
        ("a kitty on a bed", "a cat on a bed", ""),
        ("a kitty on a chair", "an animal on a chair", "a cat on a chair"),
    ],
)
def test_a_word_of_two_senses_gives_way_only_where_no_caption_tells_of_the_other(
    caption: str, other: str, positive: str
) -> None:
    assert made("replace-object", caption, other) == ({positive} if positive else set())


@pytest.mark.parametrize(
    ("caption", "positive"),
    [
        ("A red bus and a dog.", "A dog and a red bus."),
        ("a picture of a cat and two dogs", "a picture of two dogs and a cat"),
        ("there is a cat and an orange dog", "there is an orange dog and a cat"),
        ("a table, a cat and a dog", "a table, a dog and a cat"),
        ("A dog and a cat are on a bed", "A cat and a dog are on a bed"),
        ("a table with cats and dogs", "a table with dogs and cats"),
    ],
)
def test_what_and_joins_changes_places(caption: str, positive: str) -> None:
    assert made("swap-object", caption) == {positive}


@pytest.mark.parametrize(
    "caption",
    [
        "a man on a horse and a dog",
        "a man and a dog on a bed",
        "a man and his dog",
        "a red dog and cat",
        "small dogs and cats",
        "there are two dogs and a cat",
        "a dog sits on a bed and a cat sleeps",
        "a dog and a dog",
        "a ball to the left of a box and a dog",
    ],
)
def test_what_could_change_its_meaning_stays(caption: str) -> None:
    assert made("swap-object", caption) == set()


def test_a_caption_of_the_image_is_not_made_again() -> None:
    assert made("swap-object", "a dog and a cat", "a cat and a dog") == set()


def test_a_rewording_that_is_a_caption_of_the_image_gives_way_to_another() -> None:
    others = ("a car alongside a truck", "a car adjacent to a truck")
    assert made("replace-relation", "a car next to a truck", *others) == {"a car beside a truck"}


def test_every_attempt_is_answered() -> None:
    annotations = annotate(RulePositives(small_pool()), pair_of("hello"))
    assert [f"{a.form}-{a.target}" for a in annotations] == list(POSITIVE_TYPES)
    assert {(a.kind, a.status) for a in annotations} == {("hard_positive", "rejected")}
    assert all(a.reason for a in annotations)


def test_the_order_of_pairs_changes_nothing() -> None:
    """A generator that has seen other pairs, or the same backwards, answers as one that has seen none."""
    pairs = [pair_of(caption, other) for caption, other in zip(POOL, POOL[7:] + POOL[:7], strict=True)]
    assert_order_is_free(pairs, lambda: RulePositives(small_pool()))


def test_unknown_types_are_refused() -> None:
    with pytest.raises(UsageError, match="no such type of positive"):
        RulePositives(small_pool(), PositiveOptions(types=("swap",)))


def test_a_possessive_is_not_doubled() -> None:
    assert not [text for text in made("replace-object", "two men's bikes on a rack") if "s's" in text]


def test_what_may_stand_inside_the_first_is_not_moved_out_of_it() -> None:
    assert made("swap-object", "A garden containing white flowers and a black bench.") == set()


@pytest.mark.parametrize(
    "caption",
    [
        "a table with a bottle of wine and glasses",
        "a table with plates of cakes and cups",
        "a sign with odds and ends",
        "A picture of Mario and Luigi characters",
        "a table with red apples and oranges",
        "a table with apples and red oranges",
        "a dog with cats and dog toys",
        "A man with a hat and a woman.",
        "a plate with a sandwich and a cup",
        "a room with a clock and another clock",
        "Three people on a bench, one with a tennis racket and a fourth standing",
        "Two men, one with a hat and a dog.",
        "Two men and a woman cross country ski",
        "The displays houses bus schedules and a route map.",
    ],
)
def test_what_belongs_to_one_of_two_keeps_them_in_order(caption: str) -> None:
    assert made("swap-object", caption) == set()


@pytest.mark.parametrize(
    ("caption", "positive"),
    [
        ("a table with salt and pepper", "a table with pepper and salt"),
        ("a table with bread and butter", "a table with butter and bread"),
        ("a plate that has been filled with a cup and a ball", "a plate that has been filled with a ball and a cup"),
        ("a bathroom with no walls and a toilet", "a bathroom with a toilet and no walls"),
        ("a man with a hat on a hill with a cup and a ball", "a man with a hat on a hill with a ball and a cup"),
        ("a man standing between a car and a bus", "a man standing between a bus and a car"),
        ("a group of cats and dogs", "a group of dogs and cats"),
    ],
)
def test_what_means_both_alike_changes_places(caption: str, positive: str) -> None:
    assert positive in made("swap-object", caption)


def test_a_number_is_written_in_figures_only_where_the_pool_does_so() -> None:
    pool = counted(["two dogs in a field"] * 20)
    both = counted(["two dogs in a field", "2 cats on a bed"] * 20)

    def written(pool: PoolStatistics) -> set[str]:
        generator = RulePositives(pool, PositiveOptions(types=("replace-attribute",)))
        return texts(lambda seed: annotate(generator, pair_of("two birds"), seed))

    assert written(pool) == set()
    assert written(both) == {"2 birds"}


def test_the_outside_of_a_thing_is_no_place_of_another() -> None:
    assert made("replace-relation", "a clock at the outside of a house") == set()


@pytest.fixture(scope="module")
def model() -> ClozeModel:
    """Return a cloze model of captions that say "picture" and "image" in one context, and "image" alone in another."""
    captions = ["a picture of a dog", "an image of a dog", "a dog posing for an image", "a cat posing for an image"]
    written = [captions[at % len(captions)] for at in range(400)]
    return train_cloze_model(sample_slots(written, tokens_of_all(written), load_wordnet()))


def test_a_word_that_captions_do_not_say_in_its_context_is_not_written(model: ClozeModel) -> None:
    pool = counted(["a picture of a dog", "an image of a dog"] * 10)
    generator = RulePositives(pool, PositiveOptions(types=("replace-object",)), model)

    def found(caption: str) -> set[str]:
        return texts(lambda seed: annotate(generator, pair_of(caption), seed))

    assert found("an image of a dog") == {"a picture of a dog"}
    assert found("a dog posing for an image") == set()


def test_a_batch_gives_what_single_pairs_give(model: ClozeModel) -> None:
    generator = RulePositives(small_pool(), model=model)
    pairs = [pair_of(caption) for caption in (*POOL, "an image of a dog", "a dog and a cat posing for an image")]
    tokens = [tokens_of(pair.caption) for pair in pairs]
    single = [generator.annotate(*each, make_rng(7)) for each in zip(pairs, tokens, strict=True)]
    assert generator.annotate_batch(pairs, tokens, [make_rng(7) for _ in pairs]) == single
    assert any(row.status == "kept" for rows in single for row in rows)


def test_what_says_less_is_written_too() -> None:
    pool = counted([*POOL, "a person on a street", "a dog near a house"] * 6)
    generator = RulePositives(pool, PositiveOptions(types=("replace-object", "replace-relation")))
    found = texts(lambda seed: annotate(generator, pair_of("a man next to a house"), seed))
    assert {"a person next to a house", "a man near a house"} <= found


def test_lots_of_things_do_not_make_a_room_full() -> None:
    assert made("replace-relation", "a room filled with beds") == {"a room full of beds"}
    assert "a room full of lots of beds" not in made("replace-relation", "a room filled with lots of beds")


def test_a_word_is_not_put_beside_itself() -> None:
    assert not any("little little" in text for text in made("replace-attribute", "a small little cat on a bed"))


@pytest.mark.parametrize(
    "caption",
    [
        'a wall that reads "stone street"',
        "a sign that says no bikes",
        "a dog called big sofa",
    ],
)
def test_words_that_are_written_in_the_picture_stay(caption: str) -> None:
    found = set().union(*(made(f"replace-{target}", caption) for target in ("object", "attribute", "relation")))
    assert not any(part not in text for text in found for part in caption.split()[-2:])


def test_who_reads_a_thing_is_quoted_by_nobody() -> None:
    assert made("replace-object", "a man reading on a sofa")


@pytest.mark.parametrize("caption", ["boats in a river", "two rivers behind a house", "boats on lakes"])
def test_what_is_counted_is_no_mass(caption: str) -> None:
    assert not any("water" in text for text in made("replace-object", caption))


def test_what_is_stuffed_full_is_not_stuffed_filled() -> None:
    assert made("replace-relation", "a bus full of people")
    assert not made("replace-relation", "a bus stuffed full of people")


def test_a_rare_word_is_not_written_much_more_often_than_captions_have_it() -> None:
    """Half of all captions have a man, and hardly one a gentleman; "guy" is usual enough for all of them."""
    told = ["a man on a bench"] * 400 + ["a gentleman on a bench"] + ["a guy on a bench"] * 40
    generator = RulePositives(counted([*POOL, *told]), PositiveOptions(types=("replace-object",)))
    rows = [row for seed in range(200) for row in annotate(generator, pair_of("a man on a stone"), seed)]
    gentlemen = sum("gentleman" in row.text for row in rows)
    assert gentlemen == 0
    assert sum("guy" in row.text for row in rows) > 150


def test_a_caption_of_which_only_a_rare_word_could_be_written_has_that_reason() -> None:
    told = ["a person on a bench"] * 400 + ["an individual on a bench"]
    generator = RulePositives(counted([*POOL, *told]), PositiveOptions(types=("replace-object",)))
    rows = [row for seed in range(40) for row in annotate(generator, pair_of("a person on a stone"), seed)]
    assert {row.reason for row in rows if row.status == "rejected"} == {"overused_word"}
    assert sum(row.status == "kept" for row in rows) < 15
