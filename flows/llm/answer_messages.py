"""Messages between the jobs of a build and the process that sends their requests: one line of JSON each.

Images travel as their identity. Their pixels are sent when a request is about to be sent to the model, and not if its answer
is stored. Schemas travel once per connection.
"""

import asyncio
import multiprocessing
import os
import platform
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from pairwright.datasets.errors import ConfigError, MissingResourceError, PairwrightError, StorageError, UsageError
from pairwright.generators.llm.client.messages import Image, Message, MessageSpan, Reply, Request, Schema, Usage
from pairwright.generators.llm.client.request_errors import RequestError

MAX_LINE = 2**28  # bytes of a message; images are base64

_ERRORS = {error.__name__: error for error in (UsageError, ConfigError, StorageError, MissingResourceError)}


def job_owner() -> str:
    """Return the name of the build's process that this process works for, or is."""
    parent = multiprocessing.parent_process()
    return f"{platform.node()}:{parent.pid if parent else os.getpid()}"


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line.

    Raises:
        RequestError: ``bad_request``: a text is not Unicode or a value not JSON.
    """
    try:
        return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as error:
        raise RequestError("bad_request", f"not JSON: {error}") from None


def describe_request(request: Request, schema: int) -> dict[str, Any]:
    """Return the JSON values of a request; ``schema`` is the number under which its schema was sent (0 = none)."""
    described: dict[str, Any] = {
        "messages": [
            [
                message.role,
                message.text,
                [[image.sha256, image.form, image.width, image.height, image.detail] for image in message.images],
            ]
            for message in request.messages
        ],
        "model": request.model,
        "parameters": request.parameters,
        "schema": schema,
        "row": request.row,
    }
    if request.documents:
        described["documents"] = [[each.message, each.start, each.end] for each in request.documents]
    for name in ("sample", "expects", "resample"):
        if value := getattr(request, name):
            described[name] = value
    return described


def read_request(
    described: Mapping[str, Any], schemas: Mapping[int, Schema], open_image: Callable[[int], Callable[[], str]]
) -> Request:
    """Return the request that `describe_request` described.

    Args:
        described: its values.
        schemas: by number.
        open_image: returns, for the position of an image in the request, a function that returns its URL.
    """
    position = 0
    messages = []
    for role, text, shown in described["messages"]:
        images = []
        for sha256, form, width, height, detail in shown:
            images.append(Image(sha256, form, open_image(position), width, height, detail))
            position += 1
        messages.append(Message(role, text, tuple(images)))
    return Request(
        tuple(messages),
        described["model"],
        described["parameters"],
        schemas.get(described["schema"]),
        row=described["row"],
        sample=described.get("sample", 0),
        expects=described.get("expects", ""),
        resample=described.get("resample", False),
        documents=tuple(MessageSpan(*span) for span in described.get("documents", ())),
    )


def describe_schema(schema: Schema) -> dict[str, Any]:
    """Return the JSON values of a schema."""
    return {"name": schema.name, "schema": schema.schema, "strict": schema.strict}


def describe_reply(reply: Reply) -> dict[str, Any]:
    """Return the JSON values of a reply; its body only if a reader looks into it: no text, or cut off."""
    usage = reply.usage
    described: dict[str, Any] = {
        "text": reply.text,
        "finish": reply.finish_reason,
        "usage": [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens],
        "model": reply.model,
        "key": reply.key,
        "cached": reply.cached,
    }
    if reply.refusal:
        described["refusal"] = reply.refusal
    if not reply.cached and b'"usage"' not in reply.raw:
        described["estimated"] = True
    if not reply.text or reply.finish_reason == "length":
        described["raw"] = reply.raw.decode("utf-8", "replace")
    return described


def read_reply(described: Mapping[str, Any]) -> Reply:
    """Return the reply that `describe_reply` described."""
    return Reply(
        described["text"],
        described["finish"],
        described.get("refusal", ""),
        Usage(*described["usage"]),
        described["model"],
        key=described["key"],
        cached=described["cached"],
        raw=described.get("raw", "").encode(),
    )


def describe_error(error: Exception) -> dict[str, Any]:
    """Return the JSON values of an error."""
    if isinstance(error, RequestError):
        return {
            "code": error.code,
            "message": error.message,
            "status": error.status,
            "retry_after": error.retry_after,
            "fix": error.fix,
        }
    return {"kind": type(error).__name__, "message": str(error)}


def read_error(described: Mapping[str, Any]) -> PairwrightError:
    """Return the error that `describe_error` described."""
    message = described["message"]
    if "code" in described:
        given = {name: described[name] for name in ("status", "retry_after", "fix")}
        return RequestError(described["code"], message, **given)
    return _ERRORS.get(described["kind"], PairwrightError)(message)


class LineBuffer:
    """Divides received bytes into lines.

    Raises:
        ValueError: a line is longer than `MAX_LINE`.
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def add(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now, without their ends."""
        self._rest += data
        if b"\n" not in data:
            if len(self._rest) > MAX_LINE:
                raise ValueError("the line is too long")
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        return lines


class LineWriter:
    """Collects the lines of one iteration of the event loop into one write."""

    def __init__(self, loop: asyncio.AbstractEventLoop, write: Callable[[bytes], None]) -> None:
        self._loop, self._write = loop, write
        self._lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        """Write a line."""
        if not self._lines:
            self._loop.call_soon(self._flush)
        self._lines.append(line)

    def _flush(self) -> None:
        lines, self._lines = b"".join(self._lines), []
        self._write(lines)
