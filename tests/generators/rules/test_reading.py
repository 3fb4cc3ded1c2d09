"""Negatives that once read badly, or may have held, and are written no more."""

import pytest

from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.words.synonyms import reword_each_other
from tests.generators.rule_fixtures import POOL, SmallThesaurus, annotate, counted, pair_of, texts


def made_with_wordnet(kind: str, caption: str, *said: str) -> set[str]:
    """Return the same, of a dictionary that knows all beasts."""
    pool = counted([*POOL, *said] * 6)
    generator = RuleNegatives(load_wordnet(), pool, NegativeOptions(types=(kind,), minimum=2))
    return texts(lambda seed: annotate(generator, pair_of(caption), seed), 30)


def made(kind: str, caption: str, *said: str) -> set[str]:
    """Return the texts of one type that a pool gives which says these often."""
    pool = counted([*POOL, *said] * 6)
    generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=(kind,), minimum=2))
    return texts(lambda seed: annotate(generator, pair_of(caption), seed), 30)


# The caption, what is not written, and what captions say besides: with it once, to show that they could.
@pytest.mark.parametrize(
    ("caption", "odd", "said"),
    [
        ("a man riding down the street on his bike", "walking", ("a man walking down the street",)),
        ("a man riding in a truck", "walking", ("a man walking in a field",)),
        ("a cat sleeping in a bed", "grazing", ("a horse grazing in a field", "a cat and a horse grazing")),
        ("two men pulling apart", "riding", ("two men riding", "a man riding")),
        ("a man eating utensils", "selling", ("a man selling utensils",)),
        ("people walking outside", "riding", ("people riding outside", "people riding")),
        ("close the door when you leave", "reach", ("a man reaches a door", "you reach")),
        ("a man holding a surfboard standing on a street", "riding", ("a man riding a surfboard",)),
        ("a man wearing a hat doing a trick", "reaching", ("a man reaching for a hat",)),
        ("a man shows his watch on his arm", "under his arm", ("a watch under his arm",)),
        ("a dog standing very close to a bed", "very on", ("a dog standing on a bed",)),
        ("a lamp between a bed and a table", "on a bed and", ("a lamp on a bed",)),
        ("a room with focus on the bed", "next to", ("a dog next to the bed",)),
        ("a man looking down a street", "up", ("a man looking up a street", "a dog looking up")),
        ("a close look at a dog", "away from", ("a man looking away from a dog",)),
        ("a group has gathered on a street", "running", ("a group running on a street",)),
        ("a dog playing while people watch", "feed", ("people feed a dog", "people feed")),
        ("a glass half full of beer", "half without", ("a glass without beer", "a glass full of beer")),
        ("a bed with the mattress removed", "without", ("a bed without a mattress",)),
        ("people with their cameras up taking pictures", "without", ("people without their cameras",)),
        ("a dog going over a hurdle", "far from", ("a dog far from a hurdle",)),
        ("a man holding a banana in his mouth", "selling", ("a man selling a banana", "a man selling bananas")),
        ("a man talking with a woman", "sleeping with", ("a man sleeping with a woman", "a woman sleeping")),
        ("a man walking with a dog down a street", "sitting with", ("a man sitting with a dog",)),
        ("a plate of food on a table", "in front of food", ("a table in front of food", "a man in front of food")),
        ("a girl drinking milk from a cup", "pointing at", ("a girl pointing at milk",)),
        ("a man holds his phone up", "reaches", ("a man reaches for his phone", "a woman reaches for a phone")),
        ("a person wearing black is holding up a sandwich", "at black", ("a person pointing at a dog",)),
        ("boats floating on a street", "flying", ("a kite flying on a street", "a bird flying near boats")),
        ("a wall with graffiti", "behind", ("a wall behind graffiti", "a man behind a wall")),
        ("a dog is eating food", "making", ("a man making food", "a cat making food for a dog")),
        ("a man near a bar", "in a bar", ("a man in a bar", "a dog in a bar")),
        ("a bus driving down a street", "over a street", ("a bus driving over a street",)),
        ("a bus driving down a street", "sitting down", ("a bus sitting on a street", "a dog sitting down a street")),
        ("a woman watching dogs play", "chasing", ("a woman chasing dogs", "people chasing dogs")),
        ("a woman with a dog and wearing a hat", "without", ("a dog without a bed",)),
        ("a city with one way streets", "without a way", ("a city without streets",)),
        (
            "two people sitting on a bench",
            "traveling on",
            ("people traveling on a bus", "people traveling near a bench"),
        ),
        ("a cat lying on a chair", "swimming on", ("a cat swimming on a lake", "a cat swimming near a chair")),
        ("a plane coming in for a landing", "parking in for", ("a plane parking in a field", "a plane parking")),
        ("a man putting a turkey into an oven", "out of", ("a man getting out of an oven",)),
        ("a train moving down the tracks", "at the tracks", ("a train stopped at the tracks", "a train stopped")),
        ("a plate of fries with a fork sitting on it", "running", ("a dog running on it", "a fry running on a plate")),
        ("people on a dock near boats", "on top of boats", ("people on top of boats",)),
        ("a table topped with food", "next to food", ("a dog next to food", "a table next to food")),
        ("a bed covered with pillows", "in front of pillows", ("a dog in front of pillows",)),
        ("a tower with a clock at the top", "next to a clock", ("a dog next to a clock",)),
        ("a bowl of soup", "next to soup", ("a bowl next to soup", "a cup next to soup")),
        ("a bed in a bedroom", "next to a bedroom", ("a bed next to a bedroom",)),
        ("two trucks next to each other", "on top of each other", ("two boxes on top of each other",)),
        ("a tower with a clock on it", "behind it", ("a tower with a dog behind it", "a dog behind a tower")),
        ("a man standing outside near a building", "in a building", ("a man in a building",)),
        ("sun shining through a window", "outside a window", ("a dog outside a window", "sun outside a window")),
        ("a man with a baby", "dropping", ("a man dropping a ball", "a man holding a baby")),
        ("a person wearing a jacket and no pants", "reaching for", ("a person reaching for a jacket",)),
        ("a man with a beard and no hat", "without", ("a dog without a beard",)),
        ("three dogs sit leaning out of a house", "walking", ("three dogs walking out of a house",) * 3),
        (
            "a dog reaching with a paw for a ball",
            "sleeping",
            ("a dog sleeping with a ball", "a dog sleeping with a cat"),
        ),
        ("two dogs fighting over a ball", "behind a ball", ("two dogs behind a ball",)),
        ("people on skateboards ride down a street", "next to", ("people next to skateboards",)),
        ("a man wearing a helmet", "looking for", ("a man looking for a helmet", "a man looking for a dog")),
        (
            "a person wearing all black is holding up a sandwich",
            "for all black",
            ("a person looking for a dog", "a person in black", "a person reaching for a dog"),
        ),
        (
            "a man dressed in black riding a wave",
            "for black",
            ("a man reaching for a hat", "a man reaching for a wave", "a man dressed in a hat"),
        ),
        ("a bicycle parked next to a bench", "in a bench", ("a bicycle parked in a bench", "a dog in a bench")),
        ("a room with two beds, two lamps and a chair", "any", ("a room without any beds",)),
        ("a room with two beds, a lamp or a chair", "any", ("a room without any beds",)),
    ],
)
def test_what_read_badly_is_not_written(caption: str, odd: str, said: tuple[str, ...]) -> None:
    found = made("replace-relation", caption, caption, *said)
    assert not any(odd in text for text in found if text != caption)


@pytest.mark.parametrize(
    ("caption", "negative", "said"),
    [
        ("a bus driving down a street", "a bus parked on a street", ("a bus parked on a street",) * 3),
        ("a plane taking off", "a plane parked", ("a plane is parked", "a plane parked on a street")),
        ("a boy taking a bite of a pizza", "a boy reaching for a pizza", ("a boy reaching for a pizza",)),
        ("a man swinging at a ball", "a man waiting for a ball", ("a man waiting for a ball",)),
        ("a man holding up a cat", "a man reaching for a cat", ("a man reaching for a cat",)),
        ("a man taking a photo of a dog", "a man looking at a photo of a dog", ("a man looking at a photo",)),
        ("a man dressed in a suit", "a man reaching for a suit", ("a man reaching for a suit", "a man wearing a suit")),
        ("a kite flying through the air", "a kite falling through the air", ("a ball falling",)),
        (
            "two planes flying in the sky",
            "two planes falling from the sky",
            ("a ball falling from the sky", "a man from the sky"),
        ),
        ("bags lined up in a room", "bags scattered in a room", ("bags scattered in a room",) * 2),
        ("a room with lots of toys", "a room without any toys", ("a room without any beds",)),
    ],
)
def test_what_reads_well_is_written(caption: str, negative: str, said: tuple[str, ...]) -> None:
    assert negative in made("replace-relation", caption, caption, *said)


@pytest.mark.parametrize(
    ("caption", "negative"),
    [
        ("a room with a bed and a lamp", "a room without a bed or a lamp"),
        ("a room with a bed, a chair and a lamp", "a room without a bed, a chair or a lamp"),
        ("a room with lots of toys and a lamp", "a room without any toys or a lamp"),
        ("a room with two beds and a lamp", "a room without any beds or a lamp"),
        ("a room with one bed", "a room without a bed"),
        ("a room filled with lots of toys", "a room without any toys"),
        ("a room filled with a variety of different beds", "a room without any beds"),
        ("a room cluttered with toys and lamps", "a room without toys or lamps"),
        ("a room with a bed and some lamps", "a room without a bed or lamps"),
        ("a man with a hat and a woman", "a man without a hat and a woman"),
        ("a man with a hat and a dog running away", "a man without a hat and a dog running away"),
    ],
)
def test_what_is_missing_is_joined_by_or_and_not_counted(caption: str, negative: str) -> None:
    said = ("a room without any beds or a lamp", "a man without a dog")
    found = {text for text in made("replace-relation", caption, *said) if "without" in text}
    assert negative in found
    assert not any("without" in text and " and " in text for text in found - {negative})


@pytest.mark.parametrize(
    ("caption", "negative"),
    [
        ("a room has a bed", "a room has no bed"),
        ("a room that has two beds", "a room that has no beds"),
        ("a room that also has beds", "a room that also has no beds"),
        ("a room has a few beds", "a room has no beds"),
        ("a room has some beds", "a room has no beds"),
        ("a room has several kinds of beds", "a room has no beds"),
        ("a room has a bed and a lamp", "a room has no bed or lamp"),
        ("a room has a bed and canned lamps", "a room has no bed or canned lamps"),
        ("two rooms have a number of beds", "two rooms have no beds"),
        ("a room has pictures on the wall", "a room has no pictures on the wall"),
        ("a room contains a bed and a lamp", "a room contains no bed or lamp"),
        ("a room that includes beds", "a room that includes no beds"),
        ("a room has a bed and some lamps", "a room has no bed or lamps"),
        ("a cat in a meadow", "a cat outside a meadow"),
    ],
)
def test_what_a_thing_has_it_has_none_of(caption: str, negative: str) -> None:
    assert negative in made(
        "replace-relation", caption, "a room has no bed", "rooms have no beds", "a cat outside a room"
    )


@pytest.mark.parametrize(
    "caption",
    [
        "a room has its door open",
        "a room seems to have a bed",
        "a dog and a cat have a moment",
        "a dog has found a bed",
    ],
)
def test_what_is_only_said_by_have_is_not_denied(caption: str) -> None:
    found = made("replace-relation", caption, "a room has no bed", "rooms have no beds")
    assert not any(" no " in text or "without" in text for text in found)


def test_an_or_beside_the_edit_is_marked_as_mended() -> None:
    pool = counted([*POOL, "a room without any beds"] * 6)
    generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=("replace-relation",), minimum=2))
    rows = [row for seed in range(30) for row in annotate(generator, pair_of("a room with a bed and a lamp"), seed)]
    joined = [row for row in rows if " or " in row.text]
    assert joined
    assert all(row.scores == {"mended": 1.0} and len(row.edits) == 2 for row in joined)


@pytest.mark.parametrize(
    ("caption", "odd", "said"),
    [
        ("birds swimming in a lake", "plane", ("planes near birds swimming in a lake", "planes in a lake")),
        ("a stuffed teddy bear on a bed", "book", ("a stuffed book", "a book on a bed", "a bear near a book")),
        (
            "a dog sitting at a table",
            "at a boat",
            ("a dog sitting near a boat", "a boat near a table", "a dog at a boat"),
        ),
        ("a train on the train tracks", "train rivers", ("a train near rivers", "a river near train tracks")),
        ("a man in a wetsuit", "suit", ("a man in a suit", "a wetsuit near a suit")),
        ("a wooden fence in a field", "wooden tree", ("a tree in a field", "a tree near a wooden bench") * 3),
        ("a man eating a fruit", "a bread", ("a man eating bread", "a man with a fruit and bread") * 3),
        ("a man brushing his teeth", "baby", ("a baby with his teeth", "a baby near a man")),
        ("a cat standing next to other cats", "dog", ("a dog standing next to cats",)),
        (
            "a man at the beach",
            "street",
            ("a man on a street near the beach",) * 250 + ("a man at the street", *["a man at the beach"] * 5),
        ),
    ],
)
def test_no_object_comes_in_that_reads_badly_or_may_be_meant(caption: str, odd: str, said: tuple[str, ...]) -> None:
    found = made("replace-object", caption, *[caption] * 2, *[each for each in said for _ in range(2)])
    assert not any(odd in text.replace("wetsuit", "") for text in found)


def test_a_name_stays() -> None:
    found = made("replace-object", "a cat named Dog next to a dog named Cat", "a cat and a dog", "a zebra and a cat")
    assert all("named Dog" in text and "named Cat" in text for text in found)


def test_no_word_is_doubled() -> None:
    said = ("a man holds a hot dog", "a man holds a pizza", "a man and a pizza", "a man and a hot dog") * 3
    assert "a man holds a hot dog" in made("replace-object", "a man holds a pizza", *said)
    assert "a man holds a hot hot dog" not in made("replace-object", "a man holds a hot pizza", *said)


def test_who_is_alone_gets_no_company() -> None:
    said = ("a dog on a bed", "a book on a bed", "a dog and a cat", "a cat and a book")
    assert any("dog" in text for text in made("add-object", "a cat on a bed", *said))
    assert not any("dog" in text for text in made("add-object", "a cat alone on a bed", *said))


def test_what_another_caption_says_the_other_way_round_is_true() -> None:
    said = ("flowers in a vase", "a vase with flowers", "flowers on a table")
    pool = counted([*POOL, *said] * 6)
    maker = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=("replace-relation",), minimum=2))

    def found(*others: str) -> set[str]:
        return texts(lambda seed: annotate(maker, pair_of("flowers next to a vase", *others), seed), 30)

    assert "flowers in a vase" in found("a vase by a window")
    for other in ("A vase full of flowers.", "vase on a table that holds a flower"):
        assert "flowers in a vase" not in found(other)


def test_a_bird_that_is_eaten_is_no_bird() -> None:
    said = [
        "a pizza with chicken and bacon",
        "a pizza with bacon on it",
        "a peacock on a pizza",
        "a pizza near a peacock",
        "a chicken near a peacock",
    ]
    eaten = made_with_wordnet("replace-object", "a pizza with chicken on it", *said * 3)
    assert any("bacon" in text for text in eaten)
    assert not any("peacock" in text for text in eaten)
    assert any("peacock" in text for text in made_with_wordnet("replace-object", "a chicken near a pizza", *said * 3))


@pytest.mark.parametrize(
    ("caption", "odd", "said"),
    [
        ("a brand new car on a street", "brand old", ("an old car", "a new car", "an old car on a street")),
        ("a stained glass window", "stained wooden", ("a wooden window", "a glass window")),
        ("a stainless steel sink", "stainless wooden", ("a wooden sink", "a steel sink")),
        ("a clear umbrella", "blurry", ("a blurry umbrella", "a blurry picture")),
        ("a busy street filled with cars", "empty", ("an empty street", "an empty street near cars")),
        ("a small child on a bed", "teenage", ("a teenage child on a bed", "a teenage child")),
    ],
)
def test_no_attribute_comes_in_that_reads_badly(caption: str, odd: str, said: tuple[str, ...]) -> None:
    assert not any(odd in text for text in made("replace-attribute", caption, caption, *said))


def test_what_is_told_from_another_or_of_a_sport_is_the_last_to_go() -> None:
    said = ("a cow near a bed", "a cat near a bed", "a dog near a couch", "another dog")
    found = made("replace-object", "a dog and another dog near a bed", *said)
    assert found
    assert all(text.startswith("a dog and another dog near a ") for text in found)
    text = "a tennis player with a tennis racket near a bed"
    there = ("a chair near a tennis player with a tennis racket", "a baseball player", "a soccer player near a bed")
    found = made("replace-object", text, *[text] * 2, *there)
    assert "a tennis player with a tennis racket near a chair" in found
    assert not any("soccer" in each or "baseball" in each for each in found)


def test_a_carriage_may_be_called_a_cart() -> None:
    assert reword_each_other("carriage", "cart")


def test_old_things_give_way_to_old_things_that_are_made() -> None:
    said = ("an old bus", "a bus near a truck", "a truck on a street", "a bus on a street", "a boat on a street")
    pool = counted([*POOL, *said] * 6)
    generator = RuleNegatives(load_wordnet(), pool, NegativeOptions(types=("replace-object",), minimum=2))
    assert "an old truck on a street" in texts(
        lambda seed: annotate(generator, pair_of("an old bus on a street"), seed)
    )


def test_of_two_of_a_kind_none_goes_where_something_else_can() -> None:
    said = ("a dog next to a small dog on a chair", "a cat next to a small dog on a bed")
    found = made("replace-object", "a dog next to a small dog on a bed", *said)
    assert found
    assert all(text.count("dog") == 2 for text in found)
    assert any("cat" in text for text in made("replace-object", "a dog next to a small dog", *said))


def test_what_captions_never_put_so_does_not_trade_places() -> None:
    said = (*(f"a {one} on a lamp" for one in ("clock", "hat", "bird", "cat")), "a table on a street")
    assert not made("swap-object", "a lamp on a table", *said)
    assert "a table on a lamp" in made("swap-object", "a lamp on a table", *said, "a table on a lamp")


def test_a_shirt_is_held_only_where_a_caption_offers_nothing_else() -> None:
    said = ("a man holding a shirt", "a man holding a hat", "a man leading a horse", "a man feeding a horse")
    assert "a man holding a shirt" in made("replace-relation", "a man in a shirt", *said)
    assert not any("holding" in text for text in made("replace-relation", "a man in a shirt riding a horse", *said))
    assert any("holding" in text for text in made("replace-relation", "a man in a hat riding a horse", *said))


@pytest.mark.parametrize(
    ("caption", "fine"),
    [
        ("a red stop sign on a street", "a red bus on a street"),
        ("a black and white photo of a red bus", "a black and white dog near a red bus"),
        ("black and white of a red bus", "a small photo of a red bus"),
    ],
)
def test_a_stop_sign_stays_red_and_a_picture_without_colours_gets_none(caption: str, fine: str) -> None:
    said = ("a blue bus", "a green bus", "a blue stop sign", "a green stop sign", "a red stop sign", "a red bus")
    for kind in ("replace-attribute", "add-attribute", "swap-attribute"):
        assert not any(" blue " in text or " green " in text for text in made(kind, caption, *said))
    assert any(" blue " in text or " green " in text for text in made("replace-attribute", fine, *said))
