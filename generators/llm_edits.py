"""Shared parts of the generators that ask a language model for edits: requests, and annotations from answers.

A *candidate* is a text for a type, or the reason why there is none. All candidates of many captions are checked together
(`edits.written`); the first valid ones of each type are kept, as many as requested. Every other candidate, and every
missing one, becomes a rejected annotation with its reason: candidates = kept + rejected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id
from pairwright.generators.edits.written.checks import Checked, EditChecks
from pairwright.generators.edits.written.kinds import Asked
from pairwright.generators.edits.written.reasons import nearness
from pairwright.generators.llm.client.messages import Request, Schema
from pairwright.generators.llm.output.answers import Answer
from pairwright.generators.llm.output.json_schema import build_schema
from pairwright.generators.prompts.book import Prompt
from pairwright.generators.prompts.prompt import pair_values

# Old and new words are requested so that the model decides on these first; the edit is derived from the caption.
Words = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]


class Rewritten(BaseModel):
    """An edit, or the statement that it is not possible: old words, new words, and the new caption."""

    possible: bool
    old: Words = Field("", alias="from")
    new: Words = Field("", alias="to")
    caption: str

    @model_validator(mode="before")
    @classmethod
    def _as_it_is_meant(cls, value: object) -> object:
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
    """

    type: str
    text: str = ""
    prompt: str = ""
    request: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PairRequests:
    """Builds the requests of one pair; ``first`` is the number of its first sample."""

    pair: Pair
    model: str
    first: int

    def request(self, prompt: Prompt, values: dict[str, object], shape: type[BaseModel], ordinal: int = 0) -> Request:
        """Return a request with ``values`` added to those of the pair."""
        given = {**pair_values(self.pair), **values}
        schema: Schema = build_schema(shape)
        return prompt.request(given, model=self.model, row=self.pair.key, sample=self.first + ordinal, schema=schema)


def candidate_from_answer(kind: str, prompt: Prompt, answer: Answer[Rewritten]) -> EditCandidate:
    """Return the candidate in an answer for one edit."""
    if answer.value is None:
        return EditCandidate(kind, prompt=prompt.id, request=answer.key, reason=answer.reason)
    if not answer.value.possible:
        return EditCandidate(kind, prompt=prompt.id, request=answer.key, reason="no_edit")
    return EditCandidate(kind, answer.value.caption, prompt.id, answer.key)


@dataclass(frozen=True, slots=True)
class AnnotationBuilder:
    """Builds the annotations of a caption from its candidates.

    Attributes:
        kind: ``hard_negative`` or ``hard_positive``.
        types: such as "replace-object".
        per_type: annotations of each type.
        origin: generator and model; prompt and request come from each candidate.
    """

    kind: str
    types: tuple[str, ...]
    per_type: int
    origin: Origin

    def annotations(
        self, batch: Sequence[tuple[Pair, Sequence[EditCandidate]]], checks: EditChecks
    ) -> list[list[Annotation]]:
        """Return annotations for pairs with their candidates in order of preference.

        A pair has an annotation for each candidate, kept or rejected with a reason; at least ``per_type`` of each type.
        Kept ones of a type come first, then the others, those nearest to success first.
        """
        written = [
            (pair, [(_requested_edit(self.kind, each.type), each.text) for each in found if not each.reason])
            for pair, found in batch
        ]
        return [
            self._of_pair(pair, found, checked)
            for (pair, found), checked in zip(batch, checks.check_batch(written), strict=True)
        ]

    def _of_pair(self, pair: Pair, found: Sequence[EditCandidate], checked: Sequence[Checked]) -> list[Annotation]:
        outcomes = iter(checked)
        pairs = [(each, Checked(each.text, reason=each.reason) if each.reason else next(outcomes)) for each in found]
        made: list[Annotation] = []
        for name in dict.fromkeys((*self.types, *(candidate.type for candidate in found))):
            own = [each for each in pairs if each[0].type == name]
            missing = self.per_type - len(own) if name in self.types else 0
            own += [(EditCandidate(name), Checked("", reason="no_edit"))] * missing
            made += [
                self._annotation(pair, ordinal, candidate, outcome)
                for ordinal, (candidate, outcome) in enumerate(_rank_candidates(own, self.per_type))
            ]
        return made

    def _annotation(self, pair: Pair, ordinal: int, candidate: EditCandidate, checked: Checked) -> Annotation:
        asked = _requested_edit(self.kind, candidate.type)
        origin = replace(self.origin, prompt=candidate.prompt or self.origin.prompt, request=candidate.request)
        return Annotation(
            id=annotation_id(pair.key, self.kind, origin, f"{candidate.type}/{ordinal}", checked.text),
            key=pair.key,
            kind=self.kind,
            origin=origin,
            form=asked.form,
            target=asked.target,
            text=checked.text,
            source_text=pair.caption,
            edits=checked.edits,
            scores={"agreement_changes": float(checked.agreement_changes)} if checked.agreement_changes else {},
            status="rejected" if checked.reason else "kept",
            reason=checked.reason,
        )


def _rank_candidates(found: Sequence[tuple[EditCandidate, Checked]], count: int) -> list[tuple[EditCandidate, Checked]]:
    """Return valid candidates in order, those beyond ``count`` as spare, then the others, nearest to success first."""
    good = [item for item in found if not item[1].reason]
    rest = sorted((item for item in found if item[1].reason), key=lambda item: -nearness(item[1].reason))
    spare = [(candidate, Checked(outcome.text, reason="spare")) for candidate, outcome in good[count:]]
    return [*good[:count], *spare, *rest]


def _requested_edit(kind: str, name: str) -> Asked:
    form, _, target = name.partition("-")
    return Asked(kind, form, target)
