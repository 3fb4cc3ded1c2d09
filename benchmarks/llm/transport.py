"""Cost of an LLM call by transport, compared with loops over the bare ``openai`` package.

    python -m benchmarks.llm.transport [--rows 6000] [--runs 3] [--only NAME ...]

The server is a ``pairwright dev llm-server`` process; each client is a new process for each run. Rows are short, distinct
prompts. A column is the median of the runs.

    plain     no latency, concurrency 64: rows/s, and CPU ms per row of the client
    latency   100 ms, concurrency 256: rows/s, and the share of the ideal 2,560
    refusals  the same with 1% of 429s (with Retry-After: 1): rows/s, and the share of *latency*

``direct`` and ``sdk`` are the transports with rate limits and retries, as in stages; ``direct, alone`` and ``sdk, alone``
are without. ``openai`` is a loop over the package as in its documentation, ``openai, aiohttp`` the same with its faster
HTTP client.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.llm.server_process import server
from pairwright.generators.llm.client.event_loop import new_event_loop
from pairwright.generators.llm.client.factory import open_model, open_transport
from pairwright.generators.llm.client.messages import Message, Request
from pairwright.generators.llm.client.settings import LLMSettings

Ask = Callable[[str], Awaitable[str]]

SYSTEM = "Rewrite the caption so that one object is another one. Answer with the new caption only."
CASES: dict[str, tuple[list[str], int]] = {
    "plain": ([], 64),
    "latency": (["--latency-ms", "100"], 256),
    "refusals": (["--latency-ms", "100", "--fault", "429=0.01"], 256),
}


def caption(number: int) -> str:
    """Return a caption of its own for each number."""
    return f"A brown dog runs over wet sand with a red ball, {number} metres from the sea, while two children watch."


@asynccontextmanager
async def ours(url: str, at_once: int, *, transport: str, alone: bool) -> AsyncIterator[Ask]:
    """Give one of our transports."""
    settings = LLMSettings.from_env(
        {}, base_url=url, api_key="benchmark", model="m", transport=transport, max_concurrency=at_once
    )
    opened = open_transport(settings, lambda _: None) if alone else open_model(settings)
    async with opened as model:

        async def ask(text: str) -> str:
            messages = (Message("system", SYSTEM), Message("user", text))
            return (await model.ask(Request(messages, "m", {"temperature": 0.7, "max_tokens": 64}))).text

        yield ask


@asynccontextmanager
async def bare(url: str, at_once: int, *, aiohttp: bool) -> AsyncIterator[Ask]:
    """Give the package as it is."""
    import httpx2
    import openai

    limits = httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    kind: Any = openai.DefaultAioHttpClient if aiohttp else openai.DefaultAsyncHttpxClient
    async with openai.AsyncOpenAI(base_url=url, api_key="benchmark", http_client=kind(limits=limits)) as client:

        async def ask(text: str) -> str:
            answer = await client.chat.completions.create(
                model="m",
                messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}],
                temperature=0.7,
                max_tokens=64,
            )
            return answer.choices[0].message.content or ""

        yield ask


MAKERS: dict[str, Callable[[str, int], Any]] = {
    "direct, alone": lambda url, at_once: ours(url, at_once, transport="direct", alone=True),
    "direct": lambda url, at_once: ours(url, at_once, transport="direct", alone=False),
    "sdk, alone": lambda url, at_once: ours(url, at_once, transport="sdk", alone=True),
    "sdk": lambda url, at_once: ours(url, at_once, transport="sdk", alone=False),
    "openai": lambda url, at_once: bare(url, at_once, aiohttp=False),
    "openai, aiohttp": lambda url, at_once: bare(url, at_once, aiohttp=True),
}


async def run(name: str, url: str, rows: int, at_once: int) -> dict[str, float]:
    """Ask ``rows`` prompts; return rows/s and CPU ms a row, start-up and the first row aside."""
    async with MAKERS[name](url, at_once) as ask:
        await ask("the first")
        numbers = iter(range(rows))

        async def worker() -> None:
            for number in numbers:
                if not await ask(caption(number)):
                    raise SystemExit(f"{name}: an empty answer")

        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(worker() for _ in range(at_once + at_once // 8)))
        return {"rows": rows / (time.perf_counter() - wall), "cpu": (time.process_time() - cpu) / rows * 1000}


def measure(name: str, case: str, rows: int, runs: int) -> dict[str, float]:
    """Return the medians of a maker in a case."""
    options, at_once = CASES[case]
    found: list[dict[str, float]] = []
    for _ in range(runs):
        with server(*options) as url:
            asked = {"one": name, "url": url, "rows": rows, "at-once": at_once}
            command = [sys.executable, "-m", "benchmarks.llm.transport"]
            command += [part for key, value in asked.items() for part in (f"--{key}", str(value))]
            found.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    return {key: statistics.median(each[key] for each in found) for key in found[0]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(MAKERS), choices=list(MAKERS))
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    for hidden in ("--one", "--url", "--at-once"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            print(json.dumps(runner.run(run(given.one, given.url, given.rows, int(given.at_once)))))
        return
    print(f"{'':16} " + " ".join(f"{case + ' rows/s':>16} {'CPU ms':>7}" for case in given.cases), flush=True)
    for name in given.only:
        print(f"{name:16}", end="", flush=True)
        for case in given.cases:
            if case == "refusals" and "alone" in name:  # without retries
                print(f" {'-':>16} {'-':>7}", end="")
                continue
            found = measure(name, case, given.rows, given.runs)
            print(f" {found['rows']:16,.0f} {found['cpu']:7.3f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
