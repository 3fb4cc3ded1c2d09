"""Requests, replies, and the `Model` protocol that all clients implement.

A `Request` is a whole chat, a `Reply` what was answered and billed, including refusals and truncated texts. Cache,
retries, rate limits and budget are models that wrap a model.

    request = Request((Message("user", "Say hello."),), model="small", parameters={"temperature": 0})
    reply = await model.ask(request)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import orjson

from pairwright.generators.llm.client.request_key import answer_parameters, canonicalize, encode_json, hash_request

Role = Literal["system", "user", "assistant"]

RUNAWAY_CHARS = 200  # characters of whitespace at the end of a text; indents are shorter
_NO_SCHEMA = b"null"


@dataclass(frozen=True, slots=True)
class Image:
    """Image to show to the model; created by `pairwright.generators.llm.images`.

    Attributes:
        sha256: of the original file, or of its web address, in hex.
        form: conversion before sending, such as ``edge=1024 jpeg=90``; ``url`` for a web address.
        data_url: returns ``data:image/...;base64,...``, or the web address; raises ``RequestError("bad_image")`` if the
            pixels cannot be decoded.
        width, height: in pixels as sent, for estimates; 0: unknown.
        detail: ``low`` or ``high``; empty: the server decides.
    """

    sha256: str
    form: str
    data_url: Callable[[], str] = field(repr=False, compare=False)
    width: int = field(default=0, compare=False)
    height: int = field(default=0, compare=False)
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat. Images are sent after the text, in order."""

    role: Role
    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """Span of a text in a chat: message index from 0, characters ``[start, end)`` of its text."""

    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Schema:
    """JSON schema that an answer must match. ``schema`` must not be modified afterwards.

    Raises:
        RequestError: ``bad_request``: it is not JSON.
    """

    name: str
    schema: Mapping[str, Any]
    strict: bool = True
    shape: bytes = field(init=False, repr=False, compare=False)  # canonical JSON, in keys

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", encode_json([self.name, canonicalize(self.schema), self.strict]))


@dataclass(frozen=True, slots=True)
class Request:
    """Request to a model.

    Attributes:
        messages: the chat so far.
        model: model name at the server.
        parameters: temperature, top_p, max_tokens, stop, seed etc., JSON values as sent.
        schema: that the answer must match; None for free text.
        sample: index among several answers to the same request.
        row: the user's row, as named in errors; not in the cache key.
        expects: example of a typical answer, for cost estimates; not in the cache key.
        documents: spans of documents in the messages (`documents`). Not sent to servers; a local model may use them. Not in
            the cache key, since the messages hold the texts.
        resample: whether this is a new sample for a row that is retried because earlier answers were rejected
            (`parameter_overrides`); set by the run.
        repair: for cost estimates: ``possible`` if an invalid answer is asked for once more, ``this`` if this request does so.
        alone: for cost estimates: requests that may follow the answer, such as those about single items that replace parts of
            an invalid answer (`grouping`).
        is_alone: for counts: whether this is a request about a single item.
    """

    messages: tuple[Message, ...]
    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    schema: Schema | None = None
    sample: int = 0
    row: str = ""
    expects: str = ""
    documents: tuple[MessageSpan, ...] = ()
    resample: bool = False
    repair: Literal["", "possible", "this"] = ""
    alone: tuple["Request", ...] = ()
    is_alone: bool = field(default=False, compare=False)

    def key(self, endpoint: str) -> str:
        """Return the cache key, 32 hex digits; `request_key` documents what it covers.

        Args:
            endpoint: server identifier (`base_url.server_id`).

        Raises:
            RequestError: ``bad_request``: the request is not JSON.
        """
        messages = [
            (each.role, each.text, [(image.sha256, image.form) for image in each.images])
            if each.images
            else (each.role, each.text)
            for each in self.messages
        ]
        schema = self.schema.shape if self.schema is not None else _NO_SCHEMA
        return hash_request(
            endpoint, (self.model, messages, answer_parameters(self.parameters), orjson.Fragment(schema), self.sample)
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one response as counted by the server; 0 if it does not.

    Attributes:
        prompt_tokens: of the messages.
        completion_tokens: of the answer.
        cached_tokens: prompt tokens that the server had cached and bills for less.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """Response of a model.

    Attributes:
        text: answer.
        finish_reason: ``stop``, ``length``, ``content_filter``, ``tool_calls`` etc.
        refusal: the model's refusal; empty if it did not refuse.
        usage: tokens.
        model: model name in the response.
        key: cache key of the request; empty before a cache has seen the reply.
        cached: whether it came from the cache and was not billed.
        raw: response body.
    """

    text: str
    finish_reason: str
    refusal: str
    usage: Usage
    model: str
    key: str = ""
    cached: bool = False
    raw: bytes = field(default=b"", repr=False, compare=False)

    @property
    def runs_away(self) -> bool:
        """Whether the text ends in whitespace up to the token limit: grammars of JSON schemas often allow any number."""
        return self.finish_reason == "length" and len(self.text) - len(self.text.rstrip()) >= RUNAWAY_CHARS


class Model(Protocol):
    """Anything that answers requests: a server, a test double, or a wrapper around another model."""

    async def ask(self, request: Request) -> Reply:
        """Return the reply.

        Raises:
            RequestError: no reply.
        """
        ...
