"""Messages between the jobs of a build and the process that sends their requests: one line of JSON each.

Images travel as their identity. Their pixels are sent when a request is about to be sent to the model, and not if its answer
is stored. Schemas travel once per connection.
"""

import multiprocessing
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import orjson

from pairwright.datasets.errors import ConfigError, MissingResourceError, PairwrightError, StorageError, UsageError
from pairwright.generators.llm.client.chat_completions import reported_usage
from pairwright.generators.llm.client.messages import Image, Message, MessageSpan, Reply, Request, Schema, Usage
from pairwright.generators.llm.client.request_errors import RequestError

MAX_LINE = 2**28  # bytes of a message; images are base64

_ERRORS = {error.__name__: error for error in (UsageError, ConfigError, StorageError, MissingResourceError)}
_REQUEST_ERROR = ("code", "message", "status", "retry_after", "fix")


def job_owner() -> str:
    """Return the name of the build's process that this process works for, or is."""
    parent = multiprocessing.parent_process()
    return f"{platform.node()}:{parent.pid if parent else os.getpid()}"


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line; records in it become JSON objects.

    Raises:
        RequestError: ``bad_request``: a text is not Unicode or a value not JSON.
    """
    try:
        return orjson.dumps(message, default=_plain, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as error:
        raise RequestError("bad_request", f"not JSON: {error}") from None


def _plain(value: Any) -> str | None:
    """Return the text of a body; None for the function that encodes an image, which stays in its process."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if callable(value):
        return None
    raise TypeError(type(value).__name__)


def request_message(number: int, request: Request, schema: int) -> bytes:
    """Return the message that asks a request; ``schema`` is the number under which its schema was sent (0 = none)."""
    sent = replace(request, schema=None, alone=())  # what may follow concerns estimates only
    return encode({"id": number, "ask": sent, "schema": schema})


def read_request(
    described: Mapping[str, Any], schema: Schema | None, open_image: Callable[[int], Callable[[], str]]
) -> Request:
    """Return the request of a message.

    Args:
        described: its values.
        schema: of the answer.
        open_image: returns, for the position of an image in the request, a function that returns its URL.
    """
    positions = count()
    messages = tuple(
        Message(
            each["role"],
            each["text"],
            tuple(Image(**{**image, "data_url": open_image(next(positions))}) for image in each["images"]),
        )
        for each in described["messages"]
    )
    documents = tuple(MessageSpan(**span) for span in described["documents"])
    return Request(**{**described, "messages": messages, "documents": documents, "schema": schema, "alone": ()})


def reply_message(number: int, reply: Reply) -> bytes:
    """Return the message with a reply; its body only if a reader looks into it: no text, or cut off."""
    estimated = not reply.cached and reported_usage(reply.raw) != reply.usage
    sent = reply if not reply.text or reply.finish_reason == "length" else replace(reply, raw=b"")
    return encode({"id": number, "reply": sent, "estimated": estimated})


def read_reply(described: Mapping[str, Any]) -> Reply:
    """Return the reply of a message."""
    return Reply(**{**described, "usage": Usage(**described["usage"]), "raw": described["raw"].encode()})


def describe_error(error: Exception) -> dict[str, Any]:
    """Return the JSON values of an error."""
    if isinstance(error, RequestError):
        return {name: getattr(error, name) for name in _REQUEST_ERROR}
    return {"kind": type(error).__name__, "message": str(error)}


def read_error(described: Mapping[str, Any]) -> PairwrightError:
    """Return the error that `describe_error` described."""
    if "code" in described:
        code, message, *rest = (described[name] for name in _REQUEST_ERROR)
        return RequestError(code, message, **dict(zip(_REQUEST_ERROR[2:], rest, strict=True)))
    return _ERRORS.get(described["kind"], PairwrightError)(described["message"])
