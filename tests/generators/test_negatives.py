"""Hard negatives by rules."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Box, Pair
from pairwright.generators.captions.context import ImageWords
from pairwright.generators.knowledge.adjective_candidates import adjective_is_said
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.knowledge.names import Names
from pairwright.generators.knowledge.things import Things
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import FOR_BENCHMARKS, NegativeOptions, RuleNegatives
from pairwright.generators.words.nouns import EVERYWHERE, KINDS
from tests.example_counts import examples
from tests.generators.rule_fixtures import (
    POOL,
    SmallThesaurus,
    annotate,
    assert_order_is_free,
    counted,
    pair_of,
    small_pool,
    texts,
)

WHO = ("a dog", "a cat", "a truck", "a bus")


def made(kind: str, caption: str, *others: str, boxes: tuple[Box, ...] = ()) -> set[str]:
    """Return all texts of one type that twenty seeds give."""
    generator = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(types=(kind,), minimum=2))
    pair = pair_of(caption, *others, boxes=boxes)
    return texts(lambda seed: annotate(generator, pair, seed))


def reason(kind: str, pair: Pair) -> str:
    generator = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(types=(kind,), minimum=2))
    (annotation,) = annotate(generator, pair)
    return annotation.reason


def box(label: str, at: float = 0.1) -> Box:
    return Box(label, at, at, at + 0.1, at + 0.1)


def test_an_object_gives_way_to_one_of_its_kind() -> None:
    assert "a cat on a bed" in made("replace-object", "a dog on a bed")


def test_article_and_number_follow_the_new_noun() -> None:
    assert "two cows in a field" in made("replace-object", "two horses in a field")


@pytest.mark.parametrize(
    ("others", "boxes"),
    [
        (("a cat sleeps",), ()),
        (("some kittens",), ()),
        (("a siamese on a bed",), ()),
        ((), (box("cat"),)),
        (("two cats and a dog",), ()),
    ],
)
def test_what_is_said_of_the_image_is_never_put_in(others: tuple[str, ...], boxes: tuple[Box, ...]) -> None:
    assert not any("cat" in text for text in made("replace-object", "a dog on a bed", *others, boxes=boxes))


def test_a_kind_of_a_thing_says_it_though_the_pool_has_no_such_word() -> None:
    wordnet = load_wordnet()
    names = Names(small_pool(), wordnet, Things(wordnet))
    words = ImageWords.of(pair_of("a dog on a bed", boxes=(box("stallion"),)))
    assert names.is_said("horse", "dog", words)
    assert not names.is_said("cow", "dog", words)


def test_a_number_that_another_caption_gives_in_another_word_is_not_put_in() -> None:
    assert "two dogs on a bed" in made("replace-attribute", "three dogs on a bed")
    assert "two dogs on a bed" not in made("replace-attribute", "three dogs on a bed", "a couple of dogs on a bed")


@pytest.mark.parametrize(
    ("adjective", "other"), [("old", "an older man"), ("elderly", "an old man"), ("empty", "a deserted man")]
)
def test_an_attribute_is_said_by_what_means_nearly_the_same(adjective: str, other: str) -> None:
    words = ImageWords.of(pair_of("a man on a street", other))
    assert adjective_is_said(adjective, words)
    assert words.said_with("man", adjective)


@pytest.mark.parametrize(
    ("wording", "other"), [("next to", "a cat adjacent to a box"), ("in front of", "a cat before a box")]
)
def test_a_relation_is_said_by_what_means_nearly_the_same(wording: str, other: str) -> None:
    assert ImageWords.of(pair_of("a cat on a box", other)).said_of(wording, "box")


def test_a_rewording_is_never_put_in() -> None:
    assert not any("couch" in text for text in made("replace-object", "a dog on a sofa"))


def test_a_man_becomes_a_woman_only_when_nobody_else_is_there() -> None:
    assert "a woman riding a horse" in made("replace-object", "a man riding a horse")
    others = made("replace-object", "a man riding a horse", "a couple on a horse")
    assert "a woman riding a horse" not in others


def test_a_pronoun_keeps_its_person() -> None:
    assert not any("woman" in text for text in made("replace-object", "a man riding his horse"))


def test_attributes_give_way_to_those_that_exclude_them() -> None:
    found = made("replace-attribute", "a large red bus on a street")
    assert "a small red bus on a street" in found
    assert any(text.startswith("a large") and "red" not in text for text in found)
    assert not any("big" in text for text in found)


def test_a_wording_of_the_same_attribute_elsewhere_is_noticed() -> None:
    assert "a small red bus on a street" not in made("replace-attribute", "a large red bus on a street", "a little car")


def test_an_article_follows_the_new_attribute() -> None:
    assert "a closed door" in made("replace-attribute", "an open door")


def test_counts_are_attributes() -> None:
    found = made("replace-attribute", "two dogs")
    assert found
    assert found <= {f"{number} dogs" for number in ("three", "four", "six")}
    assert not made("replace-attribute", "one dog")


def test_an_animal_only_gets_a_colour_that_animals_have() -> None:
    told = ["a black dog", "a white dog", "a blue bird", "a black bird", "a dog on a blue bed", "a blue bed"] * 5
    pool = counted(told)
    generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=("replace-attribute",), minimum=2))

    def recoloured(caption: str) -> set[str]:
        return texts(lambda seed: annotate(generator, pair_of(caption), seed))

    assert recoloured("a white dog") == {"a black dog"}
    assert "a blue bird" in recoloured("a white bird")


@pytest.mark.parametrize("caption", ["a 20 year old dog", "a happy birthday card", "golden brown dogs"])
def test_a_word_that_makes_one_with_the_next_is_left_alone(caption: str) -> None:
    pool = counted([*POOL * 3, *["an old dog", "a young dog", "a happy dog", "a sad card", "black dogs"] * 4])
    generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=("replace-attribute",), minimum=2))
    assert not texts(lambda seed: annotate(generator, pair_of(caption), seed))


def test_the_colour_of_a_person_is_left_alone() -> None:
    assert not made("replace-attribute", "a black man")


@pytest.mark.parametrize(
    ("caption", "negative"),
    [
        ("a ball to the left of a box", "a ball to the right of a box"),
        ("a dog in front of a house", "a dog behind a house"),
        ("a dog on a table", "a dog under a table"),
        ("a woman sitting on a bench", "a woman standing on a bench"),
    ],
)
def test_relations_give_way_to_their_opposites(caption: str, negative: str) -> None:
    assert negative in made("replace-relation", caption)


def test_nothing_goes_under_what_captions_never_put_things_under() -> None:
    assert made("replace-relation", "a dog on a street") == set()


def test_with_several_alike_a_relation_is_left_alone() -> None:
    boxes = (box("ball"), box("ball", 0.5), box("box", 0.8))
    assert made("replace-relation", "a ball to the left of a box", boxes=boxes) == set()
    assert made("replace-relation", "a ball to the left of a box", "three balls") == set()
    pair = pair_of("a ball to the left of a box", "three balls")
    assert reason("replace-relation", pair) == "true_of_image"


def test_objects_change_places_around_a_one_way_relation() -> None:
    assert "a box to the left of a ball" not in made("swap-object", "a ball and a box")
    told = ["a dog chasing a cat", "a cat chasing a dog", "a man riding a horse"] * 5
    pool = counted(told)
    generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=("swap-object",)))

    def swapped(caption: str) -> set[str]:
        return texts(lambda seed: annotate(generator, pair_of(caption), seed))

    assert swapped("A dog chasing a cat.") == {"A cat chasing a dog."}
    assert not swapped("A man riding a horse.")  # no caption has a horse ride


@pytest.mark.parametrize(
    "caption", ["a dog and a cat", "a dog next to a cat", "a dog with a cat", "a man riding his horse"]
)
def test_objects_stay_where_both_orders_are_true_or_unclear(caption: str) -> None:
    assert made("swap-object", caption) == set()


HELD = (
    ("with", ("man", "woman"), ("hat", "scarf")),
    ("with", ("kitchen", "stove"), ("toilet", "window")),
    ("on", ("cake", "cup"), ("plate", "table")),
)


def traded(caption: str, *told: str) -> set[str]:
    """Return the swaps of a caption where the pool has all of `HELD`, and these captions."""
    usual = [f"a {owner} {how} a {thing}" for how, owners, things in HELD for owner in owners for thing in things]
    pool = counted([*POOL, *usual, *told] * 6)
    generator = RuleNegatives(load_wordnet(), pool, NegativeOptions(types=("swap-object",), minimum=2))
    return texts(lambda seed: annotate(generator, pair_of(caption), seed))


def test_items_of_one_list_do_not_change_places() -> None:
    assert traded("a man with a hat and a woman with a scarf") == {"a man with a scarf and a woman with a hat"}
    assert not traded("a kitchen with a toilet and a stove with a window")


def test_what_is_put_on_the_other_holder_does_not_change_places() -> None:
    caption = "a cake on a plate near a cup on a table"
    assert traded(caption) == {"a cake on a table near a cup on a plate"}
    assert not traded(caption, "a plate on a table")


def test_colours_of_one_thing_do_not_change_places() -> None:
    told = ["a white blue", "a red blue", "a white train", "a red train"] * 5
    generator = RuleNegatives(SmallThesaurus(), counted([*POOL, *told]), NegativeOptions(types=("swap-attribute",)))
    assert not texts(lambda seed: annotate(generator, pair_of("a white black blue and red train"), seed))


def test_who_is_in_front_of_a_thing_has_it_in_front_of_them() -> None:
    told = [f"{a} {how} {b}" for a in WHO for b in WHO if a != b for how in ("in front of", "behind")] * 3
    generator = RuleNegatives(SmallThesaurus(), counted(told), NegativeOptions(types=("swap-object",), minimum=2))

    def swapped(caption: str) -> set[str]:
        return texts(lambda seed: annotate(generator, pair_of(caption), seed))

    assert swapped("a truck in front of a bus") == {"a bus in front of a truck"}
    assert swapped("a dog behind a bus") == {"a bus behind a dog"}
    assert not swapped("a dog in front of a bus") | swapped("a dog sitting in front of a cat")


@pytest.mark.parametrize("kind", ["replace-object", "replace-attribute", "replace-relation", "add-attribute"])
@pytest.mark.parametrize(
    "caption",
    [
        "a street with no red bus on a bench",
        "no red bus is on a bench",
        "The street is wide. A red bus isn't on a bench, really",
        "a kitchen without a red bus on a bench",
    ],
)
def test_what_a_caption_denies_is_left_alone(kind: str, caption: str) -> None:
    denied = caption[caption.index("red bus") :]
    assert not [text for text in made(kind, caption) if denied not in text]


def test_attributes_of_one_class_change_places() -> None:
    assert made("swap-attribute", "A black dog and a white cat") == {"A white dog and a black cat"}
    assert made("swap-attribute", "a red apple and an orange box") == set()
    assert made("swap-attribute", "an orange cat on a black chair") == {"a black cat on an orange chair"}


def test_attributes_stay_when_another_caption_has_the_outcome() -> None:
    pair = pair_of("a black dog and a white cat", "a white dog")
    assert reason("swap-attribute", pair) == "true_of_image"


def test_what_there_is_a_crowd_of_is_not_put_in() -> None:
    generator = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(types=("replace-object",)))
    assert any("cat" in text for text in texts(lambda seed: annotate(generator, pair_of("a dog on a bed"), seed)))
    pair = pair_of("a dog on a bed", crowds=("cat",))
    assert not any("cat" in text for text in texts(lambda seed: annotate(generator, pair, seed)))


def test_every_attempt_is_answered() -> None:
    generator = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(per_type=2))
    annotations = annotate(generator, pair_of("hello"))
    assert [f"{a.form}-{a.target}" for a in annotations] == [kind for kind in FOR_BENCHMARKS for _ in range(2)]
    assert {(a.status, a.reason, a.text) for a in annotations} == {("rejected", "no_edit", "")}
    assert len({a.id for a in annotations}) == len(annotations)


def test_the_order_of_pairs_changes_nothing() -> None:
    """A generator that has seen other pairs, or the same backwards, answers as one that has seen none."""
    pairs = [pair_of(caption, other) for caption, other in zip(POOL, POOL[7:] + POOL[:7], strict=True)]
    assert_order_is_free(pairs, lambda: RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(minimum=2)))


def test_unknown_types_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no such type of negative: negate\. There are: replace-object"):
        RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(types=("negate",)))
    with pytest.raises(UsageError, match="per_type"):
        RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(per_type=0))


def test_a_type_gives_the_same_text_alone_and_among_others() -> None:
    pair = pair_of("a large black dog on a bed")
    alone = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(types=("replace-attribute",)))
    among = RuleNegatives(SmallThesaurus(), small_pool())
    assert annotate(alone, pair)[0] in annotate(among, pair)


@settings(max_examples=examples(40))
@given(st.sampled_from(POOL), st.sampled_from(POOL), st.integers(0, 99), st.sampled_from(["", ".", " ."]))
def test_negatives_are_minimal_distinct_and_repeatable(caption: str, other: str, seed: int, end: str) -> None:
    """Kept texts differ from each other and from all captions, and only inside their spans from the source."""
    generator = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(per_type=2, minimum=2, seed=seed))
    pair = pair_of(caption.capitalize() + end, other)
    annotations = annotate(generator, pair, seed)
    assert annotations == annotate(generator, pair, seed)
    kept = [a.text for a in annotations if a.status == "kept"]
    assert len({*kept, pair.caption, *pair.captions}) == len(kept) + len({pair.caption, *pair.captions})
    for annotation in annotations:
        if annotation.status == "kept":
            assert_only_edits(annotation)


def assert_only_edits(annotation: Annotation) -> None:
    text = annotation.source_text
    for edit in reversed(annotation.edits):
        start, end = edit.before_span
        assert text[start:end] == edit.before
        text = text[:start] + edit.after + text[end:]
    assert text == annotation.text
    assert len(annotation.edits) == (2 if annotation.form == "swap" else 1)
    assert replace(annotation, status="kept").origin.generator == "rules-negatives"


def test_what_every_scene_has_is_never_put_in() -> None:
    """A kitchen has a floor and a bus has doors, said or not."""
    found = Candidates.of(SmallThesaurus(), small_pool(), minimum=0, least=-1.0)
    assert not EVERYWHERE & {word for noun in KINDS for word in found.nouns.instead_of(noun)}


def test_a_caption_of_a_thousand_words_is_no_harder_than_others() -> None:
    beside = [f"a dog with a {thing}" for thing in ("frisbee", "ball", "leash", "bone", "collar", "bowl")]
    pool = counted([*POOL * 3, *beside * 10, *["a plate on a table in a room"] * 500])
    generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=("add-object",), minimum=2))
    pair = pair_of("a dog " * 500)
    assert {row.status for row in annotate(generator, pair, 0)} <= {"kept", "rejected"}


@pytest.mark.parametrize("caption", ["- a dog - a cat -", "a dog a dog a dog a dog", "a dog, a dog a dog, a dog"])
def test_a_shuffle_reads_otherwise(caption: str) -> None:
    generator = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(types=("shuffle",)))
    words = re.findall(r"\w+", caption)
    for text in texts(lambda seed: annotate(generator, pair_of(caption), seed)):
        assert re.findall(r"\w+", text) != words


def test_a_comma_between_adjectives_does_not_stay_without_the_second() -> None:
    said = ["a chocolate cake", "a pizza on a table", "a cake on a table", "an iced cake"]
    generator = RuleNegatives(load_wordnet(), counted([*POOL, *said] * 6), NegativeOptions(types=("replace-object",)))
    found = texts(lambda seed: annotate(generator, pair_of("an iced, chocolate cake on a table"), seed), 40)
    assert found
    assert not any("iced, pizza" in text for text in found)
