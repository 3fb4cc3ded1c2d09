"""How a worker of img2dataset asks for an image: the opener that ``urllib`` uses in its processes.

img2dataset calls ``urllib.request.urlopen``, which asks the opener that the process has installed. Ours

- speaks http and https only, and judges every address at the moment of connecting, so that neither a redirect nor a
  name that changes its address leads to a private one. (Through a proxy it is the proxy that connects, and
  judges; here only hosts that are written as addresses are refused then);
- names itself: img2dataset would call itself a browser;
- ends an answer that takes longer than `TOTAL_TIMEOUT_FACTOR` timeouts in all (``timeout`` alone bounds each wait, not their
  sum: a server that sends a byte now and then holds a thread for ever), that is larger than `MAX_DOWNLOAD_BYTES` bytes, or
  that breaks off before its stated length;
- hands over bytes that OpenCV takes for what they are (`fetch_bytes.py`).
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
_CLOCK_SECONDS = 0.25  # seconds between two looks at the clock


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """How to ask.

    Attributes:
        user_agent: the header that names us.
        timeout: seconds for each wait on the network; an answer may take `TOTAL_TIMEOUT_FACTOR` times as long in all.
        allow_loopback: ask loopback addresses too.
        proxies: scheme to proxy URL; empty for none.
        progress: file that grows by a byte with each answer; empty for none.
    """

    user_agent: str
    timeout: float
    allow_loopback: bool = False
    proxies: Mapping[str, str] | None = None
    progress: str = ""


class DownloadTimer:
    """Shuts the connection of a thread whose time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends: dict[int, float] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """The calling thread starts a download."""
        with self._lock:
            self._ends[threading.get_ident()] = time.monotonic() + self.seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def watch(self, connection: socket.socket) -> None:
        """The calling thread's download goes over this connection."""
        with self._lock:
            self._sockets[threading.get_ident()] = connection

    def end(self) -> None:
        """The calling thread's download is over."""
        with self._lock:
            self._ends.pop(threading.get_ident(), None)
            self._sockets.pop(threading.get_ident(), None)

    def is_expired(self) -> bool:
        """Say whether the calling thread's time is over."""
        with self._lock:
            return time.monotonic() >= self._ends.get(threading.get_ident(), float("inf"))

    def _run(self) -> None:
        while True:
            time.sleep(_CLOCK_SECONDS)
            now = time.monotonic()
            with self._lock:
                late = [self._sockets.pop(thread) for thread in [*self._sockets] if self._ends.get(thread, 0) <= now]
            for connection in late:
                with suppress(OSError):  # it may have closed by itself
                    # Not the SSL socket's own method, which would talk to the other side first.
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)


class SafeConnector:
    """Makes connections, to public addresses only."""

    def __init__(self, manners: RequestSettings) -> None:
        self.manners = manners
        self.clock = DownloadTimer(TOTAL_TIMEOUT_FACTOR * manners.timeout)
        self.context = ssl.create_default_context()
        self._proxies = {_proxy_host_port(url) for url in (manners.proxies or {}).values()}

    def is_proxy(self, host: str, port: int) -> bool:
        """Say whether this is the proxy itself, which the user named and which may be anywhere."""
        return (host.lower(), port) in self._proxies

    def connect(self, host: str, port: int) -> socket.socket:
        """Return a connection to one of the host's addresses, after all of them were judged.

        Raises:
            Refusal: blocked_address.
            OSError: when the host does not resolve or answer.
        """
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for *_, address in found:
            if problem := find_address_problem(str(address[0]), allow_loopback=self.manners.allow_loopback):
                raise DownloadError("blocked_address", f"{host}: {problem}")
        failure = OSError(f"{host}: has no address")
        for family, kind, protocol, _, address in found:
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(self.manners.timeout)
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
    def __init__(self, host: str, *, guard: SafeConnector, **rest: Any) -> None:
        super().__init__(host, **rest)
        self.guard = guard

    def connect(self) -> None:
        if self.guard.is_proxy(self.host, self.port):
            super().connect()
        else:
            self.sock = self.guard.connect(self.host, self.port)
        self.guard.clock.watch(self.sock)


class _SafeHTTPSConnection(http.client.HTTPSConnection):
    def __init__(self, host: str, *, guard: SafeConnector, **rest: Any) -> None:
        super().__init__(host, context=guard.context, **rest)
        self.guard = guard

    def connect(self) -> None:
        if self.guard.is_proxy(self.host, self.port):
            super().connect()  # through the tunnel that the proxy opens
            self.guard.clock.watch(self.sock)
            return
        plain = self.guard.connect(self.host, self.port)
        secure = self.guard.context.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)
        self.guard.clock.watch(secure)
        secure.do_handshake()
        self.sock = secure


class _SafeHTTPHandler(urllib.request.AbstractHTTPHandler):
    """Opens http and https through the guard, and says who asks."""

    def __init__(self, guard: SafeConnector) -> None:
        super().__init__()
        self.guard = guard

    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(partial(_SafeHTTPConnection, guard=self.guard), request)

    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(partial(_SafeHTTPSConnection, guard=self.guard), request)

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Called for every request, those after a redirect too."""
        manners = self.guard.manners
        host = urlsplit(request.full_url).hostname or ""
        if problem := find_host_problem(host, allow_loopback=manners.allow_loopback):
            raise DownloadError("blocked_address", problem)
        request.add_header("User-Agent", manners.user_agent)
        return self.do_request_(request)

    https_request = http_request


class LimitedResponse:
    """A server's answer, as img2dataset uses it: headers, then the bytes."""

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
        """Return the whole body, fit to be decoded.

        Raises:
            Refusal: download_failed when it breaks off, timed_out, image_too_large, or bad_image.
            OSError, http.client.HTTPException: as urllib raises them.
        """
        clock = self._opener.guard.clock
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
            raise DownloadError("download_failed", f"broke off after {len(data)} of {length} bytes")
        return normalise_image_bytes(data)

    def _read(self) -> bytes:
        body = io.BytesIO()
        while chunk := self._response.read(_CHUNK):
            if body.tell() + len(chunk) > MAX_DOWNLOAD_BYTES:
                raise DownloadError("image_too_large", f"more than {MAX_DOWNLOAD_BYTES} bytes")
            body.write(chunk)
        return body.getvalue()


def _timeout_error(clock: DownloadTimer) -> DownloadError:
    return DownloadError("timed_out", f"took longer than {clock.seconds:g} s in all")


class FetchOpener(urllib.request.OpenerDirector):
    """The opener to install: the guard's, with a clock and a count around it."""

    def __init__(self, manners: RequestSettings) -> None:
        super().__init__()
        self.guard = SafeConnector(manners)
        self._inner = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(dict(manners.proxies or {})),
            _SafeHTTPHandler(self.guard),
            urllib.request.UnknownHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPRedirectHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            self._inner.add_handler(handler)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._progress = os.open(manners.progress, flags, 0o644) if manners.progress else -1

    def open(self, fullurl: Any, data: Any = None, timeout: float | None = None) -> Any:
        """Ask for a URL.

        Returns:
            An `Answer`, to be used in a ``with`` block.

        Raises:
            Refusal: blocked_address or timed_out.
            OSError, http.client.HTTPException: as urllib raises them.
        """
        clock = self.guard.clock
        clock.begin()
        try:
            return LimitedResponse(self._inner.open(fullurl, data, timeout or self.guard.manners.timeout), self)
        except BaseException:
            late = clock.is_expired()
            self.finished()
            if late:
                raise _timeout_error(clock) from None
            raise

    def finished(self) -> None:
        """The calling thread's download is over, well or badly."""
        self.guard.clock.end()
        if self._progress >= 0:
            os.write(self._progress, b".")
