"""Submission of batches.

A batch is submitted when it is full, or after some seconds without a new request. It is claimed in the ledger before the
upload and carries a token in its metadata, so that the next process finds it, or finds that there is none.

While the server's queue is full (``token_limit_exceeded``), batches of that model are sent one at a time; one that is
refused although no other batch of ours is queued is halved, and the next ones grow again.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from functools import partial

from pairwright.generators.llm.batch.context import BatchContext, BatchRetry
from pairwright.generators.llm.batch.ledger import BatchLedger, LedgerBatch
from pairwright.generators.llm.batch.lines import ANSWERED, QueuedRequest, write_batch_input
from pairwright.generators.llm.batch.polling import BatchPoller
from pairwright.generators.llm.batch.service import BatchService, BatchStatus, QueueFullError
from pairwright.generators.llm.client.request_errors import RequestError

# Before a refused batch is sent again, while none of ours is queued.
QUEUE_FULL_DELAY_S, QUEUE_FULL_MAX_DELAY_S = 30.0, 600.0
DELAY_GROWTH = 1.5  # of batches that are accepted while the queue is full

_NO_LISTING = {404, 405, 501}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of batches and waits.

    Attributes:
        lines: requests of a batch.
        size: bytes of its file.
        idle: seconds without a new request until queued ones are submitted.
        first_look, longest_look: seconds between polls of a batch, at first and at most.
        queue_patience: seconds to wait for room in a full queue before the run stops.
    """

    lines: int = 50_000
    size: int = 200_000_000
    idle: float = 10.0
    first_look: float = 5.0
    longest_look: float = 120.0
    queue_patience: float = 24 * 3600.0


@dataclass(slots=True)
class _FullQueue:
    """Model whose queue was full: lines of the next batch, consecutive refusals, seconds waited."""

    most: int
    refusals: int = 0
    waited: float = 0.0


class BatchSubmitter:
    """Submits queued requests."""

    def __init__(self, context: BatchContext, poller: BatchPoller, limits: BatchLimits) -> None:
        self._rows, self._ledger = context.rows, context.ledger
        self._service, self._retry = context.service, context.retry
        self._endpoint, self._kept, self._poller, self._limits = context.endpoint, context.kept, poller, limits
        self._size = limits.size
        self._held: dict[str, _FullQueue] = {}
        self._came, self._now = asyncio.Event(), asyncio.Event()
        self._resumed = False

    def queued(self) -> None:
        """Note a new request."""
        self._came.set()
        if any(self._rows.queued(model) >= self._most(model) for model in self._rows.models()):
            self._now.set()

    def ended(self, model: str, lines: int, full: bool) -> None:  # noqa: FBT001 - a callback's fact
        """Note the end of a batch; ``full``: it was refused because the server's queue was full."""
        held = self._held.get(model)
        if full:
            held = self._held.setdefault(model, _FullQueue(self._limits.lines))
            if not self._poller.works_on(model):
                held.most = max(1, min(held.most, lines) // 2)
                held.refusals += 1
        elif held is not None:
            held.most = min(int(held.most * DELAY_GROWTH) + 1, self._limits.lines)
            held.refusals, held.waited = 0, 0.0
        self._came.set()

    async def run(self) -> None:
        """Submit batches until the run is stopped."""
        while self._rows.stopped is None:
            self._came.clear()
            free = [model for model in self._rows.models() if not self._blocked(model)]
            if not free:
                await self._came.wait()
                continue
            for held in (self._held[model] for model in free if model in self._held):
                await self._wait_for_room(held)
            await self._until_quiet()
            whole = not self._now.is_set()
            self._now.clear()
            async with self._ledger.turn(self._retry.pause):
                await self._resume()
                for model in free:
                    await self._send(model, whole=whole)

    async def _resume(self) -> None:
        """Resume what earlier runs have left at the server: it is billed in any case."""
        await recover_batches(self._ledger, self._service, self._retry, self._endpoint)
        if not self._resumed:
            self._resumed = True
            for entry in self._ledger.entries(self._endpoint, "sent"):
                self._poller.attach(entry, [])

    def _most(self, model: str) -> int:
        held = self._held.get(model)
        return held.most if held else self._limits.lines

    def _blocked(self, model: str) -> bool:
        return model in self._held and self._poller.works_on(model)

    async def _wait_for_room(self, held: _FullQueue) -> None:
        if not held.refusals:
            return
        if held.waited >= self._limits.queue_patience:
            raise RequestError("no_quota", f"token_limit_exceeded: the queue was full for {held.waited / 3600:.0f} h")
        wait = min(QUEUE_FULL_DELAY_S * 2.0 ** min(held.refusals - 1, 30), QUEUE_FULL_MAX_DELAY_S)
        held.waited += wait
        await self._retry.pause(wait)

    async def _until_quiet(self) -> None:
        """Wait until a batch is full, or no new request has come."""
        while not self._now.is_set():
            seen = self._rows.came
            await _first_completed(self._retry.pause(self._limits.idle), self._now.wait())
            if seen == self._rows.came:
                return

    async def _send(self, model: str, *, whole: bool) -> None:
        rows = self._unknown(self._rows.take(model))
        try:
            while rows and self._rows.stopped is None and (whole or len(rows) >= self._most(model)):
                if self._blocked(model):
                    break
                rows = await self._submit(model, rows)
        finally:
            self._rows.put_back(rows)

    def _unknown(self, rows: list[QueuedRequest]) -> list[QueuedRequest]:
        """Return the rows to send; others have a response by now, or wait for a batch in the ledger."""
        known = self._ledger.find(row.key for row in rows)
        attached: dict[int, list[str]] = {}
        left: list[QueuedRequest] = []
        for row in rows:
            found = known.get(row.key)
            if found is not None and found.state == "sent":  # perhaps partly merged
                attached.setdefault(found.batch, []).append(row.key)
            elif found is not None and found.outcome is not None and found.outcome.code == ANSWERED:
                self._rows.give(found.outcome)
            else:
                left.append(row)
        for number, keys in attached.items():
            entry = self._ledger.entry(number)
            if entry is not None:
                self._poller.attach(entry, keys)
                self._retry.say(f"batch {entry.id} was sent before; {len(keys)} rows wait for it")
        stored = self._kept([row.key for row in left])  # by another run, meanwhile
        for key, reply in stored.items():
            self._rows.answer(key, reply)
        return [row for row in left if row.key not in stored]

    async def _submit(self, model: str, rows: list[QueuedRequest]) -> list[QueuedRequest]:
        """Submit a batch of as many of the first rows as fit; return the others, or all if it was refused."""
        path, most = self._ledger.upload_path, self._most(model)
        try:
            written = await asyncio.to_thread(
                write_batch_input, path, rows, self._service.url, most_lines=most, most_bytes=self._size
            )
            for key, failure in written.unfit.items():
                self._rows.fail(key, failure)
            left = rows[len(rows) - written.left :] if written.left else []
            if not written.keys:
                return left
            entry = self._ledger.claim(secrets.token_hex(16), self._endpoint, model, written.keys)
            try:
                status = await self._handed_over(entry)
            except QueueFullError:
                self._ledger.drop(entry.number)
                self.ended(model, len(written.keys), full=True)
                return rows
            except RequestError as failure:
                if failure.code != "request_too_large":
                    raise
                self._ledger.drop(entry.number)
                if len(written.keys) == 1:
                    self._rows.fail(written.keys[0], failure)
                    return left
                self._size = max(1, path.stat().st_size // 2)
                return rows
        finally:
            path.unlink(missing_ok=True)
        self._ledger.sent(entry.number, status.id)
        self._poller.attach(replace(entry, id=status.id, state="sent"), written.keys)
        self._retry.say(f"batch {status.id}: {entry.lines} requests of {entry.model} sent")
        return left

    async def _handed_over(self, entry: LedgerBatch) -> BatchStatus:
        """Upload the input and create the batch, once."""
        call_with_retries, name = self._retry.call_with_retries, upload_name(entry.token)
        file_id, ready = await call_with_retries(lambda: self._service.upload(self._ledger.upload_path, name))
        waited = 0.0
        while not ready:
            if waited > self._retry.seconds:
                raise RequestError("server_down", f"the server has not processed {name} for {waited:.0f} s")
            await self._retry.pause(self._limits.first_look)
            waited += self._limits.first_look
            ready = await call_with_retries(lambda: self._service.ready(file_id))
        tries = 0

        async def made() -> BatchStatus:
            nonlocal tries
            tries += 1
            # The response to an earlier attempt may have been lost although the batch was created.
            found = await self._service.find(entry.token, entry.made) if tries > 1 else None
            return found or await self._service.create(file_id, entry.token)

        try:
            return await call_with_retries(made)
        except QueueFullError:
            await call_with_retries(lambda: self._service.delete(file_id))
            raise


def upload_name(token: str) -> str:
    """Return the file name of a batch's input."""
    return f"pairwright-{token}.jsonl"


async def recover_batches(ledger: BatchLedger, service: BatchService, retry: BatchRetry, endpoint: str) -> None:
    """Find out whether claimed batches of dead processes exist at the server; requires the turn."""
    for entry in ledger.entries(endpoint, "claimed"):
        try:
            found = await retry.call_with_retries(partial(service.find, entry.token, entry.made))
            if found is None:
                for file_id in await retry.call_with_retries(partial(service.uploads, upload_name(entry.token))):
                    await service.delete(file_id)
        except RequestError as failure:
            if failure.status not in _NO_LISTING:
                raise
            found = None
            retry.say("the server does not list batches: a batch of a killed run may be billed twice")
        if found is not None:
            ledger.sent(entry.number, found.id)
            retry.say(f"batch {found.id} of a killed run is resumed")
        else:
            ledger.drop(entry.number)


async def _first_completed(*waits: Awaitable[object]) -> None:
    """Wait for the first of several awaitables; cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
