"""Requests for edits, and edit candidates: texts of a model, or reasons why there is none."""

import json
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from pairwright.datasets.records import Pair
from pairwright.generators.llm.client.messages import Image, Request, Schema
from pairwright.generators.llm.output.answers import Answer
from pairwright.generators.llm.output.json_schema import build_schema
from pairwright.generators.prompts.book import Prompt
from pairwright.generators.prompts.prompt import pair_values

# Old and new words are requested so that the model decides on these first; the edit is derived from the caption.
Words = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]


class Rewritten(BaseModel):
    """An edited caption with its old and new words, or the statement that the edit is impossible."""

    possible: bool
    old: Words = Field("", alias="from")
    new: Words = Field("", alias="to")
    caption: str

    @model_validator(mode="before")
    @classmethod
    def _reconcile_possible(cls, value: object) -> object:
        """Clear the caption of an impossible edit, and count an edit with a caption as possible."""
        if not isinstance(value, dict):
            return value
        if str(value.get("possible")).lower() in {"false", "no"}:
            return {**value, "caption": ""}
        return {"possible": True, **value} if value.get("caption") else value


@dataclass(frozen=True, slots=True)
class EditCandidate:
    """A text for a type, or the reason why there is none.

    Attributes:
        type: such as "replace-object".
        text: as the model wrote it.
        prompt: id of the prompt.
        request: key of the last answer; empty without one.
        reason: a reason of `edits.written`, `llm.output.errors` or `llm.client.request_errors`; empty with a text.
        true: the true text to compare a negative with, if one was requested.
        image_shows: what the image shows in place of the edit, if the model saw it.
    """

    type: str
    text: str = ""
    prompt: str = ""
    request: str = ""
    reason: str = ""
    true: str = ""
    image_shows: str = ""

    # All candidates are sent to the processes that check them; the default of a dataclass with slots takes twice as long.
    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return EditCandidate, _fields_of(self)


_fields_of = attrgetter(*EditCandidate.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class PairRequests:
    """Builds the requests of one pair; ``first`` is the number of its first sample, ``images`` is what the model sees."""

    pair: Pair
    model: str
    first: int
    images: tuple[Image, ...] = ()

    def request(
        self,
        prompt: Prompt,
        values: dict[str, object],
        shape: type[BaseModel],
        ordinal: int = 0,
        *,
        answers: int = 1,
    ) -> Request:
        """Return a request with ``values`` added to those of the pair, for an answer ``answers`` times as long."""
        given = {**pair_values(self.pair), "sees": bool(self.images), **values}
        schema: Schema = build_schema(shape)
        sample, row = self.first + ordinal, self.pair.key
        made = prompt.request(given, model=self.model, row=row, sample=sample, schema=schema, images=self.images)
        limit = made.parameters.get("max_tokens")
        if answers == 1 or not isinstance(limit, int):
            return made
        parameters = {**made.parameters, "max_tokens": limit * answers}
        return replace(made, parameters=parameters, expects=_repeat_entries(made.expects, answers))


def _repeat_entries(expected: str, times: int) -> str:
    """Return an expected list with each entry several times."""
    values = json.loads(expected)
    lists = {name: [each for each in value for _ in range(times)] for name, value in values.items() if value}
    return json.dumps({**values, **lists}, ensure_ascii=False)


def candidate_from_answer(kind: str, prompt: Prompt, answer: Answer[Rewritten]) -> EditCandidate:
    """Return the candidate in an answer for one edit."""
    if answer.value is None:
        return EditCandidate(kind, prompt=prompt.id, request=answer.key, reason=answer.reason)
    if not answer.value.possible:
        return EditCandidate(kind, prompt=prompt.id, request=answer.key, reason="no_edit")
    return EditCandidate(kind, answer.value.caption, prompt.id, answer.key)
