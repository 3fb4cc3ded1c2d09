"""What is asked of a model and what comes back: plain records, and the one seam that all clients share.

A `Request` is a whole chat: it can be sent, sent again, and looked up, by anyone who holds it. A `Reply` is what was
answered, paid for and kept, be it a refusal or a text that breaks off. A `Model` makes the one of the other; cache,
retry, pacing and budget are models around a model.

    from pairwright.generators.llm.client.messages import Message, Request

    request = Request((Message("user", "Say hello."),), model="small", parameters={"temperature": 0})
    reply = await model.ask(request)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import orjson

from pairwright.generators.llm.client.request_key import answer_parameters, canonical_json, canonicalize, hash_request

Role = Literal["system", "user", "assistant"]

_NO_SCHEMA = b"null"


@dataclass(frozen=True, slots=True)
class Image:
    """An image to show to the model; made by `pairwright.generators.llm.images`.

    Attributes:
        sha256: of the image's own bytes, before any change, in hex.
        form: how they are changed before they are sent, such as ``edge=1024 jpeg=90``.
        make: gives the ``data:`` URL.
    """

    sha256: str
    form: str
    make: Callable[[], str] = field(repr=False, compare=False)

    def data_url(self) -> str:
        """Return ``data:image/...;base64,...``, encoded when first asked for.

        Raises:
            Failure: ``bad_request`` when its pixels cannot be decoded.
        """
        return self.make()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat. Images are sent behind the text, in their order."""

    role: Role
    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """Where a text stands in a chat: the message's number, from 0, and the letters ``[start, end)`` of its text."""

    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Schema:
    """The JSON schema that an answer has to fit. ``schema`` must not be changed afterwards.

    Raises:
        Failure: ``bad_request`` when it is not JSON.
    """

    name: str
    schema: Mapping[str, Any]
    strict: bool = True
    shape: bytes = field(init=False, repr=False, compare=False)  # what a key holds of it, written once

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", canonical_json([self.name, canonicalize(self.schema), self.strict]))


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent to a model.

    Attributes:
        messages: the chat so far.
        model: the model's name at the server.
        parameters: temperature, top_p, max_tokens, stop, seed and so on, JSON values as they are sent.
        schema: that the answer has to fit; None for free text.
        sample: which of several answers to the same request, from 0.
        row: the user's row, as named in errors; it does not shape the answer.
        expects: an answer of the usual kind and length, by which a plan reckons; it does not shape the answer.
        documents: where the texts stand that the model is given to read (`documents`). Servers are not told; a local
            model may read by them. Not in the key, since the messages hold the texts themselves.
        anew: whether its row is asked anew, since its earlier answers were no good (`anew`); set by the run.
        repair: ``possible`` where an answer that does not fit is asked for once more, ``this`` where this request does
            that; for plans.
    """

    messages: tuple[Message, ...]
    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    schema: Schema | None = None
    sample: int = 0
    row: str = ""
    expects: str = ""
    documents: tuple[MessageSpan, ...] = ()
    anew: bool = False
    repair: Literal["", "possible", "this"] = ""

    def key(self, endpoint: str) -> str:
        """Return the cache key, 32 hex digits; see `pairwright.generators.llm.client.request_key` for what is in it.

        Args:
            endpoint: what stands for the server (`address.server_id`).

        Raises:
            Failure: ``bad_request`` when the request cannot be written as JSON.
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
    """Tokens of one answer, as the server counts them; 0 where it does not.

    Attributes:
        prompt_tokens: of the messages.
        completion_tokens: of the answer.
        cached_tokens: those of ``prompt_tokens`` that the server had in its own cache and bills for less.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    Attributes:
        text: the answer.
        finish_reason: why it ended: ``stop``, ``length``, ``content_filter``, ``tool_calls`` ...
        refusal: what the model said instead of an answer; empty where it did not refuse.
        usage: tokens.
        model: the model that answered, by its own account.
        key: the request's cache key; empty where no cache has seen the reply.
        cached: whether it was there already, so that nothing was paid for it.
        raw: the body of the response, as it came.
    """

    text: str
    finish_reason: str
    refusal: str
    usage: Usage
    model: str
    key: str = ""
    cached: bool = False
    raw: bytes = field(default=b"", repr=False, compare=False)


class Model(Protocol):
    """Whatever answers requests: a server, a script in a test, or a wrapper around another model."""

    async def ask(self, request: Request) -> Reply:
        """Return the answer.

        Raises:
            Failure: when there is none.
        """
        ...
