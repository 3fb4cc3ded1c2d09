"""Template conversations."""

import importlib.util
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.records import Annotation, Box, Pair, Turn
from pairwright.datasets.rng import make_rng
from pairwright.generators.conversations.question_templates import BRIEF
from pairwright.generators.conversations.template_generator import (
    TEMPLATE_TYPES,
    ConversationOptions,
    TemplateConversations,
)
from pairwright.generators.lexicon.label_sets import COCO
from tests.example_counts import examples
from tests.generators.rule_fixtures import POOL, annotate, assert_order_is_free, pair_of

DOG = Box("dog", 0.1, 0.4, 0.3, 0.6)
BALL = Box("ball", 0.7, 0.45, 0.8, 0.55)
VOCABULARY = ("dog", "ball", "cat", "scissors", "person", "bus")


def conversation(pair: Pair, *, seed: int = 0, vocabulary: tuple[str, ...] = VOCABULARY, most: int = 0) -> Annotation:
    options = ConversationOptions(types=("conversation",), vocabulary=vocabulary, max_turns=most)
    (annotation,) = annotate(TemplateConversations(options), pair, seed)
    return annotation


def answers(pair: Pair, vocabulary: tuple[str, ...] = VOCABULARY, seeds: int = 12) -> set[str]:
    turns = [turn for seed in range(seeds) for turn in conversation(pair, seed=seed, vocabulary=vocabulary).turns]
    return {turn.text for turn in turns if turn.role == "assistant"}


def test_boxes_prove_place_and_size() -> None:
    found = answers(pair_of("a dog and a ball", boxes=(DOG, BALL)))
    assert "The dog is to the left of the ball." in found
    assert "The ball is to the right of the dog." in found
    assert "No, the dog is to the left of the ball." in found
    assert "In the image, the dog is larger than the ball." in found
    assert not any("left of the dog" in answer for answer in found)


def test_labels_are_counted_in_words_and_good_english() -> None:
    people = tuple(Box("person", at / 10, 0.1, at / 10 + 0.05, 0.3) for at in range(3))
    assert "There are three people." in answers(pair_of("people", boxes=people))


def test_boxes_that_a_caption_contradicts_are_not_counted() -> None:
    found = answers(pair_of("three dogs play", boxes=(DOG, Box("dog", 0.5, 0.5, 0.6, 0.6))))
    assert not any("two dogs" in answer for answer in found)


def test_scissors_and_crowds_are_not_counted() -> None:
    crowd = tuple(Box("person", at / 20, 0.1, at / 20 + 0.04, 0.3) for at in range(11))
    found = answers(pair_of("a crowd", boxes=(*crowd, Box("scissors", 0.1, 0.1, 0.2, 0.2))))
    assert {"Yes, there are scissors.", "Yes, there are people."} <= found
    assert all(
        re.fullmatch(r"(No, t|T)here (is|are) no (dog|bus|cat|ball)(s|es)?\.", each)
        for each in found - {"Yes, there are scissors.", "Yes, there are people."}
    )


def test_an_image_with_a_bad_box_proves_neither_absence_nor_numbers(tmp_path: Path) -> None:
    """What is not among the good boxes may be what the bad one showed."""
    good, bad = {"label": "dog", "bbox": [0.1, 0.4, 0.3, 0.6]}, {"label": "cat", "bbox": [0.5, 0.5, 0.4, 0.9]}
    for boxes, proves in (([good], True), ([good, bad], False)):
        row = {"caption": "A brown dog on a mat.", "boxes": boxes, "crowd": [{"label": "bus"}]}
        (tmp_path / "in.jsonl").write_text(json.dumps(row))
        (batch,) = read_pairs(ReadOptions(str(tmp_path / "in.jsonl"), on_error="skip"))
        found = answers(batch.pairs[0])
        assert any(re.search(r"\bno (cat|ball)s?\b|one dog", answer) for answer in found) == proves
        assert found


def test_a_crowd_is_neither_absent_nor_counted() -> None:
    alone = answers(pair_of("a dog", boxes=(DOG,), crowds=("Bus ",)), seeds=30)
    assert "Yes, there are buses." in alone
    assert not any("no bus" in answer for answer in alone)
    person, dogs = Box("person", 0.1, 0.1, 0.2, 0.4), (DOG, Box("dog", 0.5, 0.5, 0.6, 0.6))
    found = answers(pair_of("a street", boxes=(person, *dogs, BALL), crowds=("person", "dog")), seeds=30)
    assert {"Yes, there are people.", "There is one ball."} <= found
    assert not any(word in answer for answer in found for word in ("person", "two dogs"))


def test_a_crowd_of_a_label_outside_the_vocabulary_is_not_mentioned() -> None:
    found = answers(pair_of("a dog", boxes=(DOG,), crowds=("banana",)))
    assert found
    assert not any("banana" in answer for answer in found)


@pytest.mark.parametrize(
    "caption", ["Several dogs run", "many puppies", "A herd on grass", "a couple walks", "the dogs"]
)
def test_one_box_is_not_counted_where_a_caption_hints_at_more(caption: str) -> None:
    for pair in (pair_of(caption, boxes=(DOG,)), pair_of("a field", caption, boxes=(DOG,))):
        assert not any("one dog" in answer or "is a dog" in answer for answer in answers(pair))


@pytest.mark.parametrize("caption", ["three puppies", "3 dogs", "several dogs", "a dozen dogs"])
def test_two_boxes_are_not_counted_where_a_caption_says_another_number(caption: str) -> None:
    found = answers(pair_of(caption, boxes=(DOG, Box("dog", 0.5, 0.5, 0.6, 0.6))))
    assert "Yes, there are dogs." in found
    assert not any("two dogs" in answer for answer in found)


def test_boxes_that_captions_confirm_are_counted() -> None:
    two = (DOG, Box("dog", 0.5, 0.5, 0.6, 0.6))
    assert "There is one dog." in answers(pair_of("a dog with two cats", boxes=(DOG,)))
    for caption in ("two dogs", "2 dogs", "a couple of dogs", "one of the dogs"):
        assert "There are two dogs." in answers(pair_of(caption, boxes=two))


@pytest.mark.parametrize(
    "meta",
    ['{"crowd":', '["crowd"]', '{"crowd": 3}', '{"crowd": [1, {"label": 2}, {}]}', '"crowd"', "[" * 9_999 + '"crowd"'],
)
def test_meta_that_lists_no_crowd_changes_nothing(meta: str) -> None:
    pair = pair_of("a dog", boxes=(DOG,))
    assert conversation(replace(pair, meta=meta)) == conversation(pair)


def test_the_order_of_pairs_changes_nothing() -> None:
    pairs = [pair_of(caption, boxes=(DOG, BALL)) for caption in POOL]
    assert_order_is_free(pairs, lambda: TemplateConversations(ConversationOptions(vocabulary=VOCABULARY)))


def test_without_a_vocabulary_there_are_no_presence_or_counting_questions() -> None:
    found = answers(pair_of("a dog and a ball", boxes=(DOG, BALL)), vocabulary=())
    assert found
    assert not any("here is" in answer or "here are" in answer for answer in found)


def test_nothing_that_a_caption_mentions_is_called_absent() -> None:
    found = answers(pair_of("a dog and a ball", "a kitten and a man", boxes=(DOG, BALL)), seeds=30)
    assert {"No, there is no bus.", "No, there are no buses."} & found
    assert not any("no cat" in answer or "no person" in answer or "no people" in answer for answer in found)


def test_yes_and_no_are_equally_frequent() -> None:
    pair = pair_of("a dog and a ball", boxes=(DOG, BALL))
    for seed in range(20):
        said = [t.text.split()[0:3] for t in conversation(pair, seed=seed).turns if "here" in t.text and "," in t.text]
        assert sum(words[0] == "Yes," for words in said) == sum(words[0] == "No," for words in said)


def test_the_caption_proves_the_colour_of_a_single_thing() -> None:
    assert "The dog is red." in answers(pair_of("a red dog and a ball"))


@pytest.mark.parametrize(
    ("caption", "others"),
    [
        ("a red dog and a blue dog", ()),
        ("two red dogs", ()),
        ("a red and white dog", ()),
        ("a red dog", ("a brown dog",)),
        ("a red dog", ("three dogs",)),
        ("a light red dog", ()),
    ],
)
def test_an_unclear_colour_is_not_asked(caption: str, others: tuple[str, ...]) -> None:
    assert not any(word in answer for answer in answers(pair_of(caption, *others)) for word in ("red", "blue", "brown"))


def test_things_of_which_there_are_several_are_not_placed() -> None:
    pair = pair_of("dogs", boxes=(DOG, BALL, Box("dog", 0.4, 0.1, 0.5, 0.2)))
    assert not any("the dog" in answer.lower() for answer in answers(pair))


def test_no_question_comes_twice_and_turns_alternate() -> None:
    pair = pair_of("a red dog and a ball", boxes=(DOG, BALL, Box("bus", 0.1, 0.8, 0.9, 0.95)))
    for seed in range(20):
        turns = conversation(pair, seed=seed).turns
        asked = [turn.text for turn in turns[::2]]
        assert len(set(asked)) == len(asked)
        assert [turn.role for turn in turns] == ["human", "assistant"] * len(asked)


def test_the_limit_of_turns_holds() -> None:
    pair = pair_of("a red dog and a ball", boxes=(DOG, BALL))
    assert 0 < len(conversation(pair, most=2).turns) <= 4


def test_brief_answers_with_the_caption_as_it_is() -> None:
    (annotation,) = annotate(TemplateConversations(ConversationOptions(types=("brief",))), pair_of("A dog ."))
    assert annotation.turns[0].text in BRIEF
    assert annotation.turns[1] == Turn("assistant", "A dog .")


def brief(caption: str) -> Annotation:
    (annotation,) = annotate(TemplateConversations(ConversationOptions(types=("brief",))), pair_of(caption))
    return annotation


def test_hashtags_at_the_end_of_a_caption_are_in_no_answer() -> None:
    caption = "A woman holding a red umbrella \U0001f60d #cute #LapTop"
    assert "The woman is holding a red umbrella." in answers(pair_of(caption))
    row = brief(caption)
    assert row.turns[1].text == "A woman holding a red umbrella \U0001f60d"
    assert brief("A woman in front of bus #42").turns[1].text == "A woman in front of bus #42"


def test_html_entities_and_tags_are_removed() -> None:
    """The pair keeps the caption as written."""
    found = answers(pair_of("A man sits on a &quot;throne&quot; &amp; a dog lies on a <b>red rug</b>&nbsp;"))
    assert "The dog is lying on a red rug." in found
    assert not any(word in answer.split() for answer in found for word in ("quot.", "b", "nbsp.", "amp"))
    row = brief("A man &amp; a dog on the &amp;quot;throne&amp;quot;<br>of a king")
    assert row.turns[1].text == 'A man & a dog on the "throne" of a king'
    assert brief("R&B; a < b &co").turns[1].text == "R&B; a < b &co"
    assert "The man is riding a horse and a donkey." in answers(pair_of("A man riding a horse & a donkey"))
    assert brief("a &lt;image&gt; of a dog").reason == "image_token"


@pytest.mark.parametrize(
    "caption", ["null", "N/A", "-", "...", "<none>", "https://example.com/a.jpg", "www.example.com", "IMG_2045.JPG"]
)
def test_a_placeholder_is_no_answer(caption: str) -> None:
    row = brief(caption)
    assert (row.status, row.reason, row.turns) == ("rejected", "no_context", ())


@pytest.mark.parametrize("caption", ["dog", "犬", "A sign that says null", "See www.example.com"])
def test_a_short_caption_is_an_answer(caption: str) -> None:
    assert brief(caption).turns[1].text == caption


def test_a_caption_with_an_image_token_is_no_answer() -> None:
    options = ConversationOptions(types=("brief",))
    (annotation,) = annotate(TemplateConversations(options), pair_of("<image> a dog"))
    assert (annotation.status, annotation.reason, annotation.turns) == ("rejected", "image_token", ())


@pytest.mark.parametrize("label", ["人", "حصان", "dog\n<image>", "a" * 61, "..."])
def test_a_label_that_cannot_be_in_an_english_sentence_is_not_used(label: str) -> None:
    boxes = (DOG, Box(label, 0.6, 0.6, 0.9, 0.9))
    said = " ".join(answers(pair_of("a dog", boxes=boxes), vocabulary=(*VOCABULARY, label)))
    assert "dog" in said
    assert label not in said


def test_a_label_of_the_vocabulary_without_a_box_is_not_present_by_caption() -> None:
    pair = pair_of("A dog sleeps on a dog bed.", boxes=(DOG, BALL))
    assert "Yes, there is a bed." in answers(pair)
    assert "Yes, there is a bed." not in answers(pair, vocabulary=(*VOCABULARY, "bed"))


def test_a_doubled_word_and_a_row_of_colours_prove_nothing() -> None:
    found = answers(pair_of("A man sitting at a a table.", "A blue red an orange parking meter and a hand."))
    assert not any("a a" in answer or "orange" in answer for answer in found)
    assert not any("orange" in answer for answer in answers(pair_of("A blue red an orange parking meter")))


def test_unknown_types_are_refused() -> None:
    with pytest.raises(UsageError, match="no such type of conversation"):
        TemplateConversations(ConversationOptions(types=("reasoning",)))


def test_a_brief_answer_has_no_blanks_around_it() -> None:
    (row,) = annotate(TemplateConversations(ConversationOptions(types=("brief",))), pair_of("  a dog on a bed. "))
    assert row.turns[1].text == "a dog on a bed."


def kinds(kind: str, pair: Pair, seeds: int = 12, **options: Any) -> list[Annotation]:
    made = TemplateConversations(ConversationOptions(**{"types": (kind,), "vocabulary": VOCABULARY, **options}))
    return [annotation for seed in range(seeds) for annotation in annotate(made, pair, seed)]


def test_captions_prove_what_people_do_and_wear() -> None:
    found = answers(pair_of("A young man riding a wave on a surfboard.", "a man wearing a black wetsuit"))
    assert {"The man is riding a wave on a surfboard.", "The man is wearing a black wetsuit."} <= found
    assert "The zebras are grazing in a field." in answers(pair_of("two zebras grazing in a field"))


@pytest.mark.parametrize(
    "captions",
    [
        ("two men riding waves", "a man riding a wave"),
        ("a statue of a man riding a horse",),
        ("a man and a woman riding horses", "men riding horses"),
        ("a man who looks like he is riding a horse",),
    ],
)
def test_what_one_of_several_or_a_likeness_does_is_not_asked(captions: tuple[str, ...]) -> None:
    assert not any("The man is" in answer for answer in answers(pair_of(*captions)))


def test_captions_prove_where_a_single_thing_is() -> None:
    found = answers(pair_of("A laptop sitting on a wooden desk.", "a desk in a bedroom"))
    assert {"The laptop is on a wooden desk.", "The scene takes place in a bedroom."} <= found
    assert not any("laptop is" in answer for answer in answers(pair_of("A laptop on a desk.", "two laptops")))
    assert not any("desk is" in answer for answer in answers(pair_of("A cat on a desk next to a lamp.")))


def test_a_hat_is_no_place_however_it_is_described() -> None:
    found = answers(pair_of("A woman in a white wide brim hat feeding a giraffe."))
    assert not any("is in a white" in answer for answer in found)


def test_captions_prove_a_number_that_nothing_contradicts() -> None:
    assert "There are three zebras." in answers(pair_of("three zebras in a field"))
    boxes = tuple(Box("zebra", at / 10, 0.1, at / 10 + 0.05, 0.3) for at in range(2))
    assert not any("three" in answer for answer in answers(pair_of("three zebras in a field", boxes=boxes)))


def test_captions_prove_what_a_thing_is_made_of() -> None:
    assert "The table is made of wood." in answers(pair_of("A wooden table in a room."))
    assert not any("made of" in answer for answer in answers(pair_of("a wooden table", "a metal table")))


def test_one_of_several_is_where_some_are_and_none_where_all_are_opposite() -> None:
    dogs = (DOG, Box("dog", 0.4, 0.8, 0.5, 0.95))
    found = answers(pair_of("dogs and a ball", boxes=(*dogs, BALL)), seeds=40)
    assert "Yes, there is a dog to the left of the ball." in found
    assert "No, there is no dog to the right of the ball." in found
    assert not any(f"no dog {place}" in answer for answer in found for place in ("to the left", "below"))


def test_the_present_one_of_two_labels_is_named() -> None:
    assert "The image shows a dog." in answers(pair_of("a dog and a ball", boxes=(DOG, BALL)), vocabulary=("coco",))


def test_boxes_prove_halves_of_the_picture() -> None:
    found = answers(pair_of("a dog and a ball", boxes=(DOG, BALL)))
    assert "The dog is in the left half of the image." in found
    assert "The dog extends over both the upper and the lower half of the image." in found
    two = (DOG, Box("dog", 0.35, 0.1, 0.45, 0.2))
    assert "The two dogs are in the left half of the image." in answers(pair_of("dogs", boxes=two))


def test_groups_are_placed_if_all_members_are_there() -> None:
    two = (DOG, Box("dog", 0.35, 0.45, 0.45, 0.55), BALL)
    found = answers(pair_of("dogs and a ball", boxes=two))
    assert found & {"Yes, the two dogs are to the left of the ball.", "No, the two dogs are to the left of the ball.",
                    "Yes, the ball is to the right of the two dogs.", "No, the ball is to the right of the two dogs."}  # fmt: skip
    around = (DOG, Box("dog", 0.9, 0.45, 0.95, 0.55), BALL)
    assert not any("two dogs are to the" in answer for answer in answers(pair_of("dogs and a ball", boxes=around)))


def test_edges_shares_and_extremes_need_margins() -> None:
    bus = Box("bus", 0.0, 0.2, 0.5, 0.9)
    found = answers(pair_of("a bus, a dog and a ball", boxes=(bus, BALL, Box("dog", 0.55, 0.4, 0.6, 0.5))), seeds=40)
    assert "Yes, the bus reaches the left edge of the image." in found
    assert "No, the bus does not reach the right edge of the image." in found
    assert "Yes, the bus takes up more than two thirds of the height of the image." in found
    assert "No, the bus takes up less than three quarters of the height of the image." in found
    assert not any("than half of the height" in answer and "No" in answer for answer in found if "bus" in answer)
    assert "The bus is furthest to the left." in found
    assert "In the image, the bus is the largest." in found
    assert not any("of the dog" in answer and "edge" in answer for answer in found)


def test_numbers_are_compared_and_can_be_zero() -> None:
    found = answers(pair_of("dogs and a ball", boxes=(DOG, Box("dog", 0.35, 0.45, 0.45, 0.55), BALL)), seeds=30)
    assert {
        "Yes, there are more dogs than balls.",
        "No, there are fewer balls than dogs.",
        "There are no buses.",
    } <= found


def test_without_any_box_nothing_is_absent() -> None:
    found = answers(pair_of("a red dog on a street"))
    assert "The dog is red." in found
    assert not any("no " in answer for answer in found)


def test_coco_stands_for_its_categories() -> None:
    pair = pair_of("a dog", boxes=(DOG,))
    assert answers(pair, vocabulary=("coco",)) == answers(pair, vocabulary=COCO)
    assert len(COCO) == 80


def test_absent_things_of_the_kind_of_what_is_there_are_asked_about() -> None:
    found = answers(pair_of("a dog", boxes=(DOG,)), vocabulary=("coco",), seeds=60)
    animals = [
        answer for answer in found if re.search(r"no (bird|cat|horse|sheep|cow|elephant|bear|zebra|giraffe)", answer)
    ]
    assert len(animals) >= 0.15 * len([answer for answer in found if " no " in answer])


def test_presence_is_asked_before_anything_else_about_a_thing() -> None:
    for seed in range(20):
        turns = [
            turn.text for turn in conversation(pair_of("a dog and a ball", boxes=(DOG, BALL)), seed=seed).turns[1::2]
        ]
        there = turns.index("Yes, there is a dog.")
        assert not any(re.search(r"\bdogs?\b", turn) for turn in turns[:there])


def test_short_answers_are_words_or_phrases_under_the_prompt() -> None:
    made = kinds("short", pair_of("a red dog and a ball", boxes=(DOG, BALL)))
    for row in made:
        assert row.kind == "short"
        assert all(
            turn.text.endswith("?\nAnswer the question using a single word or phrase.") for turn in row.turns[::2]
        )
        assert all(len(turn.text.split()) <= 7 and turn.text[-1] != "." for turn in row.turns[1::2])
    said = {turn.text for row in made for turn in row.turns[1::2]}
    assert {"Yes", "No", "1", "0", "Red", "To the left of the ball", "Left", "The dog"} <= said
    assert all("\n" not in row.turns[0].text for row in kinds("short", pair_of("a red dog"), short_prompt=""))


@pytest.mark.parametrize(
    ("place", "written"),
    [
        ("below", r".+\?\nA\. .+\nB\. .+\nC\. .+\nD\. .+\nOne letter\."),
        ("behind", r".+\? One letter\.\nA\. .+\nB\. .+\nC\. .+\nD\. .+"),
        ("above", r"One letter\.\n.+\?\nA\. .+\nB\. .+\nC\. .+\nD\. .+"),
    ],
)
def test_a_format_prompt_is_at_the_requested_place(place: str, written: str) -> None:
    pair = pair_of("a red dog and a ball", boxes=(DOG, BALL))
    for row in kinds("choice", pair, choice_prompt="One letter.", prompt_place=place):
        assert row.turns
        assert all(re.fullmatch(written, turn.text) for turn in row.turns if turn.role == "human")


def test_a_format_prompt_for_the_first_turn_is_in_no_other() -> None:
    pair = pair_of("a red dog and a ball", boxes=(DOG, BALL))
    for row in kinds("short", pair, short_prompt="One word.", prompt_turns="first"):
        asked = [turn.text for turn in row.turns if turn.role == "human"]
        assert asked[0].endswith("\nOne word.")
        assert len(asked) > 1
        assert not any("One word." in text for text in asked[1:])


def test_choices_have_one_right_option_of_four_and_balanced_letters() -> None:
    pair = pair_of("a red dog and a ball", boxes=(DOG, BALL))
    right: Counter[str] = Counter()
    for row in kinds("choice", pair, seeds=30):
        own: Counter[str] = Counter()
        for question, answer in zip(row.turns[::2], row.turns[1::2], strict=True):
            *_, prompt = lines = question.text.split("\n")
            assert prompt == "Answer with the option's letter from the given choices directly."
            options = dict(line.split(". ", 1) for line in lines[1:-1])
            assert list(options) == list("ABCD")
            assert len(set(options.values())) == 4
            own[answer.text] += 1
            chosen = options[answer.text]
            if "color" in lines[0]:
                assert chosen == "Red"
                assert not {"Orange", "Pink", "Brown", "Purple"} & set(options.values())
            elif "of these" in lines[0]:
                assert chosen in {"Dog", "Ball"}
                assert len({"Dog", "Ball"} & set(options.values())) == 1
        assert max(own.values()) - min(own[letter] for letter in "ABCD") <= 1
        right += own
    assert set(right) == set("ABCD")


def test_the_options_of_a_small_number_are_the_same_whichever_is_right() -> None:
    two = (DOG, Box("dog", 0.5, 0.5, 0.6, 0.6), BALL)
    options = {
        tuple(sorted(re.findall(r"^[A-D]\. (\d)$", turn.text, re.MULTILINE)))
        for row in kinds("choice", pair_of("dogs and a ball", boxes=two))
        for turn in row.turns[::2]
        if "How many" in turn.text
    }
    assert options == {("0", "1", "2", "3")}


LABELS = st.sampled_from(["dog", "Tv ", "sports ball", "skis", "{0}", "{x} of {", "no", "", "broccoli", "people", "é"])


@given(
    st.lists(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=60), min_size=1, max_size=3),
    st.lists(st.tuples(LABELS, st.floats(0, 0.9), st.floats(0, 0.9), st.floats(0, 0.1)), max_size=12),
    st.integers(0, 2**32),
)
@settings(max_examples=examples(60))
def test_any_pair_gives_valid_turns(
    captions: list[str], drawn: list[tuple[str, float, float, float]], seed: int
) -> None:
    boxes = tuple(Box(label, x, y, x + side, y + side) for label, x, y, side in drawn)
    made = TemplateConversations(
        ConversationOptions(types=TEMPLATE_TYPES, vocabulary=("coco", "{0}", "{x} of {"), seed=seed)
    )
    for row in made.annotate(pair_of(*captions, boxes=boxes), (), make_rng(seed)):
        assert [turn.role for turn in row.turns] == ["human", "assistant"] * (len(row.turns) // 2)
        if row.kind != "brief":
            assert all(turn.text.strip() for turn in row.turns)


def test_real_images_with_boxes_give_a_median_of_fifteen_turns(real_data: Path) -> None:
    rows = map(json.loads, (real_data / "llava_caps_boxes/caps_boxes.jsonl").read_text().splitlines())
    pairs = [
        pair_of(*row["captions"], boxes=tuple(Box(each["category"], *each["bbox"]) for each in row["instances"]))
        for row in rows
    ]
    turns = [len(conversation(pair, vocabulary=("coco",), most=24).turns) // 2 for pair in pairs if pair.boxes]
    assert median(turns) >= 15


@pytest.mark.parametrize("corners", [(0.5, 0.5, 0.5, 0.5), (0.2, 0.3, 0.2, 0.9), (0.1, 0.4, 0.8, 0.4)])
def test_a_box_without_area_proves_presence_and_not_position(corners: tuple[float, ...]) -> None:
    found = answers(pair_of("A field.", boxes=(Box("zebra", *corners),)), ("zebra", "dog", "cat"))
    assert "Yes, there is a zebra." in found
    assert not any(word in text for text in found for word in ("half", "takes up", "edge", "nearer"))


def test_with_near_relatives_counted_once_the_median_is_still_fifteen(real_data: Path) -> None:
    place = Path(__file__).parents[3] / "benchmarks" / "conversations.py"
    spec = importlib.util.spec_from_file_location("conversations_benchmark", place)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    medians = benchmark.of_contexts(str(real_data / "llava_caps_boxes/caps_boxes.jsonl"))
    assert medians["once, at most 24"] >= 15


@pytest.mark.parametrize(
    ("captions", "said", "unsaid"),
    [
        (("a man riding a horse", "a woman riding a horse"), "", "man|woman"),
        (("a man riding a horse", "a man holding a rope", "a woman riding a horse"), "man", "woman"),
        (("a man riding a horse", "a man and a woman riding a horse"), "man", "two"),
        (("a cat sleeping on a bed", "a dog sleeping on a bed"), "", "cat|dog"),
        (("a man sitting on a bench", "a skateboarder standing on a bench"), "", "sitting|standing"),
        (("a red desk chair", "a blue office chair"), "", "red|blue"),
    ],
)
def test_answers_of_one_conversation_do_not_contradict_each_other(
    captions: tuple[str, ...], said: str, unsaid: str
) -> None:
    """Where captions disagree, the majority is used, and nothing on a tie."""
    found = " ".join(answers(pair_of(*captions)))
    assert said in found
    assert not re.search(rf"\b({unsaid})\b", found)


@pytest.mark.parametrize(
    "captions",
    [
        ("a toilet in a bathroom", "a toilet in an outside area"),
        ("a man in a garage", "a man riding a skateboard down a sidewalk"),
        ("a woman on the beach", "a person with a surfboard in a room"),
        ("a man on the beach", "a man riding a horse indoors"),
    ],
)
def test_a_scene_is_not_placed_where_captions_disagree_on_indoors(captions: tuple[str, ...]) -> None:
    assert "The scene takes place" in " ".join(answers(pair_of(captions[0])))
    assert "The scene takes place" not in " ".join(answers(pair_of(*captions)))


@pytest.mark.parametrize(
    ("caption", "answer"),
    [
        ("A woman holding a pink umbrella walking toward the truck.", "The woman is holding a pink umbrella."),
        ("A dog chasing a ball running across the grass.", "The dog is chasing a ball."),
        ("A man holding a kite flying in the sky.", "The man is holding a kite."),
        ("A man wearing a blue shirt holding umbrellas.", "The man is wearing a blue shirt."),
        ("A man smiling at the camera wearing a blue tie.", "The man is smiling at the camera."),
        ("A girl playing tennis with people watching from the side.", "The girl is playing tennis."),
        ("A laptop on a table showing a picture.", "The laptop is on a table."),
        ("A man sitting on a bench reading a book.", "The man is sitting on a bench reading a book."),
        ("A man riding a bike past a railroad crossing.", "The man is riding a bike past a railroad crossing."),
    ],
)
def test_an_answer_ends_before_a_participle_that_would_belong_to_another_noun(caption: str, answer: str) -> None:
    """In "the woman is holding an umbrella walking by" the umbrella walks; who sits somewhere reading reads."""
    assert answer in answers(pair_of(caption))


@pytest.mark.parametrize(
    "caption", ["Ein Mann mit rotem Hut reitet ein braunes Pferd.", "一只毛茸茸的猫躺在蓝色的椅子上。"]
)
def test_a_caption_that_is_not_english_does_not_answer_an_english_question(caption: str) -> None:
    row = brief(caption)
    assert (row.status, row.reason, row.turns) == ("rejected", "other_language", ())
    assert brief("A man in a café eats a crêpe.").status == "kept"


def test_an_answer_does_not_shout_where_a_caption_is_in_capitals() -> None:
    found = answers(pair_of("A LITTLE BOY BLOCKING A BALL FROM THE GOAL"))
    assert "The boy is blocking a ball from the goal." in found
    assert all(not re.search("[A-Z]{2}", answer) for answer in found)
