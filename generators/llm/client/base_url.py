"""Base URLs as users write them: normalised paths, with secrets kept apart.

    http://localhost:8000            -> http://localhost:8000/v1
    http://localhost:8000/v1/        -> http://localhost:8000/v1
    https://host/team/llm/v1         -> unchanged
    https://host/chat/completions    -> https://host: a server without /v1
    https://NAME.openai.azure.com    -> https://NAME.openai.azure.com/openai, Azure's paths by deployment

User, password and query are removed from the URL, which may be shown: they may be keys.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pairwright.datasets.errors import UsageError

OPENAI = "https://api.openai.com/v1"

_ENDPOINT = "/chat/completions"
_AZURE = (".openai.azure.com", ".openai.azure.us", ".openai.azure.cn", ".cognitiveservices.azure.com")
_PORTS = {"http": 80, "https": 443}
_EXAMPLE = "Write for example http://localhost:8000/v1."


@dataclass(frozen=True, slots=True)
class BaseURL:
    """Base URL of a server.

    Attributes:
        base: URL to which ``/chat/completions`` is appended; without user, password, query or trailing slash.
        origin: scheme, host and port (always included), lower case.
        server: identifies the server in cache keys: the origin, plus the path unless it is the default (``/v1``, Azure's
            ``/openai``), so that deployments behind one gateway have separate keys.
        azure: whether the paths are Azure's, which name the deployment and require an ``api-version``.
        query: parameters of every request; hidden.
        user: decoded ``user:password`` of the URL; hidden, empty if absent.
    """

    base: str
    origin: str
    server: str
    azure: bool = False
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    user: str = field(default="", repr=False)

    @property
    def chat(self) -> str:
        """URL of the chat endpoint, without the query."""
        return self.base + _ENDPOINT

    @property
    def models(self) -> str:
        """URL of the list of models, without the query."""
        return f"{self.base}/models"

    @property
    def basic(self) -> str:
        """Authorization header for user and password; empty if the URL has none."""
        return "Basic " + base64.b64encode(self.user.encode()).decode() if self.user else ""

    def secrets(self) -> tuple[str, ...]:
        """Return the texts to redact, in each form in which they may be echoed."""
        name, _, password = self.user.partition(":")
        found = [password or name, self.user, self.basic.removeprefix("Basic "), *self.query.values()]
        return tuple(form for text in found if text for form in {text, quote(text, safe=""), quote(text)})


def parse_base_url(url: str, *, api_version: str = "") -> BaseURL:
    """Parse a base URL; an ``api_version`` or an Azure host selects Azure's paths.

    Raises:
        UsageError: not an http or https URL; the message does not repeat the URL.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise UsageError(f"the base URL has an invalid host or port. {_EXAMPLE}") from None
    if parts.scheme.lower() not in _PORTS or not host or any(letter.isspace() for letter in parts.netloc + parts.path):
        raise UsageError(f"the base URL is not an http or https URL. {_EXAMPLE}")
    scheme = parts.scheme.lower()
    query = dict(parse_qsl(parts.query))
    given = api_version or query.get("api-version", "")
    shown = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/")
    # Azure's newer paths, /openai/v1, are OpenAI's own and need no version.
    azure = bool(given) or (host.endswith(_AZURE) and not path.endswith("/openai/v1"))
    if path.endswith(_ENDPOINT):
        path = path.removesuffix(_ENDPOINT).rstrip("/")
    elif azure:
        path = path if "/openai" in path else path + "/openai"
    else:
        path = path or "/v1"
    origin = f"{scheme}://{shown}:{port or _PORTS[scheme]}"
    return BaseURL(
        base=f"{scheme}://{shown}{f':{port}' if port else ''}{path}",
        origin=origin,
        server=origin if path == ("/openai" if azure else "/v1") else origin + (path or _ENDPOINT),
        azure=azure,
        query=query,
        user=_user(parts.netloc),
    )


def server_id(endpoint: str) -> str:
    """Return the identifier of a server in cache keys, from its URL or the user's name for it.

    Raises:
        UsageError: a malformed URL.
    """
    return parse_base_url(endpoint).server if "://" in endpoint else endpoint


def _user(netloc: str) -> str:
    user, at, _ = netloc.rpartition("@")
    return unquote(user) if at else ""
