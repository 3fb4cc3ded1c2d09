"""HTTP/1.1 as far as a test server needs it: one connection, its requests one after another, answers that may break.

A bare ``asyncio.Protocol`` rather than a web framework, for two reasons. It costs less CPU (measured: 36 µs a
request with everything counted, against 53-70 for an aiohttp.web handler that only echoes), so the server is not
what a fast client waits for. And half of what this server is for happens below a framework:
resetting a connection, closing it in mid-body, dripping a body byte by byte.

- `Request`: one request, whole.
- `Reply`: one answer and the *manner* in which it leaves: whole, or as a fault of the wire.
- `Handler`: who makes a reply of a request, at once and without waiting; a delay is part of the reply.

Covered: keep-alive, bodies by length and chunked, ``Expect: 100-continue``, pipelined requests (answered in
order). Not covered: TLS, HTTP/2, compression, upgrades. Bodies are held in memory whole.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal, Protocol, cast
from urllib.parse import unquote

Delivery = Literal["whole", "reset", "half", "drip", "never"]

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 512 * 1024 * 1024
DRIP_CHUNKS = 20  # pieces of a dripped body

_REASONS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_OK_JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class HTTPRequest:
    """One request: ``headers`` by lower-case name, ``path`` decoded, ``query`` as it came."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HTTPReply:
    """One answer, and how it leaves.

    ``parts``, where given, are sent one chunk each instead of ``body``. ``delay`` seconds pass before the first
    byte; a *drip* takes ``spread`` seconds, and *never* closes the connection, unanswered, after as many.
    ``tag`` is the handler's own: it comes back with `Handler.ended`.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: _NONE)
    content_type: str = "application/json"
    parts: tuple[bytes, ...] = ()
    manner: Delivery = "whole"
    delay: float = 0.0
    spread: float = 0.0
    tag: Any = None


class RequestHandler(Protocol):
    """Makes replies. None of its methods waits."""

    def connected(self) -> None:
        """A client has opened a connection."""

    def handle(self, request: HTTPRequest) -> HTTPReply:
        """Return the reply to a request."""

    def ended(self, reply: HTTPReply, *, whole: bool) -> None:
        """A reply has left; not ``whole`` when it broke off, or the client had gone."""


class MalformedHTTP(Exception):  # noqa: N818 - reads as the status it becomes
    """What came is not HTTP that this server understands."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class HTTPHead:
    """The head of a request; ``length`` of its body in bytes, -1 for a chunked one."""

    method: str
    target: str
    headers: Mapping[str, str]
    length: int
    keep_alive: bool


def parse_head(data: bytes) -> HTTPHead:
    """Return the head in ``data``, which ends before the empty line.

    Raises:
        BadRequest: when it is no head of HTTP/1, or its body would be too long.
    """
    line, *fields = data.decode("latin-1").split("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise MalformedHTTP(400, "the first line is not that of an HTTP/1.1 request")
    headers = {}
    for each in fields:
        name, colon, value = each.partition(":")
        if not colon:
            raise MalformedHTTP(400, "a header line has no colon")
        headers[name.lower()] = value.strip()
    length = -1 if headers.get("transfer-encoding", "").lower() == "chunked" else _length(headers)
    wish = headers.get("connection", "").lower()
    return HTTPHead(
        words[0], words[1], headers, length, wish != "close" if words[2] != "HTTP/1.0" else wish == "keep-alive"
    )


def _length(headers: Mapping[str, str]) -> int:
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise MalformedHTTP(400, "content-length is not a number")
    if int(text) > BODY_LIMIT:
        raise MalformedHTTP(413, f"the body is longer than {BODY_LIMIT} bytes")
    return int(text)


def take_body(length: int, buffer: bytearray) -> bytes | None:
    """Return a whole body and remove it from the buffer; None while a part of it is missing.

    Raises:
        BadRequest: when a chunked body is broken or too long.
    """
    if length >= 0:
        if len(buffer) < length:
            return None
        body = bytes(buffer[:length])
        del buffer[:length]
        return body
    return _take_chunks(buffer)


def _take_chunks(buffer: bytearray) -> bytes | None:
    chunks: list[bytes] = []
    at = 0
    while (line := buffer.find(b"\r\n", at)) >= 0:
        try:
            size = int(bytes(buffer[at:line]).partition(b";")[0], 16)
        except ValueError:
            raise MalformedHTTP(400, "a chunk's size is not a hexadecimal number") from None
        if size == 0:
            end = buffer.find(b"\r\n\r\n", line)  # trailers, if any, stand between
            if end < 0:
                return None
            del buffer[: end + 4]
            return b"".join(chunks)
        at = line + 2 + size + 2
        if at > BODY_LIMIT or size < 0:
            raise MalformedHTTP(413, f"the body is longer than {BODY_LIMIT} bytes")
        chunks.append(bytes(buffer[line + 2 : line + 2 + size]))
    return None


def format_head(reply: HTTPReply, *, keep_alive: bool) -> bytes:
    """Return the head of an answer, the empty line included."""
    plain = reply.status == 200 and reply.content_type == "application/json" and not reply.parts
    if plain and keep_alive and not reply.headers:
        return _OK_JSON % len(reply.body)
    start = _REASONS.get(reply.status) or f"HTTP/1.1 {reply.status} Status\r\n".encode()
    size = "transfer-encoding: chunked" if reply.parts else f"content-length: {len(reply.body)}"
    lines = [
        f"content-type: {reply.content_type}",
        size,
        *(f"{name}: {value}" for name, value in reply.headers.items()),
    ]
    if not keep_alive:
        lines.append("connection: close")
    return start + "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"


def format_body(reply: HTTPReply) -> bytes:
    """Return what follows the head: the body, or the parts as chunks."""
    if not reply.parts:
        return reply.body
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in reply.parts) + b"0\r\n\r\n"


class HTTPConnection(asyncio.Protocol):
    """One client's connection: reads a request, sends its reply, reads the next."""

    def __init__(self, handler: RequestHandler, loop: asyncio.AbstractEventLoop, others: "set[HTTPConnection]") -> None:
        self._handler, self._loop, self._others = handler, loop, others
        self._buffer = bytearray()
        self._head: HTTPHead | None = None
        self._reply: HTTPReply | None = None  # under way
        self._keep_alive = True
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its base
        self._others.add(self)
        self._handler.connected()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio names it
        """End; a reply that was under way has not arrived whole."""
        self._others.discard(self)
        self._buffer.clear()
        if self._timer:
            self._timer.cancel()
        if self._reply is not None:
            self._end(whole=False)

    def data_received(self, data: bytes) -> None:
        """Go on with what came."""
        self._buffer += data
        if self._reply is None:
            self._work()

    def abort(self) -> None:
        """Drop the connection at once."""
        self._transport.abort()

    def _work(self) -> None:
        while self._reply is None and not self._transport.is_closing():
            try:
                request = self._next()
            except MalformedHTTP as error:
                self._keep_alive = False
                self._begin(HTTPReply(error.status, str(error).encode(), content_type="text/plain"))
                return
            if request is None:
                return
            self._begin(self._handler.handle(request))

    def _next(self) -> HTTPRequest | None:
        head = self._head
        if head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > HEAD_LIMIT:
                    raise MalformedHTTP(431, f"the head is longer than {HEAD_LIMIT} bytes")
                return None
            head = self._head = parse_head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
            if head.headers.get("expect", "").lower() == "100-continue" and not self._buffer:
                self._transport.write(_CONTINUE)
        body = take_body(head.length, self._buffer)
        if body is None:
            return None
        self._head, self._keep_alive = None, head.keep_alive
        path, _, query = head.target.partition("?")
        return HTTPRequest(head.method, unquote(path) if "%" in path else path, query, head.headers, body)

    def _begin(self, reply: HTTPReply) -> None:
        self._reply = reply
        if reply.delay > 0:
            self._timer = self._loop.call_later(reply.delay, self._leave)
        else:
            self._leave()

    def _leave(self) -> None:
        reply, self._timer = self._reply, None
        assert reply is not None
        if reply.manner == "whole":
            self._transport.write(format_head(reply, keep_alive=self._keep_alive) + format_body(reply))
            self._finish()
        elif reply.manner == "reset":
            self._reset()
        elif reply.manner == "half":
            payload = format_body(reply)
            self._transport.write(format_head(reply, keep_alive=True) + payload[: len(payload) // 2])
            self._transport.close()
            self._end(whole=False)
        elif reply.manner == "drip":
            self._transport.write(format_head(reply, keep_alive=self._keep_alive))
            self._drip(format_body(reply), 0)
        else:
            self._timer = self._loop.call_later(reply.spread, self._reset)

    def _drip(self, payload: bytes, piece: int) -> None:
        reply = self._reply
        assert reply is not None
        size = -(-len(payload) // DRIP_CHUNKS)
        self._transport.write(payload[piece * size : (piece + 1) * size])
        if piece + 1 < DRIP_CHUNKS:
            self._timer = self._loop.call_later(reply.spread / DRIP_CHUNKS, self._drip, payload, piece + 1)
        else:
            self._timer = None
            self._finish()
            self._work()

    def _finish(self) -> None:
        if not self._keep_alive:
            self._transport.close()
        waited = self._reply is not None and self._reply.delay > 0
        self._end(whole=True)
        if waited and self._buffer:
            self._work()

    def _reset(self) -> None:
        # With no time to linger, closing sends RST instead of FIN. Set on a duplicate of the descriptor, since
        # what event loops hand out of their socket differs.
        given = self._transport.get_extra_info("socket")
        if given is not None:
            with socket.socket(fileno=os.dup(given.fileno())) as twin:
                twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()
        self._end(whole=False)

    def _end(self, *, whole: bool) -> None:
        reply, self._reply = self._reply, None
        assert reply is not None
        self._handler.ended(reply, whole=whole)
