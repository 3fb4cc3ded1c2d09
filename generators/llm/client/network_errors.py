"""What went wrong on the network, in our words.

Both transports stand on aiohttp, so both read its errors here. The ``openai`` package wraps them, and calls a reset
connection a timeout; what it was stands further down the chain of causes.
"""

import ssl

import aiohttp

from pairwright.generators.llm.client.request_errors import RequestError

MAX_RESPONSE_BYTES = 32 * 1024 * 1024  # bytes of an answer: a model's longest text is a few hundred kB


class ResponseTooLarge(Exception):  # noqa: N818 - reads as what happened
    """An answer went past `MAX_RESPONSE_BYTES`."""


# The first kind that fits. Order matters: aiohttp's errors are also OSErrors, TimeoutErrors and each other.
_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (ResponseTooLarge, "answer_too_large"),
    (aiohttp.ClientConnectorCertificateError, "bad_certificate"),
    (ssl.SSLCertVerificationError, "bad_certificate"),
    (aiohttp.ConnectionTimeoutError, "unreachable"),
    (aiohttp.ClientConnectorError, "unreachable"),
    (aiohttp.ClientHttpProxyError, "unreachable"),
    (aiohttp.ClientPayloadError, "cut_off"),
    (TimeoutError, "timeout"),
    (aiohttp.ClientResponseError, "not_json"),  # what came is not even HTTP
    (aiohttp.ClientError, "connection_lost"),
    (ConnectionError, "connection_lost"),
)


def translate_network_error(error: BaseException) -> RequestError:
    """Return the failure that an error of the network is; the detail names types and system messages only."""
    step: BaseException | None = error
    for _ in range(10):  # the error, and what caused it: the SDK's wrappers are of none of the kinds
        if step is None:
            break
        for kind, word in _KINDS:
            if isinstance(step, kind):
                return RequestError(word, _system_message(step))
        step = step.__cause__
    # A kind that nobody has met yet: it is shown by its type, and sent again.
    return RequestError("connection_lost", type(error).__name__)


def _system_message(error: BaseException) -> str:
    """Return the system's own message; an aiohttp error's text may repeat URLs and headers, so it is not used."""
    system = getattr(error, "os_error", error)
    text = getattr(system, "strerror", None)
    if isinstance(error, aiohttp.ClientConnectorError):
        text = f"{text} ({error.host}{f':{error.port}' if error.port else ''})"
    return f"{type(error).__name__}: {text}" if isinstance(text, str) else type(error).__name__
