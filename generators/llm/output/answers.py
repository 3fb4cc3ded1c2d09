"""Requests for values of a shape: the answer is parsed, checked, and requested once more if it is invalid.

    class Edit(BaseModel):
        caption: str

    def edit(pair: Pair) -> LLMStep[str]:
        [answer] = yield from request_answers([request], Edit)
        return answer.value.caption if answer.value is not None else answer.reason

An answer has either a value or a reason. With a reason the raw text is kept.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from pydantic import BaseModel

from pairwright.generators.llm.client.chat_completions import Reasoning, parse_reasoning
from pairwright.generators.llm.client.messages import Message, Reply, Request
from pairwright.generators.llm.client.special_tokens import escape_special_tokens
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.output.boilerplate import copies_demonstration, echoes_prompt, is_refusal
from pairwright.generators.llm.output.errors import OutputError, ParsedAnswer
from pairwright.generators.llm.output.json_parsing import (
    find_json_values,
    iter_strings,
    strip_control_tokens,
    strip_thinking,
)
from pairwright.generators.llm.output.lists import ListEntry, ListShape, parse_list, reject_entries, to_entries
from pairwright.generators.llm.output.plain_text import TextShape, extract_text
from pairwright.generators.llm.output.structured import parse_strict, parse_structured

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

PLANNED_FINISH_REASON = "planned"  # of expected answers in estimates, which are parsed but neither checked nor repaired
MAX_ECHOED_CHARS = 4000  # characters of the invalid answer in a repair request
# As Gemini and others have it: "content_filter: RECITATION", "safety", "PROHIBITED_CONTENT".
_FILTERED = re.compile(r"(?i)content_filter|safety|recitation|prohibited|blocklist|spii|refusal|guardrail")
EMPTY_ANSWER = "(nothing)"  # in place of an empty answer: servers reject turns without text

_REPAIR_ENDINGS: Mapping[str, str] = {
    "json": "Answer again, with the corrected JSON object and nothing else.",
    "line": "Answer again, with one line and nothing else.",
    "text": "Answer again, with the text asked for and nothing else.",
}

Check = Callable[[T], OutputError | None]
Shape = type[BaseModel] | ListShape[Any] | TextShape


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The outcome of one request.

    Attributes:
        value: the value; None if there is none.
        reason: why there is none: a key of `OUTPUT_ERROR_CODES` or `REQUEST_ERROR_CODES`, or that of the check; else empty.
        detail: detail for the user; never quotes the answer.
        raw: the last text of the model.
        replies: all replies, that to a repair included.
        key: cache key of the last reply.
        tolerated: defects of the answer that were ignored, such as a code fence (`TOLERATED_DEFECTS`).
    """

    value: T | None
    reason: str = ""
    detail: str = ""
    raw: str = ""
    replies: tuple[Reply, ...] = ()
    key: str = ""
    tolerated: tuple[str, ...] = ()


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
    """Send all requests, then repair those whose answers are invalid in a way that feedback may fix.

    Args:
        requests: the requests; for a model shape with its `json_schema` if the server is to enforce it.
        shape: a pydantic model, a list whose entries are parsed one by one, or a text.
        check: returns what is wrong with a value of the right shape, None if nothing is.
        repair: whether to send repair requests.

    Returns:
        The answer to each request.
    """
    if not requests:
        return []
    outcomes = yield [replace(request, repair="possible") for request in requests] if repair else list(requests)
    read = [_read(request, outcome, shape, check) for request, outcome in zip(requests, outcomes, strict=True)]
    answers = [answer for answer, _ in read]
    again = [(at, feedback) for at, (_, feedback) in enumerate(read) if repair and feedback]
    if again:
        repairs = [_build_repair(requests[at], answers[at], feedback, shape) for at, feedback in again]
        outcomes = yield repairs
        for (at, _), outcome in zip(again, outcomes, strict=True):
            answers[at] = _merge_repair(answers[at], _read(requests[at], outcome, shape, check)[0])
    return answers


def _merge_repair(first: Answer[Any], second: Answer[Any]) -> Answer[Any]:
    """Return the second answer, or the first one if the second has no reply or is an empty list.

    A model that is told what is wrong with its list and then returns an empty one avoids the repair. It does not say
    that there is nothing to list.
    """
    if not second.replies:
        return first
    if _is_empty_list(second.value):
        return replace(first, replies=first.replies + second.replies, key=second.key, raw=second.raw)
    return replace(second, replies=first.replies + second.replies)


def _is_empty_list(value: Any) -> bool:
    """Return whether a value is an empty list, or a model whose only field is one."""
    return value == [] or (isinstance(value, BaseModel) and list(dict(value).values()) == [[]])


def _build_repair(request: Request, answer: Answer[Any], feedback: str, shape: Shape) -> Request:
    """Return the request followed by the answer of the model and the feedback on it."""
    said, _ = strip_thinking(answer.raw[:MAX_ECHOED_CHARS])
    turns = (
        Message("assistant", escape_special_tokens(said.strip()) or EMPTY_ANSWER),
        Message("user", f"{feedback} {_REPAIR_ENDINGS[_form(shape)]}"),
    )
    # Held to the schema again, the model would write whitespace again.
    schema = None if answer.reason == "runaway_whitespace" else request.schema
    return replace(request, messages=request.messages + turns, schema=schema, repair="this")


def _form(shape: Shape) -> str:
    return shape.kind if isinstance(shape, TextShape) else "json"


def _read(request: Request, outcome: RequestOutcome, shape: Shape, check: Check[Any] | None) -> tuple[Answer[Any], str]:
    """Return the answer, and the feedback to the model; empty if a repair cannot help."""
    if not isinstance(outcome, Reply):
        return Answer(None, outcome.code, outcome.detail), ""
    read = _value(outcome, shape)
    raw = outcome.text or outcome.refusal
    if outcome.finish_reason == PLANNED_FINISH_REASON:
        reason = "planned" if read.error else ""
        return Answer(read.value, reason, "", raw, (outcome,), outcome.key), ""
    if isinstance(shape, ListShape) and read.error is None:
        read = _reject_bad_entries(request, read)
    error = read.error or _find_error(request, read.value, check)
    if error is None:
        return Answer(read.value, "", "", raw, (outcome,), outcome.key, read.tolerated), ""
    return Answer(None, error.word, error.detail, raw, (outcome,), outcome.key, read.tolerated), error.feedback


def _value(reply: Reply, shape: Shape) -> ParsedAnswer[Any]:
    if reply.refusal:
        return ParsedAnswer(None, OutputError("refused"))
    if _FILTERED.match(reply.finish_reason):
        return ParsedAnswer(None, OutputError("filtered"))
    if not isinstance(shape, TextShape):
        value = _strict(reply.text, shape)
        if value is not None:
            return ParsedAnswer(value)
    cut = reply.finish_reason == "length"
    text, thinking = strip_thinking(reply.text)
    text, control = strip_control_tokens(text)
    runaway = reply.runs_away and not isinstance(shape, TextShape)
    if not text.strip() and not runaway:
        return _read_reasoning_only(parse_reasoning(reply.raw), shape, cut=cut)
    read = _parse_value(text, shape, cut=cut)
    if runaway and read.error is not None:
        return ParsedAnswer(None, OutputError("runaway_whitespace"))
    if read.error is not None and read.error.word == "truncated":
        # A model that had finished has written broken JSON.
        word = "malformed" if reply.finish_reason == "stop" else "truncated"
        read = replace(read, error=replace(read.error, word=word, detail=parse_reasoning(reply.raw).share))
    tolerated = [word for word, is_so in (("thinking", thinking), ("control", control)) if is_so]
    return replace(read, tolerated=(*tolerated, *read.tolerated)) if tolerated else read


def _read_reasoning_only(reasoning: Reasoning, shape: Shape, *, cut: bool) -> ParsedAnswer[Any]:
    """Parse an answer without content: JSON that the server returned as reasoning (as parsers of vLLM do), or none.

    The JSON must be all of the reasoning, or the end of one that the model finished: JSON before other text is a draft.
    """
    if not isinstance(shape, TextShape):
        text = reasoning.text.strip().removesuffix("```").rstrip()
        last = next((each for each in reversed(find_json_values(text).values) if each.end == len(text)), None)
        if last is not None and not (cut and last.start) and (value := _strict(text[last.start :], shape)) is not None:
            return ParsedAnswer(value, None, ("reasoning",))
    if reasoning.text or reasoning.tokens:
        return ParsedAnswer(None, OutputError("reasoning_only", detail=reasoning.share))
    return ParsedAnswer(None, OutputError("truncated" if cut else "empty_answer"))


def _strict(text: str, shape: type[BaseModel] | ListShape[Any]) -> Any:
    """Return the value of a text that is exactly the requested JSON, else None."""
    whole = shape.whole if isinstance(shape, ListShape) else shape
    value = parse_strict(text, whole)
    return value if value is None or whole is shape else to_entries(value)


def _parse_value(text: str, shape: Shape, *, cut: bool) -> ParsedAnswer[Any]:
    if isinstance(shape, ListShape):
        return parse_list(text, shape, cut=cut)
    if not isinstance(shape, TextShape):
        return parse_structured(text, shape, cut=cut)
    if is_refusal(text.strip()):
        return ParsedAnswer(None, OutputError("refused"))
    return extract_text(text, shape, cut=cut)


def _reject_bad_entries(request: Request, read: ParsedAnswer[Any]) -> ParsedAnswer[Any]:
    """Return a list with the entries invalid that contain a forbidden text; an error if none is valid."""
    entries = read.value or []
    if _find_forbidden_text(request, iter_strings([entry.value for entry in entries])):  # seldom: look at each
        entries = reject_entries(entries, lambda value: _find_forbidden_text(request, iter_strings(value)))
    errors = [entry.error for entry in entries if entry.error is not None]
    if errors and len(errors) == len(entries):
        return ParsedAnswer(None, errors[0], read.tolerated)
    return ParsedAnswer(entries, None, read.tolerated)


def _find_error(request: Request, value: Any, check: Check[Any] | None) -> OutputError | None:
    """Return the error of a value of the right shape, if there is one."""
    texts = [value] if isinstance(value, str) else iter_strings(value)
    return _find_forbidden_text(request, texts) or (check(value) if check is not None else None)


def _find_forbidden_text(request: Request, texts: Iterable[str]) -> OutputError | None:
    """Return the error of texts that are forbidden in any answer: refusals and parts of the prompt."""
    said = list(texts)
    if any(is_refusal(text) for text in said):
        return OutputError("refused")
    if echoes_prompt(said, request):
        return OutputError("echoed")
    return OutputError("copied_example") if copies_demonstration(said, request) else None
