"""Closing batches and handing them over.

A batch is closed when it is full, or when nothing more has come for a while. It is claimed in the ledger before anything
is sent, and carries a token in its metadata, so that a process that dies at any point leaves a batch that the next
one finds, or none.

Where the server's queue is full (``token_limit_exceeded``), batches of that model go one after the other; one that is
refused though nothing of ours is queued is halved, and the next ones grow again.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pairwright.generators.llm.batch.context import BatchContext, BatchRetry
from pairwright.generators.llm.batch.ledger import BatchLedger, LedgerBatch
from pairwright.generators.llm.batch.lines import ANSWERED, write_batch_input
from pairwright.generators.llm.batch.polling import BatchPoller
from pairwright.generators.llm.batch.queue import QueuedRequest
from pairwright.generators.llm.batch.service import BatchService, BatchStatus, QueueFullError
from pairwright.generators.llm.client.request_errors import RequestError

QUEUE_FULL_DELAY_S, QUEUE_FULL_MAX_DELAY_S = (
    30.0,
    600.0,
)  # pauses before a refused batch is tried again, while nothing of ours is queued
DELAY_GROWTH = 1.5  # of batches that are accepted, while the queue is short

_NO_LISTING = {404, 405, 501}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What a batch may hold, and how long is waited for what.

    Attributes:
        lines: requests of a batch, at most.
        size: bytes of its file, at most.
        idle: seconds in which nothing more has come, after which what is queued is sent.
        first_look, longest_look: seconds between two looks at a batch, at first and at most.
        queue_patience: seconds to wait for room in a full queue of the server's, before the run stops.
    """

    lines: int = 50_000
    size: int = 200_000_000
    idle: float = 10.0
    first_look: float = 5.0
    longest_look: float = 120.0
    queue_patience: float = 24 * 3600.0


@dataclass(slots=True)
class _FullQueue:
    """A model of which the server's queue was full: lines of the next batch, refusals in a row, seconds waited."""

    most: int
    refusals: int = 0
    waited: float = 0.0


class BatchSubmitter:
    """Sends what is queued."""

    def __init__(self, desk: BatchContext, collector: BatchPoller, limits: BatchLimits) -> None:
        self._rows, self._ledger, self._service, self._patience = desk.rows, desk.ledger, desk.service, desk.patience
        self._endpoint, self._kept, self._collector, self._limits = desk.endpoint, desk.kept, collector, limits
        self._size = limits.size
        self._held: dict[str, _FullQueue] = {}
        self._came, self._now = asyncio.Event(), asyncio.Event()
        self._flush = self._taken_up = False

    def queued(self) -> None:
        """A row has come."""
        self._came.set()
        if any(self._rows.queued(model) >= self._most(model) for model in self._rows.models()):
            self._now.set()

    def flush(self) -> None:
        """Send what is queued without waiting for more."""
        if self._rows.models():
            self._flush = True
            self._now.set()

    def ended(self, model: str, lines: int, full: bool) -> None:  # noqa: FBT001 - a callback's fact
        """A batch has ended; ``full``: it was refused since the server's queue was full."""
        held = self._held.get(model)
        if full:
            held = self._held.setdefault(model, _FullQueue(self._limits.lines))
            if not self._collector.works_on(model):
                self._refused_alone(held, lines)
        elif held is not None:
            held.most = min(int(held.most * DELAY_GROWTH) + 1, self._limits.lines)
            held.refusals, held.waited = 0, 0.0
        self._came.set()

    async def run(self) -> None:
        """Send, as long as there is hope; ends when the run has stopped."""
        while self._rows.stopped is None:
            self._came.clear()
            free = [model for model in self._rows.models() if not self._blocked(model)]
            if not free:
                await self._came.wait()
                continue
            for held in (self._held[model] for model in free if model in self._held):
                await self._wait_for_room(held)
            await self._until_quiet()
            whole = self._flush or not self._now.is_set()
            self._flush = False
            self._now.clear()
            async with self._ledger.turn(self._patience.pause):
                await self._take_up()
                for model in free:
                    await self._send(model, whole=whole)

    async def _take_up(self) -> None:
        """Look after what earlier runs have left at the server: it is paid, whoever will ask for it."""
        await recover_batches(self._ledger, self._service, self._patience, self._endpoint)
        if not self._taken_up:
            self._taken_up = True
            for entry in self._ledger.entries(self._endpoint, "sent"):
                self._collector.attach(entry, [])

    def _most(self, model: str) -> int:
        held = self._held.get(model)
        return held.most if held else self._limits.lines

    def _blocked(self, model: str) -> bool:
        return model in self._held and self._collector.works_on(model)

    def _refused_alone(self, held: _FullQueue, lines: int) -> None:
        held.most = max(1, min(held.most, lines) // 2)
        held.refusals += 1

    async def _wait_for_room(self, held: _FullQueue) -> None:
        if not held.refusals:
            return
        if held.waited >= self._limits.queue_patience:
            raise RequestError("no_quota", f"token_limit_exceeded: no room in the queue for {held.waited / 3600:.0f} h")
        wait = min(QUEUE_FULL_DELAY_S * 2.0 ** min(held.refusals - 1, 30), QUEUE_FULL_MAX_DELAY_S)
        held.waited += wait
        await self._patience.pause(wait)

    async def _until_quiet(self) -> None:
        """Wait until a batch is full, a flush is asked for, or nothing more comes."""
        while not self._now.is_set():
            seen = self._rows.came
            await _first_completed(self._patience.pause(self._limits.idle), self._now.wait())
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
        """Return the rows that have to be sent; others have an answer by now, or wait for a batch in the ledger."""
        known = self._ledger.find(row.key for row in rows)
        attached: dict[int, list[str]] = {}
        left: list[QueuedRequest] = []
        for row in rows:
            found = known.get(row.key)
            if found is not None and found.state == "sent":  # perhaps half merged: its end will tell
                attached.setdefault(found.batch, []).append(row.key)
            elif found is not None and found.outcome is not None and found.outcome.code == ANSWERED:
                self._rows.give(found.outcome)
            else:
                left.append(row)
        for number, keys in attached.items():
            entry = self._ledger.entry(number)
            if entry is not None:
                self._collector.attach(entry, keys)
                self._patience.say(f"batch {entry.id} was sent before; {len(keys)} rows wait for it")
        return self._unsafe(left)

    def _unsafe(self, rows: list[QueuedRequest]) -> list[QueuedRequest]:
        """Return the rows of which no other run has made an answer safe, and let go of it in the ledger, meanwhile."""
        kept = self._kept([row.key for row in rows])
        for key, reply in kept.items():
            self._rows.answer(key, reply)
        return [row for row in rows if row.key not in kept]

    async def _submit(self, model: str, rows: list[QueuedRequest]) -> list[QueuedRequest]:
        """Send a batch of the first rows, as many as fit; return the others, or all where it could not be."""
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
        self._accepted(replace(entry, id=status.id, state="sent"), written.keys)
        return left

    def _accepted(self, entry: LedgerBatch, keys: Sequence[str]) -> None:
        self._ledger.sent(entry.number, entry.id)
        self._collector.attach(entry, keys)
        self._patience.say(f"batch {entry.id}: {entry.lines} requests of {entry.model} sent")

    async def _handed_over(self, entry: LedgerBatch) -> BatchStatus:
        """Upload the input and make the batch, once."""
        call_with_retries, name = self._patience.call_with_retries, upload_name(entry.token)
        file_id, ready = await call_with_retries(lambda: self._service.upload(self._ledger.upload_path, name))
        waited = 0.0
        while not ready:
            if waited > self._patience.seconds:
                raise RequestError("server_down", f"the server has not taken {name} in for {waited:.0f} s")
            await self._patience.pause(self._limits.first_look)
            waited += self._limits.first_look
            ready = await call_with_retries(lambda: self._service.ready(file_id))
        tries = 0

        async def made() -> BatchStatus:
            nonlocal tries
            tries += 1
            # The answer to an earlier try may have been lost, and the batch made all the same.
            found = await self._service.find(entry.token, entry.made) if tries > 1 else None
            return found or await self._service.create(file_id, entry.token)

        try:
            return await call_with_retries(made)
        except QueueFullError:
            await call_with_retries(lambda: self._service.delete(file_id))
            raise


def upload_name(token: str) -> str:
    """Return the name under which the input of a batch is uploaded."""
    return f"pairwright-{token}.jsonl"


async def recover_batches(ledger: BatchLedger, service: BatchService, patience: BatchRetry, endpoint: str) -> None:
    """Find out what became of batches whose maker died before it knew; for who holds the turn."""
    for entry in ledger.entries(endpoint, "claimed"):
        try:
            found = await patience.call_with_retries(partial(service.find, entry.token, entry.made))
            if found is None:
                for file_id in await patience.call_with_retries(partial(service.uploads, upload_name(entry.token))):
                    await service.delete(file_id)
        except RequestError as failure:
            if failure.status not in _NO_LISTING:
                raise
            found = None
            patience.say("the server lists no batches: whether one was made before this run was killed cannot be known")
        if found is not None:
            ledger.sent(entry.number, found.id)
            patience.say(f"batch {found.id} was made by a run that was killed; it is taken up")
        else:
            ledger.drop(entry.number)


async def _first_completed(*waits: Awaitable[object]) -> None:
    """Wait for the first of several; the others are given up."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
