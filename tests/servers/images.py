"""A web server with good images and with every kind of trouble, on loopback, in a thread.

| path | answer |
|---|---|
| ``/drawn/N`` | `image_variants.draw` of N |
| ``/good/N.jpg`` (png, webp) | a picture of 40 x 30 pixels, another for each N |
| ``/big/N.jpg`` | one of 800 x 600 |
| ``/status/404`` | that status |
| ``/flaky/N.jpg`` | 503 the first time, then the picture |
| ``/slow/N.jpg`` | nothing, for ever |
| ``/drip/N.jpg`` | a byte now and then, for half a minute |
| ``/page.jpg`` | a web page that is called a picture |
| ``/half/N.jpg`` | the first half of a picture, with the length of the half |
| ``/cut/N.jpg`` | the first half, with the length of the whole, and hangs up |
| ``/robots/DIRECTIVES/N.jpg`` | the picture with ``X-Robots-Tag: DIRECTIVES`` |
| ``/to?URL`` | a redirect there |
| ``/odd name é.jpg`` | the picture, asked for by its percent-encoded name |

A request through it as a proxy (``GET http://...``) is answered with the picture of that path; a tunnel (``CONNECT``) is
refused.
"""

import io
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from PIL import Image

from tests.image_variants import draw


def picture(name: str, format_: str = "JPEG", size: tuple[int, int] = (40, 30)) -> bytes:
    """Return a picture whose colours depend on its name."""
    hue = zlib.crc32(name.encode()) & 0xFFFFFF
    image = Image.new("RGB", size, (hue >> 16, hue >> 8 & 255, hue & 255))
    image.putpixel((3, 3), (255, 255, 255))
    return encode(image, format_)


def encode(image: Image.Image, format_: str = "JPEG") -> bytes:
    """Return the file of an image."""
    data = io.BytesIO()
    image.save(data, format_)
    return data.getvalue()


def _body(kind: str, rest: str) -> bytes:
    if kind == "drawn":
        return encode(draw(int(rest)))
    format_ = {"png": "PNG", "webp": "WEBP"}.get(rest.rpartition(".")[2], "JPEG")
    return picture(rest, format_, (800, 600) if kind == "big" else (40, 30))


class _Handler(BaseHTTPRequestHandler):
    server: "ImageServer"

    def do_GET(self) -> None:
        self.server.requests.append((self.path, dict(self.headers)))
        parts = urlsplit(self.path)
        kind, _, rest = unquote(parts.path).strip("/").partition("/")
        with suppress(OSError):  # the client may have gone
            self._answer(kind, rest, parts.query)

    def _answer(self, kind: str, rest: str, query: str) -> None:
        data = _body(kind, rest)
        if kind == "status":
            self.send_error(int(rest))
        elif kind == "to":
            self._send(b"", status=302, headers={"Location": query})
        elif kind == "slow":
            self.server.stopped.wait()
        elif kind == "drip":
            self._drip(data)
        elif kind == "page.jpg":
            self._send(b"<html><body>gone</body></html>", headers={"Content-Type": "text/html"})
        elif kind == "half":
            self._send(data[: len(data) // 2])
        elif kind == "cut":
            self._send(data[: len(data) // 2], length=len(data))
        elif kind == "robots":
            self._send(data, headers={"X-Robots-Tag": rest.partition("/")[0]})
        elif kind == "flaky" and [path for path, _ in self.server.requests].count(self.path) == 1:
            self.send_error(503)
        else:
            self._send(data)

    def _send(self, data: bytes, *, status: int = 200, length: int = -1, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) if length < 0 else length))
        for name, value in {"Content-Type": "image/jpeg", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_CONNECT(self) -> None:
        self.server.requests.append((f"CONNECT {self.path}", dict(self.headers)))
        self.send_error(403)

    def _drip(self, data: bytes) -> None:
        self.send_response(200)
        self.end_headers()
        for byte in data:
            self.wfile.write(bytes([byte]))
            if self.server.stopped.wait(0.05):
                return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


class ImageServer(ThreadingHTTPServer):
    """The server; ``requests`` holds (path, headers) of all that came."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        """Where it is, without a slash at the end."""
        return f"http://127.0.0.1:{self.server_port}"

    def has_been_asked(self, times: int) -> bool:
        """Say whether so many requests have come."""
        return len(self.requests) >= times

    def asked(self, path: str) -> int:
        """Return how often a path was asked for."""
        return [one for one, _ in self.requests].count(path)


@contextmanager
def image_server() -> Iterator[ImageServer]:
    """Run an `ImageServer` while the block lasts."""
    server = ImageServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
