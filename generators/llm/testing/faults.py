"""Injected faults of the test server: kinds, random choice, and their effect on the answer.

The choice is a function of (seed, request key, attempt): a run repeats exactly at any concurrency, and a retry may
succeed.

- *status*: refused with an error in OpenAI's form, or as the named provider sends it.
- *wire*: a correct answer is not delivered, or in part, or late.
- *body*: status 200 with an invalid body.
- *model*: a well-formed answer in which the model did not do what it was asked.
- *batch*: a line or a whole batch ends differently.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import orjson

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_rng
from pairwright.datasets.suggestions import suggest_alternatives
from pairwright.generators.llm.testing.api_errors import PROVIDER_FAULTS, APIError

Group = Literal["status", "wire", "body", "model", "batch"]

KINDS: Mapping[str, tuple[Group, str]] = {
    "400": ("status", "400, invalid request"),
    "401": ("status", "401, wrong key"),
    "context_too_long": ("status", "400 with code context_length_exceeded"),
    "content_filter": ("status", "400 with code content_filter"),
    "429": ("status", "429 with Retry-After"),
    "429_bare": ("status", "429 without Retry-After"),
    "quota": ("status", "429 with code insufficient_quota: retries do not help"),
    "500": ("status", "500"),
    "503": ("status", "503, overloaded"),
    **{name: ("status", f"{fault.status}, {fault.means}") for name, fault in PROVIDER_FAULTS.items()},
    "reset": ("wire", "the connection is reset before the answer"),
    "half": ("wire", "half of the body is sent, then the connection is closed"),
    "drip": ("wire", "the body comes in small pieces over drip_s seconds"),
    "timeout": ("wire", "no answer; after hang_s seconds the connection is reset"),
    "malformed": ("body", "200, but the body is not JSON"),
    "wrong_type": ("body", "200, but the JSON is not a chat completion"),
    "refusal": ("model", "the message is a refusal, its content null"),
    "empty": ("model", "the content is an empty string"),
    "truncation": ("model", "the content is truncated, finish_reason length"),
    "content_filter_finish": ("model", "the content is truncated, finish_reason content_filter"),
    "malformed_text": ("model", "the content is broken JSON, finish_reason stop"),
    "wrong_type_text": ("model", "the content is JSON whose values have the wrong types"),
    "run_on": ("model", "the content is correct, followed by chatter"),
    "error_finish": ("model", "the content is empty, finish_reason error, as at OpenRouter"),
    "reasoning_json": ("model", "the content is null, and the text in reasoning_content"),
    "reasoning_used_up": ("model", "the content is empty, finish_reason length: all tokens were reasoning"),
    "batch_expired": ("batch", "the batch expires before this line is processed"),
    "batch_failed": ("batch", "the whole batch fails at validation"),
    "batch_line_refused": ("batch", "the line fails validation, and so the batch"),
    "batch_line_lost": ("batch", "the line is missing in both files although it was processed"),
    "batch_line_garbled": ("batch", "half of the line is in its file, between lines of unknown requests"),
}
SCOPES = ("chat", "files", "batches", "models")

_OPENAI_FAULTS: Mapping[str, tuple[int, str, str | None, str | None]] = {  # status, message, code, param
    "400": (400, "the request is not valid", None, None),
    "401": (401, "the API key is wrong", "invalid_api_key", None),
    "context_too_long": (
        400,
        "the messages are longer than the model's context",
        "context_length_exceeded",
        "messages",
    ),
    "content_filter": (400, "the prompt was stopped by the content filter", "content_filter", "prompt"),
    "429": (429, "too many requests", "rate_limit_exceeded", None),
    "429_bare": (429, "too many requests", "rate_limit_exceeded", None),
    "quota": (429, "the account has no quota left", "insufficient_quota", None),
    "500": (500, "the server had an error", None, None),
    "503": (503, "the server is overloaded", None, None),
}

NOT_JSON = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
_CHATTER = "\n\nIs there anything else that you would like to know? Here are three more ideas:\n1."


def check_faults(faults: Mapping[str, float]) -> None:
    """Validate rates by name; a name is a kind, or ``files/``, ``batches/`` or ``models/`` and a kind.

    Raises:
        UsageError: unknown or misplaced kind, a rate outside 0-1, or rates with a sum above 1.
    """
    sums: dict[str, float] = {}
    for name, rate in faults.items():
        scope, kind = _split_name(name)
        group, _ = describe_fault(kind)
        if scope not in SCOPES:
            raise UsageError(f"fault {name}: {scope!r} is not an endpoint. Use one of: {', '.join(SCOPES)}.")
        if scope != "chat" and group not in {"status", "wire", "body"}:
            raise UsageError(f"fault {name}: {kind} applies to chat completions only. Remove {scope}/.")
        if not 0 <= rate <= 1:
            raise UsageError(f"fault {name}: the rate {rate} is not between 0 and 1.")
        pool = kind if group == "batch" else scope
        sums[pool] = sums.get(pool, 0.0) + rate
    over = [pool for pool, total in sums.items() if total > 1 and not math.isclose(total, 1)]
    if over:
        raise UsageError(f"the fault rates of {over[0]} sum to {sums[over[0]]:g}, more than 1. Lower some.")


def describe_fault(kind: str) -> tuple[Group, str]:
    """Return the group and description of a kind.

    Raises:
        UsageError: unknown kind.
    """
    if kind in KINDS:
        return KINDS[kind]
    raise UsageError(f"unknown fault {kind!r}. {suggest_alternatives([kind], KINDS)}.")


def parse_fault(text: str) -> tuple[str, float]:
    """Return name and rate of ``KIND=RATE``.

    Raises:
        UsageError: another form.
    """
    name, equals, rate = text.partition("=")
    try:
        return name.strip(), float(rate if equals else "none")
    except ValueError:
        raise UsageError(f"fault {text!r} is not KIND=RATE. Write for example 429=0.01.") from None


def _split_name(name: str) -> tuple[str, str]:
    scope, slash, kind = name.rpartition("/")
    return (scope, kind) if slash else ("chat", name)


class FaultPlan:
    """Random choice of faults by the rates of a script."""

    def __init__(self, faults: Mapping[str, float], seed: int) -> None:
        self._seed = seed
        self._scopes: dict[str, list[tuple[str, float]]] = {scope: [] for scope in SCOPES}
        self._batch: dict[str, float] = {}
        for name, rate in sorted(faults.items()):
            scope, kind = _split_name(name)
            if describe_fault(kind)[0] == "batch":
                self._batch[kind] = rate
            elif rate > 0:
                self._scopes[scope].append((kind, rate))

    def choose(self, scope: str, key: int, attempt: int) -> str:
        """Return the kind of fault for a request, or ""."""
        rates = self._scopes[scope]
        return _draw_fault(rates, make_rng(self._seed, "fault", scope, key, attempt).random()) if rates else ""

    def is_injected(self, kind: str, key: int, attempt: int) -> bool:
        """Return whether a line or batch gets this fault of the group *batch*."""
        rate = self._batch.get(kind, 0.0)
        return rate > 0 and make_rng(self._seed, kind, key, attempt).random() < rate


def _draw_fault(rates: Iterable[tuple[str, float]], value: float) -> str:
    for kind, rate in rates:
        if value < rate:
            return kind
        value -= rate
    return ""


def fault_error(kind: str, retry_after_s: float) -> APIError:
    """Return the error of a fault of the group *status*."""
    if kind in PROVIDER_FAULTS:
        fault = PROVIDER_FAULTS[kind]
        return APIError(fault.status, fault.means, content=fault.body)
    status, message, code, param = _OPENAI_FAULTS[kind]
    headers = retry_after(retry_after_s) if kind == "429" else {}
    return APIError(status, f"{message} (injected)", code=code, param=param, headers=headers)


def retry_after(seconds: float) -> dict[str, str]:
    """Return the Retry-After headers: whole seconds, rounded up, and milliseconds."""
    return {"retry-after": str(math.ceil(seconds)), "retry-after-ms": str(math.ceil(seconds * 1000))}


def corrupt_completion(kind: str, completion: dict[str, Any]) -> None:
    """Modify a chat completion as a fault of the group *model* does."""
    if kind in _WHOLE:
        for choice in completion["choices"]:
            _WHOLE[kind](choice)
        if kind == "reasoning_used_up":
            tokens = completion["usage"]["completion_tokens"]
            completion["usage"]["completion_tokens_details"] = {"reasoning_tokens": tokens}
        return
    for choice in completion["choices"]:
        message = choice["message"]
        calls = message.get("tool_calls")
        text = calls[0]["function"]["arguments"] if calls else message.get("content") or ""
        if kind in {"refusal", "empty"}:
            message.pop("tool_calls", None)
            message["content"] = "" if kind == "empty" else None
            message["refusal"] = None if kind == "empty" else "I cannot help with that."
            choice["finish_reason"] = "stop"
            continue
        corrupted, choice["finish_reason"] = _corrupt_text(kind, text, choice["finish_reason"])
        if calls:
            calls[0]["function"]["arguments"] = corrupted
        else:
            message["content"] = corrupted


def _error_finish(choice: dict[str, Any]) -> None:
    choice["message"] = {"role": "assistant", "content": ""}
    choice["finish_reason"] = "error"
    choice["error"] = {"code": 502, "message": "the provider broke off (injected)", "metadata": {}}


def _reasoning_json(choice: dict[str, Any]) -> None:
    message = choice["message"]
    calls = message.pop("tool_calls", None)
    message["reasoning_content"] = calls[0]["function"]["arguments"] if calls else message.get("content")
    message["content"] = None


def _reasoning_used_up(choice: dict[str, Any]) -> None:
    choice["message"] = {"role": "assistant", "content": "", "refusal": None}
    choice["finish_reason"] = "length"


_WHOLE: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "error_finish": _error_finish,
    "reasoning_json": _reasoning_json,
    "reasoning_used_up": _reasoning_used_up,
}


def _corrupt_text(kind: str, text: str, reason: str) -> tuple[str, str]:
    half = text[: max(1, len(text) // 2)] if len(text) > 1 else ""
    if kind == "truncation":
        return half, "length"
    if kind == "content_filter_finish":
        return half, "content_filter"
    if kind == "run_on":
        return text + _CHATTER, reason
    if kind == "malformed_text":
        return (half or "{") + "\n{]", reason
    return _change_types(text), reason


def _change_types(text: str) -> str:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return "[null, 42]"
    return orjson.dumps(_other_type(value)).decode()


def _other_type(value: Any) -> Any:
    if isinstance(value, dict) and value:
        return {name: _other_type(inner) for name, inner in value.items()}
    return [value] if isinstance(value, str) else {"value": value}


def malformed_body(completion: Mapping[str, Any]) -> bytes:
    """Return JSON that is not a chat completion: ``choices`` is a text, and the id a number."""
    return orjson.dumps({**completion, "id": 17, "choices": "none", "usage": []})
