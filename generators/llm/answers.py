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

from pairwright.generators.llm.listed import Entry, ListShape, entries_of, judged, read_list
from pairwright.generators.llm.manners import echoes, refuses
from pairwright.generators.llm.messages import Message, Reply, Request
from pairwright.generators.llm.parsing import find_values, texts_of, without_controls, without_thoughts
from pairwright.generators.llm.shaped import ReadShape, read_shape, read_strict
from pairwright.generators.llm.talks import Outcome, Talk
from pairwright.generators.llm.texts import TextShape, read_text
from pairwright.generators.llm.troubles import Trouble
from pairwright.generators.llm.wire import Reasoning, reasoning_of

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

PLANNED = "planned"  # the finish reason of a plan's answers: they are read, but neither checked nor repaired
MOST_SHOWN = 4000  # letters of its own answer that a model is shown again
NOTHING = "(nothing)"  # in place of an answer that was none: servers refuse turns without text

_WANTED: Mapping[str, str] = {
    "json": "Answer again, with the corrected JSON object and nothing else.",
    "line": "Answer again, with one line and nothing else.",
    "sentence": "Answer again, with one sentence and nothing else.",
    "lines": "Answer again, with the lines asked for and nothing else.",
    "text": "Answer again, with the text asked for and nothing else.",
}

Check = Callable[[T], Trouble | None]
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
def asked(
    requests: Sequence[Request], shape: type[M], *, check: Check[M] | None = None, repair: bool = True
) -> Talk[list[Answer[M]]]: ...
@overload
def asked(
    requests: Sequence[Request], shape: ListShape[M], *, check: Check[list[Entry[M]]] | None = None, repair: bool = True
) -> Talk[list[Answer[list[Entry[M]]]]]: ...
@overload
def asked(
    requests: Sequence[Request], shape: TextShape, *, check: Check[str] | None = None, repair: bool = True
) -> Talk[list[Answer[str]]]: ...
def asked(
    requests: Sequence[Request],
    shape: Shape,
    *,
    check: Check[Any] | None = None,
    repair: bool = True,
) -> Talk[list[Answer[Any]]]:
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
        repairs = [_repair(requests[at], answers[at].raw, told, shape) for at, told in again]
        outcomes = yield repairs
        for (at, _), outcome in zip(again, outcomes, strict=True):
            answers[at] = _joined(answers[at], _read(requests[at], outcome, shape, check)[0])
    return answers


def _joined(first: Answer[Any], second: Answer[Any]) -> Answer[Any]:
    """Return the second answer; where it gives nothing, none with the reason of the first.

    A repair without a reply gives nothing, and neither does an empty list: a model that is told what is wrong with its
    list, and then lists nothing, avoids the repair. It does not say that there is nothing to list.
    """
    if not second.replies:
        return first
    if _lists_nothing(second.value):
        return replace(first, replies=first.replies + second.replies, key=second.key, raw=second.raw)
    return replace(second, replies=first.replies + second.replies)


def _lists_nothing(value: Any) -> bool:
    """Return whether a value is an empty list, or a model with nothing but one."""
    return value == [] or (isinstance(value, BaseModel) and list(dict(value).values()) == [[]])


def _repair(request: Request, raw: str, told: str, shape: Shape) -> Request:
    """Return the request with the model's answer behind it, and what is wrong with that."""
    said, _ = without_thoughts(raw[:MOST_SHOWN])
    turns = (Message("assistant", said.strip() or NOTHING), Message("user", f"{told} {_WANTED[_form(shape)]}"))
    return replace(request, messages=request.messages + turns, repair="this")


def _form(shape: Shape) -> str:
    return shape.kind if isinstance(shape, TextShape) else "json"


def _read(request: Request, outcome: Outcome, shape: Shape, check: Check[Any] | None) -> tuple[Answer[Any], str]:
    """Return the answer, and what to tell the model about it; nothing where that is of no use."""
    if not isinstance(outcome, Reply):
        return Answer(None, outcome.word, outcome.detail), ""
    read = _value(outcome, shape)
    raw = outcome.text or outcome.refusal
    if outcome.finish_reason == PLANNED:
        reason = "planned" if read.trouble else ""
        return Answer(read.value, reason, "", raw, (outcome,), outcome.key), ""
    if isinstance(shape, ListShape) and read.trouble is None:
        read = _with_judged(request, read)
    trouble = read.trouble or _unfit(request, read.value, check)
    if trouble is None:
        return Answer(read.value, "", "", raw, (outcome,), outcome.key, read.forgiven), ""
    return Answer(None, trouble.word, trouble.detail, raw, (outcome,), outcome.key, read.forgiven), trouble.told


def _value(reply: Reply, shape: Shape) -> ReadShape:
    if reply.refusal:
        return ReadShape(None, Trouble("refused"))
    if reply.finish_reason == "content_filter":
        return ReadShape(None, Trouble("filtered"))
    if not isinstance(shape, TextShape):
        value = _strict(reply.text, shape)
        if value is not None:
            return ReadShape(value)
    cut = reply.finish_reason == "length"
    text, thinking = without_thoughts(reply.text)
    text, control = without_controls(text)
    if not text.strip():
        return _only_reasoning(reasoning_of(reply.raw), shape, cut=cut)
    read = _shaped(text, shape, cut=cut)
    if read.trouble is not None and read.trouble.word == "truncated":
        read = replace(read, trouble=replace(read.trouble, detail=reasoning_of(reply.raw).share))
    if read.trouble is not None and read.trouble.word == "truncated" and reply.finish_reason == "stop":
        read = replace(read, trouble=replace(read.trouble, word="malformed"))  # the model was done: it is broken
    forgiven = [word for word, is_so in (("thinking", thinking), ("control", control)) if is_so]
    return replace(read, forgiven=(*forgiven, *read.forgiven)) if forgiven else read


def _only_reasoning(reasoning: Reasoning, shape: Shape, *, cut: bool) -> ReadShape:
    """Read an answer without content: JSON that the server took for reasoning (vLLM's parsers do), or none.

    The JSON is all of it, or ends what the model ended by itself: what stands before other words is a draft.
    """
    if not isinstance(shape, TextShape):
        text = reasoning.text.strip().removesuffix("```").rstrip()
        last = next((each for each in reversed(find_values(text).values) if each.end == len(text)), None)
        if last is not None and not (cut and last.start) and (value := _strict(text[last.start :], shape)) is not None:
            return ReadShape(value, None, ("reasoning",))
    if reasoning.text or reasoning.tokens:
        return ReadShape(None, Trouble("only_thought", detail=reasoning.share))
    return ReadShape(None, Trouble("truncated" if cut else "empty_answer"))


def _strict(text: str, shape: type[BaseModel] | ListShape[Any]) -> Any:
    """Return the value of a text that is nothing but the JSON asked for; None for any other."""
    whole = shape.whole if isinstance(shape, ListShape) else shape
    value = read_strict(text, whole)
    return value if value is None or whole is shape else entries_of(value)


def _shaped(text: str, shape: Shape, *, cut: bool) -> ReadShape:
    if isinstance(shape, ListShape):
        return read_list(text, shape, cut=cut)
    if not isinstance(shape, TextShape):
        return read_shape(text, shape, cut=cut)
    if refuses(text.strip()):
        return ReadShape(None, Trouble("refused"))
    read = read_text(text, shape, cut=cut)
    return ReadShape(read.value, read.trouble, read.forgiven)


def _with_judged(request: Request, read: ReadShape) -> ReadShape:
    """Return a list with the entries bad that say what no answer may; trouble where no good one is left of some."""
    entries = judged(read.value, lambda value: _untold(request, texts_of(value)))
    troubles = [entry.trouble for entry in entries if entry.trouble is not None]
    if troubles and len(troubles) == len(entries):
        return ReadShape(None, troubles[0], read.forgiven)
    return replace(read, value=entries)


def _unfit(request: Request, value: Any, check: Check[Any] | None) -> Trouble | None:
    """Return what is wrong with a value of the right shape."""
    texts = [value] if isinstance(value, str) else texts_of(value)
    return _untold(request, texts) or (check(value) if check is not None else None)


def _untold(request: Request, texts: Iterable[str]) -> Trouble | None:
    """Return what is wrong with texts wherever they stand."""
    said = list(texts)
    if any(refuses(text) for text in said):
        return Trouble("refused")
    return Trouble("echoed") if echoes(said, request) else None
