"""Hard negatives by a language model: SugarCrepe's seven types, in one call a caption or by its workflow.

REPLACE, SWAP and ADD, of objects, attributes and relations (SugarCrepe, appendix C.3.2). Two ways to ask:

- ``one-call``: one answer with a negative of every type; for more than one of a type, several answers.
- ``workflow``: as published. REPLACE finds the concepts of the kind (temperature 0), proposes another for one drawn at
  random (1.5) and composes the sentence (0); ADD likewise, its object without a place to find; SWAP is one call that
  first says whether it is possible. With one of each of the seven types that is 15 requests in three rounds.

Whatever comes back goes through the checks (`edit_checks`). Each text ends in one annotation, kept or rejected, and so
does each asked type and number for which there is none; see `llm_edits`.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from pairwright.datasets.choices import refuse_unknown
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Origin, Pair
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edit_checks.checks import EditChecks
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.llm.answers import asked
from pairwright.generators.llm.talks import Talk
from pairwright.generators.llm_edits import Asking, Candidate, Wanted
from pairwright.generators.llm_workflow import Workflow
from pairwright.generators.prompting.files import Prompt, PromptBook

NAME = "llm-negatives"
VERSION = 7
AT_ONCE = "negatives-at-once"

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


class Negative(BaseModel):
    """One of the negatives of an answer."""

    type: Type
    old: str = Field(alias="from")
    new: str = Field(alias="to")
    caption: str

    @field_validator("type", mode="before")
    @classmethod
    def _as_it_is_named(cls, value: object) -> object:
        """Return "REPLACE_OBJECT" and "Replace object" as the type that they mean."""
        return "-".join(re.split(r"[\s_-]+", value.strip().lower())) if isinstance(value, str) else value


class Negatives(BaseModel):
    """The answer of the one-call variant."""

    negatives: list[Negative]


@dataclass(frozen=True, slots=True)
class LLMNegativeOptions:
    """What to make.

    Attributes:
        types: of `TYPES`.
        per_type: negatives of each type a caption.
        variant: of `VARIANTS`.
        seed: written into the origin of each row; chance itself comes with the call.
    """

    types: tuple[str, ...] = TYPES
    per_type: int = 1
    variant: str = "one-call"
    seed: int = 0


class LLMNegatives:
    """The generator (`protocols.LLMGenerator`) of hard negatives by a model.

    Args:
        thesaurus: WordNet (`language.wordnet.load_wordnet`).
        pool: frozen statistics of the user's captions (`language.pool`).
        tagger: the one that tags the captions; it tags what the model wrote.
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
        thesaurus: Thesaurus,
        pool: Pool,
        tagger: Tagger,
        book: PromptBook,
        model: str,
        options: LLMNegativeOptions | None = None,
    ) -> None:
        self.options = options or LLMNegativeOptions()
        refuse_unknown("no such type of negative:", self.options.types, TYPES)
        refuse_unknown("no such variant:", [self.options.variant], VARIANTS)
        if self.options.per_type < 1:
            raise UsageError(f"per_type must be at least 1, not {self.options.per_type}.")
        self._checks = EditChecks(thesaurus, pool, tagger)
        self._model = model
        origin = Origin(NAME, VERSION, self.options.seed, model)
        self._wanted = Wanted("hard_negative", self.options.types, self.options.per_type, origin)
        self._at_once = book.get(AT_ONCE) if self.options.variant == "one-call" else None
        self._workflow = Workflow(book, self.options.types, self.options.per_type)

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""
        return [self._at_once.id] if self._at_once is not None else self._workflow.prompts

    def annotate(
        self, pair: Pair, tokens: Sequence[Token], rng: random.Random, *, attempt: int = 0
    ) -> Talk[list[Annotation]]:
        """Return the talk about ``pair``, which ends in at least ``per_type`` annotations for each type."""
        seed = rng.getrandbits(64)
        asking = Asking(pair, self._model, attempt * self.options.per_type)
        prompt = self._at_once
        found = yield from (self._workflow.talk(asking, seed) if prompt is None else self._in_one_call(asking, prompt))
        return self._wanted.annotations(Caption(pair, tokens), found, self._checks)

    def _in_one_call(self, asking: Asking, prompt: Prompt) -> Talk[list[Candidate]]:
        only = [] if set(self.options.types) == set(TYPES) else list(self.options.types)
        requests = [
            asking.request(prompt, {"types": only}, Negatives, ordinal) for ordinal in range(self.options.per_type)
        ]
        answers = yield from asked(requests, Negatives)
        found: list[Candidate] = []
        for answer in answers:
            if answer.value is None:
                found += [Candidate(kind, "", prompt.id, answer.key, answer.reason) for kind in self.options.types]
                continue
            written = answer.value.negatives
            found += [
                Candidate(each.type, each.caption, prompt.id, answer.key, self._unasked(each.type)) for each in written
            ]
            left_out = set(self.options.types) - {each.type for each in written}
            found += [Candidate(kind, "", prompt.id, answer.key, "no_edit") for kind in TYPES if kind in left_out]
        return found

    def _unasked(self, kind: str) -> str:
        return "" if kind in self.options.types else "not_asked"
