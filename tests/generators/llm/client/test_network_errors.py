"""Errors of the network, in our words."""

import socket

import aiohttp
from aiohttp.client_reqrep import ConnectionKey

from pairwright.generators.llm.client.network_errors import translate_network_error


def test_an_unknown_host_is_named() -> None:
    key = ConnectionKey("nowhere.invalid", 443, True, True, None, None, None)
    unknown = socket.gaierror(-2, "Name or service not known")
    failure = translate_network_error(aiohttp.ClientConnectorDNSError(key, unknown))
    assert failure.code == "unreachable"
    assert failure.detail == "ClientConnectorDNSError: Name or service not known (nowhere.invalid:443)"
