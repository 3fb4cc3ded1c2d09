"""Answers about images, judged against reference answers by a model that reads what is known of the image (LLaVA-Bench).

The judge scores two answers from 1 to 10 for helpfulness, relevance, accuracy and detail (003, section 3.5). It leans
towards the one that stands first or second, so it is asked twice, the answers changing places, and each answer has the
mean of its two scores. A model's *relative score* is the sum of its scores over that of the reference's.

A judgement that cannot be read counts as none. Its question is left out, since the other order alone would bring the
leaning back; both are counted.
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
from pairwright.generators.language.tokens import Token
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
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
        text: what is asked.
        reference: the answer to compare with.
        context: what is known of the image, for the judge.
        type: such as ``detail``; empty when none is told.
    """

    id: str
    image: str
    text: str
    reference: str
    context: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class AnswerJudgement:
    """What the judge said of one answer, in both orders.

    Attributes:
        question: which one.
        model: mean score of the model's answer, 1-10; None when a judgement is missing.
        reference: likewise of the reference answer.
        unparsed: judgements that cannot be read, 0-2.
        reason: why there are no scores: ``unparsed``, or the word of a failure; empty when there are.
        turned: whether the two orders disagree on which answer is the better one.
    """

    question: ImageQuestion
    model: float | None
    reference: float | None
    unparsed: int = 0
    reason: str = ""
    turned: bool = False


def read_questions(path: Path, images: str = "") -> list[ImageQuestion]:
    """Read questions from JSON Lines: ``id``, ``image``, ``question``, ``reference``, ``context``, and ``type`` if any.

    LLaVA-Bench's own names do as well: ``question_id``, ``text``, ``answer``, ``caption``, ``category``. The context
    may be a list of texts (captions, boxes), which become lines.

    Raises:
        InputError: no such file, no question, or a row that lacks one of them or repeats an id.
    """
    found: dict[str, ImageQuestion] = {}
    for where, row in _rows(path):
        named = {_ALIASES.get(name, name): value for name, value in row.items()}
        texts = {name: _text(named, name, where) for name in ("id", "image", "question", "reference", "context")}
        if texts["id"] in found:
            raise InputError(f"id {texts['id']} for the second time", where=where, fix="Give each question its own.")
        image = str((Path(images) if images else path.parent) / texts["image"])
        found[texts["id"]] = ImageQuestion(
            texts["id"], image, texts["question"], texts["reference"], texts["context"], str(named.get("type", ""))
        )
    if not found:
        raise InputError("no question in it", where=str(path), fix="Give one a line.")
    return list(found.values())


def read_answers(path: Path, questions: Sequence[ImageQuestion]) -> list[str]:
    """Read answers that a model gave elsewhere, ``id`` and ``answer`` (or LLaVA's ``text``), in the order of the questions.

    Raises:
        InputError: no such file, a broken row, or a question without an answer.
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
            raise InputError("broken JSON", where=where, fix="Mend or delete the line.") from None
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
    """The maker of judgements (`protocols.LLMGenerator`): one annotation an answer, with both scores.

    Args:
        book: the prompts; ``judge-answers`` is used.
        model: the judge's name at the server.
        questions: what was asked.
        answers: by the name of who gave them, one a question, aligned.
    """

    name = NAME
    version = VERSION
    kind = "judgement"

    def __init__(
        self, book: PromptBook, model: str, questions: Sequence[ImageQuestion], answers: Mapping[str, Sequence[str]]
    ) -> None:
        self._prompt = book.get(NAME)
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
        """The answers as pairs, under which they are asked about."""
        return [Pair(key, question.text, image=question.image) for key, (_, question, _) in self._asked.items()]

    def annotate(
        self,
        pair: Pair,
        tokens: Sequence[Token],  # noqa: ARG002 - the protocol's; texts are shown as they are
        rng: random.Random,  # noqa: ARG002 - the protocol's; nothing is drawn
        *,
        attempt: int = 0,
    ) -> LLMStep[list[Annotation]]:
        """Return the talk about an answer, which ends in its scores."""
        _, question, answer = self._asked[pair.key]
        orders = [(answer, question.reference), (question.reference, answer)]
        requests: list[Request] = [
            self._prompt.request(
                {"context": question.context, "question": question.text, "first": first, "second": second},
                model=self._model,
                row=pair.key,
                sample=attempt,
            )
            for first, second in orders
        ]
        outcomes = yield requests
        judged = combine_judgements(question, outcomes)
        keys = [outcome.key for outcome in outcomes if isinstance(outcome, Reply)]
        origin = Origin(NAME, VERSION, 0, self._model, self._prompt.id, keys[0] if keys else "")
        scores = {"unparsed": float(judged.unparsed), "turned": float(judged.turned)}
        if judged.model is not None and judged.reference is not None:
            scores |= {"model": judged.model, "reference": judged.reference}
        status: Any = "rejected" if judged.reason else "kept"
        name = annotation_id(pair.key, self.kind, origin, "", "")
        return [
            Annotation(
                id=name, key=pair.key, kind=self.kind, origin=origin, text=answer, scores=scores, status=status,
                reason=judged.reason,
            )
        ]  # fmt: skip

    def judged(self, row: Annotation) -> tuple[str, AnswerJudgement]:
        """Return what an annotation of this maker says, behind the name of whose answer it is about."""
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
    """Return what both judgements say together: first the one with the model's answer first, then the other way round."""
    failed = [outcome.code for outcome in outcomes if isinstance(outcome, RequestError)]
    read = [parse_scores(outcome.text) for outcome in outcomes if isinstance(outcome, Reply)]
    unparsed = sum(scores is None for scores in read)
    pairs = [scores for scores in read if scores is not None]
    if failed or unparsed:
        return AnswerJudgement(question, None, None, unparsed, failed[0] if failed else UNPARSED)
    (model_first, reference_second), (reference_first, model_second) = pairs
    turned = (model_first - reference_second) * (model_second - reference_first) < 0
    return AnswerJudgement(
        question, (model_first + model_second) / 2, (reference_first + reference_second) / 2, 0, "", turned
    )


def parse_scores(text: str) -> tuple[float, float] | None:
    """Return the two scores on the first line of a reply; None when they are not there, or not from 1 to 10."""
    said, _ = strip_control_tokens(strip_thinking(text)[0])
    first = next((line for line in said.splitlines() if line.strip()), "")
    found = _SCORES.fullmatch(first)
    if found is None:
        return None
    one, two = float(found[1]), float(found[2])
    return (one, two) if min(one, two) >= MIN_SCORE and max(one, two) <= MAX_SCORE else None


@dataclass(frozen=True, slots=True)
class RelativeScore:
    """The relative score of a model on some questions.

    Attributes:
        model: float64 (n,), its scores.
        reference: float64 (n,), those of the reference.
        turned: questions where the better answer changes with the order.
        left_out: questions without scores, by reason.
        unparsed: judgements that could not be read.
    """

    model: np.ndarray[tuple[int], np.dtype[np.float64]]
    reference: np.ndarray[tuple[int], np.dtype[np.float64]]
    turned: int
    left_out: Mapping[str, int]
    unparsed: int


def relative_score(judged: Iterable[AnswerJudgement]) -> RelativeScore:
    """Return the scores of those that have any, and the count of all others."""
    rows = list(judged)
    scored = [row for row in rows if not row.reason]
    return RelativeScore(
        np.array([row.model for row in scored], dtype=np.float64),
        np.array([row.reference for row in scored], dtype=np.float64),
        sum(row.turned for row in scored),
        dict(sorted(Counter(row.reason for row in rows if row.reason).items())),
        sum(row.unparsed for row in rows),
    )
