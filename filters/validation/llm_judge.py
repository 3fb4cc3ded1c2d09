"""Validation by a model that sees the image and chooses between caption and negative (SugarCrepe, stage 2).

Models prefer a position, so each row is requested twice with the texts exchanged; only what both answers agree on
counts. Both texts may be true: then the negative is a false negative.

Judges are asked for "(1)", "(2)", "both" or "neither", and mostly comply. Some repeat the text after its number, some
explain first and choose at the end, some reject both and then name the closer one: that one is their pick. Any other
answer is `UNCLEAR`, never a guess.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pairwright.datasets.records import Pair, pair_key
from pairwright.filters.validation.image_questions import ImageQuestions, Judged, RowRequests
from pairwright.filters.validation.verdicts import ValidationRow, ValidationVerdict
from pairwright.generators.language.vocabulary import normalize_text
from pairwright.generators.llm.client.messages import Reply
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.output.json_parsing import strip_control_tokens, strip_thinking
from pairwright.generators.prompts.book import PromptBook
from pairwright.generators.rationales.multiple_answers import Mention, listed_answers

NAME: Final = "judge"
SCORE: Final = "judge"
_POSITIVE, _NEGATIVE = "positive", "negative"


class NegativeJudge(ImageQuestions[ValidationRow]):
    """Generator whose annotations have the verdict of `combine_answers`: two requests a row, one in each order.

    Args:
        book: the prompts; ``judge`` is used.
        model: model name.
        images: converts images for messages.
        questions: the rows; each pair represents one of them (`pair_for_row`).
    """

    name = NAME
    prompt = NAME

    def __init__(self, book: PromptBook, model: str, images: MessageImages, questions: Iterable[ValidationRow]) -> None:
        super().__init__(book, model, images, {pair_for_row(question).key: question for question in questions})

    def ask(
        self,
        row: ValidationRow,
        requests: RowRequests,
        rng: random.Random,  # noqa: ARG002 - both orders are requested
    ) -> LLMStep[Judged]:
        """Request both orders."""
        orders = [(row.positive, row.negative), (row.negative, row.positive)]
        outcomes = yield [requests.request({"first": first, "second": second}) for first, second in orders]
        return combine_answers(row, outcomes), outcomes


def pair_for_row(question: ValidationRow) -> Pair:
    """Return the pair that represents a row; every row has its own key."""
    return Pair(pair_key(NAME, question.id, question.positive), question.positive, image=question.image)


def combine_answers(question: ValidationRow, outcomes: Sequence[RequestOutcome]) -> ValidationVerdict:
    """Return the verdict of the two answers: the one with the positive as (1), then the other.

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
        pick = parse_pick(read_answer(outcome), *shown)
        picked.add(role.get(pick, pick))
    if picked == {_POSITIVE}:
        return ValidationVerdict("", ((SCORE, 1.0),))
    if picked & {UNCLEAR, REFUSED}:
        return ValidationVerdict("judge_unreadable", ((SCORE, 0.5),))
    if picked <= {_NEGATIVE, BOTH}:
        return ValidationVerdict("true_of_image", ((SCORE, 0.0),))
    return ValidationVerdict("caption_doubted" if picked == {NEITHER} else "judge_undecided", ((SCORE, 0.5),))


def read_answer(outcome: RequestOutcome) -> str:
    """Return the answer in a reply, without thinking; empty without a reply."""
    if not isinstance(outcome, Reply):
        return ""
    text, _ = strip_control_tokens(strip_thinking(outcome.text)[0])
    return text or outcome.refusal


FIRST, SECOND, BOTH, NEITHER, REFUSED, UNCLEAR = "first", "second", "both", "neither", "refused", "unclear"

_NUMBERED: Final = {"1": FIRST, "2": SECOND}
_LABEL = r"\(\s*([12])\s*\)|\b(?:caption|option|description|text|number|choice|output|answer)s?\s*:?\s*#?([12])\b"
_LABELS: Final = re.compile(_LABEL, re.IGNORECASE)
# The answer itself: a number alone, in brackets, or after a word that announces it.
_OPENING: Final = re.compile(
    r"\W*(?:(?:the\s+)?(?:correct|right|best|better|accurate|true|final)?\s*"
    r"(?:output|answer|choice|option|caption|description)?\s*(?:is|:)?\W*)?"
    r"(?:\(\s*(?P<a>[12])\s*\)|(?P<b>[12]))(?=$|[\s.,:;)\"'*\n-])(?!\W*\s(?:and|or|nor)\b|\s*[&/])",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"(?<![\w.])\(?\s*([12])\s*\)?(?![\w]|\.\d)")
_NEITHER: Final = re.compile(
    r"\bneither\b|\bnone\s+of\b|\bno\s+caption\b|\bboth\b[^.]*\b(?:false|wrong|incorrect|inaccurate)\b", re.IGNORECASE
)
_BOTH: Final = re.compile(r"\W*(?:output|answer)?\W*both\b", re.IGNORECASE)
_FORCED: Final = re.compile(
    r"\b(?:closest|closer|choos\w*|chose\w*|pick\w*|select\w*|better|best|more\s+accurate|most\s+accurate|correct\s+caption)\b",
    re.IGNORECASE,
)
_REFUSAL: Final = re.compile(r"\b(?:sorry|cannot|can't|unable|won't|not\s+able)\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z(])")


def parse_pick(answer: str, first: str = "", second: str = "") -> str:
    """Return which text an answer picks, one of `PICKS`.

    Args:
        answer: answer of the judge.
        first: text (1), for answers that quote a text without its number.
        second: text (2).
    """
    text = answer.strip()
    labels = _find_labels(text)
    if opening := _OPENING.match(text):
        one = _NUMBERED[opening["a"] or opening["b"]]
        pick = one if len(_find_list(text)) < 2 else _find_forced_choice(text) or UNCLEAR
    elif _NEITHER.search(text):
        pick = _find_forced_choice(text) or NEITHER
    elif _BOTH.match(text):
        pick = BOTH
    elif labels:
        pick = labels[0] if len(set(labels)) == 1 else _find_forced_choice(text) or UNCLEAR
    else:
        pick = _find_quoted(text, first, second) or (REFUSED if _REFUSAL.search(text) else UNCLEAR)
    return pick


def _find_labels(text: str) -> list[str]:
    return [_NUMBERED[found[1] or found[2]] for found in _LABELS.finditer(text)]


def _find_list(text: str) -> list[str]:
    """Return the numbers of the list that an answer begins with: both for "(1), (2)"."""
    numbers = [Mention(found.start(), found.end(), found[1]) for found in _NUMBER.finditer(text)]
    return listed_answers(text, numbers)


def _find_forced_choice(text: str) -> str:
    """Return the text that is chosen at the end: the only one named in, or right after, a sentence that chooses."""
    sentences = _SENTENCE.split(text)
    for at in reversed(range(len(sentences))):
        if _FORCED.search(sentences[at]) and not _NEITHER.search(sentences[at]):
            following = " ".join(sentences[at + 1 : at + 2])
            for part in (sentences[at], sentences[at] + " " + following):
                named = set(_find_labels(part))
                if len(named) == 1:
                    return named.pop()
    return ""


def _find_quoted(text: str, first: str, second: str) -> str:
    """Return the text that the answer repeats, when it repeats one of the two."""
    spoken = f" {normalize_text(text)} "
    held = [name for name, text in ((FIRST, first), (SECOND, second)) if text and f" {normalize_text(text)} " in spoken]
    return held[0] if len(held) == 1 else ""
