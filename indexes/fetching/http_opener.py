"""URL opener of img2dataset's worker processes.

img2dataset calls ``urllib.request.urlopen``, which uses the opener installed in the process. This one

- allows only http and https, and checks every address when connecting, so that neither a redirect nor a host that
  changes its address leads to a private one. (With a proxy, the proxy connects; then only literal addresses are checked);
- sends its own User-Agent instead of a browser's;
- ends a download that takes longer than `TOTAL_TIMEOUT_FACTOR` timeouts in total (``timeout`` limits each wait, not their
  sum), is larger than `MAX_DOWNLOAD_BYTES`, or ends before its Content-Length;
- normalises image bytes for OpenCV (`image_normalisation`).
"""

import http.client
import io
import os
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.response import addinfourl

from pairwright.indexes.fetching.failure_reasons import DownloadError
from pairwright.indexes.fetching.image_normalisation import normalise_image_bytes
from pairwright.indexes.fetching.url_safety import DEFAULT_PORTS, find_address_problem, find_host_problem

TOTAL_TIMEOUT_FACTOR = 6
MAX_DOWNLOAD_BYTES = 64 * 2**20
_CHUNK = 2**18
_CLOCK_SECONDS = 0.25  # interval of timeout checks


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Settings of HTTP requests.

    Attributes:
        user_agent: User-Agent header.
        timeout: seconds per network wait; a download may take `TOTAL_TIMEOUT_FACTOR` times as long in total.
        allow_loopback: allow loopback addresses.
        proxies: proxy URLs by scheme; empty for none.
        progress: file that grows by one byte per response; empty for none.
    """

    user_agent: str
    timeout: float
    allow_loopback: bool = False
    proxies: Mapping[str, str] | None = None
    progress: str = ""


class DownloadTimer:
    """Shuts down the connections of threads whose time has expired."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends: dict[int, float] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Start a download of the calling thread."""
        with self._lock:
            self._ends[threading.get_ident()] = time.monotonic() + self.seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def watch(self, connection: socket.socket) -> None:
        """Register the connection of the calling thread's download."""
        with self._lock:
            self._sockets[threading.get_ident()] = connection

    def end(self) -> None:
        """End the download of the calling thread."""
        with self._lock:
            self._ends.pop(threading.get_ident(), None)
            self._sockets.pop(threading.get_ident(), None)

    def is_expired(self) -> bool:
        """Return whether the time of the calling thread has expired."""
        with self._lock:
            return time.monotonic() >= self._ends.get(threading.get_ident(), float("inf"))

    def _run(self) -> None:
        while True:
            time.sleep(_CLOCK_SECONDS)
            now = time.monotonic()
            with self._lock:
                late = [self._sockets.pop(thread) for thread in [*self._sockets] if self._ends.get(thread, 0) <= now]
            for connection in late:
                with suppress(OSError):  # it may be closed already
                    # Not SSLSocket.shutdown, which would exchange messages with the server first.
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)


class SafeConnector:
    """Connects to public addresses only."""

    def __init__(self, settings: RequestSettings) -> None:
        self.settings = settings
        self.clock = DownloadTimer(TOTAL_TIMEOUT_FACTOR * settings.timeout)
        self.context = ssl.create_default_context()
        self._proxies = {_proxy_host_port(url) for url in (settings.proxies or {}).values()}

    def is_proxy(self, host: str, port: int) -> bool:
        """Return whether this is a configured proxy, whose address is not checked."""
        return (host.lower(), port) in self._proxies

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to one of the addresses of a host after checking all of them.

        Raises:
            DownloadError: blocked_address.
            OSError: if the host does not resolve or respond.
        """
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for *_, address in found:
            if problem := find_address_problem(str(address[0]), allow_loopback=self.settings.allow_loopback):
                raise DownloadError("blocked_address", f"{host}: {problem}")
        failure = OSError(f"{host}: has no address")
        for family, kind, protocol, _, address in found:
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(self.settings.timeout)
                connection.connect(address)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                connection.close()
                failure = error
            else:
                return connection
        raise failure


def _proxy_host_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS.get(parts.scheme, 80)


class _SafeHTTPConnection(http.client.HTTPConnection):
    def __init__(self, host: str, *, connector: SafeConnector, **rest: Any) -> None:
        super().__init__(host, **rest)
        self.connector = connector

    def connect(self) -> None:
        if self.connector.is_proxy(self.host, self.port):
            super().connect()
        else:
            self.sock = self.connector.connect(self.host, self.port)
        self.connector.clock.watch(self.sock)


class _SafeHTTPSConnection(http.client.HTTPSConnection):
    def __init__(self, host: str, *, connector: SafeConnector, **rest: Any) -> None:
        super().__init__(host, context=connector.context, **rest)
        self.connector = connector

    def connect(self) -> None:
        if self.connector.is_proxy(self.host, self.port):
            super().connect()  # through the tunnel of the proxy
            self.connector.clock.watch(self.sock)
            return
        plain = self.connector.connect(self.host, self.port)
        secure = self.connector.context.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)
        self.connector.clock.watch(secure)
        secure.do_handshake()
        self.sock = secure


class _SafeHTTPHandler(urllib.request.AbstractHTTPHandler):
    """Opens http and https URLs through the connector and sets the User-Agent."""

    def __init__(self, connector: SafeConnector) -> None:
        super().__init__()
        self.connector = connector

    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(partial(_SafeHTTPConnection, connector=self.connector), request)

    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(partial(_SafeHTTPSConnection, connector=self.connector), request)

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Prepare a request; also called after each redirect."""
        settings = self.connector.settings
        host = urlsplit(request.full_url).hostname or ""
        if problem := find_host_problem(host, allow_loopback=settings.allow_loopback):
            raise DownloadError("blocked_address", problem)
        request.add_header("User-Agent", settings.user_agent)
        return self.do_request_(request)

    https_request = http_request


class LimitedResponse:
    """Response with size and time limits, as img2dataset uses it: headers, then the body."""

    def __init__(self, response: addinfourl, opener: "FetchOpener") -> None:
        self.headers = response.headers
        self._response, self._opener = response, opener

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._response.close()
        self._opener.finished()

    def read(self) -> bytes:
        """Return the normalised body.

        Raises:
            DownloadError: download_failed if it is incomplete, timed_out, image_too_large, or bad_image.
            OSError, http.client.HTTPException: from urllib.
        """
        clock = self._opener.connector.clock
        try:
            data = self._read()
        except (OSError, http.client.HTTPException):
            if clock.is_expired():
                raise _timeout_error(clock) from None
            raise
        if clock.is_expired():
            raise _timeout_error(clock)
        length = self.headers.get("Content-Length", "")
        if length.isdigit() and int(length) > len(data):
            raise DownloadError("download_failed", f"ended after {len(data)} of {length} bytes")
        return normalise_image_bytes(data)

    def _read(self) -> bytes:
        body = io.BytesIO()
        while chunk := self._response.read(_CHUNK):
            if body.tell() + len(chunk) > MAX_DOWNLOAD_BYTES:
                raise DownloadError("image_too_large", f"more than {MAX_DOWNLOAD_BYTES} bytes")
            body.write(chunk)
        return body.getvalue()


def _timeout_error(clock: DownloadTimer) -> DownloadError:
    return DownloadError("timed_out", f"took longer than {clock.seconds:g} s in total")


class FetchOpener(urllib.request.OpenerDirector):
    """Opener to install in a process, with a timer and a progress count."""

    def __init__(self, settings: RequestSettings) -> None:
        super().__init__()
        self.connector = SafeConnector(settings)
        self._inner = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(dict(settings.proxies or {})),
            _SafeHTTPHandler(self.connector),
            urllib.request.UnknownHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPRedirectHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            self._inner.add_handler(handler)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._progress = os.open(settings.progress, flags, 0o644) if settings.progress else -1

    def open(self, fullurl: Any, data: Any = None, timeout: float | None = None) -> Any:
        """Request a URL.

        Returns:
            A `LimitedResponse`, to be used in a ``with`` block.

        Raises:
            DownloadError: blocked_address or timed_out.
            OSError, http.client.HTTPException: from urllib.
        """
        clock = self.connector.clock
        clock.begin()
        try:
            return LimitedResponse(self._inner.open(fullurl, data, timeout or self.connector.settings.timeout), self)
        except BaseException:
            late = clock.is_expired()
            self.finished()
            if late:
                raise _timeout_error(clock) from None
            raise

    def finished(self) -> None:
        """End the download of the calling thread, successful or not."""
        self.connector.clock.end()
        if self._progress >= 0:
            os.write(self._progress, b".")
