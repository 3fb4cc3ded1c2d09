"""Access control of the review server: only the browser that opened the printed URL, on this machine.

- The server listens on 127.0.0.1 only.
- ``Host`` must be the server's own address: a site whose name resolves to 127.0.0.1 (DNS rebinding) sends its own name.
- The printed URL contains a random token. The first visit exchanges it for a cookie (HttpOnly, SameSite=Strict) and
  removes it from the URL; without token or cookie every request is refused.
- Requests that change data are POSTs of JSON with the server's own ``Origin``.
- The page may load scripts, styles and images from this server only, and no inline scripts.

Not protected against: other programs of the same user, which could read the decisions directly.
"""

import hmac
import secrets

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

LOOPBACK = "127.0.0.1"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TOKEN = "token"  # noqa: S105 - name of the query parameter, not a secret

_REDIRECT_PAGE = (
    '<!doctype html><meta http-equiv="refresh" content="0; url=/"><link rel="icon" href="data:,">'
    '<title>Review</title><a href="/">Continue</a>'
)


class RequestGuard:
    """Checks every request of one server.

    Args:
        token: secret of the URL; random by default.
    """

    def __init__(self, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._port = 0

    def listen_at(self, port: int) -> None:
        """Set the port; before that every request is refused."""
        self._port = port

    @property
    def url(self) -> str:
        """The URL to open, token included."""
        return f"http://{LOOPBACK}:{self._port}/?{TOKEN}={self.token}"

    def middleware(self) -> Middleware:
        """Return the checks as aiohttp middleware, which also runs for unknown paths."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._check_host(request)
            token = request.query.get(TOKEN, "")
            if token and request.method == "GET" and request.path == "/":
                return self._log_in(token)
            if not _equal_secrets(request.cookies.get(self._name, ""), self._cookie):
                raise web.HTTPForbidden(text="Open the URL that `pairwright review` printed.\n")
            if request.method not in {"GET", "HEAD"}:
                self._check_origin(request)
            return await handler(request)

        return guarded

    @property
    def _name(self) -> str:
        return f"pairwright_review_{self._port}"  # cookies are shared between ports

    def _check_host(self, request: web.Request) -> None:
        if request.headers.get("Host", "") not in {f"{LOOPBACK}:{self._port}", f"localhost:{self._port}"}:
            raise web.HTTPMisdirectedRequest(text="Unknown Host.\n")

    def _log_in(self, token: str) -> web.Response:
        if not _equal_secrets(token, self.token):
            raise web.HTTPForbidden(text="Invalid token. Open the URL that `pairwright review` printed.\n")
        # Not a redirect: browsers that come from another page (a terminal in a browser) would not send the cookie.
        answer = web.Response(text=_REDIRECT_PAGE, content_type="text/html")
        answer.set_cookie(self._name, self._cookie, httponly=True, samesite="Strict", path="/")
        return answer

    def _check_origin(self, request: web.Request) -> None:
        if request.headers.get("Origin", "") != f"http://{request.headers['Host']}":
            raise web.HTTPForbidden(text="Decisions are accepted from the review page only.\n")
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="Send JSON.\n")


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Set the security headers on every response."""
    response.headers.update(HEADERS)


def _equal_secrets(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())
