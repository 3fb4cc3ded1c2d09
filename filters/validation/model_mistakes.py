"""Selection of the negatives that a vision-language model mistakes for the caption (ConMe).

The model sees the image and has to choose between caption and negative. The order of the first request is drawn per row;
a wrong choice is requested again in the other order, so that a mistake is a choice of the negative in both orders, and a
preference for a position is none. Whether a mistake is the model's, or the negative is true after all, is left to a second
look: `llm_judge` by another model, or a person.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pairwright.filters.validation.image_questions import ImageQuestions, Judged, RowRequests
from pairwright.filters.validation.llm_judge import (
    FIRST,
    REFUSED,
    SECOND,
    UNCLEAR,
    pair_for_row,
    parse_pick,
    read_answer,
)
from pairwright.filters.validation.verdicts import ValidationRow, ValidationVerdict
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.prompts.book import PromptBook

NAME: Final = "mistakes"
PROMPT: Final = "choose"
SCORE: Final = "mistake"  # share of the orders in which the model chooses the negative: 0, 0.5 or 1
CHOSE_FIRST: Final = "chose_first"  # 1 if the first answer chooses (1), else 0
REASONS: Final = {
    "model_correct": "the model chooses the caption",
    "order_dependent": "the model chooses the negative in one of the two orders only",
    "model_undecided": "the model chooses neither text, or both",
    "model_unreadable": "the answer is empty, a refusal, or names no choice (reasoning requires --parameter max_tokens=N)",
}

_POSITIVE, _NEGATIVE = "positive", "negative"


class MistakeFinder(ImageQuestions[ValidationRow]):
    """Generator whose annotations have the verdict of `combine_choices`: kept if the model is mistaken.

    Args:
        book: the prompts; ``choose`` is used.
        model: model name.
        images: converts images for messages.
        questions: the rows; each pair represents one of them (`llm_judge.pair_for_row`).
    """

    name = NAME
    prompt = PROMPT

    def __init__(self, book: PromptBook, model: str, images: MessageImages, questions: Iterable[ValidationRow]) -> None:
        super().__init__(book, model, images, {pair_for_row(question).key: question for question in questions})

    def ask(self, row: ValidationRow, requests: RowRequests, rng: random.Random) -> LLMStep[Judged]:
        """Request one order, and the other one after a wrong choice."""
        orders = [(_POSITIVE, _NEGATIVE), (_NEGATIVE, _POSITIVE)]
        rng.shuffle(orders)
        first, second = (
            requests.request(dict(zip(("first", "second"), _texts(row, order), strict=True))) for order in orders
        )
        # A plan expects the right choice, and counts the second request as one that may follow.
        right = "(1)" if orders[0][0] == _POSITIVE else "(2)"
        outcomes = [*(yield [replace(first, expects=right, alone=(second,))])]
        if _choice(row, orders[0], outcomes[0]) == _NEGATIVE:
            outcomes += yield [second]
        return combine_choices(row, orders, outcomes), outcomes


def combine_choices(
    question: ValidationRow, orders: Sequence[tuple[str, str]], outcomes: Sequence[RequestOutcome]
) -> ValidationVerdict:
    """Return the verdict on a row: without a reason if the model chooses the negative in both orders.

    Args:
        question: the row.
        orders: roles of the texts shown as (1) and (2), in the order of the requests.
        outcomes: of one request, or of both.
    """
    if failed := [outcome.code for outcome in outcomes if isinstance(outcome, RequestError)]:
        return ValidationVerdict(failed[0])
    choices = [_choice(question, order, outcome) for order, outcome in zip(orders, outcomes, strict=False)]
    if not {_POSITIVE, _NEGATIVE}.issuperset(choices):
        return ValidationVerdict("model_unreadable" if {UNCLEAR, REFUSED} & {*choices} else "model_undecided")
    wrong = choices.count(_NEGATIVE)
    reason = {0: "model_correct", 1: "order_dependent", 2: ""}[wrong]
    return ValidationVerdict(reason, ((CHOSE_FIRST, float(choices[0] == orders[0][0])), (SCORE, wrong / 2)))


def _choice(question: ValidationRow, order: tuple[str, str], outcome: RequestOutcome) -> str:
    """Return the role of the chosen text, or the pick of an answer that chooses none."""
    roles: Mapping[str, str] = {FIRST: order[0], SECOND: order[1]}
    pick = parse_pick(read_answer(outcome), *_texts(question, order))
    return roles.get(pick, pick)


def _texts(question: ValidationRow, order: tuple[str, str]) -> tuple[str, str]:
    texts = (question.positive, question.negative)
    return texts if order[0] == _POSITIVE else texts[::-1]
