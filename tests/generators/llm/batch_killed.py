"""Runs of batch mode that are killed at a point: ``python batch_killed.py URL LEDGER COUNT POINT...``.

Each point has a ledger of its own (LEDGER.POINT) and a process of its own, forked from this one so that the packages
are imported once, and ended by SIGKILL from within, just before or after the call that the point names.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp  # noqa: F401 - this and the next two are what each fork would have to import
import httpx2  # noqa: F401
import openai.resources.batches
import openai.resources.files  # noqa: F401

from pairwright.generators.llm.batch import open_batch
from pairwright.generators.llm.batch_ledger import Ledger
from pairwright.generators.llm.batch_service import BatchService
from pairwright.generators.llm.cache import Cache, CachedModel
from pairwright.generators.llm.messages import Message, Request
from pairwright.generators.llm.settings import LLMSettings

POINTS = {
    "before-claim": (Ledger, "claim", False),
    "after-claim": (Ledger, "claim", True),
    "after-upload": (BatchService, "upload", True),
    "before-create": (BatchService, "create", False),
    "after-create": (BatchService, "create", True),
    "after-noted": (Ledger, "sent", True),
    "at-work": (BatchService, "retrieve", True),
    "merging": (Ledger, "store", True),
    "before-end": (Ledger, "end", False),
    "after-end": (Ledger, "end", True),
    "before-delete": (BatchService, "delete", False),
    "after-delete": (BatchService, "delete", True),
    "before-forget": (Ledger, "forget", False),
}


def main(url: str, ledger: str, count: int, points: list[str]) -> None:
    """Be killed at each point."""
    for point in points:
        child = os.fork()
        if not child:
            _deadly(*POINTS[point])
            asyncio.run(_ask(url, Path(f"{ledger}.{point}"), count, point))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{point} {os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0}\n")


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
        async with open_batch(settings, ledger, **safe, pause=_pause, say=lambda _: None) as batch:
            model = CachedModel(batch, cache, settings.cache_endpoint)
            asked = [Request((Message("user", f"{point} {n}"),), "m") for n in range(count)]
            await asyncio.gather(*(model.ask(each) for each in asked))


async def _pause(_: float) -> None:
    await asyncio.sleep(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
