"""Language model as a text-only scorer: ratings of both texts of a row, without the image.

The model rates the two texts of a row from 1 to 10. Models prefer a position, so each row is requested twice, with the
texts exchanged; the gap is the mean difference of the ratings, in which a position preference cancels out. A row with a
missing or invalid answer has no gap and counts as a tie.

`LLMScorer` builds the requests; `PrecomputedGaps` is the scorer that the answers give. Rows with equal texts share
their requests.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pydantic import BaseModel, Field

from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, pair_key
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
    """Answer of the model: how likely each of the two sentences is to be a real caption, 1-10."""

    first: int = Field(ge=1, le=10)
    second: int = Field(ge=1, le=10)


class LLMScorer:
    """LLM generator (`protocols.LLMGenerator`) that returns one annotation per row, with the gap as its score.

    Args:
        book: the prompts; ``likelier`` is used.
        model: model name.
        rows: the two texts of each row; each pair represents one of them (`pair_for_row`).
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
        rng: random.Random,  # noqa: ARG002 - part of the protocol
        *,
        attempt: int = 0,
    ) -> LLMStep[list[Annotation]]:
        """Return the steps of a row, which end in its gap."""
        positive, negative = self._rows[pair.key]
        schema = build_schema(Ratings)
        requests: list[Request] = [
            self._prompt.request(
                {"first": first, "second": second}, model=self._model, row=pair.key, sample=attempt, schema=schema
            )
            for first, second in ((positive, negative), (negative, positive))
        ]
        answers = yield from request_answers(requests, Ratings)
        gap = compute_gap(answers)
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
    """Return the pair that represents a row; rows of equal texts have the same."""
    positive, negative = row
    return Pair(pair_key(NAME, negative, positive), positive)


def compute_gap(answers: Sequence[Answer[Ratings]]) -> float | None:
    """Return how much higher the positive is rated, in -1..1, over both orders; None when an answer is missing."""
    [one, other] = [answer.value for answer in answers]
    if one is None or other is None:
        return None
    return round(((one.first - one.second) + (other.second - other.first)) / (2 * _MAX_RATING_GAP), 9)


@dataclass(frozen=True, eq=False)
class PrecomputedGaps:
    """Known gaps as a `GapScorer`.

    Attributes:
        known: (positive, negative) to gap in -1..1; any other row is NaN.
        name: in reports.
    """

    known: Mapping[TextPair, float]
    name: str = NAME

    def gaps(self, positives: Sequence[str], negatives: Sequence[str], groups: Sequence[str], seed: int) -> FloatArray:
        """Return the gap of each row, float64 (n,) in -1..1; NaN for unknown rows."""
        del groups, seed
        rows = zip(positives, negatives, strict=True)
        return np.array([self.known.get(row, np.nan) for row in rows], np.float64)
