"""Benchmark of the LLM client: runner, cache, budget and transport against the test server.

    python -m benchmarks.llm.client [SECTION ...] [--rows 10000] [--runs 3] [--memory 20000 200000] [--repeat 100000]

Sections, by default all:

    speed     no latency, concurrency 64: rows/s and CPU ms per row of the client, by transport, compared with a loop over
              the bare ``openai`` package without a cache
    latency   100 ms, concurrency 256: rows/s and the share of the ideal 2,560; then the same with 1% of 429s
    memory    peak resident size of the client by number of rows
    repeat    a finished run again: seconds, and number of requests
    faults    10% of requests meet a non-fatal fault of any kind; ``kill -9`` in the middle, then the same command again:
              outcomes of the rows, and number of answers billed twice
    two       two concurrent processes with the same rows and one cache: number of answers billed twice

Server and clients are separate processes; a client's start is not included in rows/s and CPU. Every run starts with an
empty cache in a temporary folder, on whose disk the figures depend. Figures are medians of the runs.
"""

import argparse
import asyncio
import json
import os
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.llm.server_process import server, stats
from benchmarks.llm.transport import SYSTEM, caption
from benchmarks.llm.transport import run as bare_run
from pairwright.generators.llm.budget import Budget
from pairwright.generators.llm.client.event_loop import new_event_loop
from pairwright.generators.llm.client.messages import Message, Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.prices import Prices
from pairwright.generators.llm.runner import LLMRow, RowResult
from pairwright.generators.llm.session import ModelWrapper, Session
from pairwright.generators.llm.testing.faults import KINDS

FATAL = {"401", "quota"}
UNREAD = 0.1  # seconds that an answer may lie unread in the buffers of connections


def describe(number: int, attempt: int) -> LLMStep[str]:
    """Ask one request; return "kept", or why not."""
    messages = (Message("system", SYSTEM), Message("user", caption(number)))
    request = Request(messages, "m", {"temperature": 0.7, "max_tokens": 64}, sample=attempt, row=str(number))
    [outcome] = yield [request]
    return judged(outcome)


def judged(outcome: Reply | RequestError) -> str:
    """Return "kept", or in a word why not."""
    if isinstance(outcome, RequestError):
        return outcome.code
    if outcome.refusal:
        return "refused"
    if outcome.finish_reason != "stop":
        return outcome.finish_reason
    expected = caption(0).split(",")[0]
    return "kept" if outcome.text.startswith(f"You said: {expected}") else "unreadable"


# A client process.


@dataclass(frozen=True)
class Job:
    """What a client shall do, as it is handed to its process."""

    url: str
    cache: str
    rows: int
    at_once: int = 64
    transport: str = "direct"
    timeout: float = 120.0
    out: str = ""

    def command(self) -> list[str]:
        """Return the command that does it."""
        return [sys.executable, "-m", "benchmarks.llm.client", "--job", json.dumps(vars(self))]


def client(job: Job) -> dict[str, Any]:
    """Do a job in this process; return what it took."""
    if job.transport.startswith("openai"):
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return dict(runner.run(bare_run(job.transport, job.url, job.rows, job.at_once)))
    settings = LLMSettings.from_env(
        {},
        base_url=job.url,
        api_key="benchmark",
        model="m",
        transport=job.transport,
        max_concurrency=job.at_once,
        timeout=job.timeout,
    )
    prices = Prices.of(given="0.15/0.6")
    budget: ModelWrapper = lambda model: Budget(model, prices, max_cost=1000.0)  # noqa: E731 - short
    with Session(settings, cache=Path(job.cache), inside=[budget]) as session:
        list(session.run([LLMRow("first", partial(describe, -1))]))  # imports and connects
        wall, cpu = time.perf_counter(), time.process_time()
        _written(session.run((LLMRow(str(n), partial(describe, n)) for n in range(job.rows)), of=job.rows), job.out)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        totals = session.totals()
    return {
        "rows": job.rows / wall,
        "cpu": cpu / job.rows * 1000,
        "seconds": wall,
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "requests": totals.spent.requests,
        "cached": totals.spent.cached,
    }


def _written(done: Iterator[RowResult[str]], out: str) -> None:
    if not out:
        for _ in done:
            pass
        return
    with Path(out).open("w") as file:
        file.writelines(json.dumps([each.row, each.result, str(each.error or "")]) + "\n" for each in done)


def do(job: Job) -> dict[str, Any]:
    """Run a job in a separate process."""
    found: dict[str, Any] = json.loads(subprocess.run(job.command(), check=True, stdout=subprocess.PIPE).stdout)
    return found


def medians(found: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the median of each number."""
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


@contextmanager
def fresh() -> Iterator[str]:
    """Give the path of a cache that is not there yet."""
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "cache.sqlite")


# The sections.


def speed(given: argparse.Namespace) -> None:
    """Print rows/s and CPU by transport."""
    found = {}
    for name in ("direct", "sdk", "openai", "openai, aiohttp"):
        runs = []
        for _ in range(given.runs):
            with server() as url, fresh() as cache:
                runs.append(do(Job(url, cache, given.rows if name == "direct" else given.rows // 3, transport=name)))
        found[name] = medians(runs)
    print(f"{'no latency, concurrency 64':<28}{'rows/s':>9}{'CPU ms per row':>14}")
    for name, each in found.items():
        note = f"   {each['rows'] / found['openai']['rows']:.0%} of the bare package" if name == "sdk" else ""
        print(f"{name:<28}{each['rows']:9,.0f}{each['cpu']:14.3f}{note}")


def latency(given: argparse.Namespace) -> None:
    """Print rows/s with a slow server, and with one that refuses now and then."""
    found = {}
    for name, options in (("none refused", []), ("1% refused", ["--fault", "429=0.01"])):
        runs = []
        for _ in range(given.runs):
            with server("--latency-ms", "100", *options) as url, fresh() as cache:
                runs.append(do(Job(url, cache, 3 * given.rows, at_once=256)))
        found[name] = medians(runs)["rows"]
    print(f"{'100 ms, concurrency 256':<28}{'rows/s':>9}")
    for name, rate in found.items():
        print(
            f"{name:<28}{rate:9,.0f}   {rate / 2560:.0%} of the ideal, {rate / found['none refused']:.0%} of the first"
        )


def memory(given: argparse.Namespace) -> None:
    """Print the largest resident size by rows."""
    print(f"{'memory':<28}{'MiB':>9}")
    for rows in given.memory:
        with server() as url, fresh() as cache:
            print(f"{f'{rows:,} rows':<28}{do(Job(url, cache, rows))['resident']:9,.0f}", flush=True)


def repeat(given: argparse.Namespace) -> None:
    """Print what a finished run costs once more."""
    with server() as url, fresh() as cache:
        job = Job(url, cache, given.repeat)
        first = do(job)
        before = stats(url)["requests"]
        again = do(job)
        asked = stats(url)["requests"] - before
    print(f"{f'{given.repeat:,} rows, first':<28}{first['seconds']:9.1f} s")
    print(f"{'once more':<28}{again['seconds']:9.1f} s   {asked} requests, {again['cached']:,} from the cache")


@dataclass(frozen=True)
class Paid:
    """Answers that were paid for twice, and how many may have been: those not yet read at the kill."""

    again: int
    may: int


def faults(given: argparse.Namespace) -> None:
    """Print what became of rows after faults and a kill."""
    kinds = [kind for kind, (group, _) in KINDS.items() if group != "batch" and kind not in FATAL]
    rate = 0.1 / len(kinds)
    script = {"latency_ms": 50, "faults": dict.fromkeys(kinds, rate)} | {
        "hang_s": 1.5,
        "drip_s": 0.2,
        "retry_after_s": 0.2,
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "script.json").write_text(json.dumps(script))
        with server("--script", f"{folder}/script.json") as url:
            job = Job(url, f"{folder}/cache.sqlite", given.rows, timeout=1.0, out=f"{folder}/out.jsonl")
            paid, seconds = killed_and_resumed(job)
            counts = stats(url)
        lines = [json.loads(line) for line in Path(job.out).read_text().splitlines()]
        sound(Path(job.cache))
    ends = [result or error for _, result, error in lines]
    words = {word: ends.count(word) for word in sorted(set(ends))}
    print(f"{f'faults, {given.rows:,} rows':<28}{sum(counts['faults'].values()):9,} injected, of {len(kinds)} kinds")
    print(f"{'rows':<28}{len(lines):9,}   {len({row for row, _, _ in lines}):,} different; {words}")
    print(
        f"{'paid twice after kill -9':<28}{paid.again:9,}   {paid.may:,} were under way or answered in the last 100 ms"
    )
    print(f"{'resumed in':<28}{seconds:9.1f} s")


def killed_and_resumed(job: Job) -> tuple[Paid, float]:
    """Kill a job when it is half done, do it again; return what was paid twice and the seconds of the second run."""
    with subprocess.Popen(job.command(), stdout=subprocess.DEVNULL) as process:
        while stats(job.url)["bodies"]["answered"] < job.rows / 2:
            time.sleep(0.02)
            if process.poll() is not None:
                raise SystemExit("the run ended before it could be killed")
        under_way = stats(job.url)["in_flight"]
        process.send_signal(signal.SIGKILL)
        process.wait()
    at_kill = stats(job.url)
    young = sum(
        at_kill["seconds"] - last < UNREAD for _, answered, last in at_kill["bodies"]["each"].values() if answered
    )
    seconds = do(job)["seconds"]
    after = stats(job.url)["bodies"]
    return Paid(after["answered_again"], max(under_way, at_kill["in_flight"]) + young), seconds


def two(given: argparse.Namespace) -> None:
    """Print what two processes with one cache paid for twice."""
    with server("--latency-ms", "50") as url, fresh() as cache:
        jobs = [Job(url, cache, given.rows, out=f"{cache}.{name}") for name in "ab"]
        started = time.perf_counter()
        processes = [subprocess.Popen(job.command(), stdout=subprocess.PIPE) for job in jobs]
        took = [json.loads(process.communicate()[0]) for process in processes]
        seconds = time.perf_counter() - started
        counts = stats(url)
        same = Path(jobs[0].out).read_bytes() == Path(jobs[1].out).read_bytes()
        sound(Path(cache))
    print(f"{f'two processes, {given.rows:,} rows':<28}{seconds:9.1f} s   outputs {'the same' if same else 'DIFFER'}")
    print(
        f"{'billed twice':<28}{counts['bodies']['answered_again']:9,}   at most {counts['in_flight_max']} concurrent;"
        f" sent {took[0]['requests']:,} and {took[1]['requests']:,}"
    )


def sound(cache: Path) -> None:
    """See that the file is whole."""
    connection = sqlite3.connect(cache)
    found = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    if found != "ok":
        raise SystemExit(f"the cache is damaged: {found}")


SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "speed": speed,
    "latency": latency,
    "memory": memory,
    "repeat": repeat,
    "faults": faults,
    "two": two,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument(
        "--rows", type=int, default=10_000, help="of speed, faults and two; of latency three times as many"
    )
    parser.add_argument("--runs", type=int, default=3, help="of speed and latency")
    parser.add_argument("--memory", type=int, nargs="*", default=[20_000, 200_000], help="rows")
    parser.add_argument("--repeat", type=int, default=100_000, help="rows")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        print(json.dumps(client(Job(**json.loads(given.job)))))
        return
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(unknown)}. There are: {', '.join(SECTIONS)}")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    )
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    for name in given.sections or SECTIONS:
        SECTIONS[name](given)
        print(flush=True)


if __name__ == "__main__":
    main()
