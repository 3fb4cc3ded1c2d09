"""The bodies of chat completions: what is sent, and how what comes back is read. Pure; both transports use it.

The API: https://platform.openai.com/docs/api-reference/chat. Other servers differ in small ways, and these are met:
content as a list of parts, an error object under status 200, codes as numbers, no usage, errors that are told only
by their message (vLLM, llama.cpp, Ollama).
"""

import email.utils
import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from pairwright.datasets.chance import stream
from pairwright.datasets.errors import UsageError
from pairwright.datasets.images import UnusableImage
from pairwright.generators.llm.failures import Failure
from pairwright.generators.llm.messages import Message, Reply, Request, Usage

OURS = frozenset({"model", "messages", "stream", "n", "response_format"})  # parameters that are not the caller's

_NOT_JSON = object()
_CONTEXT = re.compile(r"context (length|size|window)|maximum context|prompt is too long|too many tokens", re.IGNORECASE)
_NO_MODEL = re.compile(r"\bmodels?\b.*(not exist|not found|no such|unknown|not available)|no model\b", re.IGNORECASE)
_UNSUPPORTED = re.compile(r"not support|unsupported|unrecognized|unknown (field|parameter)", re.IGNORECASE)
_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded"}
_BY_STATUS = {401: "bad_key", 403: "forbidden", 404: "wrong_url", 405: "wrong_url", 413: "request_too_large"}
_FILTER = {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}


def payload_of(request: Request) -> dict[str, Any]:
    """Return the body of a request, ready to be written as JSON. Where it has a seed, each sample has another one.

    Raises:
        UsageError: when a parameter would change what the client relies on.
        Failure: ``bad_image`` when an image cannot be read.
    """
    if not OURS.isdisjoint(request.parameters):
        wrong = ", ".join(sorted(OURS & set(request.parameters)))
        raise UsageError(f"parameters: {wrong} cannot be set here. Use the request's own fields and `sample`.")
    payload: dict[str, Any] = {"model": request.model, "messages": [_message(each) for each in request.messages]}
    payload.update(request.parameters)
    if request.sample and isinstance(payload.get("seed"), int):
        # With one seed a server that heeds it gives the same answer again, and every sample but the first is paid in vain.
        payload["seed"] = stream(payload["seed"], "sample", request.sample).getrandbits(31)
    if request.schema is not None:
        named = {"name": request.schema.name, "schema": request.schema.schema, "strict": request.schema.strict}
        payload["response_format"] = {"type": "json_schema", "json_schema": named}
    return payload


def _message(message: Message) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": message.text}
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    try:
        parts += [{"type": "image_url", "image_url": {"url": image.data_url()}} for image in message.images]
    except UnusableImage as error:
        raise Failure("bad_image", str(error)) from None
    return {"role": message.role, "content": parts}


def encode(payload: Mapping[str, Any]) -> bytes:
    """Return the JSON of a body.

    Raises:
        Failure: ``bad_request`` when a text is not Unicode or a value not JSON; nothing is sent.
    """
    try:
        return orjson.dumps(payload)
    except TypeError as error:
        raise Failure("bad_request", f"not JSON: {error}") from None


def reply_of(data: bytes, *, hide: Callable[[str], str] = str) -> Reply:
    """Read the body of a 200.

    Args:
        data: the body.
        hide: takes secrets out of what an error says.

    Raises:
        Failure: ``not_json``, ``wrong_shape``, ``no_choices``; or what the body says, when it is an error in spite of 200.
    """
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = _NOT_JSON
    if body is _NOT_JSON:  # raised outside of the handler: orjson's error holds the body, secrets and all
        raise Failure("not_json", hide(data[:2000].decode("utf-8", "replace")), status=200)
    if not isinstance(body, dict):
        raise _shape(f"the body is a {type(body).__name__}")
    choices = body.get("choices")
    if not choices and isinstance(body.get("error"), (dict, str)):
        code = body["error"].get("code") if isinstance(body["error"], dict) else None
        raise failure_of(code if isinstance(code, int) and 400 <= code < 600 else 500, {}, data, hide=hide)
    if choices == []:
        raise Failure("no_choices", status=200)
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise _shape("choices is no list of objects")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise _shape("choices[0].message is no object")
    model = body.get("model")
    return Reply(
        text=_text(message),
        finish_reason=_string(choices[0].get("finish_reason"), "finish_reason"),
        refusal=_string(message.get("refusal"), "refusal"),
        usage=usage_of(body.get("usage")),
        model=model if isinstance(model, str) else "",
        key="",
        raw=data,
    )


def _text(message: Mapping[str, Any]) -> str:
    """Return what the model said: the arguments of its first tool call, where it made one, else its text."""
    calls = message.get("tool_calls")
    if calls:
        try:
            arguments = calls[0]["function"]["arguments"]
        except (TypeError, LookupError):
            raise _shape("a tool call without arguments") from None
        # Ollama's older form gives an object where the API has its JSON.
        return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    content = message.get("content")
    if isinstance(content, list):
        return "".join(_string(part.get("text"), "text") for part in content if isinstance(part, dict))
    return _string(content, "content")


def only_thought(data: bytes) -> bool:
    """Return whether the body of an answer without a text holds what a model thought before it: vLLM, SGLang, DeepSeek."""
    try:
        message = orjson.loads(data)["choices"][0]["message"]
        return bool(message.get("reasoning_content") or message.get("reasoning"))
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        return False


def _string(value: object, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _shape(f"{name} is a {type(value).__name__}")
    return value


def _shape(detail: str) -> Failure:
    return Failure("wrong_shape", detail, status=200)


def usage_of(value: object) -> Usage:
    """Return the tokens that an answer claims; zeros where it claims none, or nonsense."""
    if not isinstance(value, Mapping):
        return Usage(0, 0)
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    return Usage(_count(value.get("prompt_tokens")), _count(value.get("completion_tokens")), _count(cached))


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def failure_of(status: int, headers: Mapping[str, str], data: bytes, *, hide: Callable[[str], str] = str) -> Failure:
    """Return the failure that an answer with another status than 200 is.

    Args:
        status: the HTTP status.
        headers: looked up by lower-case name.
        data: the body, of any form.
        hide: takes secrets out of what the server says.
    """
    error = _error_of(data)
    message = str(error.get("message") or _detailed(error.get("detail")))
    word = _word(status, error, message)
    detail = f"{status}: {hide(message)}" if message else str(status)
    return Failure(word, detail, status=status, retry_after=retry_after(headers))


def _error_of(data: bytes) -> Mapping[str, Any]:
    """Return ``{"message", "code", "type", "param"}`` as far as the body tells them."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {"message": re.sub(r"<[^>]*>", " ", data[:2000].decode("utf-8", "replace"))}
    if not isinstance(body, dict):
        return {}
    error = body.get("error", body)
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else body


def _detailed(detail: object) -> str:
    """Return what FastAPI's servers say, for whom a request of another shape is a list of places and messages."""
    if not isinstance(detail, list):
        return detail if isinstance(detail, str) else ""
    faults = [each for each in detail if isinstance(each, Mapping)]
    places = [each.get("loc") for each in faults]
    names = [".".join(map(str, place)) if isinstance(place, list) else "" for place in places]
    return "; ".join(f"{name}: {each.get('msg')}" for name, each in zip(names, faults, strict=True))


def _word(status: int, error: Mapping[str, Any], message: str) -> str:
    codes = {str(error.get("code")), str(error.get("type"))}
    inner = error.get("innererror")
    if isinstance(inner, Mapping):
        codes.add(str(inner.get("code")))
    metadata = error.get("metadata")
    if codes & _FILTER or (isinstance(metadata, Mapping) and "flagged_input" in metadata):
        return "content_filter"
    if codes & _QUOTA or status == 402:
        return "no_quota"
    if status == 429:
        return "request_too_large" if message.startswith("Request too large") else "rate_limited"
    if status >= 500:
        return "overloaded" if status in {503, 529} else "server_error"
    if status in {408, 409, 425}:
        return "server_error"
    return _word_of_refusal(status, codes, str(error.get("param") or ""), message)


def _word_of_refusal(status: int, codes: set[str], param: str, message: str) -> str:
    """Return the word for a status that will stay the same. Servers other than OpenAI's tell much by the message only."""
    if codes & {"model_not_found", "DeploymentNotFound"} or (status == 404 and _NO_MODEL.search(message)):
        return "unknown_model"
    if status in _BY_STATUS or 300 <= status < 400:
        return _BY_STATUS.get(status, "wrong_url")
    if codes & {"context_length_exceeded", "exceed_context_size_error"} or _CONTEXT.search(message):
        return "context_too_long"
    if any(code.startswith("unsupported") for code in codes) or _UNSUPPORTED.search(f"{param} {message}"):
        return "unsupported"
    return "bad_request"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, from milliseconds, seconds or a date; None where it does not say."""
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / divisor
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after") or "")
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
