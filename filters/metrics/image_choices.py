"""Evaluation of a model that writes text on rows of an image, its caption and a hard negative.

- `CaptionChoice`: which of two captions describes the image, in both orders. A row is right in an order if the answer
  names the caption; the *order decides* if both answers name the same position.
- `CaptionProbability`: the probability of "Yes" to "Does this image show ...?" for both texts (VQAScore), from the
  log-probabilities of the first token, as p(yes) / (p(yes) + p(no)). The same question without the image gives the
  prior of each text; log p(yes | image) - log p(yes) is the score with the prior removed.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, pair_key
from pairwright.filters.validation.llm_judge import FIRST, SECOND, parse_pick
from pairwright.generators.llm.client.messages import Image, Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.llm.output.json_parsing import strip_control_tokens, strip_thinking
from pairwright.generators.prompts.book import PromptBook

VERSION: Final = 1
NO_PROBABILITIES: Final = "no_probabilities"
_TOP: Final = 20  # tokens whose log-probabilities are requested: the most that OpenAI's API allows
_SMALLEST: Final = 1e-9  # probability of an answer that is not among the top tokens


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A row: image locator, caption and negative."""

    image: str
    caption: str
    negative: str

    @property
    def pair(self) -> Pair:
        """The pair that represents the row; equal rows have the same."""
        key = pair_key("choice", f"{self.image}\x1f{self.negative}", self.caption)
        return Pair(key, self.caption, image=self.image)


class _ImageRows:
    """LLM generator (`protocols.LLMGenerator`) that returns one annotation per row, with the scores of its answers.

    Args:
        book: the prompts; ``prompt`` of the class is used.
        model: model name.
        images: encodes images for messages.
        rows: the rows; each pair represents one of them (`ChoiceRow.pair`).
    """

    name: str
    prompt: str
    version = VERSION
    kind = "choice"

    def __init__(self, book: PromptBook, model: str, images: MessageImages, rows: Sequence[ChoiceRow]) -> None:
        self._prompt = book.get(self.prompt)
        self._model = model
        self._images = images
        self._rows = {row.pair.key: row for row in rows}

    @property
    def prompts(self) -> Sequence[str]:
        """The prompt in use, as ``name@hash``."""
        return [self._prompt.id]

    @property
    def pairs(self) -> list[Pair]:
        """The distinct rows as pairs."""
        return [row.pair for row in self._rows.values()]

    def annotate(
        self,
        pair: Pair,
        rng: random.Random,  # noqa: ARG002 - part of the protocol
        *,
        attempt: int = 0,
    ) -> LLMStep[list[Annotation]]:
        """Return the steps of a row, which end in its scores."""
        row = self._rows[pair.key]
        images = self._images.find(row.image)
        if not images:
            return [self._annotation(pair, {}, missing_image_reason(row.image), "")]
        outcomes = yield self._requests(row, images, pair.key, attempt)
        failed = [outcome.code for outcome in outcomes if isinstance(outcome, RequestError)]
        keys = [outcome.key for outcome in outcomes if isinstance(outcome, Reply)]
        scores = {} if failed else self._scores(outcomes)
        reason = failed[0] if failed else "" if scores else NO_PROBABILITIES
        return [self._annotation(pair, scores, reason, keys[0] if keys else "")]

    def _requests(self, row: ChoiceRow, images: Sequence[Image], key: str, attempt: int) -> list[Request]:
        raise NotImplementedError

    def _scores(self, outcomes: Sequence[RequestOutcome]) -> Mapping[str, float]:
        raise NotImplementedError

    def _annotation(self, pair: Pair, scores: Mapping[str, float], reason: str, request: str) -> Annotation:
        origin = Origin(self.name, VERSION, 0, self._model, self._prompt.id, request)
        return Annotation(
            id=annotation_id(pair.key, self.kind, origin, "", ""),
            key=pair.key,
            kind=self.kind,
            origin=origin,
            source_text=pair.caption,
            scores=dict(scores),
            status="rejected" if reason else "kept",
            reason=reason,
        )


class CaptionChoice(_ImageRows):
    """Two requests a row; scores ``caption`` and ``negative``, the number of answers that name each, and ``turned``."""

    name, prompt = "caption-choice", "choose"

    def _requests(self, row: ChoiceRow, images: Sequence[Image], key: str, attempt: int) -> list[Request]:
        return [
            self._prompt.request(
                {"first": first, "second": second}, model=self._model, row=key, sample=attempt, images=images
            )
            for first, second in ((row.caption, row.negative), (row.negative, row.caption))
        ]

    def _scores(self, outcomes: Sequence[RequestOutcome]) -> Mapping[str, float]:
        picks = [parse_pick(_text(outcome)) for outcome in outcomes]
        named = list(zip(picks, ((FIRST, SECOND), (SECOND, FIRST)), strict=True))
        return {
            "caption": float(sum(pick == caption for pick, (caption, _) in named)),
            "negative": float(sum(pick == negative for pick, (_, negative) in named)),
            "turned": float(picks[0] == picks[1] and picks[0] in {FIRST, SECOND}),
        }


class CaptionProbability(_ImageRows):
    """Four requests a row; scores ``caption``, ``negative``, and their priors: log-probabilities of yes."""

    name, prompt = "caption-probability", "shows-caption"

    def _requests(self, row: ChoiceRow, images: Sequence[Image], key: str, attempt: int) -> list[Request]:
        return [
            self._prompt.request(
                {"caption": text},
                model=self._model,
                row=key,
                sample=attempt,
                images=shown,
                logprobs=True,
                top_logprobs=_TOP,
            )
            for shown in (images, ())
            for text in (row.caption, row.negative)
        ]

    def _scores(self, outcomes: Sequence[RequestOutcome]) -> Mapping[str, float]:
        found = [yes_log_probability(outcome.raw) for outcome in outcomes if isinstance(outcome, Reply)]
        names = ("caption", "negative", "caption_prior", "negative_prior")
        scores = {name: score for name, score in zip(names, found, strict=True) if score is not None}
        return scores if len(scores) == len(names) else {}


def _text(outcome: RequestOutcome) -> str:
    return strip_control_tokens(strip_thinking(outcome.text)[0])[0] if isinstance(outcome, Reply) else ""


def yes_log_probability(body: bytes) -> float | None:
    """Return log(p(yes) / (p(yes) + p(no))) of the first token of a chat completion.

    None if it has no log-probabilities, or neither word is among the top tokens.
    """
    masses = {"yes": 0.0, "no": 0.0}
    for token, log_probability in _top_tokens(body):
        word = token.strip(" \t\n\"'.,!*▁Ġ").lower()
        if word in masses:
            masses[word] += math.exp(log_probability)
    total = sum(masses.values())
    return math.log(max(masses["yes"] / total, _SMALLEST)) if total else None


def _top_tokens(body: bytes) -> list[tuple[str, float]]:
    """Return (token, log-probability) of the first position; empty without."""
    try:
        first: Any = orjson.loads(body)["choices"][0]["logprobs"]["content"][0]
        return [(str(each["token"]), float(each["logprob"])) for each in first["top_logprobs"]]
    except (ValueError, LookupError, TypeError):
        return []
