"""HTTP server of the test server: in a running loop, in a thread, or as a process until a signal.

    async with serve_app(ServerApp(ServerScript(latency_ms=20))) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="any")

    with serve_in_thread(ServerApp()) as server:
        client = OpenAI(base_url=server.url, api_key="any")
        assert server.stats()["bodies"]["answered_again"] == 0

It listens on localhost unless another host is given. HTTP is aiohttp.web's low-level server; an earlier protocol and
multipart reader of our own (270 lines more) took half of its CPU, 45 µs against 87 µs a request
(``benchmarks/own_code.py``). Resets, partial bodies and slow bodies are delivered through its transport.
"""

import asyncio
import concurrent.futures
import logging
import os
import signal
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

from aiohttp import web
from aiohttp.http import HttpProcessingError

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.event_loop import new_event_loop
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.http_messages import HTTPReply, HTTPRequest

LOOPBACK = "127.0.0.1"
BODY_LIMIT = 512 * 1024 * 1024  # bytes of a request body
DRIP_CHUNKS = 20  # writes of a dripped body
PARENT_POLL_S = 0.2  # seconds between checks of the parent process
_T = TypeVar("_T")

_log = logging.getLogger(__name__)
# Malformed requests are answered, and clients may leave; only errors of the server itself are logged.
_log.addFilter(
    lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError | ConnectionError))
)


class Server:
    """Running server. Methods may be called from any thread."""

    def __init__(self, app: ServerApp, loop: asyncio.AbstractEventLoop, address: tuple[str, int]) -> None:
        self._app, self._loop = app, loop
        self.host, self.port = address

    @property
    def root(self) -> str:
        """``http://HOST:PORT``: Azure's endpoint; control paths start here."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Base URL for clients, including ``/v1``."""
        return f"{self.root}/v1"

    def stats(self, *, each: bool = False) -> dict[str, Any]:
        """Return the counts (`stats.ServerStats`); ``each`` adds those of every body."""
        return self._on_loop(lambda: self._app.stats(each=each))

    def reset(self) -> None:
        """Reset counts, attempts, limits, files and batches."""
        self._on_loop(self._app.reset)

    def change(self, **settings: Any) -> None:
        """Change settings of the script.

        Raises:
            ConfigError: unknown or invalid setting; nothing is changed.
        """
        self._on_loop(lambda: self._app.change(settings))

    def _on_loop(self, function: Callable[[], _T]) -> _T:
        try:
            if asyncio.get_running_loop() is self._loop:
                return function()
        except RuntimeError:
            pass  # no loop runs in this thread

        async def call() -> _T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()


class _HTTPServer(web.Server):
    """Delivers the replies of an app over HTTP/1.1."""

    def __init__(self, app: ServerApp) -> None:
        make_request = partial(web.BaseRequest, loop=asyncio.get_running_loop(), client_max_size=BODY_LIMIT)
        super().__init__(
            self._respond, request_factory=make_request, handler_cancellation=True, access_log=None, logger=_log
        )
        self._app = app

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._app.connected()

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        reply = self._app.handle(await _read_request(request))
        whole = False
        try:
            if reply.delay > 0:
                await asyncio.sleep(reply.delay)
            response = await _deliver(request, reply)
            whole = reply.manner in {"whole", "drip"}
        finally:
            self._app.ended(reply, whole=whole)
        return response


async def _read_request(request: web.BaseRequest) -> HTTPRequest:
    if (request.content_length or 0) > BODY_LIMIT:
        raise web.HTTPRequestEntityTooLarge(BODY_LIMIT, request.content_length or 0)
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # aiohttp takes what is written for the beginning of the response
    path, _, query = request.raw_path.partition("?")
    body, form = b"", {}
    try:
        if request.content_type == "multipart/form-data":
            form = {name: _form_field(value) for name, value in (await request.post()).items()}
        else:
            body = await request.read()
    except (web.RequestPayloadError, HttpProcessingError, ValueError) as error:
        raise web.HTTPBadRequest(text=f"malformed body: {error}") from None
    return HTTPRequest(request.method, unquote(path), query, request.headers, body, form)


def _form_field(value: Any) -> tuple[str, bytes]:
    if isinstance(value, web.FileField):
        return value.filename, value.file.read()
    return "", value.encode() if isinstance(value, str) else bytes(value)


async def _deliver(request: web.BaseRequest, reply: HTTPReply) -> web.StreamResponse:
    """Send a reply in its manner.

    Raises:
        ConnectionError: the client has gone.
    """
    headers = {"Content-Type": reply.content_type, **reply.headers}
    if reply.manner == "whole":
        response: web.StreamResponse = web.Response(status=reply.status, body=reply.body, headers=headers)
        await response.prepare(request)
        await response.write_eof()
        return response
    response = web.StreamResponse(status=reply.status, headers=headers)
    if reply.manner in {"reset", "never"}:
        await asyncio.sleep(reply.spread if reply.manner == "never" else 0)
        _reset_connection(request)
        return response
    data = reply.body
    response.content_length = len(data)
    await response.prepare(request)
    if reply.manner == "half":
        await response.write(data[: len(data) // 2])
        if request.transport is not None:
            request.transport.close()
        return response
    size = max(1, -(-len(data) // DRIP_CHUNKS))
    for at in range(0, len(data), size):
        await asyncio.sleep(reply.spread / DRIP_CHUNKS)
        await response.write(data[at : at + size])
    await response.write_eof()
    return response


def _reset_connection(request: web.BaseRequest) -> None:
    """Close the connection with RST instead of FIN."""
    transport = request.transport
    if transport is None:
        return
    # With a linger time of 0, closing sends RST. Event loops differ in the socket they give, hence the duplicate.
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as twin:
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


@asynccontextmanager
async def serve_app(app: ServerApp, *, host: str = LOOPBACK, port: int = 0) -> AsyncIterator[Server]:
    """Serve an app in the running loop; ``port`` 0 chooses a free one. Connections are aborted at the end.

    Raises:
        UsageError: host and port are not available.
    """
    loop = asyncio.get_running_loop()
    http_server = _HTTPServer(app)
    try:
        listener = await loop.create_server(http_server, host, port, backlog=1024)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{host}:{port}: cannot listen ({why}). Choose another port, or 0.") from None
    try:
        address = listener.sockets[0].getsockname()
        yield Server(app, loop, (address[0], address[1]))
    finally:
        listener.close()
        for connection in http_server.connections:
            if isinstance(connection.transport, asyncio.Transport):
                connection.transport.abort()
        app.close()


@contextmanager
def serve_in_thread(app: ServerApp, *, port: int = 0) -> Iterator[Server]:
    """Serve an app on localhost in a thread while the block runs.

    Raises:
        UsageError: the port is not available.
    """
    ready: concurrent.futures.Future[tuple[Server, asyncio.Event]] = concurrent.futures.Future()

    async def serve() -> None:
        try:
            async with serve_app(app, port=port) as server:
                stop = asyncio.Event()
                ready.set_result((server, stop))
                await stop.wait()
        except UsageError as error:
            ready.set_exception(error)

    loop = new_event_loop()
    thread = threading.Thread(target=_run, args=(loop, serve), name="llm-server", daemon=True)
    thread.start()
    try:
        server, stop = ready.result()
        try:
            yield server
        finally:
            loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join()


def serve_until_signal(
    app: ServerApp, announce: Callable[[Server], None], *, host: str, port: int, with_parent: bool
) -> None:
    """Serve until SIGTERM or SIGINT, or (``with_parent``) until the parent process has ended.

    Raises:
        UsageError: host and port are not available.
    """
    parent = os.getppid()

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
        async with serve_app(app, host=host, port=port) as server:
            announce(server)
            while not stop.is_set() and not (with_parent and os.getppid() != parent):
                await _wait(stop, PARENT_POLL_S if with_parent else None)

    _run(new_event_loop(), serve)


async def _wait(stop: asyncio.Event, seconds: float | None) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


def _run(loop: asyncio.AbstractEventLoop, serve: Callable[[], Any]) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(serve())
