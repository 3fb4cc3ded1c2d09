"""Selection of the negatives that a vision-language model mistakes for the caption (ConMe).

The model sees the image and has to choose between caption and negative. The order of the first request is drawn per row;
a wrong choice is requested again in the other order, so that a mistake is a choice of the negative in both orders, and a
preference for a position is none. Whether a mistake is the model's, or the negative is true after all, is left to a second
look: `llm_judge` by another model, or a person.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id
from pairwright.filters.validation.llm_judge import FIRST, SECOND, pair_for_row, parse_pick, read_answer
from pairwright.filters.validation.records import ValidationRow, ValidationVerdict
from pairwright.generators.llm.client.messages import Image, Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.prompts.book import PromptBook

NAME: Final = "mistakes"
VERSION: Final = 1
PROMPT: Final = "choose"
SCORE: Final = "mistake"  # share of the orders in which the model chooses the negative: 0, 0.5 or 1
CHOSE_FIRST: Final = "chose_first"  # 1 if the first answer chooses (1), else 0
REASONS: Final = {
    "model_correct": "the model chooses the caption",
    "order_dependent": "the model chooses the negative in one of the two orders only",
    "model_undecided": "the model chooses neither text, or both",
}

_POSITIVE, _NEGATIVE = "positive", "negative"


class MistakeFinder:
    """LLM generator (`protocols.LLMGenerator`) that returns one annotation per row, kept if the model is mistaken.

    Args:
        book: the prompts; ``choose`` is used.
        model: model name.
        images: converts images for messages.
        questions: the rows; each pair represents one of them (`llm_judge.pair_for_row`).
    """

    name = NAME
    version = VERSION
    kind = "verdict"

    def __init__(self, book: PromptBook, model: str, images: MessageImages, questions: Iterable[ValidationRow]) -> None:
        self._prompt = book.get(PROMPT)
        self._model = model
        self._images = images
        self._questions = {pair_for_row(question).key: question for question in questions}

    @property
    def prompts(self) -> Sequence[str]:
        """The prompt in use, as ``name@hash``."""
        return [self._prompt.id]

    def annotate(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[Annotation]]:
        """Return the steps of a row: one request, and a second one after a wrong choice."""
        question = self._questions[pair.key]
        images = self._images.find(question.image)
        if not images:
            return [self._row(pair, ValidationVerdict(missing_image_reason(question.image)), "")]
        orders = [(_POSITIVE, _NEGATIVE), (_NEGATIVE, _POSITIVE)]
        rng.shuffle(orders)
        [outcome] = yield [self._request(pair, question, orders[0], images, attempt)]
        outcomes = [outcome]
        if _choice(question, orders[0], outcome) == _NEGATIVE:
            outcomes += yield [self._request(pair, question, orders[1], images, attempt)]
        verdict = combine_choices(question, orders, outcomes)
        return [self._row(pair, verdict, outcome.key if isinstance(outcome, Reply) else "")]

    def _request(
        self, pair: Pair, question: ValidationRow, order: tuple[str, str], images: Sequence[Image], attempt: int
    ) -> Request:
        first, second = _texts(question, order)
        values = {"first": first, "second": second}
        return self._prompt.request(values, model=self._model, row=pair.key, sample=attempt, images=images)

    def _row(self, pair: Pair, verdict: ValidationVerdict, request: str) -> Annotation:
        origin = Origin(NAME, VERSION, 0, self._model, self._prompt.id, request)
        return Annotation(
            id=annotation_id(pair.key, self.kind, origin, "", ""),
            key=pair.key,
            kind=self.kind,
            origin=origin,
            source_text=pair.caption,
            scores=dict(verdict.scores),
            status="rejected" if verdict.reason else "kept",
            reason=verdict.reason,
        )


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
    if not all(choices):
        return ValidationVerdict("model_undecided")
    wrong = choices.count(_NEGATIVE)
    reason = {0: "model_correct", 1: "order_dependent", 2: ""}[wrong]
    return ValidationVerdict(reason, ((CHOSE_FIRST, float(choices[0] == orders[0][0])), (SCORE, wrong / 2)))


def _choice(question: ValidationRow, order: tuple[str, str], outcome: RequestOutcome) -> str:
    """Return the role of the chosen text; empty if the answer chooses none."""
    roles: Mapping[str, str] = {FIRST: order[0], SECOND: order[1]}
    return roles.get(parse_pick(read_answer(outcome), *_texts(question, order)), "")


def _texts(question: ValidationRow, order: tuple[str, str]) -> tuple[str, str]:
    texts = (question.positive, question.negative)
    return texts if order[0] == _POSITIVE else texts[::-1]
