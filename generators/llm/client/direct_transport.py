"""Direct transport: aiohttp and orjson, one POST per request.

The ``openai`` package builds, validates and copies several objects per call; this transport takes about a tenth of its
CPU (``benchmarks/llm/transport.py``). It sends plain chat completions with a bearer key, which every compatible server
accepts. It never retries, and never follows a redirect, which would send the key along.

TLS: the system's certificates, or SSL_CERT_FILE and SSL_CERT_DIR. Proxies: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and
NO_PROXY, read once (aiohttp would read them, and .netrc, in a thread for every request).
"""

import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.chat_model import HTTPResponse, Send
from pairwright.generators.llm.client.network_errors import (
    MAX_RESPONSE_BYTES,
    ResponseTooLarge,
    translate_network_error,
)
from pairwright.generators.llm.client.request_key import encode_json
from pairwright.generators.llm.client.settings import LLMSettings

CONNECT_S = 10.0  # seconds to connect


def _sender(session: aiohttp.ClientSession, settings: LLMSettings) -> Send:
    """Return the transport over open connections."""
    address, proxy = settings.address, proxy_from_environment(settings.address.base)
    chat, models = (
        URL(path, encoded=True).with_query(dict(address.query) or None) for path in (address.chat, address.models)
    )

    async def send(payload: dict[str, Any] | None) -> HTTPResponse:
        data = None if payload is None else encode_json(payload)
        method, url = ("GET", models) if data is None else ("POST", chat)
        try:
            async with session.request(method, url, data=data, proxy=proxy, allow_redirects=False) as response:
                return response.status, response.headers, await _read(response)
        except (aiohttp.ClientError, OSError, ResponseTooLarge) as error:
            failure = translate_network_error(error, timeout=settings.timeout)
        # Raised outside the handler: aiohttp's errors hold the request's headers, including the key.
        raise failure

    return send


async def _read(response: aiohttp.ClientResponse) -> bytes:
    length = response.content_length
    if length is not None and length <= MAX_RESPONSE_BYTES and "Content-Encoding" not in response.headers:
        return await response.read()
    parts = []
    total = 0
    async for part in response.content.iter_any():
        total += len(part)
        if total > MAX_RESPONSE_BYTES:
            response.close()
            raise ResponseTooLarge
        parts.append(part)
    return b"".join(parts)


@asynccontextmanager
async def open_direct(settings: LLMSettings) -> AsyncIterator[Send]:
    """Yield the transport while its connections are open.

    Raises:
        UsageError: the environment names a proxy of an unsupported kind.
    """
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **settings.request_headers()}
    # The limiter bounds the number of connections.
    connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=60)
    timeout = aiohttp.ClientTimeout(total=settings.timeout, sock_connect=min(CONNECT_S, settings.timeout))
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers, cookie_jar=jar) as session:
        yield _sender(session, settings)


def proxy_from_environment(url: str) -> URL | None:
    """Return the proxy that the environment names for a URL.

    Raises:
        UsageError: the proxy is of a kind that aiohttp does not support.
    """
    parts = urlsplit(url)
    proxies = urllib.request.getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    proxy = URL(found if "://" in found else f"http://{found}")
    if proxy.scheme not in {"http", "https"}:
        raise UsageError(f"a {proxy.scheme} proxy is not supported. Use an http proxy, or list the server in NO_PROXY.")
    return proxy
