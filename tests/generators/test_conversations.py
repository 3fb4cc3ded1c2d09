"""Template conversations."""

from dataclasses import replace

import pytest

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Box, Pair, Turn
from pairwright.generators.conversations import ConversationOptions, TemplateConversations
from pairwright.generators.questions import BRIEF
from tests.generators.trial import POOL, annotate, assert_order_is_free, pair_of

DOG = Box("dog", 0.1, 0.4, 0.3, 0.6)
BALL = Box("ball", 0.7, 0.45, 0.8, 0.55)
VOCABULARY = ("dog", "ball", "cat", "scissors", "person", "bus")


def conversation(pair: Pair, *, seed: int = 0, vocabulary: tuple[str, ...] = VOCABULARY, most: int = 0) -> Annotation:
    options = ConversationOptions(types=("conversation",), vocabulary=vocabulary, most_turns=most)
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
    assert found <= {
        "Yes, there are scissors.",
        "Yes, there are people.",
        "No, there is no bus.",
        "No, there are no buses.",
    } | {
        f"No, there {form}."
        for form in ("is no dog", "are no dogs", "is no cat", "are no cats", "is no ball", "are no balls")
    }


def test_a_crowd_is_neither_absent_nor_counted() -> None:
    alone = answers(pair_of("a dog", boxes=(DOG,), crowds=("Bus ",)), seeds=30)
    assert "Yes, there are buses." in alone
    assert not any("no bus" in answer for answer in alone)
    person, dogs = Box("person", 0.1, 0.1, 0.2, 0.4), (DOG, Box("dog", 0.5, 0.5, 0.6, 0.6))
    beside = answers(pair_of("a street", boxes=(person, *dogs, BALL), crowds=("person", "dog")), seeds=30)
    assert {"Yes, there are people.", "There is one ball."} <= beside
    assert not any(word in answer for answer in beside for word in ("person", "two dogs"))


def test_a_crowd_without_boxes_of_a_label_outside_the_vocabulary_is_not_spoken_of() -> None:
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


def test_boxes_that_the_captions_bear_out_are_counted() -> None:
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


def test_without_a_vocabulary_nothing_is_said_of_presence_or_number() -> None:
    found = answers(pair_of("a dog and a ball", boxes=(DOG, BALL)), vocabulary=())
    assert found
    assert not any("here is" in answer or "here are" in answer for answer in found)


def test_nothing_that_a_caption_mentions_is_called_absent() -> None:
    found = answers(pair_of("a dog and a ball", "a kitten and a man", boxes=(DOG, BALL)), seeds=30)
    assert {"No, there is no bus.", "No, there are no buses."} & found
    assert not any("no cat" in answer or "no person" in answer or "no people" in answer for answer in found)


def test_yes_and_no_are_said_equally_often() -> None:
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
    assert conversation(pair_of(caption, *others)).reason == "no_context"


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


def test_unknown_types_are_refused() -> None:
    with pytest.raises(UsageError, match="no such type of conversation"):
        TemplateConversations(ConversationOptions(types=("reasoning",)))


def test_a_brief_answer_has_no_blanks_around_it() -> None:
    (row,) = annotate(TemplateConversations(ConversationOptions(types=("brief",))), pair_of("  a dog on a bed. "))
    assert row.turns[1].text == "a dog on a bed."
