"""Cost of the response cache: CPU per row when it is filled and when it answers, and delay until other processes see it.

    python -m benchmarks.llm.cache [--answers 100000] [--rate 3000]

The model is in this process and responds immediately, so that all time is the client's. Keys are computed for every
request, as in a run. CPU is that of the whole process. *Wait* is the time from a response until another process sees it,
with ``--rate`` responses per second.
"""

import argparse
import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage

ENDPOINT = "http://localhost:8000"
AT_ONCE = 64
TEXT = "A small white bus parked next to a large red car. " * 3
REPLY = Reply(TEXT, "stop", "", Usage(180, 40), "small", raw=b'{"id": "' + b"0" * 500 + TEXT.encode() + b'"}')


class Instant:
    """Model that responds after one turn of the event loop."""

    async def ask(self, request: Request) -> Reply:  # noqa: ARG002 - the seam's
        """Return the one reply."""
        await asyncio.sleep(0)
        return REPLY


def request(number: int) -> Request:
    """Return a request of some hundred tokens."""
    messages = (Message("system", "You edit captions. " * 20), Message("user", f"A large red bus, number {number}."))
    return Request(messages, "small", {"temperature": 0.7, "max_tokens": 100, "seed": 7})


async def ask_all(cache: Cache, numbers: range) -> None:
    """Ask for each number once, `AT_ONCE` concurrently."""
    model, rest = CachedModel(Instant(), cache, ENDPOINT), iter(numbers)

    async def work() -> None:
        for number in rest:
            await model.ask(request(number))

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


def timed(name: str, cache: Cache, numbers: range) -> None:
    """Ask for all numbers and print rows/s and CPU per row."""
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(ask_all(cache, numbers))
    cache.flush()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rows = len(numbers)
    print(f"{name:<26}{rows / wall:9,.0f} rows/s {cpu / rows * 1e6:7.1f} us of CPU a row   {_resident():5.0f} MiB")


def looked_up(cache: Cache, rows: int) -> None:
    """Print the CPU per lookup, one by one and in bulk."""
    keys = [request(number).key(ENDPOINT) for number in range(rows)]
    started = time.process_time()
    for key in keys:
        cache.get(key)
    print(f"{'get':<26}{'':17}{(time.process_time() - started) / rows * 1e6:7.1f} us of CPU a row")
    started = time.process_time()
    found = len(cache.get_many(keys))
    print(f"{'get_many':<26}{'':17}{(time.process_time() - started) / found * 1e6:7.1f} us of CPU a row")


async def paced(cache: Cache, first: int, rows: int, rate: float) -> None:
    """Store responses at a steady rate, with an otherwise idle event loop."""
    model, started = CachedModel(Instant(), cache, ENDPOINT), time.perf_counter()
    for number in range(rows):
        await model.ask(request(first + number))
        ahead = number / rate - (time.perf_counter() - started)
        if ahead > 0.001:
            await asyncio.sleep(ahead)


def waits_seen(path: Path, rows: int) -> list[float]:
    """Return the seconds from each of the next ``rows`` responses until this process sees it."""
    waits: list[float] = []
    with closing(sqlite3.connect(path)) as connection:
        last = connection.execute("SELECT max(rowid) FROM answers").fetchone()[0]
        while len(waits) < rows:
            found = connection.execute("SELECT rowid, answered FROM answers WHERE rowid > ?", (last,)).fetchall()
            now = time.time()
            waits += [now - answered / 1000 for _, answered in found]
            last = max((rowid for rowid, _ in found), default=last)
            time.sleep(0.002)
    return waits


def waited(path: Path, first: int, rows: int, rate: float) -> None:
    """Print the delay until another process sees responses."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool, Cache.open(path) as cache:
        pool.submit(os.getpid).result()  # it has started
        seen = pool.submit(waits_seen, path, rows)
        time.sleep(0.2)
        asyncio.run(paced(cache, first, rows, rate))
        waits = sorted(seen.result())
    middle, most = waits[rows // 2] * 1000, waits[int(rows * 0.99)] * 1000
    print(
        f"{f'wait at {rate:,.0f} rows/s':<26}{middle:9.0f} ms median, 99% at most {most:.0f}, all {waits[-1] * 1000:.0f}"
    )


def _resident() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000, help="how many")
    parser.add_argument("--rate", type=float, default=3000, help="answers a second, for the wait")
    options = parser.parse_args(arguments)
    rows = options.answers
    print(f"{rows:,} answers of {len(REPLY.raw) + len(TEXT)} bytes; load of the machine {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cache.sqlite"
        with Cache.open(path) as cache:
            timed("filled, first half", cache, range(rows // 2))
            timed("filled, second half", cache, range(rows // 2, rows))
        with Cache.open(path) as cache:
            timed("repeated, all from cache", cache, range(rows))
            looked_up(cache, rows)
        print(f"{'file':<26}{path.stat().st_size / rows:9,.0f} bytes an answer")
        waited(path, rows, int(options.rate * 3), options.rate)


if __name__ == "__main__":
    main()
