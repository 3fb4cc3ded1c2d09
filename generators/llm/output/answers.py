"""Asking for a value of a shape: the answer read, checked, asked for once more where it is wrong, and accounted for.

    class Edit(BaseModel):
        caption: str

    def edit(pair: Pair) -> Talk[str]:
        [answer] = yield from asked([request], Edit)
        return answer.value.caption if answer.value is not None else answer.reason

A value is there, or a reason why not; never both. With a reason the raw answer is kept.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from pydantic import BaseModel

from pairwright.generators.llm.client.chat_completions import Reasoning, parse_reasoning
from pairwright.generators.llm.client.messages import Message, Reply, Request
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.output.boilerplate import echoes_prompt, is_refusal
from pairwright.generators.llm.output.errors import OutputError
from pairwright.generators.llm.output.json_parsing import (
    find_json_values,
    iter_strings,
    strip_control_tokens,
    strip_thinking,
)
from pairwright.generators.llm.output.lists import ListEntry, ListShape, parse_list, reject_entries, to_entries
from pairwright.generators.llm.output.plain_text import TextShape, extract_text
from pairwright.generators.llm.output.structured import StructuredResult, parse_strict, parse_structured

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

PLANNED_FINISH_REASON = (
    "planned"  # the finish reason of a plan's answers: they are read, but neither checked nor repaired
)
MAX_ECHOED_CHARS = 4000  # letters of its own answer that a model is shown again
EMPTY_ANSWER = "(nothing)"  # in place of an answer that was none: servers refuse turns without text

_REPAIR_ENDINGS: Mapping[str, str] = {
    "json": "Answer again, with the corrected JSON object and nothing else.",
    "line": "Answer again, with one line and nothing else.",
    "sentence": "Answer again, with one sentence and nothing else.",
    "lines": "Answer again, with the lines asked for and nothing else.",
    "text": "Answer again, with the text asked for and nothing else.",
}

Check = Callable[[T], OutputError | None]
Shape = type[BaseModel] | ListShape[Any] | TextShape


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
def request_answers(
    requests: Sequence[Request], shape: type[M], *, check: Check[M] | None = None, repair: bool = True
) -> LLMStep[list[Answer[M]]]: ...
@overload
def request_answers(
    requests: Sequence[Request],
    shape: ListShape[M],
    *,
    check: Check[list[ListEntry[M]]] | None = None,
    repair: bool = True,
) -> LLMStep[list[Answer[list[ListEntry[M]]]]]: ...
@overload
def request_answers(
    requests: Sequence[Request], shape: TextShape, *, check: Check[str] | None = None, repair: bool = True
) -> LLMStep[list[Answer[str]]]: ...
def request_answers(
    requests: Sequence[Request],
    shape: Shape,
    *,
    check: Check[Any] | None = None,
    repair: bool = True,
) -> LLMStep[list[Answer[Any]]]:
    """Ask all at once, then once more those whose answers were wrong in a way that telling may mend.

    Args:
        requests: what to ask; for a model shape, with its `schemas.schema_of` where the server is to hold to it.
        shape: of the value: a pydantic model, a list whose entries are read one by one, or a text.
        check: says what is wrong with a value of the right shape, None when nothing is.
        repair: whether to ask once more.

    Returns:
        For each request its answer.
    """
    if not requests:
        return []
    outcomes = yield [replace(request, repair="possible") for request in requests] if repair else list(requests)
    read = [_read(request, outcome, shape, check) for request, outcome in zip(requests, outcomes, strict=True)]
    answers = [answer for answer, _ in read]
    again = [(at, told) for at, (_, told) in enumerate(read) if repair and told]
    if again:
        repairs = [_build_repair(requests[at], answers[at].raw, told, shape) for at, told in again]
        outcomes = yield repairs
        for (at, _), outcome in zip(again, outcomes, strict=True):
            answers[at] = _merge_repair(answers[at], _read(requests[at], outcome, shape, check)[0])
    return answers


def _merge_repair(first: Answer[Any], second: Answer[Any]) -> Answer[Any]:
    """Return the second answer; where it gives nothing, none with the reason of the first.

    A repair without a reply gives nothing, and neither does an empty list: a model that is told what is wrong with its
    list, and then lists nothing, avoids the repair. It does not say that there is nothing to list.
    """
    if not second.replies:
        return first
    if _is_empty_list(second.value):
        return replace(first, replies=first.replies + second.replies, key=second.key, raw=second.raw)
    return replace(second, replies=first.replies + second.replies)


def _is_empty_list(value: Any) -> bool:
    """Return whether a value is an empty list, or a model with nothing but one."""
    return value == [] or (isinstance(value, BaseModel) and list(dict(value).values()) == [[]])


def _build_repair(request: Request, raw: str, told: str, shape: Shape) -> Request:
    """Return the request with the model's answer behind it, and what is wrong with that."""
    said, _ = strip_thinking(raw[:MAX_ECHOED_CHARS])
    turns = (
        Message("assistant", said.strip() or EMPTY_ANSWER),
        Message("user", f"{told} {_REPAIR_ENDINGS[_form(shape)]}"),
    )
    return replace(request, messages=request.messages + turns, repair="this")


def _form(shape: Shape) -> str:
    return shape.kind if isinstance(shape, TextShape) else "json"


def _read(request: Request, outcome: RequestOutcome, shape: Shape, check: Check[Any] | None) -> tuple[Answer[Any], str]:
    """Return the answer, and what to tell the model about it; nothing where that is of no use."""
    if not isinstance(outcome, Reply):
        return Answer(None, outcome.code, outcome.detail), ""
    read = _value(outcome, shape)
    raw = outcome.text or outcome.refusal
    if outcome.finish_reason == PLANNED_FINISH_REASON:
        reason = "planned" if read.trouble else ""
        return Answer(read.value, reason, "", raw, (outcome,), outcome.key), ""
    if isinstance(shape, ListShape) and read.trouble is None:
        read = _reject_bad_entries(request, read)
    trouble = read.trouble or _find_error(request, read.value, check)
    if trouble is None:
        return Answer(read.value, "", "", raw, (outcome,), outcome.key, read.forgiven), ""
    return Answer(None, trouble.word, trouble.detail, raw, (outcome,), outcome.key, read.forgiven), trouble.told


def _value(reply: Reply, shape: Shape) -> StructuredResult:
    if reply.refusal:
        return StructuredResult(None, OutputError("refused"))
    if reply.finish_reason == "content_filter":
        return StructuredResult(None, OutputError("filtered"))
    if not isinstance(shape, TextShape):
        value = _strict(reply.text, shape)
        if value is not None:
            return StructuredResult(value)
    cut = reply.finish_reason == "length"
    text, thinking = strip_thinking(reply.text)
    text, control = strip_control_tokens(text)
    if not text.strip():
        return _read_reasoning_only(parse_reasoning(reply.raw), shape, cut=cut)
    read = _parse_value(text, shape, cut=cut)
    if read.trouble is not None and read.trouble.word == "truncated":
        read = replace(read, trouble=replace(read.trouble, detail=parse_reasoning(reply.raw).share))
    if read.trouble is not None and read.trouble.word == "truncated" and reply.finish_reason == "stop":
        read = replace(read, trouble=replace(read.trouble, word="malformed"))  # the model was done: it is broken
    forgiven = [word for word, is_so in (("thinking", thinking), ("control", control)) if is_so]
    return replace(read, forgiven=(*forgiven, *read.forgiven)) if forgiven else read


def _read_reasoning_only(reasoning: Reasoning, shape: Shape, *, cut: bool) -> StructuredResult:
    """Read an answer without content: JSON that the server took for reasoning (vLLM's parsers do), or none.

    The JSON is all of it, or ends what the model ended by itself: what stands before other words is a draft.
    """
    if not isinstance(shape, TextShape):
        text = reasoning.text.strip().removesuffix("```").rstrip()
        last = next((each for each in reversed(find_json_values(text).values) if each.end == len(text)), None)
        if last is not None and not (cut and last.start) and (value := _strict(text[last.start :], shape)) is not None:
            return StructuredResult(value, None, ("reasoning",))
    if reasoning.text or reasoning.tokens:
        return StructuredResult(None, OutputError("reasoning_only", detail=reasoning.share))
    return StructuredResult(None, OutputError("truncated" if cut else "empty_answer"))


def _strict(text: str, shape: type[BaseModel] | ListShape[Any]) -> Any:
    """Return the value of a text that is nothing but the JSON asked for; None for any other."""
    whole = shape.whole if isinstance(shape, ListShape) else shape
    value = parse_strict(text, whole)
    return value if value is None or whole is shape else to_entries(value)


def _parse_value(text: str, shape: Shape, *, cut: bool) -> StructuredResult:
    if isinstance(shape, ListShape):
        return parse_list(text, shape, cut=cut)
    if not isinstance(shape, TextShape):
        return parse_structured(text, shape, cut=cut)
    if is_refusal(text.strip()):
        return StructuredResult(None, OutputError("refused"))
    read = extract_text(text, shape, cut=cut)
    return StructuredResult(read.value, read.trouble, read.forgiven)


def _reject_bad_entries(request: Request, read: StructuredResult) -> StructuredResult:
    """Return a list with the entries bad that say what no answer may; trouble where no good one is left of some."""
    entries = reject_entries(read.value, lambda value: _find_forbidden_text(request, iter_strings(value)))
    troubles = [entry.trouble for entry in entries if entry.trouble is not None]
    if troubles and len(troubles) == len(entries):
        return StructuredResult(None, troubles[0], read.forgiven)
    return replace(read, value=entries)


def _find_error(request: Request, value: Any, check: Check[Any] | None) -> OutputError | None:
    """Return what is wrong with a value of the right shape."""
    texts = [value] if isinstance(value, str) else iter_strings(value)
    return _find_forbidden_text(request, texts) or (check(value) if check is not None else None)


def _find_forbidden_text(request: Request, texts: Iterable[str]) -> OutputError | None:
    """Return what is wrong with texts wherever they stand."""
    said = list(texts)
    if any(is_refusal(text) for text in said):
        return OutputError("refused")
    return OutputError("echoed") if echoes_prompt(said, request) else None
