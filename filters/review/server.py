"""HTTP server of the review page.

    GET  /                    the page; /review.js, /review.css
    GET  /api/standing        progress of the review (`session.ReviewSession.progress`)
    GET  /api/rows/N          row N, counted from 0 in the order of review
    GET  /images/N            its image
    POST /api/rows/N          {"decision": "keep" | "reject" | "unsure" | "fix", "text": "..."}
    POST /api/undo            withdraws the last decision; {"at": N or null, "standing": ...}

Rows are identified by their number: no request contains a path. Texts of the input are sent as JSON only, and the page
sets them as text. Access: `access_control.py`. A decision is on the disk before its POST is answered.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.filters.review.access_control import LOOPBACK, RequestGuard, add_headers
from pairwright.filters.review.session import ReviewSession

PAGE = Path(__file__).with_name("page")
_FILES = {"/": "review.html", "/review.js": "review.js", "/review.css": "review.css"}
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_MAX_BODY = 2**17  # bytes of a request


def build_app(session: ReviewSession, guard: RequestGuard) -> web.Application:
    """Return the application without its socket."""
    handlers = _Handlers(session)
    app = web.Application(middlewares=[guard.middleware()], client_max_size=_MAX_BODY)
    app.on_response_prepare.append(add_headers)
    app.add_routes([web.get(path, _static(PAGE / name)) for path, name in _FILES.items()])
    app.add_routes(
        [
            web.get("/api/standing", handlers.standing),
            web.get(r"/api/rows/{at:\d{1,9}}", handlers.row),
            web.get(r"/images/{at:\d{1,9}}", handlers.image),
            web.post(r"/api/rows/{at:\d{1,9}}", handlers.decide),
            web.post("/api/undo", handlers.undo),
        ]
    )
    return app


@asynccontextmanager
async def serve_session(session: ReviewSession, guard: RequestGuard, port: int = 0) -> AsyncIterator[str]:
    """Serve from the running event loop, on this machine only, and yield the URL to open.

    Args:
        session: the review.
        guard: access control.
        port: 0 selects a free one.

    Raises:
        UsageError: the server cannot listen on the port.
    """
    runner = web.AppRunner(build_app(session, guard), access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, port).start()
        guard.listen_at(runner.addresses[0][1])
        yield guard.url
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{LOOPBACK}:{port}: cannot listen ({why}). Choose another --port, or 0.") from None
    finally:
        await runner.cleanup()


def serve_until_signal(session: ReviewSession, port: int, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT (Ctrl-C); ``announce`` receives the URL when it can be opened.

    Raises:
        UsageError: the server cannot listen on the port.
    """

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
        async with serve_session(session, RequestGuard(), port) as url:
            announce(url)
            await stop.wait()

    asyncio.run(serve())


class _Handlers:
    def __init__(self, session: ReviewSession) -> None:
        self._session = session

    async def standing(self, _: web.Request) -> web.Response:
        return _json(self._session.progress())

    async def row(self, request: web.Request) -> web.Response:
        at = self._at(request)
        # Finding an image may require a scan of the shards: other requests continue meanwhile.
        image = await asyncio.to_thread(self._session.has_image, at)
        return _json({**self._session.row(at), "image": image})

    async def image(self, request: web.Request) -> web.Response:
        at = self._at(request)
        try:
            shown = await asyncio.to_thread(self._session.image, at)
        except InputError as error:
            raise web.HTTPNotFound(text=f"{error}\n") from None
        return web.Response(body=shown.data, content_type=shown.media_type)

    async def decide(self, request: web.Request) -> web.Response:
        at, given = self._at(request), await _body(request)
        word, text = given.get("decision"), given.get("text", "")
        if not isinstance(word, str) or not isinstance(text, str):
            raise web.HTTPBadRequest(text="Send a decision, and for a fix a text.\n")
        with _error_responses():
            self._session.decide(at, word, text)
        return _json(self._session.progress())

    async def undo(self, request: web.Request) -> web.Response:
        await _body(request)
        with _error_responses():
            at = self._session.undo()
        return _json({"at": at, "standing": self._session.progress()})

    def _at(self, request: web.Request) -> int:
        at = int(request.match_info["at"])
        if at >= len(self._session):
            raise web.HTTPNotFound(text="No such row.\n")
        return at


@contextmanager
def _error_responses() -> Iterator[None]:
    """Convert errors of the session to HTTP responses."""
    try:
        yield
    except UsageError as error:
        raise web.HTTPUnprocessableEntity(text=f"{error}\n") from None
    except StorageError as error:
        raise web.HTTPInsufficientStorage(text=f"{error}\n") from None


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        given = orjson.loads(await request.read())
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise web.HTTPBadRequest(text="Send a JSON object.\n")
    return given


def _json(value: Any) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")


def _static(path: Path) -> Handler:
    text = path.read_text(encoding="utf-8")

    async def serve(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type=_TYPES[path.suffix], charset="utf-8")

    return serve
