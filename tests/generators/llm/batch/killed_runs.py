"""Runs of batch mode that are killed at a point: ``python batch_killed.py``, with lines ``URL LEDGER COUNT POINT...``.

Each point has its own ledger (LEDGER.POINT) and process, forked from this one so that the packages
are imported once, and ended by SIGKILL from within, just before or after the call that the point names. Each line is
answered by one of as many signals as it has points.
"""

import asyncio
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairwright.generators.llm.batch.ledger import BatchLedger
from pairwright.generators.llm.batch.model import open_batch_model
from pairwright.generators.llm.batch.service import BatchService
from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.messages import Message, Request
from pairwright.generators.llm.client.settings import LLMSettings

POINTS = {
    "before-claim": (BatchLedger, "claim", False),
    "after-claim": (BatchLedger, "claim", True),
    "after-upload": (BatchService, "upload", True),
    "before-create": (BatchService, "create", False),
    "after-create": (BatchService, "create", True),
    "after-noted": (BatchLedger, "sent", True),
    "at-work": (BatchService, "retrieve", True),
    "merging": (BatchLedger, "store", True),
    "before-end": (BatchLedger, "end", False),
    "after-end": (BatchLedger, "end", True),
    "before-delete": (BatchService, "delete", False),
    "after-delete": (BatchService, "delete", True),
    "before-forget": (BatchLedger, "forget", False),
}


# What each fork would have to import.
_WARM = ("aiohttp", "httpx2", "openai.resources.batches", "openai.resources.files")

Killer = Callable[[str, Path, int, list[str]], list[int]]


@contextmanager
def killer() -> Iterator[Killer]:
    """Start a process that kills runs: of a server's URL, a ledger, a number of rows and points, the signals."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        orders, results = process.stdin, process.stdout

        def kill(url: str, ledger: Path, count: int, points: list[str]) -> list[int]:
            print(url, ledger, count, *points, file=orders, flush=True)
            return [int(number) for number in results.readline().split()]

        yield kill


def main() -> None:
    """Have runs killed as the lines say."""
    for name in _WARM:
        importlib.import_module(name)
    for line in sys.stdin:
        url, ledger, count, *points = line.split()
        signals = [_killed(url, Path(f"{ledger}.{point}"), int(count), point) for point in points]
        sys.stdout.write(" ".join(map(str, signals)) + "\n")
        sys.stdout.flush()


def _killed(url: str, ledger: Path, count: int, point: str) -> int:
    child = os.fork()
    if not child:
        _deadly(*POINTS[point])
        asyncio.run(_ask(url, ledger, count, point))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _deadly(owner: Any, name: str, after: bool) -> None:  # noqa: FBT001 - a row of the table
    call: Callable[..., Any] = getattr(owner, name)

    def sync(*args: Any) -> Any:
        result = call(*args) if after else None
        os.kill(os.getpid(), signal.SIGKILL)
        return result

    async def awaited(*args: Any) -> Any:
        result = await call(*args) if after else None
        os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, awaited if asyncio.iscoroutinefunction(call) else sync)


async def _ask(url: str, ledger: Path, count: int, point: str) -> None:
    settings = LLMSettings(base_url=url, api_key="none", model="m")
    with Cache.open(ledger.with_name(ledger.name + ".answers")) as cache:
        safe: Any = {"safe": cache.flush, "kept": cache.get_many}
        async with open_batch_model(settings, ledger, **safe, pause=_pause, say=lambda _: None) as batch:
            model = CachedModel(batch, cache, settings.cache_endpoint)
            asked = [Request((Message("user", f"{point} {n}"),), "m") for n in range(count)]
            await asyncio.gather(*(model.ask(each) for each in asked))


async def _pause(_: float) -> None:
    await asyncio.sleep(0)


if __name__ == "__main__":
    main()
