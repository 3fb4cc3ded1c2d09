"""HTTP requests and replies as the test server's endpoints see them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qs

import orjson

Delivery = Literal["whole", "reset", "half", "drip", "never"]

_NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class HTTPRequest:
    """Request with a decoded ``path``, a raw ``query``, and either a ``body`` or a ``form``.

    ``headers`` are looked up by lower-case name. A field of a form is a file name (empty unless it is a file) and bytes.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""
    form: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)

    def parameters(self) -> dict[str, str]:
        """Return the query parameters; the last value of a repeated one."""
        return {name: values[-1] for name, values in parse_qs(self.query, keep_blank_values=True).items()}


@dataclass(frozen=True, slots=True)
class HTTPReply:
    """Reply and how it is delivered.

    Attributes:
        status: HTTP status.
        body: whole body.
        headers: besides Content-Type and Content-Length.
        content_type: of the body.
        manner: *whole*; *half*: the connection is closed after half of the body; *drip*: the body is spread over
            ``spread`` seconds; *reset*: TCP reset instead of a reply; *never*: TCP reset after ``spread`` seconds.
        delay: seconds before the first byte.
        spread: seconds, see ``manner``.
        tag: passed back to `app.ServerApp.ended`.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
    content_type: str = "application/json"
    manner: Delivery = "whole"
    delay: float = 0.0
    spread: float = 0.0
    tag: Any = None


def json_reply(data: Mapping[str, Any], status: int = 200) -> HTTPReply:
    """Return a reply with a JSON body."""
    return HTTPReply(status, orjson.dumps(data))
