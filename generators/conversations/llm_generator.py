"""Generator of conversations by a language model that is given captions and boxes (LLaVA, section 3).

Three types, each with a prompt of that name: *conversation* (several turns), *detail* (a long description, in answer to
a question drawn from the prompt's list) and *reasoning* (one question that requires reasoning). For each pair the model
is asked for all types in `LLMConversationOptions.types`, for one type drawn by `ratios` (the paper's:
`type_ratios.PAPER_RATIOS`), or for the types that select the pair in `only`.

Answers are parsed into turns, checked (`turn_checks`, `language.identification`), requested once more on an error, and then
kept or rejected with a reason. Objects without support in captions and boxes are scored, not rejected:
``hallucination`` (share of the objects, 0-1) and ``unsupported_things`` (their number), see `hallucination`.

Short answers, multiple choice and brief descriptions need no model: `template_generator`.
"""

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Origin, Pair, Turn, annotation_id
from pairwright.datasets.suggestions import suggest_alternatives
from pairwright.generators.conversations.hallucination import HypernymLookup, ObjectSupport, SupportedObjects
from pairwright.generators.conversations.image_context import ContextLimits, ImageContext
from pairwright.generators.conversations.turn_checks import TURN_REASONS, Exchange, check_turns
from pairwright.generators.conversations.type_ratios import check_ratios, draw_type
from pairwright.generators.language.identification import answers_in_other_language
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.llm.client.messages import Image, Request
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.llm.output.answers import Answer, request_answers
from pairwright.generators.llm.output.errors import OutputError
from pairwright.generators.llm.output.json_parsing import strip_control_tokens
from pairwright.generators.llm.output.json_schema import build_schema
from pairwright.generators.llm.output.plain_text import TextShape
from pairwright.generators.prompts.book import Prompt, PromptBook

NAME = "llm-conversations"
VERSION = 6  # raise when the same answers would give other rows
MODEL_TYPES = ("conversation", "detail", "reasoning")

Exchanges = tuple[Exchange, ...]
_TurnStep = Generator[Sequence[Request], Any, tuple[Exchanges, Answer[Any]]]


class WrittenTurn(BaseModel):
    """One question and its answer."""

    question: str
    answer: str


class WrittenConversation(BaseModel):
    """What a model answers to the prompt ``conversation``."""

    turns: list[WrittenTurn]


@dataclass(frozen=True, slots=True)
class LLMConversationOptions:
    """Options of `LLMConversations`.

    Attributes:
        types: requested types, of `MODEL_TYPES`.
        ratios: type -> relative frequency; one type is drawn for each pair. Empty: all types for each pair.
        only: type -> keys of the pairs to ask about; all pairs for a type that is not a key.
        see_image: send the image as well, for vision models.
        limits: limits on captions and boxes.
        seed: stored in the origin of each row.
    """

    types: tuple[str, ...] = MODEL_TYPES
    ratios: Mapping[str, float] = field(default_factory=dict)
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    see_image: bool = False
    limits: ContextLimits = field(default_factory=ContextLimits)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ConversationText:
    """What a model wrote for a type, or the reason why there is nothing to keep.

    Attributes:
        kind: of `MODEL_TYPES`.
        exchanges: the turns.
        raw: the last text of the model.
        reason: empty if the turns are valid.
        request: key of the last answer; empty without one.
    """

    kind: str
    exchanges: Exchanges = ()
    raw: str = ""
    reason: str = ""
    request: str = ""

    @property
    def text(self) -> str:
        """The lines of the turns; the text of the model if they are invalid."""
        lines = (line for each in self.exchanges for line in (each.question, each.answer))
        return self.raw if self.reason else "\n".join(lines)


class LLMConversations:
    """Generates conversations with a language model; a `protocols.CheckedLLMGenerator`.

    Args:
        kinds: WordNet.
        tagger: tags answers and captions.
        prompts: prompts, one named after each type.
        model: model name.
        options: types, ratios and limits.
        images: reads images for messages; used only with ``see_image``.

    Raises:
        UsageError: the types are unknown or empty, the ratios invalid, or the prompt ``detail`` has no list
            ``questions``.
        ConfigError: a prompt file is invalid.
    """

    name = NAME
    version = VERSION
    retries_texts = True

    def __init__(  # noqa: PLR0913 - dependencies
        self,
        kinds: HypernymLookup,
        tagger: Tagger,
        prompts: PromptBook,
        model: str,
        options: LLMConversationOptions | None = None,
        *,
        images: MessageImages | None = None,
    ) -> None:
        self.options = options or LLMConversationOptions()
        unknown = sorted(set(self.options.types) - set(MODEL_TYPES))
        if unknown or not self.options.types:
            raise UsageError(
                f"no conversation type of model generators: {', '.join(unknown) or 'none given'}. "
                f"{suggest_alternatives(unknown, MODEL_TYPES)}. The types brief, short and choice are made by templates."
            )
        check_ratios(self.options.ratios, self.options.types)
        self._prompts = {
            kind: prompts.get(kind).with_image(sees=self.options.see_image)
            for kind in dict.fromkeys(self.options.types)
        }
        if "detail" in self._prompts and not self._prompts["detail"].lists.get("questions"):
            raise UsageError(
                f"{self._prompts['detail'].source}: the prompt has no list 'questions'. Add one under 'lists'."
            )
        self._model = model
        self._images = (images or MessageImages()) if self.options.see_image else None
        self._support = ObjectSupport(kinds, tagger)

    @property
    def kind(self) -> str:
        """The first requested type."""
        return self.options.types[0]

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts in use, each as ``name@hash``."""
        return tuple(prompt.id for prompt in self._prompts.values())

    def ask(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[ConversationText]]:
        """Return the steps that ask about ``pair`` and end in one text for each requested type."""
        types = (draw_type(self.options.ratios, rng),) if self.options.ratios else tuple(self._prompts)
        selected = [kind for kind in types if pair.key in self.options.only.get(kind, (pair.key,))]
        texts = [ConversationText(kind, reason="over_quota") for kind in types if kind not in selected]
        if not selected:
            return texts
        context = ImageContext.of(pair, self.options.limits)
        images = self._images.find(pair.image, (pair.width, pair.height)) if self._images is not None else ()
        if self._images is not None and not images:
            return [*texts, *(ConversationText(kind, reason=missing_image_reason(pair.image)) for kind in selected)]
        for kind in selected:
            for own in range(attempt + 1):  # a valid answer of an earlier attempt, which the cache holds, is kept
                task = _PromptTask(self._prompts[kind], self._model, pair.key, own, context, images, rng)
                turns, answer = yield from _STEPS[kind](task)
                if not answer.reason:
                    break
            texts.append(ConversationText(kind, turns, answer.raw, answer.reason, answer.key))
        return texts

    def check(self, batch: Sequence[tuple[Pair, Sequence[ConversationText]]]) -> list[list[Annotation]]:
        """Return one annotation for each text of each pair, kept or rejected."""
        kept = [
            (each.text.splitlines(), ImageContext.of(pair, self.options.limits))
            for pair, texts in batch
            for each in texts
            if not each.reason
        ]
        supports = iter(self._support.of_batch(kept))
        return [
            [self._annotation(pair, each, None if each.reason else next(supports)) for each in texts]
            for pair, texts in batch
        ]

    def _annotation(self, pair: Pair, written: ConversationText, found: SupportedObjects | None) -> Annotation:
        kind, text = written.kind, written.text
        origin = Origin(NAME, VERSION, self.options.seed, self._model, self._prompts[kind].id, written.request)
        turns = [
            turn
            for each in written.exchanges
            for turn in (Turn("human", each.question), Turn("assistant", each.answer))
        ]
        return Annotation(
            id=annotation_id(pair.key, kind, origin, kind, text),
            key=pair.key,
            kind=kind,
            origin=origin,
            text="" if found else text,
            turns=tuple(turns) if found else (),
            scores=_scores(found) if found else {},
            status="kept" if found else "rejected",
            reason=written.reason,
        )


def _scores(found: SupportedObjects) -> dict[str, float]:
    return {"hallucination": round(found.share, 6), "unsupported_things": float(len(found.unsupported))}


@dataclass(frozen=True, slots=True)
class _PromptTask:
    """One prompt applied to one pair."""

    prompt: Prompt
    model: str
    row: str
    attempt: int
    context: ImageContext
    images: tuple[Image, ...]
    rng: random.Random

    def request(self, shape: type[BaseModel] | None = None) -> Request:
        return self.prompt.request(
            {**self.context.values(), "sees": bool(self.images)},
            model=self.model,
            row=self.row,
            sample=self.attempt,
            schema=build_schema(shape) if shape else None,
            images=self.images,
        )

    def check(self, kind: str, turns: Exchanges) -> OutputError | None:
        error = check_turns(turns, kind, self.context)
        if error is not None:
            return error
        for number, turn in enumerate(turns, 1):
            if answers_in_other_language(turn.answer, turn.question, self.context.captions):
                return OutputError("other_language", TURN_REASONS["other_language"].retry_hint, f"turn {number}")
        return None


def _ask_conversation(task: _PromptTask) -> _TurnStep:
    def turns_of(value: WrittenConversation) -> Exchanges:
        return tuple(_to_exchange(turn.question, turn.answer) for turn in value.turns)

    [answer] = yield from request_answers(
        [task.request(WrittenConversation)],
        WrittenConversation,
        check=lambda value: task.check("conversation", turns_of(value)),
    )
    return (turns_of(answer.value) if answer.value is not None else ()), answer


def _ask_detail(task: _PromptTask) -> _TurnStep:
    question = task.rng.choice(task.prompt.lists["questions"])

    def turns_of(value: str) -> Exchanges:
        return (_to_exchange(question, value),)

    [answer] = yield from request_answers(
        [task.request()], TextShape("text"), check=lambda value: task.check("detail", turns_of(value))
    )
    return (turns_of(answer.value) if answer.value is not None else ()), answer


def _ask_reasoning(task: _PromptTask) -> _TurnStep:
    [answer] = yield from request_answers(
        [task.request(WrittenTurn)],
        WrittenTurn,
        check=lambda value: task.check("reasoning", (_to_exchange(value.question, value.answer),)),
    )
    turn = answer.value
    return ((_to_exchange(turn.question, turn.answer),) if turn is not None else ()), answer


def _to_exchange(question: str, answer: str) -> Exchange:
    # Escapes within JSON may decode to control characters.
    return Exchange(strip_control_tokens(question)[0].strip(), strip_control_tokens(answer)[0].strip())


_STEPS: Mapping[str, Callable[[_PromptTask], _TurnStep]] = {
    "conversation": _ask_conversation,
    "detail": _ask_detail,
    "reasoning": _ask_reasoning,
}
