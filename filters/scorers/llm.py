"""Any language model as a blind scorer: which of two texts is likelier to be a real caption, the image unseen.

A row's two texts are shown together and rated from 1 to 10. Models lean towards a place, so each row is asked about
twice, the texts changing places; its gap is the mean difference of the two ratings, so a mere leaning adds up to
nothing. A row of which an answer is missing or unreadable has no gap, which counts as a tie.

`LLMScorer` says what to ask, `PrecomputedGaps` is the scorer that the answers make. Rows with equal texts are one question.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pydantic import BaseModel, Field

from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, pair_key
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.vocabulary import FloatArray
from pairwright.generators.llm.client.messages import Request
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.output.answers import Answer, request_answers
from pairwright.generators.llm.output.json_schema import build_schema
from pairwright.generators.prompts.book import PromptBook

NAME: Final = "llm"
VERSION: Final = 1
PROMPT: Final = "likelier"
_MAX_RATING_GAP = 9  # between the ratings 1 and 10

TextPair = tuple[str, str]  # positive, negative


class Ratings(BaseModel):
    """What a model answers: how likely each of the two sentences is to be a real caption, 1-10."""

    first: int = Field(ge=1, le=10)
    second: int = Field(ge=1, le=10)


class LLMScorer:
    """The maker of gaps (`protocols.LLMGenerator`): one annotation a row, with the gap as its score.

    Args:
        book: the prompts; ``likelier`` is used.
        model: its name at the server.
        rows: the two texts of each row; a pair is one of them (`pair_for_row`).
    """

    name = NAME
    version = VERSION
    kind = "gap"

    def __init__(self, book: PromptBook, model: str, rows: Iterable[TextPair]) -> None:
        self._prompt = book.get(PROMPT)
        self._model = model
        self._rows = {pair_for_row(row).key: row for row in rows}

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
        """Return the talk about a row, which ends in its gap."""
        positive, negative = self._rows[pair.key]
        schema = build_schema(Ratings)
        requests: list[Request] = [
            self._prompt.request(
                {"first": first, "second": second}, model=self._model, row=pair.key, sample=attempt, schema=schema
            )
            for first, second in ((positive, negative), (negative, positive))
        ]
        answers = yield from request_answers(requests, Ratings)
        gap = gap_from_answers(answers)
        reason = next((answer.reason for answer in answers if answer.value is None), "")
        origin = Origin(NAME, VERSION, 0, self._model, self._prompt.id, answers[0].key)
        return [
            Annotation(
                id=annotation_id(pair.key, self.kind, origin, "", ""),
                key=pair.key,
                kind=self.kind,
                origin=origin,
                source_text=pair.caption,
                scores={} if gap is None else {NAME: gap},
                status="kept" if gap is not None else "rejected",
                reason=reason,
            )
        ]


def pair_for_row(row: TextPair) -> Pair:
    """Return the pair under which a row is asked about; rows of equal texts have the same."""
    positive, negative = row
    return Pair(pair_key(NAME, negative, positive), positive)


def gap_from_answers(answers: Sequence[Answer[Ratings]]) -> float | None:
    """Return by how much the positive is rated higher, in -1..1: over the answers with it first and with it second.

    None when either answer is not there.
    """
    [one, other] = [answer.value for answer in answers]
    if one is None or other is None:
        return None
    return round(((one.first - one.second) + (other.second - other.first)) / (2 * _MAX_RATING_GAP), 9)


@dataclass(frozen=True, eq=False)
class PrecomputedGaps:
    """Gaps that are known beforehand, as a `GapScorer`: made of answers, which do not change with the rows kept.

    Attributes:
        known: (positive, negative) to gap in -1..1; a row that is not in it is NaN.
        name: under which reports show it.
    """

    known: Mapping[TextPair, float]
    name: str = NAME

    def gaps(self, positives: Sequence[str], negatives: Sequence[str], groups: Sequence[str], seed: int) -> FloatArray:
        """Return the gap of each row, float64 (n,) in -1..1; NaN where there is none."""
        del groups, seed
        rows = zip(positives, negatives, strict=True)
        return np.array([self.known.get(row, np.nan) for row in rows], np.float64)
