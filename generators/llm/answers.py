"""Asking for a value of a shape: the answer read, checked, asked for once more where it is wrong, and accounted for.

    class Edit(BaseModel):
        caption: str

    def edit(pair: Pair) -> Talk[str]:
        [answer] = yield from asked([request], Edit)
        return answer.value.caption if answer.value is not None else answer.reason

A value is there, or a reason why not; never both. With a reason the raw answer is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast, overload

from pydantic import BaseModel, ValidationError

from pairwright.generators.llm.messages import Message, Reply, Request
from pairwright.generators.llm.talks import Outcome, Talk
from pairwright.generators.llm.texts import TextShape
from pairwright.generators.llm.troubles import Trouble

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

Check = Callable[[T], Trouble | None]


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What became of one request.

    Attributes:
        value: the answer's value; None where there is none.
        reason: why there is none: a word of `troubles.WORDS` or `failures.WORDS`, or the check's own; else empty.
        detail: more about it; never quotes the answer.
        raw: what the model said last.
        replies: all that came, the repair's included.
        key: the cache key of the last reply.
        forgiven: what was overlooked in the answer, such as a fence around it, by name.
    """

    value: T | None
    reason: str = ""
    detail: str = ""
    raw: str = ""
    replies: tuple[Reply, ...] = ()
    key: str = ""
    forgiven: tuple[str, ...] = ()


@overload
def asked(
    requests: Sequence[Request], shape: type[M], *, check: Check[M] | None = None, repair: bool = True
) -> Talk[list[Answer[M]]]: ...
@overload
def asked(
    requests: Sequence[Request], shape: TextShape, *, check: Check[str] | None = None, repair: bool = True
) -> Talk[list[Answer[str]]]: ...
def asked(
    requests: Sequence[Request],
    shape: type[BaseModel] | TextShape,
    *,
    check: Check[Any] | None = None,
    repair: bool = True,
) -> Talk[list[Answer[Any]]]:
    """Ask all at once, then once more those whose answers were wrong in a way that telling may mend.

    Args:
        requests: what to ask; for a model shape, with its `schemas.schema_of` where the server is to hold to it.
        shape: of the value: a pydantic model, or a text.
        check: says what is wrong with a value of the right shape, None when nothing is.
        repair: whether to ask once more.

    Returns:
        For each request its answer.
    """
    if not requests:
        return []
    outcomes = yield list(requests)
    answers, troubles = [], []
    for outcome in outcomes:
        answer, trouble = _read(outcome, shape, check)
        answers.append(answer)
        troubles.append(trouble)
    again = [at for at, trouble in enumerate(troubles) if repair and trouble is not None and trouble.told]
    if not again:
        return answers
    outcomes = yield [_repair(requests[at], answers[at].raw, cast("Trouble", troubles[at]).told) for at in again]
    for at, outcome in zip(again, outcomes, strict=True):
        answer, _ = _read(outcome, shape, check)
        answers[at] = replace(answer, replies=answers[at].replies + answer.replies)
    return answers


def _repair(request: Request, raw: str, told: str) -> Request:
    turns = (Message("assistant", raw or "(nothing)"), Message("user", told))
    return replace(request, messages=request.messages + turns)


def _read(
    outcome: Outcome, shape: type[BaseModel] | TextShape, check: Check[Any] | None
) -> tuple[Answer[Any], Trouble | None]:
    if not isinstance(outcome, Reply):
        return Answer(None, outcome.word, outcome.detail), None
    value: Any = None
    trouble = None
    if outcome.refusal:
        trouble = Trouble("refused")
    elif not outcome.text.strip():
        trouble = Trouble("empty_answer")
    elif isinstance(shape, TextShape):
        value = outcome.text.strip()
    else:
        try:
            value = shape.model_validate_json(outcome.text)
        except ValidationError:
            trouble = Trouble("malformed")
    if outcome.finish_reason == "planned":
        reason = "" if trouble is None else "planned"
        return Answer(value, reason, "", outcome.text, (outcome,), outcome.key), None
    if trouble is None and check is not None:
        trouble = check(value)
    reason, detail = ("", "") if trouble is None else (trouble.word, trouble.detail)
    answer = Answer(
        None if trouble else value, reason, detail, outcome.text or outcome.refusal, (outcome,), outcome.key
    )
    return answer, trouble
