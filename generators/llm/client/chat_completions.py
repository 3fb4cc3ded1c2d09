"""Bodies of chat completions: building requests, parsing replies and errors. Pure; shared by both transports.

The API: https://platform.openai.com/docs/api-reference/chat. Differences of other servers are handled here: content as a
list of parts, an error object with status 200, ``finish_reason: "error"``, codes as numbers, missing usage.
`provider_errors` classifies error bodies.
"""

import asyncio
import email.utils
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.client.messages import Image, Message, Reply, Request, Usage
from pairwright.generators.llm.client.provider_errors import ProviderError, classify_error, read_error, read_text
from pairwright.generators.llm.client.request_errors import RequestError

RESERVED_PARAMETERS = frozenset({"model", "messages", "stream", "n", "response_format"})  # set by the client

_NOT_JSON = object()
_STREAMED = "the server streams its answers, although it is asked not to"
_MIN_PROMPT_CHARS, _MAX_TEMPLATE_CHARS = 60, 200  # of a repeated prompt, and of what a chat template puts before it
_TEMPLATE_MARKS = re.compile(r"\A(?:\s|<\|[^|>]*\|>|assistant\b:?)+")


def build_payload(request: Request) -> dict[str, Any]:
    """Return the body of a request before JSON encoding. If it has a seed, each sample gets another one.

    Raises:
        UsageError: a parameter is reserved for the client.
        RequestError: ``bad_image``: an image cannot be read.
    """
    if not RESERVED_PARAMETERS.isdisjoint(request.parameters):
        wrong = ", ".join(sorted(RESERVED_PARAMETERS & set(request.parameters)))
        raise UsageError(f"parameters: {wrong} cannot be set here. Use the request's own fields and `sample`.")
    messages = [_message(each) for each in request.messages]
    # Some servers stream by default.
    payload: dict[str, Any] = {"model": request.model, "messages": messages, "stream": False}
    payload.update(request.parameters)
    if request.sample and isinstance(payload.get("seed"), int):
        # With one seed, every sample would be the same answer, billed again.
        payload["seed"] = make_rng(payload["seed"], "sample", request.sample).getrandbits(31)
    if request.schema is not None:
        named = {"name": request.schema.name, "schema": request.schema.schema, "strict": request.schema.strict}
        payload["response_format"] = {"type": "json_schema", "json_schema": named}
    return payload


def _message(message: Message) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": message.text}
    text = [{"type": "text", "text": message.text}] if message.text else []
    return {
        "role": message.role,
        "content": [*text, *({"type": "image_url", "image_url": _image_url(image)} for image in message.images)],
    }


def _image_url(image: Image) -> dict[str, str]:
    return {"url": image.data_url(), **({"detail": image.detail} if image.detail else {})}


async def build_payload_off_loop(request: Request) -> dict[str, Any]:
    """Return `build_payload`; images are scaled and encoded in a thread, so that the event loop stays free."""
    if any(message.images for message in request.messages):
        return await asyncio.to_thread(build_payload, request)
    return build_payload(request)


def parse_reply(data: bytes, *, hide: Callable[[str], str] = str) -> Reply:
    """Parse the body of a response with status 200.

    Args:
        data: body.
        hide: redacts secrets in error details.

    Raises:
        RequestError: ``not_json``, ``wrong_shape``, ``no_choices``; or the error that the body contains despite the status.
    """
    body = _parse_object(data, hide)
    choices = body.get("choices")
    if not choices and isinstance(body.get("error"), (dict, str)):
        raise parse_error(status_in(body["error"]), {}, data, hide=hide)
    if "choices" in body and not choices:
        raise RequestError("no_choices", status=200)
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise _unexpected_response("choices is not a list of objects")
    if choices[0].get("finish_reason") == "error":
        raise _provider_error(choices[0].get("error"), hide)
    message = choices[0].get("message")
    if message is None and choices[0].get("finish_reason") and "text" not in choices[0]:
        message = {}  # Gemini, if reasoning used all tokens
    if not isinstance(message, dict):
        raise _unexpected_response("choices[0].message is not an object")
    model = body.get("model")
    return Reply(
        text=_text(message),
        finish_reason=_string(choices[0].get("finish_reason"), "finish_reason"),
        refusal=_string(message.get("refusal"), "refusal"),
        usage=parse_usage(body.get("usage")),
        model=model if isinstance(model, str) else "",
        key="",
        raw=data,
    )


def parse_model_names(data: bytes) -> list[str]:
    """Return the names in a list of models, sorted; empty if the body is no such list."""
    try:
        return sorted({str(model["id"]) for model in orjson.loads(data)["data"]})
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return []


def remove_prompt(reply: Reply, request: Request) -> Reply:
    """Return a reply without the prompt, which some servers of base models repeat before the answer.

    Its demonstrations would be read as the answer.
    """
    first, last = (request.messages[at].text.strip() for at in (0, -1))
    if not first or not last or len(first) + len(last) < _MIN_PROMPT_CHARS:
        return reply
    start = reply.text.find(first, 0, len(first) + _MAX_TEMPLATE_CHARS)
    end = reply.text.rfind(last)
    if start < 0 or end < start:
        return reply
    return replace(reply, text=_TEMPLATE_MARKS.sub("", reply.text[end + len(last) :]))


def _text(message: Mapping[str, Any]) -> str:
    """Return the text of a message: the arguments of its first tool call if there is one, else its content."""
    calls = message.get("tool_calls")
    if calls:
        try:
            arguments = calls[0]["function"]["arguments"]
        except (TypeError, LookupError):
            raise _unexpected_response("a tool call without arguments") from None
        # Older versions of Ollama send an object instead of JSON.
        return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    content = message.get("content")
    if isinstance(content, list):
        return "".join(_string(part.get("text"), "text") for part in content if isinstance(part, dict))
    return _string(content, "content")


def _parse_object(data: bytes, hide: Callable[[str], str]) -> dict[str, Any]:
    """Return the JSON object of a body with status 200; errors as in `parse_reply`."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = _NOT_JSON
    if body is _NOT_JSON and data.startswith(b"data:"):
        raise RequestError("wrong_shape", _STREAMED, status=200, fix="Turn off streaming at the server or its proxy.")
    if body is _NOT_JSON:  # raised outside the handler: orjson's error holds the body with its secrets
        raise RequestError("not_json", hide(read_text(data)), status=200)
    if not isinstance(body, dict):
        raise _unexpected_response(f"the body is a {type(body).__name__}")
    return body


def status_in(error: object) -> int:
    """Return the status that an error object has as its code, number or text; else 500."""
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return int(code) if code.isascii() and code.isdigit() and 400 <= int(code) < 600 else 500


def _provider_error(error: object, hide: Callable[[str], str]) -> RequestError:
    """Return the error of a choice with ``finish_reason: "error"`` (OpenRouter, when the provider behind it fails).

    It is transient unless the error is of another known kind (a content filter, a budget).
    """
    read = read_error(status_in(error), orjson.dumps({"error": error}))
    code = classify_error(read)
    return _request_error(read, "server_error" if code == "bad_request" else code, {}, hide)


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Reasoning that a reply reports.

    Attributes:
        text: of the reasoning, if the server sends it (vLLM, SGLang, DeepSeek, OpenRouter).
        tokens: of the reasoning, as counted by the server.
        completion_tokens: of reasoning and answer.
    """

    text: str = ""
    tokens: int = 0
    completion_tokens: int = 0

    @property
    def share(self) -> str:
        """Share of the completion tokens that were reasoning, as text; empty if the server does not count it."""
        if not self.tokens:
            return ""
        return f"{self.tokens:,} of {self.completion_tokens:,} completion tokens were reasoning"


def parse_reasoning(data: bytes) -> Reasoning:
    """Return the reasoning in the body of a reply; empty if there is none or the body is invalid."""
    try:
        body = orjson.loads(data)
        message = body["choices"][0]["message"]
        text = message.get("reasoning_content") or message.get("reasoning")
        usage = body.get("usage") or {}
        details = usage.get("completion_tokens_details") or {}
        counts = _count(details.get("reasoning_tokens")), _count(usage.get("completion_tokens"))
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        return Reasoning()
    return Reasoning(text if isinstance(text, str) else "", *counts)


def _string(value: object, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _unexpected_response(f"{name} is a {type(value).__name__}")
    return value


def _unexpected_response(detail: str) -> RequestError:
    return RequestError("wrong_shape", detail, status=200)


def reported_usage(data: bytes) -> Usage:
    """Return the tokens that the body of a reply reports; zeros if there are none or the body is invalid."""
    try:
        return parse_usage(orjson.loads(data)["usage"])
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return Usage(0, 0)


def parse_usage(value: object) -> Usage:
    """Return the tokens that a reply reports; zeros if missing or invalid.

    Gemini and xAI count reasoning, which they bill, in ``total_tokens`` alone.
    """
    if not isinstance(value, Mapping):
        return Usage(0, 0)
    prompt, completion, total = (_count(value.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    return Usage(prompt, max(completion, total - prompt if prompt else 0), _count(cached))


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def parse_error(
    status: int, headers: Mapping[str, str], data: bytes, *, hide: Callable[[str], str] = str
) -> RequestError:
    """Return the error of a response with a status other than 200.

    Args:
        status: HTTP status.
        headers: looked up by lower-case name.
        data: body, in any form.
        hide: redacts secrets in the server's message.
    """
    error = read_error(status, data)
    return _request_error(error, classify_error(error), headers, hide)


def _request_error(
    error: ProviderError, code: str, headers: Mapping[str, str], hide: Callable[[str], str]
) -> RequestError:
    param = error.param if error.param not in error.message else ""
    detail = ": ".join(filter(None, (str(error.status), hide(param), hide(error.message))))
    wait = retry_after(headers)
    return RequestError(code, detail, status=error.status, retry_after=error.retry_after if wait is None else wait)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of ``retry-after-ms`` or ``retry-after`` (seconds or a date); None if absent."""
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
