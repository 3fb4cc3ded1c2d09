"""The transport through the ``openai`` package: for Azure, for other ways to prove who one is, or when asked for.

Only its HTTP half is used (``client.post``): the client builds URL, headers and authorization, while bodies are written
and read by `wire`, as in the direct transport. So both see the same answers and the same failures, and the package's
checking of every answer against its types is not paid for. It never retries: pacing must see the refusals.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from pairwright.generators.llm.client.chat_completions import build_payload, encode_payload, parse_error, parse_reply
from pairwright.generators.llm.client.direct_transport import CONNECT_S, HeaderListener
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.network_errors import (
    MAX_RESPONSE_BYTES,
    ResponseTooLarge,
    translate_network_error,
)
from pairwright.generators.llm.client.settings import LLMSettings

if TYPE_CHECKING:
    from ssl import SSLContext

    from openai import AsyncOpenAI

NO_KEY = "none"  # the package insists on one; no header carries it
LOGGERS = ("httpx2", "openai._base_client")


class SdkModel:
    """A model behind the ``openai`` package; made by `open_sdk`."""

    def __init__(self, client: "AsyncOpenAI", settings: LLMSettings, heard: HeaderListener) -> None:
        import aiohttp
        import httpx2
        from openai import APIStatusError, OpenAIError

        self._client, self._heard = client, heard
        self._timeout, self._hide = settings.timeout, settings.hide
        self._response, self._status_error, self._error = httpx2.Response, APIStatusError, OpenAIError
        self._options: Any = {"headers": anonymous_headers(settings)}
        # Not all of aiohttp's errors are translated by the layers above it.
        self._foreign = (
            OpenAIError,
            httpx2.HTTPError,
            httpx2.StreamError,
            aiohttp.ClientError,
            OSError,
            ResponseTooLarge,
        )

    async def ask(self, request: Request) -> Reply:
        """Ask once.

        Raises:
            Failure: there is no answer.
        """
        payload = build_payload(request)
        response = await self._post(payload)
        self._heard(response.headers)
        if 200 <= response.status_code < 300:
            return parse_reply(response.content, hide=self._hide)
        raise parse_error(response.status_code, response.headers, response.content, hide=self._hide)

    async def _post(self, payload: dict[str, Any]) -> Any:
        try:
            # The package's own timeout counts from byte to byte; a dripping answer would never meet it.
            async with asyncio.timeout(self._timeout):
                return await self._client.post(
                    "/chat/completions", cast_to=self._response, body=payload, options=self._options
                )
        except self._status_error as error:
            return error.response
        except self._foreign as error:
            failure = translate_network_error(error)
        except (TypeError, UnicodeEncodeError):
            encode_payload(payload)  # says what is wrong with it, where it is the payload
            raise
        # Raised outside of the handler: the package's errors hold the request, and so the key.
        raise failure


@asynccontextmanager
async def open_sdk(settings: LLMSettings, heard: HeaderListener) -> AsyncIterator[SdkModel]:
    """Give a model for as long as its connections are open.

    Args:
        settings: where, with which key, and how long an answer may take.
        heard: told the headers of every answer.
    """
    async with open_client(settings) as client:
        yield SdkModel(client, settings, heard)


@asynccontextmanager
async def open_client(settings: LLMSettings, *, bounded: bool = True) -> AsyncIterator["AsyncOpenAI"]:
    """Give the package's client, for as long as its connections are open; what it logs is without secrets.

    Args:
        settings: where and with which key.
        bounded: end bodies in an error that are larger than any answer; off for files.
    """
    with _redact_logs(settings.hide):
        async with _client(settings, bounded=bounded) as client:
            yield client


def anonymous_headers(settings: LLMSettings) -> dict[str, Any]:
    """Return what each request has to say where there is no key: that none is meant to be sent."""
    from openai import omit

    if settings.address.azure or "authorization" in map(str.lower, settings.request_headers()):
        return {}
    return {"Authorization": omit}


def _client(settings: LLMSettings, *, bounded: bool) -> "AsyncOpenAI":
    import httpx2
    import openai

    # Named, since aiohttp behind the package takes no number for 100.
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
    """Return the certificates that are trusted, read once for all clients; ``named`` is where the environment has them."""
    import httpx2

    del named
    return httpx2.create_ssl_context()


async def _limit_response_size(response: Any) -> None:
    """Let the body of a response end in an error where it becomes too large."""
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
    """Take secrets out of what the packages below log: URLs, of which the query may be one."""

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
