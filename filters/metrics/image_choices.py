"""Evaluation of a model that writes text on rows of an image, its caption and a hard negative.

- `CaptionChoice`: which of two captions describes the image, in both orders. A row is right in an order if the answer
  names the caption; the *order decides* if both answers name the same position.
- `CaptionProbability`: the probability of "Yes" to "Does this image show ...?" for both texts (VQAScore), from the
  log-probabilities of the first token, as p(yes) / (p(yes) + p(no)). The same question without the image gives the
  prior of each text; log p(yes | image) - log p(yes) is the score with the prior removed.
"""

import math
import random
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pairwright.datasets.errors import InputError
from pairwright.datasets.records import Pair, pair_key
from pairwright.filters.evaluation.crops import is_cropped, open_cropped
from pairwright.filters.validation.image_questions import ImageQuestions, Judged, RowRequests
from pairwright.filters.validation.llm_judge import FIRST, SECOND, parse_pick, read_answer
from pairwright.filters.validation.verdicts import ValidationVerdict
from pairwright.generators.llm.client.messages import Image, Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.local.folder import is_local
from pairwright.generators.llm.output.log_probabilities import first_top_tokens, token_word
from pairwright.generators.prompts.book import PromptBook

NO_PROBABILITIES: Final = "no_probabilities"
_ANSWERS: Final = ("yes", "no")
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


class _Choices(ImageQuestions[ChoiceRow]):
    """Generator whose annotations have the scores of a row's answers.

    Args:
        book: the prompts.
        model: model name.
        images: converts images for messages.
        rows: the rows; each pair represents one of them (`ChoiceRow.pair`).
    """

    kind = "choice"

    def __init__(self, book: PromptBook, model: str, images: MessageImages, rows: Sequence[ChoiceRow]) -> None:
        super().__init__(book, model, images, {row.pair.key: row for row in rows})

    @property
    def pairs(self) -> list[Pair]:
        """The distinct rows as pairs."""
        return [row.pair for row in self._rows.values()]

    def shown(self, row: ChoiceRow) -> tuple[Image, ...]:
        """Return the image of a row, cropped if its locator says so."""
        if not is_cropped(row.image):
            return super().shown(row)
        try:
            return (self._images.of(open_cropped(row.image), where=row.image),)
        except InputError:
            return ()

    def ask(
        self,
        row: ChoiceRow,
        requests: RowRequests,
        rng: random.Random,  # noqa: ARG002 - nothing is drawn
    ) -> LLMStep[Judged]:
        """Send all requests of a row at once; no scores if one got no answer."""
        outcomes = yield self._requests(row, requests)
        failed = [outcome.code for outcome in outcomes if isinstance(outcome, RequestError)]
        scores = {} if failed else self._scores(outcomes)
        reason = failed[0] if failed else "" if scores else NO_PROBABILITIES
        return ValidationVerdict(reason, tuple(scores.items())), outcomes

    @abstractmethod
    def _requests(self, row: ChoiceRow, requests: RowRequests) -> list[Request]: ...

    @abstractmethod
    def _scores(self, outcomes: Sequence[RequestOutcome]) -> Mapping[str, float]: ...


class CaptionChoice(_Choices):
    """Two requests a row; scores ``caption`` and ``negative``, the number of answers that name each, and ``turned``."""

    name, prompt = "caption-choice", "choose"

    def _requests(self, row: ChoiceRow, requests: RowRequests) -> list[Request]:
        orders = (row.caption, row.negative), (row.negative, row.caption)
        return [requests.request({"first": first, "second": second}) for first, second in orders]

    def _scores(self, outcomes: Sequence[RequestOutcome]) -> Mapping[str, float]:
        picks = [parse_pick(read_answer(outcome)) for outcome in outcomes]
        named = list(zip(picks, ((FIRST, SECOND), (SECOND, FIRST)), strict=True))
        return {
            "caption": float(sum(pick == caption for pick, (caption, _) in named)),
            "negative": float(sum(pick == negative for pick, (_, negative) in named)),
            "turned": float(picks[0] == picks[1] and picks[0] in {FIRST, SECOND}),
        }


class CaptionProbability(_Choices):
    """Four requests a row; scores ``caption``, ``negative``, and their priors: log-probabilities of yes.

    A local model gives all spellings of yes and no, a server those among the likeliest tokens.
    """

    name, prompt = "caption-probability", "shows-caption"

    def _requests(self, row: ChoiceRow, requests: RowRequests) -> list[Request]:
        exact: dict[str, Any] = {"max_tokens": 1, "logprob_words": list(_ANSWERS)}
        asked = {"logprobs": True, "top_logprobs": _TOP, **(exact if is_local(self._model) else {})}
        return [
            requests.request({"caption": text}, see_image=see_image, **asked)
            for see_image in (True, False)
            for text in (row.caption, row.negative)
        ]

    def _scores(self, outcomes: Sequence[RequestOutcome]) -> Mapping[str, float]:
        found = [yes_log_probability(outcome) for outcome in outcomes if isinstance(outcome, Reply)]
        names = ("caption", "negative", "caption_prior", "negative_prior")
        scores = {name: score for name, score in zip(names, found, strict=True) if score is not None}
        return scores if len(scores) == len(names) else {}


def yes_log_probability(reply: Reply) -> float | None:
    """Return log(p(yes) / (p(yes) + p(no))) of the first token of a chat completion.

    None if it has no log-probabilities, or neither word is among the top tokens.
    """
    masses = dict.fromkeys(_ANSWERS, 0.0)
    for token, log_probability in first_top_tokens(reply):
        word = token_word(token)
        if word in masses:
            masses[word] += math.exp(log_probability)
    total = sum(masses.values())
    return math.log(max(masses["yes"] / total, _SMALLEST)) if total else None
