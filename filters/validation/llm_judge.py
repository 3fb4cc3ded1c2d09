"""A model that sees the image judges caption against negative (SugarCrepe, stage 2, with a model for the person).

Models lean towards the text that is shown first or second, so each row is asked about twice, the texts changing
places; only what both answers say counts. Both may be true: that is what a false negative is.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import UnusableImageError
from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, pair_key
from pairwright.filters.validation.answer_parsing import BOTH, FIRST, NEITHER, SECOND, parse_pick
from pairwright.filters.validation.records import ValidationRow, ValidationVerdict
from pairwright.generators.language.tokens import Token
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.output.json_parsing import strip_control_tokens, strip_thinking
from pairwright.generators.prompts.book import PromptBook

NAME: Final = "judge"
VERSION: Final = 1
SCORE: Final = "judge"
_POSITIVE, _NEGATIVE = "positive", "negative"


class NegativeJudge:
    """The maker of verdicts (`protocols.LLMGenerator`): one annotation a row, whose ``reason`` is the verdict.

    Args:
        book: the prompts; ``judge`` is used.
        model: its name at the server.
        images: makes the images of messages.
        questions: the rows; a pair is one of them (`pair_for_row`).
    """

    name = NAME
    version = VERSION
    kind = "verdict"

    def __init__(self, book: PromptBook, model: str, images: MessageImages, questions: Iterable[ValidationRow]) -> None:
        self._prompt = book.get(NAME)
        self._model = model
        self._images = images
        self._questions = {pair_for_row(question).key: question for question in questions}

    @property
    def prompts(self) -> Sequence[str]:
        """The prompt in use, as ``name@hash``."""
        return [self._prompt.id]

    def annotate(
        self,
        pair: Pair,
        tokens: Sequence[Token],  # noqa: ARG002 - the protocol's; texts are shown as they are
        rng: random.Random,  # noqa: ARG002 - the protocol's; nothing is drawn
        *,
        attempt: int = 0,
    ) -> LLMStep[list[Annotation]]:
        """Return the talk about a row, which ends in its verdict."""
        question = self._questions[pair.key]
        try:
            image = self._images.read(question.image) if question.image else None
        except (UnusableImageError, InputError):
            image = None
        if image is None:
            return [self._row(pair, ValidationVerdict("no_image"), "")]
        orders = [(question.positive, question.negative), (question.negative, question.positive)]
        requests: list[Request] = [
            self._prompt.request(
                {"first": first, "second": second}, model=self._model, row=pair.key, sample=attempt, images=(image,)
            )
            for first, second in orders
        ]
        outcomes = yield requests
        keys = [outcome.key for outcome in outcomes if isinstance(outcome, Reply)]
        return [self._row(pair, combine_answers(question, outcomes), keys[0] if keys else "")]

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


def pair_for_row(question: ValidationRow) -> Pair:
    """Return the pair under which a row is asked about; rows have keys of their own."""
    return Pair(pair_key(NAME, question.id, question.positive), question.positive, image=question.image)


def combine_answers(question: ValidationRow, outcomes: Sequence[RequestOutcome]) -> ValidationVerdict:
    """Return what the two answers say together: first the one with the positive as (1), then the other way round.

    The score is 1 when both pick the positive, 0 when both find the negative true, and 0.5 otherwise.
    """
    failed = [outcome.code for outcome in outcomes if isinstance(outcome, RequestError)]
    if failed:
        return ValidationVerdict(failed[0])
    roles: tuple[Mapping[str, str], ...] = (
        {FIRST: _POSITIVE, SECOND: _NEGATIVE},
        {FIRST: _NEGATIVE, SECOND: _POSITIVE},
    )
    texts = (question.positive, question.negative), (question.negative, question.positive)
    picked = set()
    for outcome, role, shown in zip(outcomes, roles, texts, strict=True):
        pick = parse_pick(_picked(outcome), *shown)
        picked.add(role.get(pick, pick))
    if picked == {_POSITIVE}:
        return ValidationVerdict("", ((SCORE, 1.0),))
    if picked <= {_NEGATIVE, BOTH}:
        return ValidationVerdict("true_of_image", ((SCORE, 0.0),))
    return ValidationVerdict("caption_doubted" if picked == {NEITHER} else "judge_undecided", ((SCORE, 0.5),))


def _picked(outcome: RequestOutcome) -> str:
    if not isinstance(outcome, Reply):
        return ""
    text, _ = strip_control_tokens(strip_thinking(outcome.text)[0])
    return text or outcome.refusal
