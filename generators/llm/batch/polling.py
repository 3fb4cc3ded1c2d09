"""Looking after batches at the server: how far they are, and merging them when they have ended.

A merge is done by one process (`Ledger.turn`); another that waits for the same batch then finds its answers in the
ledger. It may be broken off anywhere and done again. Once all is in the ledger, the files at the server are deleted:
they hold what users sent, and count against the account's room. Files of a run that never comes back end by themselves
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

POLL_GROWTH = 1.5  # of the time between two looks

_GONE = 404
_PASSES = re.compile(r"server_error|internal|timeout|temporar", re.IGNORECASE)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningBatch:
    """A batch that rows wait for.

    Attributes:
        entry: as in the ledger.
        keys: of rows that wait for it here (values unused: an ordered set).
        at_work: whether it was seen before anybody cancelled it.
        completed, failed: lines, as the server counts them.
    """

    entry: LedgerBatch
    keys: dict[str, None]
    at_work: bool = False
    completed: int = 0
    failed: int = 0


@dataclass(slots=True)
class _InvalidLines:
    """Lines that are of no use: not readable, or of no request of the batch."""

    damaged: int = 0
    strange: int = 0


class BatchPoller:
    """Looks at batches until they have ended."""

    def __init__(
        self, desk: BatchContext, *, looks: tuple[float, float], on_end: Callable[[str, int, bool], None]
    ) -> None:
        """Prepare a collector.

        Args:
            desk: shared.
            looks: seconds between two looks, at first and at most.
            on_end: told model and lines of a batch that has ended, and whether the server's queue was full.
        """
        self._rows, self._ledger, self._service, self._patience = desk.rows, desk.ledger, desk.service, desk.patience
        self._hide, self._kept, self._looks, self._on_end = desk.hide, desk.kept, looks, on_end
        self._ending = asyncio.Lock()
        self._wait = looks[0]
        self._new = asyncio.Event()
        self.running: dict[int, RunningBatch] = {}

    def attach(self, entry: LedgerBatch, keys: Sequence[str]) -> None:
        """Let rows wait for a batch that is at the server."""
        found = self.running.setdefault(entry.number, RunningBatch(entry, {}))
        found.keys.update(dict.fromkeys(keys))
        self._wait = self._looks[0]
        self._new.set()

    def works_on(self, model: str) -> bool:
        """Return whether a batch of a model is at the server."""
        return any(running.entry.model == model for running in self.running.values())

    async def whole(self) -> None:
        """Wait until no batch is being merged: its answers go out before its end is noted."""
        async with self._ending:
            return

    async def run(self) -> None:
        """Look, as long as there is hope; ends when the run has stopped."""
        while self._rows.stopped is None:
            self._new.clear()
            if not self.running:
                await self._new.wait()
            for running in list(self.running.values()):
                if self._rows.stopped is None and await self._look(running):
                    # After it has left: what is told of the end may ask what still runs.
                    self._wait = self._looks[0]
            if self.running:
                await self._patience.pause(self._wait)
                self._wait = min(self._wait * POLL_GROWTH, self._looks[1])

    async def _look(self, running: RunningBatch) -> bool:
        """Look at a batch; return whether it has ended."""
        entry = running.entry
        try:
            status = await self._patience.call_with_retries(lambda: self._service.retrieve(entry.id))
        except RequestError as failure:
            if failure.status != _GONE:
                raise
            status = None
        if status is not None and not status.ended:
            running.at_work |= status.status != "cancelling"
            running.completed, running.failed = status.completed, status.failed
            return False
        ours = bool(running.keys)
        async with self._ending, self._ledger.turn(self._patience.pause):
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
        """Merge what a batch has made; return whether it was refused for a full queue."""
        entry = running.entry
        if status is None:
            self._patience.say(f"batch {entry.id} is no longer known to the server; its rows are sent again")
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
        odd = _InvalidLines()
        for file_id in (status.output_file, status.error_file):
            if file_id:
                await self._patience.call_with_retries(partial(self._read, running, file_id, odd))
        self._ledger.end(running.entry.number)
        if odd.damaged or odd.strange:
            self._patience.say(
                f"batch {status.id}: {odd.damaged} lines of its files cannot be read, {odd.strange} are of no request"
                " of it; rows without a line are sent again"
            )
        self._patience.say(
            f"batch {status.id} is {status.status}: {status.completed} of {running.entry.lines} requests answered,"
            f" {status.failed} failed"
        )

    async def _read(self, running: RunningBatch, file_id: str, odd: _InvalidLines) -> None:
        number = running.entry.number
        before, strange = odd.damaged, odd.strange
        try:
            async for lines in self._service.lines(file_id):
                outcomes, damaged = read_lines(lines, hide=self._hide)
                odd.damaged += damaged
                new = self._ledger.store(number, outcomes)
                old = [outcome.key for outcome in outcomes if outcome.key not in new]
                known = self._ledger.find(old) if old else {}
                odd.strange += sum(key not in known or known[key].batch != number for key in old)
                self._give(running, outcomes, new)
        except RequestError as failure:
            odd.damaged, odd.strange = before, strange  # it is read again from the start
            if failure.status != _GONE:
                raise
            self._patience.say(f"batch {running.entry.id}: the server has lost its file {file_id}")

    def _give(self, running: RunningBatch, outcomes: Sequence[LineResult], new: set[str]) -> None:
        for outcome in outcomes:
            if outcome.key in new:
                new.remove(outcome.key)  # a second line of the same key says nothing
                running.keys.pop(outcome.key, None)
                self._rows.give(outcome)

    def _rest(self, running: RunningBatch) -> None:
        """Give rows what another process has merged for them, or one that died over it: the ledger's, or the safe copy."""
        entry = running.entry
        known = self._ledger.find(running.keys)
        merged = {key: found.outcome for key, found in known.items() if found.batch == entry.number and found.outcome}
        # In this order: the ledger lets go of what is safe.
        kept = self._kept([key for key in running.keys if key not in merged])
        for key in running.keys:
            if key in merged:
                self._rows.give(merged[key])
            elif key in kept:
                self._rows.answer(key, kept[key])
            else:
                self._rows.fail(key, RequestError("cut_off", f"batch {entry.id} has ended without a line for it"))

    def _refused(self, running: RunningBatch, status: BatchStatus) -> None:
        """Free the rows of a batch whose input the server has not accepted; nothing of it was paid."""
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
            failure = self._failure_of(flaw, f"{status.id}, {len(status.flaws)} flaws; ")
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
                self._rows.fail(key, RequestError("server_error", "another line made the server refuse the batch"))

    def _failure_of(self, flaw: InputProblem, prefix: str) -> RequestError:
        """Return what a flaw means for the run: what may pass, what a word stands for, or a batch that cannot be."""
        status = 500 if _PASSES.search(flaw.code) else 400
        said = orjson.dumps({"error": {"code": flaw.code, "message": flaw.message}})
        failure = parse_error(status, {}, said, hide=self._hide)
        if failure.transient or failure.fatal:
            return failure
        return RequestError("bad_batch", self._hide(f"{prefix}{flaw.code}: {flaw.message}"))

    async def _delete(self, status: BatchStatus) -> None:
        for file_id in (status.input_file, status.output_file, status.error_file):
            if file_id:
                try:
                    await self._service.delete(file_id)
                except RequestError as failure:
                    _log.info("batch %s: file %s stays at the server (%s)", status.id, file_id, failure.code)
