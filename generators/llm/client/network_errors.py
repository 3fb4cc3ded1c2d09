"""Network errors of aiohttp translated to `RequestError`.

Both transports use aiohttp. The ``openai`` package wraps its errors and reports a reset connection as a timeout; the
original error is in the chain of causes.
"""

import os
import ssl
from functools import cache

from pairwright.generators.llm.client.request_errors import RequestError

MAX_RESPONSE_BYTES = 32 * 1024 * 1024  # the longest answers have a few hundred kB


class ResponseTooLarge(Exception):  # noqa: N818 - not an error of ours
    """A response is larger than `MAX_RESPONSE_BYTES`."""


@cache
def _kinds() -> tuple[tuple[type[BaseException], str], ...]:
    """Return the code of each kind of error; the first match counts: aiohttp's derive from OSError, TimeoutError and each other."""
    import aiohttp  # takes 0.4 s, and most builds ask no model

    return (
        (ResponseTooLarge, "answer_too_large"),
        (aiohttp.ClientConnectorCertificateError, "bad_certificate"),
        (ssl.SSLCertVerificationError, "bad_certificate"),
        (aiohttp.ConnectionTimeoutError, "unreachable"),
        (aiohttp.ClientConnectorError, "unreachable"),
        (aiohttp.ClientHttpProxyError, "unreachable"),
        (aiohttp.ClientPayloadError, "cut_off"),
        (TimeoutError, "timeout"),
        (aiohttp.ClientResponseError, "not_json"),  # not HTTP
        (aiohttp.ClientError, "connection_lost"),
        (ConnectionError, "connection_lost"),
    )


def translate_network_error(error: BaseException, *, timeout: float) -> RequestError:
    """Return the request error for a network error; its detail has system messages, addresses and types only.

    Args:
        error: of a transport.
        timeout: seconds of a whole request, which a timeout names.
    """
    step: BaseException | None = error
    for _ in range(10):  # the SDK's wrappers are not in the table, their causes are
        if step is None:
            break
        for kind, code in _kinds():
            if isinstance(step, kind):
                return RequestError(code, f"{timeout:g} s" if code == "timeout" else _system_message(step))
        step = step.__cause__
    return RequestError("connection_lost", type(error).__name__)


def _system_message(error: BaseException) -> str:
    """Return the system's message, else the type: the text of an aiohttp error may contain URLs and headers."""
    import aiohttp

    system = getattr(error, "os_error", error)
    number, text = getattr(system, "errno", None), getattr(system, "strerror", None)
    if isinstance(number, int) and number > 0:  # event loops put the address before or behind it
        text = os.strerror(number)
    if isinstance(error, aiohttp.ClientConnectorError):
        text = f"{text} ({error.host}{f':{error.port}' if error.port else ''})"
    return text if isinstance(text, str) else type(error).__name__
