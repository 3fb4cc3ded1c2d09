"""Who may talk to the review server: the browser that was given its address, on this machine, and nothing else.

- The server listens at 127.0.0.1 only.
- ``Host`` must be this server's own address. A site whose name was made to point at 127.0.0.1 (DNS rebinding) sends its
  own name there.
- The address that is printed holds a random token. The first visit turns it into a cookie (HttpOnly, SameSite=Strict)
  and takes it out of the address; without token or cookie there is nothing to see.
- Whatever changes something is a POST of JSON with this server's own ``Origin``.
- The page may load scripts, styles and images from this server only, and no script that stands in the page.

Not guarded against: other programs of the same user, who could read the decisions themselves.
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
TOKEN = "token"  # noqa: S105 - the name of the query's field, no secret

_REDIRECT_PAGE = (
    '<!doctype html><meta http-equiv="refresh" content="0; url=/"><link rel="icon" href="data:,">'
    '<title>Review</title><a href="/">Go on</a>'
)


class RequestGuard:
    """Checks every request of one server.

    Args:
        token: the secret of the address; made up when left out.
    """

    def __init__(self, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._port = 0

    def listen_at(self, port: int) -> None:
        """Tell the port, without which nothing is let in."""
        self._port = port

    @property
    def url(self) -> str:
        """The address to open, token included."""
        return f"http://{LOOPBACK}:{self._port}/?{TOKEN}={self.token}"

    def middleware(self) -> Middleware:
        """Return the checks as aiohttp runs them before every handler, also where there is none."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._check_host(request)
            given = request.query.get(TOKEN, "")
            if given and request.method == "GET" and request.path == "/":
                return self._let_in(given)
            if not _equal_secrets(request.cookies.get(self._name, ""), self._cookie):
                raise web.HTTPForbidden(text="Open the address that `pairwright review` printed.\n")
            if request.method not in {"GET", "HEAD"}:
                self._check_origin(request)
            return await handler(request)

        return guarded

    @property
    def _name(self) -> str:
        return f"pairwright_review_{self._port}"  # browsers do not tell cookies of two ports apart

    def _check_host(self, request: web.Request) -> None:
        if request.headers.get("Host", "") not in {f"{LOOPBACK}:{self._port}", f"localhost:{self._port}"}:
            raise web.HTTPMisdirectedRequest(text="This server is called by another name.\n")

    def _let_in(self, given: str) -> web.Response:
        if not _equal_secrets(given, self.token):
            raise web.HTTPForbidden(text="This token is not of this review. Open the address that it printed.\n")
        # Not a redirect: browsers that come from a page elsewhere (a terminal in a browser) would not send the cookie.
        answer = web.Response(text=_REDIRECT_PAGE, content_type="text/html")
        answer.set_cookie(self._name, self._cookie, httponly=True, samesite="Strict", path="/")
        return answer

    def _check_origin(self, request: web.Request) -> None:
        if request.headers.get("Origin", "") != f"http://{request.headers['Host']}":
            raise web.HTTPForbidden(text="Only the page of this review may decide.\n")
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="Send JSON.\n")


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Put the headers that keep a page to itself on every response."""
    response.headers.update(HEADERS)


def _equal_secrets(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())
