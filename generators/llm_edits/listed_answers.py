"""Answers that list the edits of a caption with their types: answer schemas, and their candidates.

An answer may misspell a type, list types that were not requested, or be truncated. Each entry is one candidate, each
missing type another one, so that nothing is dropped silently.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, Field, field_validator

from pairwright.generators.captions.image_words import words_of
from pairwright.generators.edit_types import BenchmarkType, PositiveType
from pairwright.generators.edits.written.true_text import with_other_words
from pairwright.generators.llm.client.messages import Request
from pairwright.generators.llm.output.answers import Answer
from pairwright.generators.llm.output.lists import ListEntry, ListShape
from pairwright.generators.llm_edits.requests import EditCandidate, PairRequests, Words
from pairwright.generators.prompts.book import Prompt

_ARTICLE = re.compile(r"^\W*(?:an?|the)\s", re.IGNORECASE)
_BROKEN = frozenset({"malformed", "truncated"})


class _ListedEdit(BaseModel):
    """Base of the entries of an answer; models fill in the fields in the order of the schema."""

    type: str
    old: Words = Field("", alias="from")
    new: Words = Field("", alias="to")

    @field_validator("type", mode="before")
    @classmethod
    def _normalize_type(cls, value: object) -> object:
        return normalize_type(value) if isinstance(value, str) else value

    @field_validator("caption", mode="before", check_fields=False)
    @classmethod
    def _null_to_empty(cls, value: object) -> object:
        """Return an empty text for null: the model reports that there is none."""
        return "" if value is None else value


class Negative(_ListedEdit):
    """One of the negatives of an answer."""

    type: BenchmarkType
    caption: str


class NegativeOfPair(Negative):
    """A negative with true words for the same slot."""

    true: Words = ""


class SeenNegative(_ListedEdit):
    """A negative by a model that sees the image: what the image shows instead, and whether the edit is visible."""

    type: BenchmarkType
    image_shows: str = Field(min_length=1)
    visible: bool
    caption: str

    @property
    def reason(self) -> str:
        """``seen_in_image`` if the image shows what the negative states, as the model says; else empty."""
        replaced = self.type.startswith("replace") and _content(self.image_shows) == _content(self.new)
        return "seen_in_image" if self.visible or replaced else ""


class Positive(_ListedEdit):
    """One of the positives of an answer."""

    type: PositiveType
    caption: str


class Negatives(BaseModel):
    """Negatives of one caption."""

    negatives: list[Negative]


class NegativesOfPairs(BaseModel):
    """Negatives of one caption, each with true words."""

    negatives: list[NegativeOfPair]


class SeenNegatives(BaseModel):
    """Negatives of one caption by a model that sees the image."""

    negatives: list[SeenNegative]


class Positives(BaseModel):
    """Positives of one caption."""

    positives: list[Positive]


NEGATIVES: ListShape[Any] = ListShape(Negatives, Negative)
BOTH_SIDES: ListShape[Any] = ListShape(NegativesOfPairs, NegativeOfPair)
SEEN_NEGATIVES: ListShape[Any] = ListShape(SeenNegatives, SeenNegative)
POSITIVES: ListShape[Any] = ListShape(Positives, Positive)


@lru_cache(maxsize=1_000)  # few distinct values occur
def normalize_type(kind: str) -> str:
    """Return the canonical type for a spelling such as "REPLACE_OBJECT" or "Replace object"."""
    return "-".join(re.split(r"[\s_-]+", kind.strip().lower()))


@dataclass(frozen=True, slots=True)
class ListedEdits:
    """Builds the requests for lists of edits, and reads the candidates of the answers.

    Attributes:
        prompt: the prompt.
        shape: schema of the answer.
        known: all types of the schema.
    """

    prompt: Prompt
    shape: ListShape[Any]
    known: tuple[str, ...]

    @property
    def prompts(self) -> list[str]:
        """The id of the prompt."""
        return [self.prompt.id]

    def request(
        self, requests: PairRequests, wanted: Sequence[str], ordinal: int = 0, hint: str = "", count: int = 1
    ) -> Request:
        """Return the request for ``count`` edits of each type."""
        types = [] if {*wanted} == {*self.known} else list(wanted)
        values: dict[str, object] = {"types": types, "count": count if count > 1 else 0, "hint": hint}
        return requests.request(self.prompt, values, self.shape.whole, ordinal, answers=count)

    def candidates(
        self, caption: str, answer: Answer[list[ListEntry[Any]]], wanted: Sequence[str]
    ) -> list[EditCandidate]:
        """Return a candidate for each entry of an answer and for each missing type.

        Args:
            caption: the edited caption.
            answer: to a request for its edits.
            wanted: the requested types.
        """
        blank = EditCandidate("", prompt=self.prompt.id, request=answer.key)
        if answer.value is None:
            return [replace(blank, type=kind, reason=answer.reason) for kind in wanted]
        kinds = [self._type_of(entry) for entry in answer.value]
        missing = [kind for kind in wanted if kind not in kinds]
        missing_reason = "no_edit"
        found: list[EditCandidate] = []
        for entry, kind in zip(answer.value, kinds, strict=True):
            word = entry.error.word if entry.error is not None else ""
            if word == "truncated" or (word == "malformed" and not kind):
                missing_reason = word  # missing types may have been truncated
            if not kind and word in _BROKEN:
                continue
            own = kind or _guess_type(entry, [*missing, *wanted])
            missing = [each for each in missing if each != own]
            reason = word if own in wanted else "not_asked"
            candidate = replace(blank, type=own, text=_text_of(entry), reason=reason)
            found.append(_with_details(candidate, caption, entry.value))
        return found + [replace(blank, type=kind, reason=missing_reason) for kind in missing]

    def _type_of(self, entry: ListEntry[Any]) -> str:
        """Return the type of an entry; empty if it has no known type."""
        kind = entry.value.type if entry.value is not None else normalize_type(str(entry.fields.get("type")))
        return kind if kind in self.known else ""


def _with_details(candidate: EditCandidate, caption: str, entry: _ListedEdit | None) -> EditCandidate:
    """Return the candidate of an entry with its true text or with what the model sees; entry: None if it is invalid."""
    if isinstance(entry, SeenNegative):
        return replace(candidate, reason=candidate.reason or entry.reason, image_shows=entry.image_shows)
    if isinstance(entry, NegativeOfPair) and entry.true and not candidate.reason:
        return replace(candidate, true=with_other_words(caption, candidate.text, entry.new, entry.true))
    return candidate


def _guess_type(entry: ListEntry[Any], free: Sequence[str]) -> str:
    """Return the most likely type of an entry without a valid one: the first free one of its form."""
    form = normalize_type(str(entry.fields.get("type"))).partition("-")[0]
    return next((kind for kind in free if kind.startswith(f"{form}-")), free[0])


def _content(text: str) -> tuple[str, ...]:
    """Return the words of a text without an article before them."""
    return words_of(_ARTICLE.sub("", text))


def _text_of(entry: ListEntry[Any]) -> str:
    text = entry.value.caption if entry.value is not None else entry.fields.get("caption")
    return text if isinstance(text, str) else ""
