"""LLM generators that ask a model about the image of a row, and end in a verdict on the row."""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id
from pairwright.filters.validation.verdicts import ValidationVerdict
from pairwright.generators.llm.client.messages import Image, Reply, Request
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.prompts.book import Prompt, PromptBook


class ImageRow(Protocol):
    """A row with an image."""

    @property
    def image(self) -> str:
        """Image locator; empty if the row names none."""
        ...


Row = TypeVar("Row", bound=ImageRow)
Judged = tuple[ValidationVerdict, Sequence[RequestOutcome]]


@dataclass(frozen=True, slots=True)
class RowRequests:
    """Builds the requests about one row, with its image."""

    prompt: Prompt
    model: str
    row: str
    attempt: int
    images: Sequence[Image]

    def request(self, values: Mapping[str, object], *, see_image: bool = True, **overrides: Any) -> Request:
        """Return a request; ``overrides`` are parameters that replace those of the prompt."""
        images = self.images if see_image else ()
        return self.prompt.request(
            values, model=self.model, row=self.row, sample=self.attempt, images=images, **overrides
        )


class ImageQuestions(ABC, Generic[Row]):
    """LLM generator (`protocols.LLMGenerator`) that returns one annotation per row, with the verdict on its answers.

    Subclasses set ``name``, ``prompt`` and, where it differs, ``kind``, and implement `ask`.

    Args:
        book: the prompts; ``prompt`` is used.
        model: model name.
        images: converts images for messages.
        rows: by the key of the pair that represents each.
    """

    name: ClassVar[str]
    prompt: ClassVar[str]
    version = 1
    kind = "verdict"

    def __init__(self, book: PromptBook, model: str, images: MessageImages, rows: Mapping[str, Row]) -> None:
        self._prompt = book.get(self.prompt)
        self._model = model
        self._images = images
        self._rows = rows

    @property
    def prompts(self) -> Sequence[str]:
        """The prompt in use, as ``name@hash``."""
        return [self._prompt.id]

    @abstractmethod
    def ask(self, row: Row, requests: RowRequests, rng: random.Random) -> LLMStep[Judged]:
        """Return the steps of a row, which end in its verdict and the outcomes of its requests."""

    def shown(self, row: Row) -> tuple[Image, ...]:
        """Return the image of a row for a message; empty without one that can be sent."""
        return self._images.find(row.image)

    def annotate(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[Annotation]]:
        """Return the steps of a row, which end in its annotation; without requests if its image is missing."""
        row = self._rows[pair.key]
        images = self.shown(row)
        if not images:
            return [self._annotation(pair, ValidationVerdict(missing_image_reason(row.image)), "")]
        requests = RowRequests(self._prompt, self._model, pair.key, attempt, images)
        verdict, outcomes = yield from self.ask(row, requests, rng)
        keys = [outcome.key for outcome in outcomes if isinstance(outcome, Reply)]
        return [self._annotation(pair, verdict, keys[0] if keys else "")]

    def _annotation(self, pair: Pair, verdict: ValidationVerdict, request: str) -> Annotation:
        origin = Origin(self.name, self.version, 0, self._model, self._prompt.id, request)
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
