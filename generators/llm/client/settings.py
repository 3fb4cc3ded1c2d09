"""Model settings of a user: server, credentials, rate limits, retries.

Values come from options, else from the environment (the names that the OpenAI and Azure clients read). Credentials are
excluded from ``repr``, and redacted by `LLMSettings.hide` in every message of a server.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, cast, get_args

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.base_url import OPENAI, BaseURL, parse_base_url, server_id

Transport = Literal["auto", "direct", "sdk"]

# Characters; shorter keys ("any", "x") are placeholders, and redacting them would garble messages.
MIN_SECRET_LENGTH = 4
_KEYS_BY_LOOK = re.compile(r"\b(sk-|Bearer\s+|Basic\s+)[\w.~+/=*-]{6,}", re.IGNORECASE)
_HEADER = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class LLMSettings:
    """Validated settings of the client.

    Attributes:
        model: model name (Azure: deployment name).
        base_url: as parsed by `base_url.parse_base_url`.
        api_key: sent as bearer token, or as ``api-key`` to Azure; empty: not sent.
        ad_token: Azure Entra ID token, instead of a key.
        transport: *direct* (fast) or *sdk* (the ``openai`` package); *auto*: SDK for Azure, else direct.
        timeout: seconds from sending a request to the last byte of its response.
        max_concurrency: concurrent requests.
        requests_per_minute, tokens_per_minute: 0 = unlimited.
        max_retries: retries of a request after transient errors.
        patience: seconds to keep retrying while the server is unreachable or refuses requests.
        endpoint: the user's name for the server, replacing its address in cache keys.
        api_version: of Azure.
        headers: sent with each request; their values count as secrets.
        seed: of the jitter between retries.

    Raises:
        UsageError: invalid value.
    """

    model: str = ""
    base_url: str = field(default=OPENAI, repr=False)
    api_key: str = field(default="", repr=False)
    ad_token: str = field(default="", repr=False)
    transport: Transport = "auto"
    timeout: float = 120.0
    max_concurrency: int = 64
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    max_retries: int = 6
    patience: float = 300.0
    endpoint: str = ""
    api_version: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    seed: int = 0
    address: BaseURL = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", parse_base_url(self.base_url, api_version=self.api_version))
        if not self.api_version:
            object.__setattr__(self, "api_version", self.address.query.get("api-version", ""))
        self._check_numbers()
        for name, value in {"api_key": self.api_key, "ad_token": self.ad_token, **self.headers}.items():
            if value and not _HEADER.fullmatch(value):
                raise UsageError(
                    f"{name} has a character that is invalid in HTTP headers. Check for line breaks or quotes."
                )
        if self.transport not in get_args(Transport):
            raise UsageError(f"unknown transport {self.transport!r}. Use one of: {', '.join(get_args(Transport))}.")
        if self.address.azure and not self.api_version:
            raise UsageError("Azure requires an API version. Set OPENAI_API_VERSION, for example 2024-10-21.")
        if self.address.azure and self.transport == "direct":
            raise UsageError("the direct transport does not support Azure's older paths. Use transport auto.")

    def _check_numbers(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "max_retries"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} is {getattr(self, name)}. Give 0 or more.")
        if self.max_concurrency < 1:
            raise UsageError(f"max_concurrency is {self.max_concurrency}. Give 1 or more.")
        for name in ("timeout", "patience"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is {getattr(self, name)}. Give seconds, more than 0.")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **options: Any) -> Self:
        """Return settings from options, and from the environment for options that are None or empty.

        Raises:
            UsageError: invalid value.
        """
        env = os.environ if environ is None else environ
        given = {name: value for name, value in options.items() if value not in (None, "")}
        url = given.get("base_url") or env.get("OPENAI_BASE_URL") or env.get("AZURE_OPENAI_ENDPOINT") or OPENAI
        address = parse_base_url(cast("str", url))
        if address.azure:
            version = {"api_version": env.get("OPENAI_API_VERSION", "")} if "api-version" not in address.query else {}
            given = {**version, **given}
        is_azure = address.azure or bool(given.get("api_version"))
        if not given.get("api_key") and not given.get("ad_token"):
            given |= _credentials(env, is_azure=is_azure)
        return cls(
            **{**given, "base_url": url, "headers": {**_account_headers(env, address), **given.get("headers", {})}}
        )

    @property
    def cache_endpoint(self) -> str:
        """Server identifier in cache keys."""
        return server_id(self.endpoint) if self.endpoint else self.address.server

    @property
    def uses_sdk(self) -> bool:
        """Whether requests go through the ``openai`` package."""
        return self.transport == "sdk" or self.address.azure

    def request_headers(self) -> dict[str, str]:
        """Return the headers of every request, with credentials except Azure's key, which the SDK sends."""
        given = {name.lower() for name in self.headers}
        own: dict[str, str] = {}
        if "authorization" not in given and not self.address.azure:
            # User and password in the URL take precedence over a key from the environment.
            secret = self.address.basic or (f"Bearer {self.api_key}" if self.api_key else "")
            own = {"Authorization": secret} if secret else {}
        return {**own, **self.headers}

    def hide(self, text: str) -> str:
        """Return the text with secrets and anything that looks like a key redacted."""
        text = text[:100_000]
        for secret in self.secrets():
            text = text.replace(secret, "***")
        return _KEYS_BY_LOOK.sub(lambda found: f"{found[1]}***", text)

    def secrets(self) -> list[str]:
        """Return the texts to redact, longest first."""
        found = {self.api_key, self.ad_token, *self.headers.values(), *self.address.secrets()}
        found -= {self.api_version}
        # longest first: one may contain another
        return sorted((text for text in found if len(text) >= MIN_SECRET_LENGTH), key=len, reverse=True)


def _credentials(env: Mapping[str, str], *, is_azure: bool) -> dict[str, str]:
    if is_azure and (token := env.get("AZURE_OPENAI_AD_TOKEN", "").strip()):
        return {"ad_token": token}
    key = (env.get("AZURE_OPENAI_API_KEY", "") if is_azure else "") or env.get("OPENAI_API_KEY", "")
    return {"api_key": key.strip()}


def _account_headers(env: Mapping[str, str], address: BaseURL) -> dict[str, str]:
    """Return OpenAI's headers for organization and project; other servers get none."""
    if not address.origin.startswith("https://api.openai.com:"):
        return {}
    names = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    return {header: env[name].strip() for header, name in names.items() if env.get(name, "").strip()}
