"""Polling of batches at the server, and merging them when they have ended.

One process merges a batch (`BatchLedger.turn`); another that waits for the same batch then finds its responses in the
ledger. A merge may be interrupted anywhere and repeated. Once all lines are in the ledger, the files at the server are
deleted: they hold the users' data and count against the account's storage. Files of a run that is never resumed expire
(OpenAI: after 30 days).
"""

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import orjson

from pairwright.generators.llm.batch.context import BatchContext
from pairwright.generators.llm.batch.ledger import LedgerBatch
from pairwright.generators.llm.batch.lines import LineResult, read_lines
from pairwright.generators.llm.batch.service import BatchStatus, InputProblem
from pairwright.generators.llm.client.chat_completions import parse_error
from pairwright.generators.llm.client.request_errors import RequestError

POLL_GROWTH = 1.5  # of the time between polls

_GONE = 404
_PASSES = re.compile(r"server_error|internal|timeout|temporar", re.IGNORECASE)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningBatch:
    """Batch that rows wait for.

    Attributes:
        entry: of the ledger.
        keys: of rows that wait for it (values unused: an ordered set).
        at_work: whether it was seen running before it was cancelled.
    """

    entry: LedgerBatch
    keys: dict[str, None]
    at_work: bool = False


class BatchPoller:
    """Polls batches until they have ended."""

    def __init__(
        self, context: BatchContext, *, intervals: tuple[float, float], on_end: Callable[[str, int, bool], None]
    ) -> None:
        """Create a poller.

        Args:
            context: shared state.
            intervals: seconds between polls, at first and at most.
            on_end: called with model and lines of a batch that has ended, and whether the server's queue was full.
        """
        self._rows, self._ledger = context.rows, context.ledger
        self._service, self._retry = context.service, context.retry
        self._hide, self._kept, self._intervals, self._on_end = context.hide, context.kept, intervals, on_end
        self._ending = asyncio.Lock()
        self._wait = intervals[0]
        self._new = asyncio.Event()
        self.running: dict[int, RunningBatch] = {}

    def attach(self, entry: LedgerBatch, keys: Sequence[str]) -> None:
        """Let rows wait for a batch at the server."""
        found = self.running.setdefault(entry.number, RunningBatch(entry, {}))
        found.keys.update(dict.fromkeys(keys))
        self._wait = self._intervals[0]
        self._new.set()

    def works_on(self, model: str) -> bool:
        """Return whether a batch of a model is at the server."""
        return any(running.entry.model == model for running in self.running.values())

    async def whole(self) -> None:
        """Wait until no batch is being merged: its responses are given out before its end is recorded."""
        async with self._ending:
            return

    async def run(self) -> None:
        """Poll until the run is stopped."""
        while self._rows.stopped is None:
            self._new.clear()
            if not self.running:
                await self._new.wait()
            for running in list(self.running.values()):
                if self._rows.stopped is None and await self._poll(running):
                    # After it has been removed: `on_end` may ask which batches run.
                    self._wait = self._intervals[0]
            if self.running:
                await self._retry.pause(self._wait)
                self._wait = min(self._wait * POLL_GROWTH, self._intervals[1])

    async def _poll(self, running: RunningBatch) -> bool:
        """Poll a batch; return whether it has ended."""
        entry = running.entry
        try:
            status = await self._retry.call_with_retries(lambda: self._service.retrieve(entry.id))
        except RequestError as failure:
            if failure.status != _GONE:
                raise
            status = None
        if status is not None and not status.ended:
            running.at_work |= status.status != "cancelling"
            return False
        ours = bool(running.keys)
        async with self._ending, self._ledger.turn(self._retry.pause):
            now = self._ledger.entry(entry.number)
            full = False
            if now is not None and now.state != "ended":
                full = await self._settle(running, status)
            del self.running[entry.number]
            self._rest(running)
            if status is not None and status.status == "cancelled" and ours and running.at_work:
                self._rows.stop(RequestError("batch_cancelled", entry.id))
        self._on_end(entry.model, entry.lines, full)
        return True

    async def _settle(self, running: RunningBatch, status: BatchStatus | None) -> bool:
        """Merge the results of a batch; return whether it was refused because of a full queue."""
        entry = running.entry
        if status is None:
            self._retry.say(f"batch {entry.id} is unknown to the server; its rows are sent again")
            self._ledger.end(entry.number)
        elif status.status == "failed":
            self._refused(running, status)
            await self._delete(status)
            return status.queue_full
        else:
            await self._merge(running, status)
            await self._delete(status)
        return False

    async def _merge(self, running: RunningBatch, status: BatchStatus) -> None:
        damaged = strange = 0  # lines that are unreadable, and of no request of the batch
        for file_id in (status.output_file, status.error_file):
            if file_id:
                found = await self._retry.call_with_retries(partial(self._read, running, file_id))
                damaged, strange = damaged + found[0], strange + found[1]
        self._ledger.end(running.entry.number)
        if damaged or strange:
            self._retry.say(
                f"batch {status.id}: {damaged} unreadable lines, {strange} lines of unknown requests;"
                " rows without a line are sent again"
            )
        self._retry.say(
            f"batch {status.id} is {status.status}: {status.completed} of {running.entry.lines} requests answered,"
            f" {status.failed} failed"
        )

    async def _read(self, running: RunningBatch, file_id: str) -> tuple[int, int]:
        """Merge a file; return the numbers of its lines that are unreadable, and of no request of the batch."""
        number, damaged, strange = running.entry.number, 0, 0
        try:
            async for lines in self._service.lines(file_id):
                outcomes, unreadable = read_lines(lines, hide=self._hide)
                new = self._ledger.store(number, outcomes)
                old = [outcome.key for outcome in outcomes if outcome.key not in new]
                known = self._ledger.find(old) if old else {}
                damaged += unreadable
                strange += sum(key not in known or known[key].batch != number for key in old)
                self._give(running, outcomes, new)
        except RequestError as failure:
            if failure.status != _GONE:
                raise
            self._retry.say(f"batch {running.entry.id}: the server has lost its file {file_id}")
            return 0, 0
        return damaged, strange

    def _give(self, running: RunningBatch, outcomes: Sequence[LineResult], new: set[str]) -> None:
        for outcome in outcomes:
            if outcome.key in new:
                new.remove(outcome.key)  # ignore a second line of the same key
                running.keys.pop(outcome.key, None)
                self._rows.give(outcome)

    def _rest(self, running: RunningBatch) -> None:
        """Answer rows whose lines another process has merged, from the ledger or the cache."""
        entry = running.entry
        known = self._ledger.find(running.keys)
        merged = {key: found.outcome for key, found in known.items() if found.batch == entry.number and found.outcome}
        # After the ledger, which removes what is in the cache.
        kept = self._kept([key for key in running.keys if key not in merged])
        for key in running.keys:
            if key in merged:
                self._rows.give(merged[key])
            elif key in kept:
                self._rows.answer(key, kept[key])
            else:
                self._rows.fail(key, RequestError("cut_off", f"batch {entry.id} has ended without a line for it"))

    def _refused(self, running: RunningBatch, status: BatchStatus) -> None:
        """Free the rows of a batch whose input the server has not accepted; nothing of it was billed."""
        entry = running.entry
        named = {self._ledger.key_at(entry.number, flaw.line): flaw for flaw in status.flaws if flaw.line}
        whole = next((flaw for flaw in status.flaws if not flaw.line), None)
        self._ledger.drop(entry.number)
        keys, running.keys = running.keys, {}
        if status.queue_full:
            for key in keys:
                self._rows.again(key)
        elif named and whole is None and len(named) < entry.lines:
            self._refused_lines(keys, {key: flaw for key, flaw in named.items() if key})
        else:
            flaw = whole or next(iter(status.flaws), InputProblem("", "no reason given", 0))
            failure = self._failure_of(flaw, f"{status.id}, {len(status.flaws)} problems; ")
            for key in keys:
                self._rows.fail(key, failure)
            if not failure.transient:
                self._rows.stop(failure)

    def _refused_lines(self, keys: dict[str, None], named: dict[str, InputProblem]) -> None:
        for key in keys:
            if key in named:
                failure = self._failure_of(named[key], "")
                self._rows.fail(
                    key, RequestError("bad_request", failure.detail) if failure.code == "bad_batch" else failure
                )
            else:
                self._rows.fail(
                    key, RequestError("server_error", "the server refused the batch because of another line")
                )

    def _failure_of(self, flaw: InputProblem, prefix: str) -> RequestError:
        """Return the error for a problem of the input: transient, of a known code, or ``bad_batch``."""
        status = 500 if _PASSES.search(flaw.code) else 400
        body = orjson.dumps({"error": {"code": flaw.code, "message": flaw.message}})
        failure = parse_error(status, {}, body, hide=self._hide)
        if failure.transient or failure.fatal:
            return failure
        return RequestError("bad_batch", self._hide(f"{prefix}{flaw.code}: {flaw.message}"))

    async def _delete(self, status: BatchStatus) -> None:
        for file_id in (status.input_file, status.output_file, status.error_file):
            if file_id:
                try:
                    await self._service.delete(file_id)
                except RequestError as failure:
                    _log.info("batch %s: file %s was not deleted at the server (%s)", status.id, file_id, failure.code)
