"""Answers that list the edits of a caption with their types: answer schemas, and their candidates.

An answer may misspell a type, list types that were not requested, or be truncated. Each entry is one candidate, each
missing type another one, so that nothing is dropped silently.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, Field, field_validator

from pairwright.generators.captions.image_words import words_of
from pairwright.generators.edit_types import BenchmarkType, PositiveType
from pairwright.generators.edits.written.true_text import with_other_words
from pairwright.generators.llm.output.answers import Answer
from pairwright.generators.llm.output.lists import ListEntry, ListShape
from pairwright.generators.llm_edits.requests import EditCandidate, Words
from pairwright.generators.prompts.book import Prompt

_ARTICLE = re.compile(r"^\W*(?:an?|the)\s", re.IGNORECASE)
_BROKEN = frozenset({"malformed", "truncated"})


class _ListedEdit(BaseModel):
    """Base of the entries of an answer; models fill in the fields in the order of the schema."""

    @field_validator("type", mode="before", check_fields=False)
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
    old: Words = Field("", alias="from")
    new: Words = Field("", alias="to")
    caption: str


class NegativeOfPair(Negative):
    """A negative with true words for the same slot."""

    true: Words = ""


class SeenNegative(_ListedEdit):
    """A negative by a model that sees the image: what the image shows instead, and whether the edit is visible."""

    type: BenchmarkType
    old: Words = Field("", alias="from")
    new: Words = Field("", alias="to")
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
    old: Words = Field("", alias="from")
    new: Words = Field("", alias="to")
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
    """Reads the candidates of an answer.

    Attributes:
        prompt: the prompt.
        shape: schema of the answer.
        known: all types of the schema.
        wanted: the requested types.
    """

    prompt: Prompt
    shape: ListShape[Any]
    known: tuple[str, ...]
    wanted: tuple[str, ...]

    def candidates(self, caption: str, answer: Answer[list[ListEntry[Any]]]) -> list[EditCandidate]:
        """Return a candidate for each entry of an answer and for each missing type.

        Args:
            caption: the edited caption.
            answer: to a request for its edits.
        """
        if answer.value is None:
            return [EditCandidate(kind, "", self.prompt.id, answer.key, answer.reason) for kind in self.wanted]
        found = []
        for kind, text, reason, entry in self._written(answer.value):
            true = entry.true if isinstance(entry, NegativeOfPair) and not reason else ""
            other = with_other_words(caption, text, entry.new, true) if true else ""
            seen = entry if isinstance(entry, SeenNegative) else None
            rejection, shows = (reason or seen.reason, seen.image_shows) if seen is not None else (reason, "")
            found.append(EditCandidate(kind, text, self.prompt.id, answer.key, rejection, other, shows))
        return found

    def _written(self, entries: Sequence[ListEntry[Any]]) -> Iterator[tuple[str, str, str, Any]]:
        """Yield type, text, reason and value of each entry of an answer, and of each missing type."""
        kinds = [entry.value.type if entry.value is not None else self._type_of(entry) for entry in entries]
        missing = [kind for kind in self.wanted if kind not in kinds]
        missing_reason = "no_edit"
        for entry, kind in zip(entries, kinds, strict=True):
            word = entry.error.word if entry.error is not None else ""
            if entry.value is not None:
                yield kind, entry.value.caption, self._reject_unrequested(kind), entry.value
                continue
            if word == "truncated" or (word == "malformed" and not kind):
                missing_reason = word  # missing types may have been truncated
            if kind or word not in _BROKEN:
                own = kind or self._guess_type(entry, missing)
                missing = [each for each in missing if each != own]
                yield own, _text_of(entry), self._reject_unrequested(own) or word, None
        yield from ((kind, "", missing_reason, None) for kind in missing)

    def _type_of(self, entry: ListEntry[Any]) -> str:
        """Return the type of an invalid entry; empty if it has no known type."""
        kind = normalize_type(str(entry.fields.get("type")))
        return kind if kind in self.known else ""

    def _guess_type(self, entry: ListEntry[Any], missing: Sequence[str]) -> str:
        """Return the most likely type of an entry without a valid one: of its form, preferably a missing one."""
        form = normalize_type(str(entry.fields.get("type"))).partition("-")[0]
        free = [*missing, *self.wanted]
        return next((kind for kind in free if kind.startswith(f"{form}-")), free[0])

    def _reject_unrequested(self, kind: str) -> str:
        return "" if kind in self.wanted else "not_asked"


def _content(text: str) -> tuple[str, ...]:
    """Return the words of a text without an article before them."""
    return words_of(_ARTICLE.sub("", text))


def _text_of(entry: ListEntry[Any]) -> str:
    text = entry.fields.get("caption")
    return text if isinstance(text, str) else ""
