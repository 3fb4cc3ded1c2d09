"""Checks of generated turns: what is accepted and what is rejected."""

import time

import pytest

from pairwright.datasets.records import Box
from pairwright.generators.conversations.image_context import ImageContext
from pairwright.generators.conversations.turn_checks import TURN_REASONS, Exchange, check_turns
from pairwright.generators.prompts.book import PromptBook

CONTEXT = ImageContext(("A dog runs on a beach.",), (Box("dog", 0.5, 0.25, 0.75, 0.9),))
GOOD = Exchange("What is the dog doing?", "It is running on a beach.")
LONG = "The dog is running along a wide beach, close to the water, and looks as if it enjoys all that room a lot."


def word(*turns: Exchange, kind: str = "conversation", context: ImageContext = CONTEXT) -> str:
    error = check_turns(turns, kind, context)
    assert error is None or error.word in TURN_REASONS
    return error.word if error else ""


def of_answer(answer: str, question: str = "Where is the dog?", context: ImageContext = CONTEXT) -> str:
    return word(GOOD, Exchange(question, answer), context=context)


@pytest.mark.parametrize(
    "answer",
    [
        "The dog is on the right side of the image.",
        "It costs $0.99.",
        "There are 2 dogs, about 0.4 m high.",
        "It is half past 10, as the clock with the label shows.",
        "He is carrying a box of donuts.",
        "It is mostly brown, with some details in white.",
        "Yes",
        "There is no cat in the image.",
        "It is not clearly a puppy, but a young dog.",
        "The sign does not say where the beach is.",
        "The price is 0.99 dollars.",
        "The text on the sign names a beach, and the sentence below it is short.",
        "The information desk is beside the detection dog.",
        'A sign labeled "Stop" stands on the sand.',
        'The label says "dogs allowed".',
        "The text on the sign states that dogs are allowed.",
        'The text says "Beach".',
        "The user of the phone sits on the sand.",
        "For instance, it runs beside the water.",
        "In this context, a ball makes sense.",
        "In one instance, where it jumps, it is in the water.",
        "In that instant it marks the sand beside the dog.",
        "A market stands behind the dogs.",
        "Two boxes stand on the sand, and the crate beside them is labeled with a number.",
    ],
)
def test_answers_about_the_image_are_accepted(answer: str) -> None:
    assert of_answer(answer) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "The caption says that it runs.",
        "According to the captions, it is on the beach.",
        "The bounding box is on the right.",
        "The bounding boxes show one dog.",
        "The description speaks of a beach.",
        "As described, it is on a beach.",
        "The provided information tells of a beach.",
        "Based on the text, it runs.",
        "The object labels say dog.",
        "The box labelled dog is on the right.",
        "Its coordinates are on the right.",
        "It is annotated as a dog.",
        "The object labeled dog is on the right.",
        "The text description mentions a dog.",
        "There are several descriptions of the dog.",
        "One of the five sentences says that it runs.",
        "The details provided show that it runs.",
        "The boxes show that it is on the right.",
        "Its box is smaller than the other one.",
        "One dog was detected.",
        "The listed objects are a dog and a ball.",
        "As stated, it runs.",
        "The text states that a dog runs.",
        "The text says that it is a beach.",
        'It is labeled "dog".',
        "The one labelled 'dog' runs.",
        "An animal with the label “dog” runs.",
        "It is marked as a dog.",
        "The user says that it runs.",
        "The user's question is about the dog.",
        "The user is asking about a dog.",
        "The context suggests a hot day.",
        "One dog instance is on the beach.",
        "There are two instances of dogs.",
    ],
)
def test_a_mention_of_the_input_is_rejected(answer: str) -> None:
    assert of_answer(answer) == "mentions_source"
    assert of_answer("On the beach.", f"Is it true? {answer}") == "mentions_source"


def test_words_of_the_captions_are_accepted() -> None:
    meme = ImageContext(("A funny photo with a caption about 0.75 beers.",), ())
    assert of_answer("The caption makes fun of 0.75 beers.", context=meme) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "The dog is at [0.5, 0.25, 0.75, 0.9].",
        "The dog is at (0.5, 0.25).",
        "It reaches from 0.25 to 0.9.",
        "It begins at 0.5 of the width.",
        "It stands at x = 0.4.",
        "It is 40% from the left.",
        "It is 300 pixels wide.",
        "Along the y-axis it is in the middle.",
        "The dog goes from [12, 40] to [300, 200].",
        "Its corner is at 120, 40.",
        "It reaches from 10% to 30% of the width.",
    ],
)
def test_coordinates_are_rejected(answer: str) -> None:
    assert of_answer(answer) == "coordinates"


@pytest.mark.parametrize(
    "answer",
    [
        "It cannot be determined.",
        "This can't be said with certainty.",
        "The color is not mentioned in the caption.",
        "The color isn’t specified.",
        "There is no information about that.",
        "It is unclear.",
        "I don't know.",
        "It is impossible to tell.",
        "The image does not indicate where it is.",
    ],
)
def test_questions_without_an_answer_are_rejected(answer: str) -> None:
    assert of_answer(answer) == "unanswerable"


def test_reasoning_may_leave_something_open() -> None:
    asked = "What may the dog want to do next?"
    assert word(Exchange(asked, f"{LONG} Whether it likes to swim is unclear, but it may."), kind="reasoning") == ""
    open_end = f"{LONG} It cannot be determined what it wants."
    assert word(Exchange(asked, open_end), kind="reasoning") == "unanswerable"


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ((), "too_few_turns"),
        ((GOOD,), "too_few_turns"),
        ((GOOD,) * 13, "too_many_turns"),
        ((GOOD, Exchange(" ", "Yes.")), "empty_turn"),
        ((GOOD, Exchange("Is it a dog?", "...")), "empty_turn"),
        ((GOOD, Exchange("<image>\nIs it a dog?", "Yes.")), "image_token"),
        ((GOOD, Exchange("Is it a dog?", "Yes.\nQuestion: Is it big?\nAnswer: No.")), "not_alternating"),
        ((GOOD, Exchange("Is it a dog? Answer: yes", "Yes.")), "not_alternating"),
        ((GOOD, Exchange("It is a dog.", "Yes.")), "no_question"),
        ((GOOD, Exchange("Why?", "Since it can.")), "no_question"),
        ((GOOD, Exchange(f"Is it so that {'really ' * 40} a dog?", "Yes.")), "question_too_long"),
        ((GOOD, Exchange("Is it a dog?", "Yes, " * 101)), "too_long"),
        ((GOOD, Exchange("What is the DOG doing?", "Running.")), "repeated"),
        ((GOOD, Exchange("What does it do?", "It is running on a beach.")), ""),
        ((Exchange("Who is there?", LONG), Exchange("What does it do?", LONG)), "repeated"),
        ((GOOD, Exchange("Is it so?", "To answer the question: it is a dog.")), ""),
        ((GOOD, Exchange("Name the animal.", "A dog.")), ""),
    ],
)
def test_the_form_of_turns_is_checked(turns: tuple[Exchange, ...], expected: str) -> None:
    assert word(*turns) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A dog.", "too_short"),
        (LONG, ""),
        (f"{LONG} " * 20, "too_long"),
        (f'{{"turns": [{{"question": "What is it?", "answer": "{LONG}"}}]}}', "list_formatting"),
        (f'["{LONG}"]', "list_formatting"),
        (f"**Dog**\n- {LONG}\n- It is brown.", "list_formatting"),
    ],
)
def test_a_detailed_description_is_one_text_of_some_length(answer: str, expected: str) -> None:
    assert word(Exchange("Describe the image in detail.", answer), kind="detail") == expected


def test_the_questions_of_our_own_prompt_pass() -> None:
    for question in PromptBook().get("detail").lists["questions"]:
        assert word(Exchange(question, LONG), kind="detail") == ""


@pytest.mark.parametrize(
    "bit", ["the ", "[0.1, ", "0.1, ", "no more ", "\n- ", "a: ", ". Q", "is described as the ", "x = ", "((", "not "]
)
def test_long_answers_are_checked_in_linear_time(bit: str) -> None:
    started = time.perf_counter()
    word(GOOD, Exchange("Is it?" + bit * 20_000, bit * 20_000), kind="conversation")
    word(Exchange("Describe the image in detail.", bit * 20_000), kind="detail")
    assert time.perf_counter() - started < 30
