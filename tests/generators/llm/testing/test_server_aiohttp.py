"""The test server, seen by aiohttp: the library that fast clients are built on."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_app

aiohttp: Any = pytest.importorskip("aiohttp", reason="aiohttp is not installed")


def outcomes(
    script: ServerScript, rows: int, *, at_once: int = 32, patience: float = 60.0
) -> tuple[Counter[str], dict[str, Any]]:
    """Ask ``rows`` different questions; return what became of each, and the server's counts."""

    async def one(session: Any, url: str, number: int) -> str:
        body = {"model": "m", "messages": [{"role": "user", "content": str(number)}]}
        try:
            async with session.post(f"{url}/chat/completions", json=body) as response:
                data = await response.read()
                if response.status != 200:
                    return f"{response.status} {response.headers.get('Retry-After', '')}".strip()
        except (aiohttp.ClientError, TimeoutError) as error:
            return type(error).__name__
        try:
            found = json.loads(data)
        except json.JSONDecodeError:
            return "not JSON"
        return "ok" if isinstance(found["choices"], list) else "wrong type"

    async def run() -> tuple[Counter[str], dict[str, Any]]:
        wait = aiohttp.ClientTimeout(total=patience)
        async with serve_app(ServerApp(script)) as server:
            connector = aiohttp.TCPConnector(limit=at_once)
            async with aiohttp.ClientSession(connector=connector, timeout=wait) as session:
                found = await asyncio.gather(*(one(session, server.url, number) for number in range(rows)))
            return Counter(found), server.stats()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("400", "400"),
        ("401", "401"),
        ("429", "429 2"),
        ("429_bare", "429"),
        ("503", "503"),
        ("half", "ClientPayloadError"),
        ("malformed", "not JSON"),
        ("wrong_type", "wrong type"),
        ("drip", "ok"),
        ("refusal", "ok"),
    ],
)
def test_each_fault_is_seen_as_what_it_is(kind: str, seen: str) -> None:
    found, stats = outcomes(ServerScript(faults={kind: 1}, retry_after_s=2, drip_s=0.05), 3)
    assert found == {seen: 3}
    assert stats["faults"] == {kind: 3}


def test_a_reset_is_a_connection_error() -> None:
    found, stats = outcomes(ServerScript(faults={"reset": 1}), 3)
    assert stats["requests"] == 3
    assert set(found) <= {"ClientOSError", "ServerDisconnectedError", "ClientConnectionResetError"}


def test_a_timeout_is_a_timeout() -> None:
    found, stats = outcomes(ServerScript(faults={"timeout": 1}), 2, patience=0.2)
    assert set(found) <= {"TimeoutError", "ServerTimeoutError", "ConnectionTimeoutError"}
    assert stats["bodies"]["answered"] == 0


def test_a_thousand_rows_over_few_connections_are_counted_exactly() -> None:
    found, stats = outcomes(ServerScript(faults={"500": 0.05, "429": 0.05}, latency_ms=2), 1000)
    assert found["500"] == stats["faults"]["500"]
    assert found["429 1"] == stats["faults"]["429"]
    assert stats["bodies"]["answered"] == found["ok"] == 1000 - found["500"] - found["429 1"]
    assert stats["connections"] <= 32
    assert 1 < stats["in_flight_max"] <= 32
