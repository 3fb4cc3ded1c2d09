"""Where requests go, read from a base URL as users write it, with what is secret in it set apart.

    http://localhost:8000            -> http://localhost:8000/v1
    http://localhost:8000/v1/        -> http://localhost:8000/v1
    https://host/team/llm/v1         -> as it is
    https://host/chat/completions    -> https://host: a server that has no /v1
    https://NAME.openai.azure.com    -> https://NAME.openai.azure.com/openai, Azure's paths by deployment

User, password and query leave the URL: they may be keys, and the URL is shown.
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
    """A server's address.

    Attributes:
        base: the URL that ``/chat/completions`` is put behind; no user, password, query or closing slash.
        origin: scheme, host and port (always written), lower case.
        server: identifies the server in cache keys: the origin, and the path where it is not the usual one
            (``/v1``, Azure's ``/openai``), so that deployments behind one gateway have keys of their own.
        azure: whether the paths are Azure's, which name the deployment and want an ``api-version``.
        query: parameters that every request carries; hidden.
        user: user and password as the URL had them, decoded, ``user:password``; hidden, empty where there are none.
    """

    base: str
    origin: str
    server: str
    azure: bool = False
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    user: str = field(default="", repr=False)

    @property
    def chat(self) -> str:
        """The URL of the chat endpoint, without the query."""
        return self.base + _ENDPOINT

    @property
    def basic(self) -> str:
        """The Authorization header for user and password; empty where there are none."""
        return "Basic " + base64.b64encode(self.user.encode()).decode() if self.user else ""

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must never be shown, in each form in which they may come back."""
        name, _, password = self.user.partition(":")
        found = [password or name, self.user, self.basic.removeprefix("Basic "), *self.query.values()]
        return tuple(form for text in found if text for form in {text, quote(text, safe=""), quote(text)})


def parse_base_url(url: str, *, api_version: str = "") -> BaseURL:
    """Read a base URL; an ``api_version``, or a host of Azure's, makes it Azure's.

    Raises:
        UsageError: when it is no http or https URL; the message does not repeat what may be secret.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise UsageError(f"the base URL has an impossible host or port. {_EXAMPLE}") from None
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
    """Return the identifier of a server in cache keys, from its address or the user's name for it.

    Raises:
        UsageError: when it looks like an address and is none.
    """
    return parse_base_url(endpoint).server if "://" in endpoint else endpoint


def _user(netloc: str) -> str:
    user, at, _ = netloc.rpartition("@")
    return unquote(user) if at else ""
