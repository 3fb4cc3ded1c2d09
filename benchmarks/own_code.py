"""Code of our own compared with the libraries that could replace it.

    python -m benchmarks.own_code [--runs 5] [--only NAME ...]

One row per comparison: medians over the runs of ours and of the library, and their ratio. ``cache``, ``seen keys`` and
``server`` compare what pairwright uses now (SQLite's WAL, a set, aiohttp.web) with the code that it replaced, reduced to
its essence below. ``retries``, ``pacing`` and ``broken JSON`` need ``pip install tenacity aiolimiter json-repair``; a
package that is missing is reported as such.
"""

import argparse
import asyncio
import os
import secrets
import sqlite3
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from benchmarks.llm.cache import REPLY, Instant, request
from pairwright.generators.llm.cache.database import INSERT, open_database
from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.event_loop import new_event_loop
from pairwright.generators.llm.client.rate_limits import LimitedModel, Limiter
from pairwright.generators.llm.client.retrying import RetryingModel
from pairwright.generators.llm.output.json_parsing import find_json_values
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.http_messages import HTTPRequest
from pairwright.generators.llm.testing.serving import serve_app

ANSWERS, KEYS, REQUESTS, CALLS = 10_000, 1_000_000, 5_000, 4_000


@dataclass(frozen=True, slots=True)
class LibraryComparison:
    """Functions that return one figure each, and its unit."""

    name: str
    unit: str
    own: Callable[[], float]
    library: Callable[[], float]
    note: str


@contextmanager
def _cpu(count: int) -> Iterator[list[float]]:
    """Append the microseconds of CPU per item that the block takes."""
    found: list[float] = []
    started = time.process_time()
    yield found
    found.append((time.process_time() - started) / count * 1e6)


# --- cache: journal and group commits | SQLite WAL ---


def commit_in_groups() -> float:
    """Return the CPU per answer of a journal write for each and a synced commit for every 256."""
    keys = [secrets.token_bytes(16) for _ in range(ANSWERS)]
    with tempfile.TemporaryDirectory() as folder:
        journal = os.open(Path(folder) / "journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with closing(open_database(Path(folder) / "cache", create=True)) as connection, _cpu(ANSWERS) as found:
            connection.execute("PRAGMA synchronous = FULL")
            for start in range(0, ANSWERS, 256):
                rows = [_row(key) for key in keys[start : start + 256]]
                for row in rows:
                    connection.execute("SELECT * FROM answers WHERE key = ?", (row[0],)).fetchone()
                    os.write(journal, orjson.dumps([row[0].hex(), *row[1:-1]]) + row[-1])
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(INSERT, rows)
                connection.execute("COMMIT")
                os.ftruncate(journal, 0)
        os.close(journal)
        return found[0]


def commit_each() -> float:
    """Return the CPU per answer of a lookup, `Cache.put` and `Cache.flush`."""
    keys = [secrets.token_hex(16) for _ in range(ANSWERS)]
    with tempfile.TemporaryDirectory() as folder, Cache.open(Path(folder) / "cache") as cache, _cpu(ANSWERS) as found:
        for key in keys:
            cache.get(key)
            cache.put(key, REPLY, asked="small", endpoint="http://localhost:8000")
            cache.flush()
    return found[0]


def _row(key: bytes) -> tuple[Any, ...]:
    return (key, "http://localhost:8000", "small", "small", 0, "stop", "", 180, 40, 0, REPLY.text, REPLY.raw)


# --- keys seen in a run: table of 64-bit hashes | set ---


class HashTable:
    """Open-addressing table of 64-bit hashes, at most two thirds full."""

    def __init__(self) -> None:
        self.places, self.count = array("Q", bytes(8 * 1024)), 0

    def add(self, key: str) -> bool:
        """Add a key; return whether it is new."""
        word = hash(key) & (2**64 - 1) or 1
        at = self._find(self.places, word)
        if self.places[at] == word:
            return False
        self.places[at] = word
        self.count += 1
        if 3 * self.count > 2 * len(self.places):
            larger = array("Q", bytes(16 * len(self.places)))
            for each in filter(None, self.places):
                larger[self._find(larger, each)] = each
            self.places = larger
        return True

    @staticmethod
    def _find(places: "array[int]", word: int) -> int:
        last = len(places) - 1
        at = word & last
        while places[at] not in {0, word}:
            at = (at + 1) & last
        return at


def add_to_table() -> float:
    """Return the CPU per key of the table."""
    keys, table = [secrets.token_hex(16) for _ in range(KEYS)], HashTable()
    with _cpu(KEYS) as found:
        for key in keys:
            table.add(key)
    return found[0]


def add_to_set() -> float:
    """Return the CPU per key of a set of hashes."""
    keys, seen = [secrets.token_hex(16) for _ in range(KEYS)], set[int]()
    with _cpu(KEYS) as found:
        for key in keys:
            if hash(key) not in seen:
                seen.add(hash(key))
    return found[0]


# --- test server: asyncio.Protocol | aiohttp.web ---


class BareServer(asyncio.Protocol):
    """HTTP/1.1 as far as a well-behaved client needs it."""

    def __init__(self, app: ServerApp) -> None:
        self.app, self.buffer = app, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        """Answer each whole request."""
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            line, *fields = self.buffer[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
            size = int(headers.get("content-length", 0))
            if len(self.buffer) < end + 4 + size:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + size], self.buffer[end + 4 + size :]
            method, path, _ = line.split(" ")
            reply = self.app.handle(HTTPRequest(method, path, "", headers, body))
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(reply.body)
            self.transport.write(head + reply.body)
            self.app.ended(reply, whole=True)


class LoadClient(asyncio.Protocol):
    """Connection that sends the next of some requests whenever a reply has arrived."""

    def __init__(self, bodies: Iterator[bytes], done: "asyncio.Future[None]") -> None:
        self.bodies, self.done, self.buffer = bodies, done, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self.transport: Any = transport
        self.send()

    def send(self) -> None:
        """Send a request, or end."""
        body = next(self.bodies, None)
        if body is None:
            self.done.set_result(None)
            return
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)

    def data_received(self, data: bytes) -> None:
        """Wait for the whole reply."""
        self.buffer += data
        head, gap, body = self.buffer.partition(b"\r\n\r\n")
        if gap and len(body) >= int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
            self.buffer = b""
            self.send()


async def _load(host: str, port: int) -> float:
    loop = asyncio.get_running_loop()
    bodies = (orjson.dumps({"model": "m", "messages": [{"role": "user", "content": str(n)}]}) for n in range(REQUESTS))
    ends = [loop.create_future() for _ in range(32)]
    started = time.perf_counter()
    for done in ends:
        await loop.create_connection(lambda done=done: LoadClient(bodies, done), host, port)  # type: ignore[misc]
    await asyncio.gather(*ends)
    return REQUESTS / (time.perf_counter() - started)


def serve_bare() -> float:
    """Return requests per second of the bare protocol."""

    async def run() -> float:
        app = ServerApp()
        listener = await asyncio.get_running_loop().create_server(lambda: BareServer(app), "127.0.0.1")
        async with listener:
            return await _load(*listener.sockets[0].getsockname())

    return _run(run)


def serve_aiohttp() -> float:
    """Return requests per second of the test server."""

    async def run() -> float:
        async with serve_app(ServerApp()) as server:
            return await _load(server.host, server.port)

    return _run(run)


def _run(main: Callable[[], Awaitable[float]]) -> float:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main())  # type: ignore[arg-type]


# --- retries and pacing: ours | tenacity, aiolimiter ---


def _call_each(ask: Callable[[], Awaitable[object]], *, at_once: bool = False) -> float:
    async def main() -> float:
        with _cpu(CALLS) as found:
            if at_once:
                await asyncio.gather(*(ask() for _ in range(CALLS)))
            else:
                for _ in range(CALLS):
                    await ask()
        return found[0]

    return _run(main)


def retry_own() -> float:
    """Return the CPU per successful call of `RetryingModel`."""
    model, asked = RetryingModel(Instant()), request(0)
    return _call_each(lambda: model.ask(asked))


def retry_tenacity() -> float:
    """Return the CPU per successful call of tenacity."""
    from tenacity import AsyncRetrying  # type: ignore[import-not-found, unused-ignore]

    model, asked = Instant(), request(0)
    return _call_each(lambda: AsyncRetrying(reraise=True)(model.ask, asked))


def pace_own() -> float:
    """Return the CPU per request of `Limiter` with requests that wait for their turn."""
    model, asked = LimitedModel(Instant(), Limiter(CALLS, 60 * CALLS // 2)), request(0)
    return _call_each(lambda: model.ask(asked), at_once=True)


def pace_aiolimiter() -> float:
    """Return the CPU per request of aiolimiter with requests that wait for their turn."""
    from aiolimiter import AsyncLimiter  # type: ignore[import-not-found, unused-ignore]

    limiter = AsyncLimiter(CALLS // 2, 1)
    return _call_each(limiter.acquire, at_once=True)


# --- broken JSON: ours | json-repair ---

WRONG_TO_ACCEPT = (
    '{"caption": "A dog on a cou',  # cut off: the caption is not what the model would have written
    '{"caption": "A cat.", "kind": "repl',
    '{"caption": "A cat."} or perhaps {"caption": "A dog."}',  # alternatives: neither is chosen
    'The image shows: a dog, a cat and "two" birds',  # prose
    "[" * 2000,
)


def wrong_own() -> float:
    """Return the number of texts from which a single value is parsed."""
    return float(sum(len(find_json_values(text).values) == 1 for text in WRONG_TO_ACCEPT))


def wrong_json_repair() -> float:
    """Return the number of texts of which json-repair makes a value or fails with a RecursionError."""
    from json_repair import loads  # type: ignore[import-not-found, unused-ignore]

    wrong = 0
    for text in WRONG_TO_ACCEPT:
        try:
            wrong += bool(loads(text))
        except RecursionError:
            wrong += 1
    return float(wrong)


COMPARISONS = (
    LibraryComparison(
        "cache", "us of CPU an answer", commit_in_groups, commit_each, "journal | WAL, a commit each: used"
    ),
    LibraryComparison("seen keys", "us of CPU a key", add_to_table, add_to_set, "16 bytes a key | set, 76 bytes: used"),
    LibraryComparison("server", "requests/s", serve_bare, serve_aiohttp, "asyncio.Protocol | aiohttp.web: used"),
    LibraryComparison("retries", "us of CPU a call", retry_own, retry_tenacity, "RetryingModel: used | tenacity"),
    LibraryComparison("pacing", "us of CPU a request", pace_own, pace_aiolimiter, "Limiter: used | aiolimiter"),
    LibraryComparison(
        "broken JSON", f"wrong of {len(WRONG_TO_ACCEPT)}", wrong_own, wrong_json_repair, "ours: used | json-repair"
    ),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs per figure")
    parser.add_argument("--only", nargs="*", choices=[each.name for each in COMPARISONS], help="comparisons to run")
    options = parser.parse_args(arguments)
    sys.setrecursionlimit(1000)
    print(
        f"{'':<12} {'own':>10} {'library':>10} {'ratio':>6}  unit; load {os.getloadavg()[0]:.1f}, SQLite {sqlite3.sqlite_version}"
    )
    for each in COMPARISONS:
        if options.only and each.name not in options.only:
            continue
        own: list[float] = []
        library: list[float] = []
        try:
            for _ in range(options.runs):  # interleaved, so that other load meets both
                own.append(each.own())
                library.append(each.library())
        except ModuleNotFoundError as error:
            print(
                f"{each.name:<12} {statistics.median(own):>10,.1f} {'-':>10} {'-':>6}  {each.unit}: {error.name} is missing"
            )
            continue
        ours, theirs = statistics.median(own), statistics.median(library)
        ratio = f"{theirs / ours:.2f}" if ours else "-"
        print(f"{each.name:<12} {ours:>10,.1f} {theirs:>10,.1f} {ratio:>6}  {each.unit}: {each.note}", flush=True)


if __name__ == "__main__":
    main()
