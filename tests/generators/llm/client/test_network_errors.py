"""Errors of the network, in our words."""

import errno
import socket

import aiohttp
from aiohttp.client_reqrep import ConnectionKey

from pairwright.generators.llm.client.network_errors import translate_network_error


def test_an_unknown_host_is_named() -> None:
    key = ConnectionKey("nowhere.invalid", 443, True, True, None, None, None)
    unknown = socket.gaierror(-2, "Name or service not known")
    failure = translate_network_error(aiohttp.ClientConnectorDNSError(key, unknown), timeout=120)
    assert failure.code == "unreachable"
    assert failure.detail == "Name or service not known (nowhere.invalid:443)"


def test_a_refused_connection_has_its_address_once_and_no_type_of_a_library() -> None:
    """Before: ClientConnectorError: Connect call failed ('127.0.0.1', 9) (127.0.0.1:9)."""
    key = ConnectionKey("127.0.0.1", 9, False, True, None, None, None)
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 9)")
    failure = translate_network_error(aiohttp.ClientConnectorError(key, refused), timeout=120)
    assert (failure.code, failure.detail) == ("unreachable", "Connection refused (127.0.0.1:9)")


def test_a_timeout_is_named_in_seconds() -> None:
    """Before: no complete answer came in time (TimeoutError)."""
    failure = translate_network_error(TimeoutError(), timeout=2.5)
    assert str(failure).startswith("no complete answer came within the timeout (2.5 s). Raise --timeout")
