"""Batch mode: the Batch API behind the seam that all models share, for half the price and answers within a day.

    with Session(settings, cache=path, opened=in_batches(), in_flight=min(IN_FLIGHT, rows)) as session:
        ...

    # the same, by hand
    async with open_batch(settings, ledger_beside(path), safe=cache.flush, kept=cache.get_many) as model:
        replies = await asyncio.gather(*(model.ask(request) for request in requests))

`BatchModel.ask` queues a request and waits. A batch is closed when it is full (50,000 requests, 200 MB), or when nothing more
has come for `BatchLimits.idle` seconds: so whoever asks has to ask for much at once, and talks of several rounds take
as many batches one after the other. One batch holds requests of one model (the API wants it so).

What is where:

- `batch_rows`: requests that wait. `batch_sending`: closing and handing over. `batch_collecting`: looking and merging.
- `batch_ledger`: what was handed over, on the disk. A run that is killed, at any point, is taken up by the next one: it
  waits for what runs, and pays nothing twice. Two processes on one ledger wait for the same batches; the one that looks
  later finds in the cache what the other has let go of.
- `batch_lines`: the lines, in and out. `batch_service`: the calls.

Lines that expire, fail in passing or do not come back are sent in a next batch, up to ``max_retries`` times; lines that
failed for good end as direct calls do, in the same words. The key that names a line is the request's cache key.

Azure: deployments of the kind Global Batch (or Data Zone Batch), which are batch only; the model is the deployment's name.
Files are waited for until Azure has taken them in. Written by its documentation, and tried with its paths against
the test server only.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.generators.llm.batch.context import BatchContext, BatchRetry, CacheLookup, Pause
from pairwright.generators.llm.batch.ledger import BatchLedger, ledger_path
from pairwright.generators.llm.batch.polling import BatchPoller
from pairwright.generators.llm.batch.queue import RequestQueue
from pairwright.generators.llm.batch.service import open_service
from pairwright.generators.llm.batch.submission import BatchLimits, BatchSubmitter, recover_batches
from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings

__all__ = [
    "IN_FLIGHT",
    "BatchLimits",
    "BatchModel",
    "BatchProgress",
    "batch_client",
    "cancel_batches",
    "ledger_path",
    "open_batch_model",
]

IN_FLIGHT = 100_000  # rows at once, for runs that are so long: two full batches

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How far batches are: the server's ids of those that are waited for, and their lines as the server counts them."""

    batches: tuple[str, ...]
    lines: int
    completed: int
    failed: int


class BatchModel:
    """A model that asks in batches; made by `open_batch_model`."""

    def __init__(self, desk: BatchContext, limits: BatchLimits, safe: Callable[[], None]) -> None:
        self._rows, self._ledger, self._endpoint, self._say = desk.rows, desk.ledger, desk.endpoint, desk.patience.say
        self._safe = safe
        self._rows.on_queued = self._queued
        self._collector = BatchPoller(desk, looks=(limits.first_look, limits.longest_look), on_end=self._ended)
        self._sender = BatchSubmitter(desk, self._collector, limits)
        self._tasks: list[asyncio.Task[None]] = []
        self._handed: list[str] = []

    async def ask(self, request: Request) -> Reply:
        """Queue a request and wait for its answer, for hours.

        Raises:
            Failure: as of a direct call; ``bad_batch`` and ``batch_cancelled`` besides, which stop the run.
            StorageError: the ledger cannot be read or written.
        """
        return await self._rows.ask(request.key(self._endpoint), request)

    def stop(self, failure: RequestError) -> None:
        """Send nothing more and let all who wait end in ``failure``: answers may be hours away."""
        self._rows.stop(failure)

    def flush(self) -> None:
        """Send what is queued, without waiting for more: for callers who know that nothing more comes."""
        self._sender.flush()

    def progress(self) -> BatchProgress:
        """Return how far batches are, by the last look."""
        running = list(self._collector.running.values())
        return BatchProgress(
            tuple(each.entry.id for each in running),
            sum(each.entry.lines for each in running),
            sum(each.completed for each in running),
            sum(each.failed for each in running),
        )

    async def close(self) -> None:
        """Stop asking. Batches at the server go on; it says so."""
        if self._rows.stopped is None and not len(self._rows):
            await self._collector.whole()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for each in self._collector.running.values():
            self._say(
                f"batch {each.entry.id} ({each.entry.lines} requests) goes on at the server. Run the same command again"
                " to take its answers, or with --batch-cancel to cancel it"
            )
        self._handed += self._rows.handed()
        self._forget(self._handed)

    def _queued(self) -> None:
        if not self._tasks:
            works = (self._sender.run(), self._collector.run())
            self._tasks = [asyncio.ensure_future(self._guarded(work)) for work in works]
        self._sender.queued()

    def _ended(self, model: str, lines: int, full: bool) -> None:  # noqa: FBT001 - a callback's fact
        # Those of this round may still be on their way into the cache: they are let go in the next one.
        self._forget(self._handed)
        self._handed = self._rows.handed()
        self._sender.ended(model, lines, full)

    def _forget(self, keys: list[str]) -> None:
        if keys:
            self._safe()
            self._ledger.forget(keys)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Let whatever goes wrong in the background end all who wait, in words for them."""
        try:
            await work
        except RequestError as failure:
            named = failure if failure.fatal else RequestError("bad_batch", failure.detail or failure.code)
            self._rows.stop(named)
        except Exception as error:  # noqa: BLE001 - those who wait would wait for ever; they raise it
            self._rows.stop(error)


@asynccontextmanager
async def open_batch_model(  # noqa: PLR0913 - three of them are for who tests or shows it
    settings: LLMSettings,
    ledger: Path,
    *,
    limits: BatchLimits | None = None,
    safe: Callable[[], None] = lambda: None,
    kept: CacheLookup = lambda _: {},
    say: Callable[[str], None] = _log.warning,
    pause: Pause = asyncio.sleep,
) -> AsyncIterator[BatchModel]:
    """Give a model that asks in batches. Left early, its batches go on at the server.

    Args:
        settings: where, with which key; ``max_retries`` and ``patience`` are used, ceilings on rates are not.
        ledger: the file that remembers batches; `ledger_path` a cache.
        limits: of batches and waits.
        safe: makes answers that were given out safe (the cache's `flush`); the ledger's copies are dropped then.
        kept: gives answers that are safe (the cache's `get_many`): another run on this ledger may have paid for a row since
            it was looked up.
        say: told, in one line each, what was sent, taken up, and goes on.
        pause: waits so many seconds.

    Raises:
        UsageError: the settings cannot work.
        StorageError: the ledger cannot be used.
    """
    with BatchLedger.open(ledger) as opened:
        async with open_service(settings) as service:
            patience = BatchRetry(settings.patience, pause, say)
            rows = RequestQueue(settings.max_retries)
            desk = BatchContext(rows, opened, service, patience, settings.cache_endpoint, settings.hide, kept)
            model = BatchModel(desk, limits or BatchLimits(), safe)
            try:
                yield model
            finally:
                await model.close()


def batch_client(
    limits: BatchLimits | None = None, *, say: Callable[[str], None] = _log.warning
) -> Callable[[LLMSettings, Cache], AbstractAsyncContextManager[BatchModel]]:
    """Return what a session opens its client with: ``Session(..., opened=in_batches(), in_flight=...)``."""
    return lambda settings, cache: open_batch_model(
        settings, ledger_path(cache.path), limits=limits, safe=cache.flush, kept=cache.get_many, say=say
    )


async def cancel_batches(
    settings: LLMSettings,
    ledger: Path,
    *,
    say: Callable[[str], None] = _log.warning,
    pause: Pause = asyncio.sleep,
) -> list[str]:
    """Cancel all batches of a ledger that are at the settings' server; return the ids of those cancelled.

    What they have answered by then is paid, and taken by the next run.

    Raises:
        StorageError: there is no such ledger.
        Failure: the server does not answer.
    """
    patience = BatchRetry(settings.patience, pause, say)
    cancelled: list[str] = []
    with BatchLedger.open(ledger, create=False) as opened:
        async with open_service(settings) as service:
            async with opened.turn(pause):
                await recover_batches(opened, service, patience, settings.cache_endpoint)
            for entry in opened.entries(settings.cache_endpoint, "sent"):
                try:
                    status = await service.cancel(entry.id)
                except RequestError as failure:
                    if failure.fatal and failure.status != 404:
                        raise
                    say(f"batch {entry.id} cannot be cancelled ({failure.detail})")
                else:
                    cancelled.append(entry.id)
                    say(f"batch {entry.id}: {status.status}, {status.completed} of {entry.lines} requests were done")
    return cancelled
