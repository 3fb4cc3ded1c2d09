"""Additions and shuffles, and both-sides pairs."""

import re

import pytest

from pairwright.datasets.records import Annotation, Box
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.realisation import rewrite
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.rules.added_places import attribute_places, claims, thing_places
from tests.generators.rule_fixtures import (
    POOL,
    SmallThesaurus,
    annotate,
    counted,
    pair_of,
    small_pool,
    texts,
    tokens_of,
)

CLAIM = (
    r"(?:(?P<before>.*), (with|and) an? (?P<thing>\w+)(?P<after> in view| can be seen)"
    r"|An? (?P<first>\w+) (?P<rest>and a .*))"
)
COLOURED = ["a red bus on a street"] * 40 + ["a blue bus on a street"] * 30 + ["a purple bus on a street"] * 3


@pytest.fixture(scope="module")
def pool() -> PoolStatistics:
    """A pool in which buses are red or blue and hardly ever purple, and umbrellas stand by benches."""
    benches = ["a woman sitting on a bench with an umbrella", "a woman and a kite on a bench"]
    more = [*COLOURED, *benches * 5, *["a woman and a dog sitting on a bench"] * 5]
    return counted([*POOL * 3, *more])


def made(pool: PoolStatistics, kind: str, caption: str, *others: str, boxes: tuple[Box, ...] = ()) -> set[str]:
    """Return all texts of one type that twenty seeds give."""
    generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=(kind,), minimum=2))
    return texts(lambda seed: annotate(generator, pair_of(caption, *others, boxes=boxes), seed))


def sides(
    pool: PoolStatistics, kind: str, caption: str, *others: str, boxes: tuple[Box, ...] = ()
) -> list[tuple[str, str]]:
    """Return (negative, positive) of twenty seeds."""
    options = NegativeOptions(types=(kind,), minimum=2, both_sides=True)
    generator, pair = RuleNegatives(SmallThesaurus(), pool, options), pair_of(caption, *others, boxes=boxes)
    found = []
    for seed in range(20):
        rows = annotate(generator, pair, seed)
        by_id = {row.id: row for row in rows}
        found += [(row.text, by_id[row.positive_id].text) for row in rows if row.positive_id]
    return found


def test_a_thing_that_nobody_mentions_is_added(pool: PoolStatistics) -> None:
    found = made(pool, "add-object", "A woman sitting on a bench.")
    assert "A woman sitting on a bench with an umbrella." in found
    assert all(text.startswith("A woman") and text.endswith(".") for text in found)


@pytest.mark.parametrize("other", ["two umbrellas", "a woman with her umbrella"])
def test_a_thing_that_is_mentioned_is_not_added(pool: PoolStatistics, other: str) -> None:
    assert not any("umbrella" in text for text in made(pool, "add-object", "a woman sitting on a bench", other))
    box = Box("umbrella", 0.1, 0.1, 0.2, 0.2)
    assert not any("umbrella" in text for text in made(pool, "add-object", "a woman on a bench", boxes=(box,)))


def test_a_list_grows_by_a_comma(pool: PoolStatistics) -> None:
    assert any(re.match(r"a bench, an? \w+ and a dog", text) for text in made(pool, "add-object", "a bench and a dog"))


@pytest.mark.parametrize(
    "caption",
    ["a bench , a woman and a dog", "a bench,a woman and a dog", "a bench, a woman and a dog"],
)
def test_a_comma_that_is_put_in_has_the_spaces_of_the_others(pool: PoolStatistics, caption: str) -> None:
    comma = re.findall(r" ?, ?", caption)
    found = [re.findall(r" ?, ?", text) for text in made(pool, "add-object", caption)]
    assert [commas for commas in found if len(commas) > 1]
    assert all(set(commas) == set(comma) for commas in found)


def test_nothing_is_put_between_a_number_and_what_it_counts() -> None:
    """A bus of two levels is no bus of two purple levels."""
    caption = Caption(pair_of("a two level bus and two cars"), tokens_of("a two level bus and two cars"))
    assert [caption.head(place.phrase) for place in attribute_places(caption)] == ["car"]


def test_a_comma_before_a_claim_has_the_spaces_of_the_others(pool: PoolStatistics) -> None:
    caption = Caption(pair_of("a cat , a dog on a bed"), tokens_of("a cat , a dog on a bed"))
    claimed = [claim.wording for claim in claims(caption, true=True) if not claim.first]
    assert claimed
    assert all(wording.startswith(" , ") for wording in claimed)


def test_an_attribute_that_another_caption_contradicts_is_added(pool: PoolStatistics) -> None:
    found = made(pool, "add-attribute", "a bus on a street", "a red bus")
    assert found == {"a blue bus on a street", "a yellow bus on a street"}


def test_without_a_word_about_it_only_a_rare_attribute_is_added(pool: PoolStatistics) -> None:
    found = made(pool, "add-attribute", "a bus on a street", "a vehicle")
    assert found == {"a purple bus on a street", "a yellow bus on a street"}


def test_a_name_in_several_words_is_not_parted(pool: PoolStatistics) -> None:
    assert made(pool, "add-attribute", "a bus on a street", "a red bus")
    assert not made(pool, "add-attribute", "a pick up bus on a street", "a red bus")


def test_what_captions_pass_over_is_not_added_for_being_rare() -> None:
    told = ["a wooden table", "a white cat", "a white bus"] * 100
    told += ["a metal table", "a gray bus", "a pink bus", "a pink cat"] * 3
    pool = counted(told)
    assert not made(pool, "add-attribute", "a dog under a table", "a dog")
    assert made(pool, "add-attribute", "a bus under a tree", "a tree") == {"a pink bus under a tree"}
    assert not made(pool, "add-attribute", "a cat under a tree", "a tree")  # no cat is pink


def test_an_attribute_is_not_added_where_there_is_one_or_several_things(pool: PoolStatistics) -> None:
    assert not made(pool, "add-attribute", "a large bus")
    assert not made(pool, "add-attribute", "a bus on a street", "two buses")


def test_both_sides_of_an_addition_stand_in_the_same_place(pool: PoolStatistics) -> None:
    found = sides(pool, "add-attribute", "A bus on a street.", "a red bus")
    assert set(found) == {("A blue bus on a street.", "A red bus on a street.")}  # the nearest in length


def test_what_is_added_on_the_true_side_is_said_by_another_caption(pool: PoolStatistics) -> None:
    found = sides(pool, "add-object", "A woman sitting on a bench.", "a kite near a bench")
    assert found
    assert {negative.replace("an umbrella", "a kite").replace("a dog", "a kite") for negative, _ in found} >= {
        positive for _, positive in found
    }
    assert all(" with a kite" in positive and "kite" not in negative for negative, positive in found)
    assert all(len(negative.split()) == len(positive.split()) for negative, positive in found)


@pytest.mark.parametrize(
    "other",
    [
        "a kite shop near a bench",  # no whole noun phrase
        "no kite near a bench",
        "a bench with a picture of a kite",
        "a bench shaped like a kite",
        "waiting for a kite",
        "two kites near a bench",
        "a toy kite on a bench",
    ],
)
def test_a_mere_mention_proves_nothing(pool: PoolStatistics, other: str) -> None:
    assert not sides(pool, "add-object", "A woman sitting on a bench.", other)


def test_a_thing_that_the_caption_may_call_otherwise_is_not_added_as_true(pool: PoolStatistics) -> None:
    stated = "a kite near a bench"
    assert sides(pool, "add-object", "A woman sitting on a bench.", stated)
    assert not sides(pool, "add-object", "A woman and a glider on a bench.", stated)
    assert not sides(pool, "add-object", "A woman and something on a bench.", stated)


def test_one_box_states_a_thing_and_two_do_not(pool: PoolStatistics) -> None:
    box = Box("kite", 0.1, 0.1, 0.2, 0.2)
    assert sides(pool, "add-object", "A woman sitting on a bench.", boxes=(box,))
    assert not sides(pool, "add-object", "A woman sitting on a bench.", boxes=(box, box))


@pytest.mark.parametrize("mark", ["", ".", " .", ". "])
def test_where_no_place_fits_both_sides_claim_that_a_thing_is_in_view(pool: PoolStatistics, mark: str) -> None:
    found = sides(pool, "add-object", "A woman sitting" + mark, "a kite near a bench")
    assert found
    for negative, positive in found:
        claims = [re.fullmatch(CLAIM + re.escape(mark), text) for text in (negative, positive)]
        assert all(claims)
        assert len({(claim["before"], claim["after"], claim["rest"]) for claim in claims if claim}) == 1
        false, true = (claim["thing"] or claim["first"] for claim in claims if claim)
        assert true in {"kite", "bench"}
        assert false not in {"kite", "bench", "woman"}


@pytest.mark.parametrize(
    "other",
    ["a hot dog near a tree", "a picture of a kite", "no kite near a tree", "waiting for a kite", "a sign with a kite on it",
     "a kite shop", "a kite or an umbrella", "a kite and two kites"],
)  # fmt: skip
def test_what_is_claimed_to_be_in_view_must_be_plainly_stated(pool: PoolStatistics, other: str) -> None:
    found = sides(pool, "add-object", "A woman sitting", other)
    assert not any(re.search(r" (dog|kite)\b", positive) for _, positive in found)


def test_several_things_are_claimed_where_captions_state_several() -> None:
    more = ["a woman on a bench with two dogs", "a woman on a bench with two cats"] * 5
    pool = counted([*POOL * 3, *more])
    found = sides(pool, "add-object", "A woman on a bench", "a woman near two dogs")
    assert found
    assert all(
        re.search(r"(^|, with |, and )dogs ", positive, re.IGNORECASE) and "dogs" not in negative.lower()
        for negative, positive in found
    )


@pytest.mark.parametrize(
    "others",
    [
        ("a red bus stop",),
        ("a red bus and another bus",),
        ("a red and white bus",),
        ("not a red bus",),
        ("a red bus", "two buses"),
        ("a sign with a red bus",),
        ("a red buses' station",),
    ],
)
def test_an_attribute_that_is_not_plainly_said_of_the_one_thing_is_not_true(
    pool: PoolStatistics, others: tuple[str, ...]
) -> None:
    assert sides(pool, "add-attribute", "a bus on a street", "a red bus")
    assert not sides(pool, "add-attribute", "a bus on a street", *others)


def test_no_part_of_a_joined_word_is_edited(pool: PoolStatistics) -> None:
    for caption in ("a dog-friendly bus on a street", "a built-in bench on a street", "a bus-stop on a dog's street"):
        generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(minimum=2))
        joined = [word.lower() for word in caption.split() if "-" in word or "'" in word]
        for seed in range(20):
            for row in annotate(generator, pair_of(caption), seed):
                if row.status == "kept":
                    assert [word for word in row.text.split() if "-" in word or "'" in word] == joined


def test_what_is_added_has_the_capitals_of_the_caption(pool: PoolStatistics) -> None:
    assert "A WOMAN SITTING ON A BENCH WITH AN UMBRELLA" in made(pool, "add-object", "A WOMAN SITTING ON A BENCH")
    assert made(pool, "add-attribute", "A BUS ON A STREET", "a red bus") >= {"A BLUE BUS ON A STREET"}


def test_a_thing_is_only_added_to_what_captions_have_it_beside(pool: PoolStatistics) -> None:
    assert not any("umbrella" in text for text in made(pool, "add-object", "a zebra in a field"))


def test_a_contradicted_attribute_comes_before_a_rare_one(pool: PoolStatistics) -> None:
    assert made(pool, "add-attribute", "a car and a bus", "a bus") == {
        "a car and a purple bus",
        "a car and a yellow bus",
    }
    assert made(pool, "add-attribute", "a car and a bus", "a blue car") == {"a red car and a bus"}


@pytest.mark.parametrize("said", ["a bench with food", "a bench with fruit", "a bench with some snacks"])
def test_a_dish_is_not_added_where_there_is_food_of_some_kind(pool: PoolStatistics, said: str) -> None:
    assert not any("apple" in text for text in made(pool, "add-object", "a woman sitting on a bench", said))


def test_each_negative_names_a_positive_or_is_rejected() -> None:
    generator = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(both_sides=True))
    for caption in POOL:
        rows = annotate(generator, pair_of(caption))
        ids = {row.id for row in rows if row.kind == "hard_positive" and row.status == "kept"}
        kept = [row for row in rows if row.kind == "hard_negative" and row.status == "kept"]
        assert all(row.positive_id in ids for row in kept)
        assert ids == {row.positive_id for row in kept}
        assert len({row.text for row in rows if row.status == "kept"} | {caption}) == len(kept) + len(ids) + 1


def test_a_negative_without_a_positive_says_so() -> None:
    generator = RuleNegatives(
        SmallThesaurus(), small_pool(), NegativeOptions(types=("replace-object",), both_sides=True)
    )
    (row,) = annotate(generator, pair_of("a dog"))
    assert (row.status, row.reason) == ("rejected", "no_positive")


def test_a_shuffle_keeps_the_words_and_breaks_their_order() -> None:
    source = "A man riding a horse on a street."
    generator = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(types=("shuffle",), per_type=3))
    rows = annotate(generator, pair_of(source))
    assert all(_is_shuffle(row, source) for row in rows)
    assert len({row.text for row in rows if row.status == "kept"}) == sum(row.status == "kept" for row in rows)


def test_as_many_shuffles_are_made_as_are_asked() -> None:
    generator = RuleNegatives(SmallThesaurus(), small_pool(), NegativeOptions(types=("shuffle",), per_type=3))
    rows = annotate(generator, pair_of("a small blue car on a street."))
    assert len({row.text for row in rows if row.status == "kept"}) == 3


def _is_shuffle(row: Annotation, source: str) -> bool:
    if row.status == "rejected":
        return row.reason == "no_edit"
    same_words = sorted(row.text.lower().strip(".").split()) == sorted(source.lower().strip(".").split())
    return same_words and row.text != source and row.text.endswith(".") and (row.form, row.target) == ("shuffle", "")


@pytest.mark.parametrize(
    ("caption", "front"),
    [
        ("A woman riding a bicycle.", r"A clown and a woman riding a bicycle\."),
        ("TWO WOMEN RIDING A BICYCLE", r"A CLOWN AND TWO WOMEN RIDING A BICYCLE"),
    ],
)
def test_what_is_of_the_sort_of_what_comes_next_may_also_be_said_first(caption: str, front: str) -> None:
    """No kite and no dog rides a bicycle together with a woman."""
    more = [f"a woman and a {thing} near a bicycle" for thing in ("clown", "dog", "kite")] * 10
    generator = RuleNegatives(
        SmallThesaurus(), counted([*POOL * 3, *more]), NegativeOptions(types=("add-object",), minimum=2)
    )
    found = texts(lambda seed: annotate(generator, pair_of(caption), seed), 200)
    assert any(re.fullmatch(front, text) for text in found)
    assert all(any(thing in text.lower() for text in found) for thing in ("dog", "kite"))
    assert not any(text.lower().startswith(("a kite", "a dog")) for text in found)
    assert any(text.lower().startswith(caption.lower().rstrip(".")) for text in found)


@pytest.mark.parametrize(
    ("thing", "claim"),
    [
        ("dog", " with a dog in the background"),
        ("kite", " with a kite in the background"),
        ("cake", " with a cake nearby"),
    ],
)
def test_what_is_not_there_is_claimed_as_captions_say_it(thing: str, claim: str) -> None:
    more = [f"a woman and a {thing} near a bicycle"] * 10
    found = made(counted([*POOL * 3, *more]), "add-object", "The woman rides a bicycle.")
    assert f"The woman rides a bicycle{claim}." in found


def test_a_second_thing_that_comes_with_another_is_put_near() -> None:
    more = ["a woman and a dog near a bicycle"] * 10
    pool = counted([*POOL * 3, *more])
    found = made(pool, "add-object", "The woman with a basket rides a bicycle.")
    assert "The woman with a basket rides a bicycle near a dog." in found
    assert not any(text.count(" with ") > 1 for text in found)


def test_a_caption_with_a_background_of_its_own_gets_no_other() -> None:
    more = ["a woman and a dog near a bicycle"] * 10
    pool = counted([*POOL * 3, *more])
    found = made(pool, "add-object", "The woman rides a bicycle with a street in the background.")
    assert not any("in the background with" in text for text in found)


@pytest.mark.parametrize(
    "caption", ["a man and a woman riding a bicycle", "is a man riding a bicycle?", "riding a bicycle"]
)
def test_nothing_is_said_first_where_it_would_read_badly(pool: PoolStatistics, caption: str) -> None:
    assert all(text.startswith(caption[:5]) for text in made(pool, "add-object", caption))


def test_nothing_is_put_behind_what_a_caption_denies_but_after_a_comma(pool: PoolStatistics) -> None:
    found = made(pool, "add-object", "no woman sitting on a bench")
    assert not any(re.match("no woman sitting on a bench (with|and)", text) for text in found)


@pytest.mark.parametrize(
    ("caption", "fine", "written"),
    [
        ("a man feeding a dog", "a man near a dog", "a dog with a cat"),
        ("a woman between a bed and a bench", "a woman near a bed and a bench", "a bed, a cat and"),
        ("a bed with a blanket on it", "a bed with a blanket on top", "A cat and a bed"),
    ],
)
def test_nothing_joins_what_something_is_done_to_or_told_by_a_pronoun(caption: str, fine: str, written: str) -> None:
    def offered(text: str) -> str:
        told = Caption(pair_of(text), tokens_of(text))
        places = [place.change("a cat") for place in thing_places(told)]
        places += [claim.of("A cat") for claim in claims(told, true=False)]
        return " | ".join(rewrite(text, changes)[0] for changes in places)

    assert written in offered(fine)
    assert written not in offered(caption)
