"""Puts an app on a socket: in a running loop, in a thread beside a test, or as a process until a signal.

    async with listening(App(Script(latency_ms=20))) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="any")

    with in_thread(App()) as server:
        client = OpenAI(base_url=server.url, api_key="any")
        assert server.stats()["bodies"]["answered_again"] == 0

Only this machine can reach it unless another host is named.
"""

import asyncio
import concurrent.futures
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.event_loop import new_event_loop
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.http_protocol import HTTPConnection

LOOPBACK = "127.0.0.1"
PARENT_POLL_S = 0.2  # seconds between two looks at the parent
_T = TypeVar("_T")


class Server:
    """A server that listens. Its methods may be called from any thread."""

    def __init__(self, app: ServerApp, loop: asyncio.AbstractEventLoop, address: tuple[str, int]) -> None:
        self._app, self._loop = app, loop
        self.host, self.port = address

    @property
    def root(self) -> str:
        """``http://HOST:PORT``: what Azure calls the endpoint; control paths begin here."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The base URL for clients, ``/v1`` included."""
        return f"{self.root}/v1"

    def stats(self, *, each: bool = False) -> dict[str, Any]:
        """Return the counts (see `stats.Stats`); ``each`` adds every body's."""
        return self._on_loop(lambda: self._app.stats(each=each))

    def reset(self) -> None:
        """Counts, attempts, limits, files and batches as at the start."""
        self._on_loop(self._app.reset)

    def change(self, **settings: Any) -> None:
        """Replace settings of the script.

        Raises:
            ConfigError: when a setting is unknown or cannot be; nothing is changed.
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


@asynccontextmanager
async def serve_app(app: ServerApp, *, host: str = LOOPBACK, port: int = 0) -> AsyncIterator[Server]:
    """Serve an app from the running loop; ``port`` 0 takes a free one. In the end all connections are dropped.

    Raises:
        UsageError: when host and port cannot be listened at.
    """
    loop = asyncio.get_running_loop()
    connections: set[HTTPConnection] = set()
    try:
        listener = await loop.create_server(lambda: HTTPConnection(app, loop, connections), host, port, backlog=1024)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{host}:{port}: cannot listen there ({why}). Choose another port, or 0.") from None
    try:
        address = listener.sockets[0].getsockname()
        yield Server(app, loop, (address[0], address[1]))
    finally:
        listener.close()
        for connection in list(connections):
            connection.abort()
        app.close()


@contextmanager
def serve_in_thread(app: ServerApp, *, host: str = LOOPBACK, port: int = 0) -> Iterator[Server]:
    """Serve an app from a thread of its own while the block runs.

    Raises:
        UsageError: when host and port cannot be listened at.
    """
    ready: concurrent.futures.Future[tuple[Server, asyncio.Event]] = concurrent.futures.Future()

    async def serve() -> None:
        try:
            async with serve_app(app, host=host, port=port) as server:
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
    """Serve until SIGTERM or SIGINT, or (``with_parent``) until the process that started this one has ended.

    Raises:
        UsageError: when host and port cannot be listened at.
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
