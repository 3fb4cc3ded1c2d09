"""Textual context of an image within limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Box, Pair
from pairwright.generators.conversations.image_context import ContextLimits, ImageContext
from pairwright.generators.llm.client.messages import Message
from pairwright.generators.prompts.book import PromptBook
from tests.generators.rule_fixtures import pair_of


def said(pair: Pair, limits: ContextLimits | None = None) -> str:
    """Return the last message of a request about the pair."""
    values = {**ImageContext.of(pair, limits).values(), "sees": False}
    message: Message = PromptBook().get("conversation").request(values, model="m").messages[-1]
    return message.text


def test_boxes_are_written_with_three_decimals() -> None:
    assert '"dog": [0.333, 0.667, 0.5, 1.0]' in said(pair_of("a dog", boxes=(Box("dog", 1 / 3, 2 / 3, 0.5, 1),)))


def test_a_context_without_boxes_mentions_none() -> None:
    assert said(pair_of("a dog", "a brown dog")) == 'Captions:\n"a dog"\n"a brown dog"'


def test_all_of_thirty_eight_boxes_are_included() -> None:
    text = said(pair_of("people", boxes=tuple(Box("person", n / 40, 0.1, n / 40 + 0.02, 0.2) for n in range(38))))
    assert text.count('"person": [') == 38
    assert "More" not in text


def test_equal_captions_are_included_once() -> None:
    assert ImageContext.of(pair_of("A dog.", "a  dog", "a cat")).captions == ("A dog.", "a cat")


def test_beyond_the_limit_the_largest_boxes_of_each_label_are_included_and_the_others_counted() -> None:
    small = tuple(Box("cup", n / 10, 0.1, n / 10 + 0.05 - n / 100, 0.11) for n in range(5))
    boxes = (*small[:3], Box("cup", 0, 0, 0.9, 0.9), *small[3:], Box("dog", 0, 0, 0.1, 0.1))
    context = ImageContext.of(pair_of("x", boxes=boxes), ContextLimits(boxes=3))
    assert context.boxes == (small[0], boxes[3], boxes[-1])
    assert context.more == (("cup", 4),)
    assert 'More objects, without boxes:\n"cup": 4' in said(pair_of("x", boxes=boxes), ContextLimits(boxes=3))


def test_captions_beyond_the_limits_are_dropped_from_the_end() -> None:
    pair = pair_of("a dog", "a cat", "a cow", "a pig")
    assert ImageContext.of(pair, ContextLimits(captions=2)).captions == ("a dog", "a cat")
    few = ImageContext.of(pair, ContextLimits(letters=11))
    assert (few.captions, few.captions_omitted) == (("a dog", "a cat"), 2)
    assert ImageContext.of(pair_of("a long dog"), ContextLimits(letters=7)).captions == ("a long",)


def test_limits_below_one_are_refused() -> None:
    with pytest.raises(UsageError, match="boxes must be 1 or more"):
        ContextLimits(boxes=0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1), st.floats(0, 1)), max_size=30), st.integers(1, 12))
def test_included_and_omitted_boxes_add_up_to_all(drawn: list[tuple[str, float, float]], most: int) -> None:
    boxes = tuple(Box(label, 0, 0, x, y) for label, x, y in drawn)
    context = ImageContext.of(pair_of("x", boxes=boxes), ContextLimits(boxes=most))
    assert len(context.boxes) == min(most, len(boxes))
    assert len(context.boxes) + sum(number for _, number in context.more) == len(boxes)
    assert len({box.label for box in context.boxes}) == min(most, len({box.label for box in boxes}))
