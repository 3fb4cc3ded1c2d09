"""Transport through the ``openai`` package: for Azure, for other kinds of authentication, or on request.

Only its HTTP layer is used (``client.post``) for URL, headers and authorization. Bodies are built and parsed by
`chat_completions` as in the direct transport, so both see the same responses and errors, and the package's validation of
every response is not paid for. It never retries: rate limits must see the refusals.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from pairwright.generators.llm.client.chat_model import HTTPResponse, Send
from pairwright.generators.llm.client.direct_transport import CONNECT_S
from pairwright.generators.llm.client.network_errors import (
    MAX_RESPONSE_BYTES,
    ResponseTooLarge,
    translate_network_error,
)
from pairwright.generators.llm.client.request_key import encode_json
from pairwright.generators.llm.client.settings import LLMSettings

if TYPE_CHECKING:
    from ssl import SSLContext

    from openai import AsyncOpenAI

NO_KEY = "none"  # the package requires one; no header carries it
LOGGERS = ("httpx2", "openai._base_client")


def _sender(client: "AsyncOpenAI", settings: LLMSettings) -> Send:
    """Return the transport over open connections."""
    import httpx2
    from openai import APIStatusError

    foreign, options = foreign_errors(), cast("Any", {"headers": anonymous_headers(settings)})

    async def send(payload: dict[str, Any] | None) -> HTTPResponse:
        response: Any = None
        try:
            # The package's own timeout is per read; a slow stream of bytes would never reach it.
            async with asyncio.timeout(settings.timeout):
                if payload is None:
                    response = await client.get("/models", cast_to=httpx2.Response, options=options)
                else:
                    response = await client.post(
                        "/chat/completions", cast_to=httpx2.Response, body=payload, options=options
                    )
        except APIStatusError as error:
            response = error.response
        except foreign as error:
            failure = translate_network_error(error, timeout=settings.timeout)
        except (TypeError, UnicodeEncodeError):
            encode_json(payload)  # raises if the payload is the cause
            raise
        if response is None:
            raise failure  # outside the handler: the package's errors hold the request, including the key
        return response.status_code, response.headers, response.content

    return send


def foreign_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the package and of the layers below, which do not translate all of aiohttp's."""
    import aiohttp
    import httpx2
    from openai import OpenAIError

    return (OpenAIError, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError, ResponseTooLarge)


@asynccontextmanager
async def open_sdk(settings: LLMSettings) -> AsyncIterator[Send]:
    """Yield the transport while its connections are open."""
    async with open_client(settings) as client:
        yield _sender(client, settings)


@asynccontextmanager
async def open_client(settings: LLMSettings, *, bounded: bool = True) -> AsyncIterator["AsyncOpenAI"]:
    """Yield the package's client while its connections are open, with secrets redacted in its logs.

    Args:
        settings: of the client.
        bounded: fail on response bodies larger than `MAX_RESPONSE_BYTES`; off for files.
    """
    with _redact_logs(settings.hide):
        async with _client(settings, bounded=bounded) as client:
            yield client


def anonymous_headers(settings: LLMSettings) -> dict[str, Any]:
    """Return the headers of a request without an API key: the explicit omission of the Authorization header."""
    from openai import omit

    if settings.address.azure or "authorization" in map(str.lower, settings.request_headers()):
        return {}
    return {"Authorization": omit}


def _client(settings: LLMSettings, *, bounded: bool) -> "AsyncOpenAI":
    import httpx2
    import openai

    # Explicit: the package's default for aiohttp is 100.
    limits = httpx2.Limits(max_connections=settings.max_concurrency, keepalive_expiry=30.0)
    hooks: dict[str, Any] = {"response": [_limit_response_size]} if bounded else {}
    trusted = _ssl_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    http = openai.DefaultAioHttpClient(limits=limits, follow_redirects=False, event_hooks=hooks, verify=trusted)
    headers: dict[str, Any] = {"Accept-Encoding": "identity", **settings.request_headers()}
    address = settings.address
    shared: dict[str, Any] = {
        "timeout": httpx2.Timeout(settings.timeout, connect=min(CONNECT_S, settings.timeout)),
        "max_retries": 0,
        "default_query": dict(address.query) or None,
        "http_client": http,
    }
    if address.azure:
        return openai.AsyncAzureOpenAI(
            base_url=address.base,
            api_version=settings.api_version,
            api_key=None if settings.ad_token else settings.api_key,
            azure_ad_token=settings.ad_token or None,
            default_headers=headers,
            **shared,
        )
    return openai.AsyncOpenAI(
        base_url=address.base, api_key=settings.api_key or NO_KEY, default_headers=headers, **shared
    )


@cache
def _ssl_context(*named: str | None) -> "SSLContext":
    """Return the trusted certificates, read once for all clients; ``named`` are the environment's paths."""
    import httpx2

    del named
    return httpx2.create_ssl_context()


async def _limit_response_size(response: Any) -> None:
    """Fail when the body of a response becomes too large."""
    import httpx2

    inner = response.stream

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            total = 0
            async for part in inner:
                total += len(part)
                if total > MAX_RESPONSE_BYTES:
                    raise ResponseTooLarge
                yield part

        async def aclose(self) -> None:
            await inner.aclose()

    response.stream = Bounded()


@contextmanager
def _redact_logs(hide: Callable[[str], str]) -> Iterator[None]:
    """Redact secrets in the logs of the packages below: queries of URLs may be secret."""

    def without_secrets(record: logging.LogRecord) -> bool:
        record.msg, record.args = hide(record.getMessage()), ()
        return True

    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(without_secrets)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(without_secrets)
