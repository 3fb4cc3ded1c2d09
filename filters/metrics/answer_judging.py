"""Model judgements of answers about images against reference answers (LLaVA-Bench).

The judge reads what is known of the image and scores two answers from 1 to 10 for helpfulness, relevance, accuracy and
detail (LLaVA, section 3.5). It prefers a position, so it is requested twice with the answers exchanged, and each answer
gets the mean of its two scores. The *relative score* of a model is the sum of its scores divided by that of the
reference.

A question with an unreadable judgement is skipped, as the other order alone would bring the position preference back;
both are counted.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.text_files import iter_lines
from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, pair_key
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.llm.output.json_parsing import strip_control_tokens, strip_thinking
from pairwright.generators.prompts.book import PromptBook

NAME: Final = "judge-answers"
VERSION: Final = 1
UNPARSED: Final = "unparsed"
MIN_SCORE, MAX_SCORE = 1.0, 10.0

_SCORES: Final = re.compile(
    r"\s*(?:scores?\s*:?\s*)?(\d+(?:\.\d+)?)(?:\s*/\s*10)?[\s,;]+(\d+(?:\.\d+)?)(?:\s*/\s*10)?\W*", re.IGNORECASE
)
_ALIASES: Final = {
    "question_id": "id",
    "text": "question",
    "category": "type",
    "answer": "reference",
    "caption": "context",
}


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """A question about an image.

    Attributes:
        id: unique in its file.
        image: locator.
        text: the question.
        reference: the answer to compare with.
        context: description of the image, for the judge.
        type: such as ``detail``; empty if unknown.
    """

    id: str
    image: str
    text: str
    reference: str
    context: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class AnswerJudgement:
    """Judgement of one answer, in both orders.

    Attributes:
        question: the question.
        model: mean score of the model's answer, 1-10; None when a judgement is missing.
        reference: the same for the reference answer.
        unparsed: number of unreadable judgements, 0-2.
        reason: why there are no scores: ``unparsed``, or the code of a request error; empty when there are scores.
        inconsistent: whether the two orders disagree on which answer is better.
    """

    question: ImageQuestion
    model: float | None
    reference: float | None
    unparsed: int = 0
    reason: str = ""
    inconsistent: bool = False


def read_questions(path: Path, images: str = "") -> list[ImageQuestion]:
    """Read questions from JSON Lines: ``id``, ``image``, ``question``, ``reference``, ``context``, optionally ``type``.

    LLaVA-Bench's names are accepted too: ``question_id``, ``text``, ``answer``, ``caption``, ``category``. The context
    may be a list of texts (captions, boxes), which become lines.

    Raises:
        InputError: the file is missing or empty, or a row lacks a field or repeats an id.
    """
    found: dict[str, ImageQuestion] = {}
    for where, row in _rows(path):
        named = {_ALIASES.get(name, name): value for name, value in row.items()}
        texts = {name: _text(named, name, where) for name in ("id", "image", "question", "reference", "context")}
        if texts["id"] in found:
            raise InputError(f"duplicate id {texts['id']}", where=where, fix="Give each question a unique id.")
        image = str((Path(images) if images else path.parent) / texts["image"])
        found[texts["id"]] = ImageQuestion(
            texts["id"], image, texts["question"], texts["reference"], texts["context"], str(named.get("type", ""))
        )
    if not found:
        raise InputError("no questions", where=str(path), fix="Write one question per line.")
    return list(found.values())


def read_answers(path: Path, questions: Sequence[ImageQuestion]) -> list[str]:
    """Read the answers of a model, ``id`` and ``answer`` (or LLaVA's ``text``), in the order of the questions.

    Raises:
        InputError: the file is missing, a row is invalid, or a question has no answer.
    """
    found: dict[str, str] = {}
    for where, row in _rows(path):
        named = {{"question_id": "id", "text": "answer"}.get(name, name): value for name, value in row.items()}
        found[_text(named, "id", where)] = _text(named, "answer", where)
    if missing := [question.id for question in questions if question.id not in found]:
        what = f"no answer to {len(missing):,} of {len(questions):,} questions, the first {missing[0]}"
        raise InputError(what, where=str(path), fix="Answer each question.")
    return [found[question.id] for question in questions]


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.is_file():
        raise InputError("no such file", where=str(path), fix="Check the path.")
    for number, line in iter_lines(path):
        where = f"{path}:{number}"
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise InputError("invalid JSON", where=where, fix="Fix or delete the line.") from None
        if not isinstance(row, dict):
            raise InputError("not a JSON object", where=where, fix="Each row is an object.")
        yield where, row


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if isinstance(value, list):
        value = "\n".join(map(str, value))
    if isinstance(value, int):
        value = str(value)
    if not isinstance(value, str) or (not value.strip() and name != "answer"):
        raise InputError(f"no {name}", where=where, fix=f"Each row needs {name}, a text.")
    return value


class AnswerJudge:
    """LLM generator (`protocols.LLMGenerator`) that returns one annotation per answer, with both scores.

    Args:
        book: the prompts; ``judge-answers`` is used.
        model: model name of the judge.
        questions: the questions.
        answers: one answer per question, in order, by the name of the model that gave them.
        images: reads the images, which the judge sees too; None: texts only.
    """

    name = NAME
    version = VERSION
    kind = "judgement"

    def __init__(
        self,
        book: PromptBook,
        model: str,
        questions: Sequence[ImageQuestion],
        answers: Mapping[str, Sequence[str]],
        images: MessageImages | None = None,
    ) -> None:
        self._prompt = book.get(NAME).with_image(sees=images is not None)
        self._images = images
        self._model = model
        self._asked = {
            pair_key(NAME, f"{subject}\x1f{question.id}", question.text): (subject, question, answer)
            for subject, given in answers.items()
            for question, answer in zip(questions, given, strict=True)
        }

    @property
    def prompts(self) -> Sequence[str]:
        """The prompt in use, as ``name@hash``."""
        return [self._prompt.id]

    @property
    def pairs(self) -> list[Pair]:
        """The answers as pairs, one request key each."""
        return [Pair(key, question.text, image=question.image) for key, (_, question, _) in self._asked.items()]

    def annotate(
        self,
        pair: Pair,
        rng: random.Random,  # noqa: ARG002 - part of the protocol
        *,
        attempt: int = 0,
    ) -> LLMStep[list[Annotation]]:
        """Return the steps of an answer, which end in its scores."""
        _, question, answer = self._asked[pair.key]
        images = self._images.find(question.image) if self._images is not None else ()
        if self._images is not None and not images:
            return [
                self._row(
                    pair, answer, AnswerJudgement(question, None, None, reason=missing_image_reason(question.image)), ""
                )
            ]
        orders = [(answer, question.reference), (question.reference, answer)]
        requests: list[Request] = [
            self._prompt.request(
                {"context": question.context, "question": question.text, "first": first, "second": second},
                model=self._model,
                row=pair.key,
                sample=attempt,
                images=images,
            )
            for first, second in orders
        ]
        outcomes = yield requests
        judged = combine_judgements(question, outcomes)
        keys = [outcome.key for outcome in outcomes if isinstance(outcome, Reply)]
        return [self._row(pair, answer, judged, keys[0] if keys else "")]

    def _row(self, pair: Pair, answer: str, judged: AnswerJudgement, request: str) -> Annotation:
        origin = Origin(NAME, VERSION, 0, self._model, self._prompt.id, request)
        scores = {"unparsed": float(judged.unparsed), "turned": float(judged.inconsistent)}
        if judged.model is not None and judged.reference is not None:
            scores |= {"model": judged.model, "reference": judged.reference}
        status: Any = "rejected" if judged.reason else "kept"
        name = annotation_id(pair.key, self.kind, origin, "", "")
        return Annotation(
            id=name, key=pair.key, kind=self.kind, origin=origin, text=answer, scores=scores, status=status,
            reason=judged.reason,
        )  # fmt: skip

    def judged(self, row: Annotation) -> tuple[str, AnswerJudgement]:
        """Return the name of the model and the judgement that an annotation of this generator holds."""
        scores = row.scores
        subject, question, _ = self._asked[row.key]
        return subject, AnswerJudgement(
            question,
            scores.get("model"),
            scores.get("reference"),
            int(scores.get("unparsed", 0)),
            row.reason,
            bool(scores.get("turned", 0)),
        )


def combine_judgements(question: ImageQuestion, outcomes: Sequence[RequestOutcome]) -> AnswerJudgement:
    """Return the judgement of both orders: the one with the model's answer first, then the other."""
    failed = [outcome.code for outcome in outcomes if isinstance(outcome, RequestError)]
    read = [parse_scores(outcome.text) for outcome in outcomes if isinstance(outcome, Reply)]
    unparsed = sum(scores is None for scores in read)
    pairs = [scores for scores in read if scores is not None]
    if failed or unparsed:
        return AnswerJudgement(question, None, None, unparsed, failed[0] if failed else UNPARSED)
    (model_first, reference_second), (reference_first, model_second) = pairs
    inconsistent = (model_first - reference_second) * (model_second - reference_first) < 0
    return AnswerJudgement(
        question, (model_first + model_second) / 2, (reference_first + reference_second) / 2, 0, "", inconsistent
    )


def parse_scores(text: str) -> tuple[float, float] | None:
    """Return the two scores on the first line of a reply; None when they are missing, or not from 1 to 10."""
    answer, _ = strip_control_tokens(strip_thinking(text)[0])
    first = next((line for line in answer.splitlines() if line.strip()), "")
    found = _SCORES.fullmatch(first)
    if found is None:
        return None
    one, two = float(found[1]), float(found[2])
    return (one, two) if min(one, two) >= MIN_SCORE and max(one, two) <= MAX_SCORE else None


@dataclass(frozen=True, slots=True)
class RelativeScore:
    """Scores of a model on some questions.

    Attributes:
        model: float64 (n,), its scores.
        reference: float64 (n,), those of the reference.
        inconsistent: questions for which the better answer depends on the order.
        unscored: questions without scores, by reason.
        unparsed: number of unreadable judgements.
    """

    model: np.ndarray[tuple[int], np.dtype[np.float64]]
    reference: np.ndarray[tuple[int], np.dtype[np.float64]]
    inconsistent: int
    unscored: Mapping[str, int]
    unparsed: int


def relative_score(judged: Iterable[AnswerJudgement]) -> RelativeScore:
    """Return the scores of judged questions, and the counts of all others."""
    rows = list(judged)
    scored = [row for row in rows if not row.reason]
    return RelativeScore(
        np.array([row.model for row in scored], dtype=np.float64),
        np.array([row.reference for row in scored], dtype=np.float64),
        sum(row.inconsistent for row in scored),
        dict(sorted(Counter(row.reason for row in rows if row.reason).items())),
        sum(row.unparsed for row in rows),
    )
