"""Hard negatives by a language model: SugarCrepe's seven types, in one call a caption or by its workflow.

REPLACE, SWAP and ADD, of objects, attributes and relations (SugarCrepe, appendix C.3.2). Two ways to ask:

- ``one-call``: one answer with a negative of every type; for more than one of a type, several answers.
- ``workflow``: as published. REPLACE finds the concepts of the kind (temperature 0), proposes another for one drawn at
  random (1.5) and composes the sentence (0); ADD likewise, its object without a place to find; SWAP is one call that
  first says whether it is possible. With one of each of the seven types that is 15 requests in three rounds.

Every answer is validated (`edits.written`). Each text becomes one annotation, kept or rejected, and so does each requested
type and ordinal without a text; see `llm_edits`.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Origin, Pair
from pairwright.datasets.suggestions import require_known
from pairwright.generators.edits.constraints.knowledge import EditThesaurus
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.sources import Pool
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm.output.lists import ListEntry, ListShape
from pairwright.generators.llm_edits import AnnotationBuilder, EditCandidate, PairRequests, Words
from pairwright.generators.prompts.book import Prompt, PromptBook
from pairwright.generators.sugarcrepe_workflow import SugarCrepeWorkflow

NAME = "llm-negatives"
VERSION = 9
ONE_CALL_PROMPT = "negatives-at-once"

Type = Literal[
    "replace-object",
    "replace-attribute",
    "replace-relation",
    "swap-object",
    "swap-attribute",
    "add-object",
    "add-attribute",
]
TYPES: tuple[str, ...] = Type.__args__  # type: ignore[attr-defined]
VARIANTS = ("one-call", "workflow")
_BROKEN = frozenset({"malformed", "truncated"})


class Negative(BaseModel):
    """One of the negatives of an answer."""

    type: Type
    old: Words = Field("", alias="from")
    new: Words = Field("", alias="to")
    caption: str

    @field_validator("type", mode="before")
    @classmethod
    def _as_it_is_named(cls, value: object) -> object:
        return normalize_type(value) if isinstance(value, str) else value

    @field_validator("caption", mode="before")
    @classmethod
    def _or_nothing(cls, value: object) -> object:
        """Return an empty text for null: the model reports that there is none."""
        return "" if value is None else value


class Negatives(BaseModel):
    """The answer of the one-call variant."""

    negatives: list[Negative]


NEGATIVES_SHAPE = ListShape(Negatives, Negative)


def normalize_type(kind: str) -> str:
    """Return "REPLACE_OBJECT" and "Replace object" as the type that they mean."""
    return "-".join(re.split(r"[\s_-]+", kind.strip().lower()))


@dataclass(frozen=True, slots=True)
class LLMNegativeOptions:
    """What to make.

    Attributes:
        types: of `TYPES`.
        per_type: negatives of each type a caption.
        variant: of `VARIANTS`.
        seed: recorded in the origin of each row; the random generator is an argument of the call.
    """

    types: tuple[str, ...] = TYPES
    per_type: int = 1
    variant: str = "one-call"
    seed: int = 0


class LLMNegatives:
    """The generator (`protocols.CheckedLLMGenerator`) of hard negatives by a model.

    Args:
        thesaurus: WordNet (`language.wordnet.load_wordnet`).
        pool: frozen statistics of the user's captions (`language.pool`).
        tagger: tags the captions and what the model wrote.
        book: the prompts.
        model: name of the model at the server.
        options: what to make.

    Raises:
        UsageError: an unknown type or variant, or less than one negative a type.
    """

    name = NAME
    version = VERSION
    kind = "hard_negative"

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a build's materials
        self,
        thesaurus: EditThesaurus,
        pool: Pool,
        tagger: Tagger,
        book: PromptBook,
        model: str,
        options: LLMNegativeOptions | None = None,
    ) -> None:
        self.options = options or LLMNegativeOptions()
        require_known("no such type of negative:", self.options.types, TYPES)
        require_known("no such variant:", [self.options.variant], VARIANTS)
        if self.options.per_type < 1:
            raise UsageError(f"per_type must be at least 1, not {self.options.per_type}.")
        self._checks = EditChecks(thesaurus, pool, tagger)
        self._model = model
        origin = Origin(NAME, VERSION, self.options.seed, model)
        self._wanted = AnnotationBuilder("hard_negative", self.options.types, self.options.per_type, origin)
        self._at_once = book.get(ONE_CALL_PROMPT) if self.options.variant == "one-call" else None
        self._workflow = SugarCrepeWorkflow(book, self.options.types, self.options.per_type)

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""
        return [self._at_once.id] if self._at_once is not None else self._workflow.prompts

    def ask(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[EditCandidate]]:
        """Return the steps for ``pair``, which end in its candidates."""
        seed = rng.getrandbits(64)
        asking = PairRequests(pair, self._model, attempt * self.options.per_type)
        prompt = self._at_once
        return self._workflow.steps(asking, seed) if prompt is None else self._in_one_call(asking, prompt)

    def check(self, batch: Sequence[tuple[Pair, Sequence[EditCandidate]]]) -> list[list[Annotation]]:
        """Return at least ``per_type`` annotations for each type of each pair."""
        return self._wanted.annotations(batch, self._checks)

    def _in_one_call(self, asking: PairRequests, prompt: Prompt) -> LLMStep[list[EditCandidate]]:
        only = [] if set(self.options.types) == set(TYPES) else list(self.options.types)
        requests = [
            asking.request(prompt, {"types": only}, Negatives, ordinal) for ordinal in range(self.options.per_type)
        ]
        answers = yield from request_answers(requests, NEGATIVES_SHAPE)
        found: list[EditCandidate] = []
        for answer in answers:
            if answer.value is None:
                found += [EditCandidate(kind, "", prompt.id, answer.key, answer.reason) for kind in self.options.types]
            else:
                found += [
                    EditCandidate(kind, text, prompt.id, answer.key, reason)
                    for kind, text, reason in self._written(answer.value)
                ]
        return found

    def _written(self, entries: Sequence[ListEntry[Negative]]) -> Iterator[tuple[str, str, str]]:
        """Yield type, text and reason of each entry of an answer, and of each missing type."""
        kinds = [entry.value.type if entry.value is not None else _type_of(entry) for entry in entries]
        missing = [kind for kind in TYPES if kind in self.options.types and kind not in kinds]
        because = "no_edit"
        for entry, kind in zip(entries, kinds, strict=True):
            word = entry.error.word if entry.error is not None else ""
            if entry.value is not None:
                yield entry.value.type, entry.value.caption, self._unasked(entry.value.type)
                continue
            if word == "truncated" or (word == "malformed" and not kind):
                because = word  # the missing types may have been cut off with it
            if kind or word not in _BROKEN:
                own = kind or self._meant(entry, missing)
                missing = [each for each in missing if each != own]
                yield own, _text_of(entry), self._unasked(own) or word
        yield from ((kind, "", because) for kind in missing)

    def _meant(self, entry: ListEntry[Negative], missing: Sequence[str]) -> str:
        """Return the type for an entry without a valid one: a type of its form, preferably a missing one."""
        form = normalize_type(str(entry.fields.get("type"))).partition("-")[0]
        free = [*missing, *self.options.types]
        return next((kind for kind in free if kind.startswith(f"{form}-")), free[0])

    def _unasked(self, kind: str) -> str:
        return "" if kind in self.options.types else "not_asked"


def _type_of(entry: ListEntry[Negative]) -> str:
    """Return the type of an invalid entry; empty if it has no known type."""
    kind = normalize_type(str(entry.fields.get("type")))
    return kind if kind in TYPES else ""


def _text_of(entry: ListEntry[Negative]) -> str:
    text = entry.fields.get("caption")
    return text if isinstance(text, str) else ""
