"""Batch mode: a model over the Batch API, at half the price and with responses within a day.

    with Session(settings, cache=path, opened=batch_client(), in_flight=50_000) as session:
        ...

    # without a session
    async with open_batch_model(settings, ledger_path(path), safe=cache.flush, kept=cache.get_many) as model:
        replies = await asyncio.gather(*(model.ask(request) for request in requests))

`BatchModel.ask` queues a request and waits. A batch is submitted when it is full (50,000 requests, 200 MB), or after
`BatchLimits.idle` seconds without a new request. Callers should therefore send many requests concurrently; steps with
several rounds take as many batches one after the other. A batch has requests of one model, as the API requires.

- `queue`: waiting requests. `submission`: submitting batches. `polling`: polling and merging.
- `ledger`: submitted batches on disk. A run killed at any point is resumed by the next one, which waits for running
  batches and pays for nothing twice. Two processes with one ledger wait for the same batches; the later one finds in the
  cache what the other has removed from the ledger.
- `lines`: input and output lines. `service`: API calls.

Lines that expire, fail transiently or are missing are sent in the next batch, up to ``max_retries`` times; other errors
are those of direct calls. A line's custom_id is the request's cache key.

Azure: deployments of type Global Batch or Data Zone Batch, which are batch only; the model is the deployment name. Files
are waited for until Azure has processed them. Written from its documentation, and tested with its paths against the test
server only.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
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
    "BatchLimits",
    "BatchModel",
    "batch_client",
    "cancel_batches",
    "ledger_path",
    "open_batch_model",
]

_log = logging.getLogger(__name__)


class BatchModel:
    """Model that sends requests in batches; created by `open_batch_model`."""

    def __init__(self, context: BatchContext, limits: BatchLimits, safe: Callable[[], None]) -> None:
        self._rows, self._ledger = context.rows, context.ledger
        self._endpoint, self._say, self._safe = context.endpoint, context.retry.say, safe
        self._rows.on_queued = self._queued
        self._poller = BatchPoller(context, intervals=(limits.first_look, limits.longest_look), on_end=self._ended)
        self._submitter = BatchSubmitter(context, self._poller, limits)
        self._tasks: list[asyncio.Task[None]] = []
        self._handed: list[str] = []

    async def ask(self, request: Request) -> Reply:
        """Queue a request and wait for its response, possibly for hours.

        Raises:
            RequestError: as of a direct call; also ``bad_batch`` and ``batch_cancelled``, which stop the run.
            StorageError: the ledger cannot be read or written.
        """
        return await self._rows.ask(request.key(self._endpoint), request)

    def stop(self, failure: RequestError) -> None:
        """Send nothing more and end all waiting requests in ``failure``: responses may be hours away."""
        self._rows.stop(failure)

    async def close(self) -> None:
        """Stop waiting. Running batches continue at the server, which is reported."""
        if self._rows.stopped is None and not len(self._rows):
            await self._poller.whole()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for each in self._poller.running.values():
            self._say(
                f"batch {each.entry.id} ({each.entry.lines} requests) continues at the server. Run the same command again"
                " to fetch its answers, or with --batch-cancel to cancel it"
            )
        self._handed += self._rows.handed()
        self._forget(self._handed)

    def _queued(self) -> None:
        if not self._tasks:
            works = (self._submitter.run(), self._poller.run())
            self._tasks = [asyncio.ensure_future(self._guarded(work)) for work in works]
        self._submitter.queued()

    def _ended(self, model: str, lines: int, full: bool) -> None:  # noqa: FBT001 - as a callback
        # Responses of this round may not be in the cache yet: they are removed in the next one.
        self._forget(self._handed)
        self._handed = self._rows.handed()
        self._submitter.ended(model, lines, full)

    def _forget(self, keys: list[str]) -> None:
        if keys:
            self._safe()
            self._ledger.forget(keys)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """End all waiting requests in any error of a background task."""
        try:
            await work
        except RequestError as failure:
            named = failure if failure.fatal else RequestError("bad_batch", failure.detail or failure.code)
            self._rows.stop(named)
        except Exception as error:  # noqa: BLE001 - raised by the waiting requests
            self._rows.stop(error)


@asynccontextmanager
async def open_batch_model(  # noqa: PLR0913 - three are for tests
    settings: LLMSettings,
    ledger: Path,
    *,
    limits: BatchLimits | None = None,
    safe: Callable[[], None] = lambda: None,
    kept: CacheLookup = lambda _: {},
    say: Callable[[str], None] = _log.warning,
    pause: Pause = asyncio.sleep,
) -> AsyncIterator[BatchModel]:
    """Yield a model that sends requests in batches. Batches that run when it is closed continue at the server.

    Args:
        settings: ``max_retries`` and ``patience`` apply, rate limits do not.
        ledger: file of submitted batches; `ledger_path` of a cache.
        limits: of batches and waits.
        safe: stores responses that were returned (the cache's `flush`); the ledger then removes its copies.
        kept: returns stored responses (the cache's `get_many`): another run with this ledger may have paid for a row since
            its lookup.
        say: called with one line for what is sent, resumed, or continues.
        pause: sleeps.

    Raises:
        UsageError: invalid settings.
        StorageError: the ledger cannot be used.
    """
    with BatchLedger.open(ledger) as opened:
        async with open_service(settings) as service:
            retry = BatchRetry(settings.patience, pause, say)
            rows = RequestQueue(settings.max_retries)
            context = BatchContext(rows, opened, service, retry, settings.cache_endpoint, settings.hide, kept)
            model = BatchModel(context, limits or BatchLimits(), safe)
            try:
                yield model
            finally:
                await model.close()


def batch_client(
    limits: BatchLimits | None = None, *, say: Callable[[str], None] = _log.warning
) -> Callable[[LLMSettings, Cache | None], AbstractAsyncContextManager[BatchModel]]:
    """Return the client factory of a session: ``Session(..., opened=batch_client(), in_flight=...)``."""

    def opened(settings: LLMSettings, cache: Cache | None) -> AbstractAsyncContextManager[BatchModel]:
        assert cache is not None  # it names the ledger
        return open_batch_model(
            settings, ledger_path(cache.path), limits=limits, safe=cache.flush, kept=cache.get_many, say=say
        )

    return opened


async def cancel_batches(
    settings: LLMSettings, ledger: Path, *, say: Callable[[str], None] = _log.warning
) -> list[str]:
    """Cancel all batches of a ledger at the settings' server; return the ids of those cancelled.

    Lines processed by then are billed, and merged by the next run.

    Raises:
        StorageError: there is no such ledger.
        RequestError: the server does not respond.
    """
    retry = BatchRetry(settings.patience, asyncio.sleep, say)
    cancelled: list[str] = []
    with BatchLedger.open(ledger, create=False) as opened:
        async with open_service(settings) as service:
            async with opened.turn(retry.pause):
                await recover_batches(opened, service, retry, settings.cache_endpoint)
            for entry in opened.entries(settings.cache_endpoint, "sent"):
                try:
                    status = await service.cancel(entry.id)
                except RequestError as failure:
                    if failure.fatal and failure.status != 404:
                        raise
                    say(f"batch {entry.id} cannot be cancelled ({failure.detail})")
                else:
                    cancelled.append(entry.id)
                    say(
                        f"batch {entry.id}: {status.status}, {status.completed} of {entry.lines} requests were processed"
                    )
    return cancelled
