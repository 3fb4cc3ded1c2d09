"""SugarCrepe's workflow for hard negatives: find the concepts, propose another, compose the sentence.

The requests of all types are sent in the same three rounds:

1. the concepts to replace (or to describe, for an added attribute), one list for each kind; and the swaps, which take a
   single call;
2. for each negative, a new concept for one drawn at random (an added object needs none to replace);
3. the sentence.

Source: SugarCrepe, appendix C.3.2.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, field_validator

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.client.messages import Request
from pairwright.generators.llm.client.steps import LLMStep, gather
from pairwright.generators.llm.output.answers import PLANNED_FINISH_REASON, Answer, request_answers
from pairwright.generators.llm_edits.requests import EditCandidate, PairRequests, Rewritten, candidate_from_answer
from pairwright.generators.prompts.book import Prompt, PromptBook

_SURROUNDING_CHARS = " \t.,;:\"'`*“”"  # characters around a concept


class Concepts(BaseModel):
    """The concepts of one kind in a caption."""

    concepts: list[str]

    @field_validator("concepts", mode="before")
    @classmethod
    def _flatten_concepts(cls, value: object) -> object:
        """Return the texts of a list, unwrapping entries that are objects with one value; null is empty."""
        named = [_unwrap_single_value(each) for each in value] if isinstance(value, list) else []
        texts = [each for each in named if isinstance(each, str)]
        return texts if texts or value is None else value


class Concept(BaseModel):
    """A new concept."""

    concept: str


class Composed(BaseModel):
    """A caption with the new concept in it."""

    caption: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """A negative in progress: its type and ordinal, the concept of the caption, the new one."""

    type: str
    ordinal: int
    concept: str = ""
    new: str = ""


class SugarCrepeWorkflow:
    """The steps for some types; holds prompts only.

    Args:
        book: the prompts.
        types: such as "replace-object".
        per_type: negatives of each.
    """

    def __init__(self, book: PromptBook, types: Sequence[str], per_type: int) -> None:
        self._per_type = per_type
        self._swaps = {kind: book.get(kind) for kind in types if kind.startswith("swap")}
        others = [kind for kind in types if kind not in self._swaps]
        self._find = {kind: book.get(_find_prompt(kind)) for kind in others if _find_prompt(kind)}
        self._propose = {kind: book.get(f"{kind}-propose") for kind in others}
        self._compose = {kind: book.get(f"{kind}-compose") for kind in others}

    @property
    def prompts(self) -> list[str]:
        """Ids of all prompts."""
        used = [*self._swaps.values(), *self._find.values(), *self._propose.values(), *self._compose.values()]
        return sorted({prompt.id for prompt in used})

    def steps(self, requests: PairRequests, seed: int) -> LLMStep[list[EditCandidate]]:
        """Return the steps for a pair, which end in ``per_type`` candidates of each type.

        Args:
            requests: builds the requests of the pair.
            seed: for drawing concepts.
        """
        finders = list({prompt.name: prompt for prompt in self._find.values()}.values())
        swaps = [(kind, n) for kind in self._swaps for n in range(self._per_type)]
        concepts, swapped = yield from gather(
            request_answers([requests.request(prompt, {}, Concepts) for prompt in finders], Concepts),
            request_answers([requests.request(self._swaps[kind], {}, Rewritten, n) for kind, n in swaps], Rewritten),
        )
        found = [
            candidate_from_answer(kind, self._swaps[kind], answer)
            for (kind, _), answer in zip(swaps, swapped, strict=True)
        ]
        by_finder = {prompt.name: answer for prompt, answer in zip(finders, concepts, strict=True)}
        plans: list[_Plan] = []
        for kind in self._propose:
            drawn = self._drawn(requests, kind, by_finder, seed)
            plans += [each for each in drawn if isinstance(each, _Plan)]
            found += [each for each in drawn if isinstance(each, EditCandidate)]
        return found + (yield from self._written(requests, plans))

    def _drawn(
        self, requests: PairRequests, kind: str, answers: dict[str, Answer[Concepts]], seed: int
    ) -> list[_Plan | EditCandidate]:
        """Return the concept to replace for each negative of a type, or the reason why there is none."""
        if kind not in self._find:
            return [_Plan(kind, n) for n in range(self._per_type)]
        prompt = self._find[kind]
        answer = answers[prompt.name]
        if answer.value is None:
            return [EditCandidate(kind, "", prompt.id, answer.key, answer.reason)] * self._per_type
        plain = (" ".join(each.split()).strip(_SURROUNDING_CHARS) for each in answer.value.concepts)
        concepts = [each for each in dict.fromkeys(plain) if each]
        if not any(
            reply.finish_reason == PLANNED_FINISH_REASON for reply in answer.replies
        ):  # planned answers are about another caption
            concepts = [each for each in concepts if _contains_concept(requests.pair.caption, each)]
        if not concepts:
            return [EditCandidate(kind, "", prompt.id, answer.key, "no_edit")] * self._per_type
        rng = make_rng(seed, kind)
        order = rng.sample(concepts, len(concepts))
        return [_Plan(kind, n, order[n % len(order)]) for n in range(self._per_type)]

    def _written(self, requests: PairRequests, plans: list[_Plan]) -> LLMStep[list[EditCandidate]]:
        proposals = yield from request_answers(
            [self._request(requests, plan, self._propose, Concept) for plan in plans], Concept
        )
        found: list[EditCandidate] = []
        remaining: list[_Plan] = []
        for plan, answer in zip(plans, proposals, strict=True):
            new = " ".join(answer.value.concept.split()).strip(_SURROUNDING_CHARS) if answer.value is not None else ""
            reason = answer.reason or ("" if new else "empty_answer")
            if new.lower() == plan.concept.lower():
                reason = reason or "identical"  # composing it would be paid for, and give the caption
            if reason:
                found.append(EditCandidate(plan.type, "", self._propose[plan.type].id, answer.key, reason))
            else:
                remaining.append(_Plan(plan.type, 0, plan.concept, new))  # the same concepts are composed once
        composed = yield from request_answers(
            [self._request(requests, plan, self._compose, Composed) for plan in remaining], Composed
        )
        for plan, sentence in zip(remaining, composed, strict=True):
            text = sentence.value.caption if sentence.value is not None else ""
            found.append(EditCandidate(plan.type, text, self._compose[plan.type].id, sentence.key, sentence.reason))
        return found

    @staticmethod
    def _request(requests: PairRequests, plan: _Plan, prompts: dict[str, Prompt], shape: type[BaseModel]) -> Request:
        values: dict[str, object] = {"concept": plan.concept, "new_concept": plan.new}
        return requests.request(prompts[plan.type], values, shape, plan.ordinal)


def _unwrap_single_value(value: object) -> object:
    """Return the only value of an object."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _contains_concept(caption: str, concept: str) -> bool:
    """Return whether a caption contains a concept: words with its words as prefixes ("dog" of "dogs", not "man" of "woman")."""
    words = r"\s+".join(map(re.escape, concept.split()))
    return re.search(rf"(?<![a-z]){words}", caption, re.IGNORECASE) is not None


def _find_prompt(kind: str) -> str:
    """Return the prompt that finds what a type is about; an added attribute describes an object."""
    if kind == "add-attribute":
        return "replace-object-find"
    return f"{kind}-find" if kind.startswith("replace") else ""
