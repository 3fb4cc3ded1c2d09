"""Requests that wait for a batch: queued by model, answered by key, queued again after transient errors.

A waiting request is a small object with futures; its body is built when its batch is submitted. Identical requests share
a line.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from pairwright.generators.llm.batch.lines import ANSWERED, LineResult, QueuedRequest
from pairwright.generators.llm.client.chat_completions import parse_reply
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError


class RequestQueue:
    """All requests without a response."""

    def __init__(self, max_retries: int) -> None:
        self._most = max_retries
        self.on_queued: Callable[[], None] = lambda: None  # called for each new request
        self._rows: dict[str, QueuedRequest] = {}
        self._queued: dict[str, dict[str, QueuedRequest]] = {}
        self._handed: list[str] = []
        self.came = 0  # requests queued so far
        self.stopped: Exception | None = None

    async def ask(self, key: str, request: Request) -> Reply:
        """Queue a request and wait for its response.

        Raises:
            RequestError: no response, or the run was stopped.
        """
        if self.stopped is not None:
            raise _copy_error(self.stopped)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = QueuedRequest(key, request)
            self._queue(row)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        row.waiters.append(future)
        try:
            reply = await future
        finally:
            row.waiters.remove(future)
        self._handed.append(key)
        return reply

    def __len__(self) -> int:
        """Return the number of requests without a response."""
        return len(self._rows)

    def models(self) -> list[str]:
        """Return the models of queued requests."""
        return [model for model, rows in self._queued.items() if rows]

    def queued(self, model: str) -> int:
        """Return the number of queued requests of a model."""
        return len(self._queued.get(model, ()))

    def take(self, model: str) -> list[QueuedRequest]:
        """Remove and return the queued requests of a model; requests that no caller waits for are dropped."""
        rows = self._queued.pop(model, {}).values()
        for row in rows:
            if not row.waiters:
                self._rows.pop(row.key, None)
        return [row for row in rows if row.waiters]

    def put_back(self, rows: list[QueuedRequest]) -> None:
        """Queue requests again that were taken and not sent."""
        for row in rows:
            if row.key in self._rows:
                self._queued.setdefault(row.request.model, {})[row.key] = row

    def give(self, outcome: LineResult) -> None:
        """Pass on the result of a line."""
        if outcome.code != ANSWERED:
            self.fail(outcome.key, outcome.failure())
            return
        if outcome.key in self._rows:
            self.answer(outcome.key, parse_reply(outcome.data))

    def answer(self, key: str, reply: Reply) -> None:
        """Pass on the response to a key."""
        row = self._rows.pop(key, None)
        for waiter in row.waiters if row else ():
            if not waiter.done():
                waiter.set_result(reply)
                reply = replace(reply, cached=True)  # identical requests were billed once

    def fail(self, key: str, failure: RequestError) -> None:
        """Queue a request again if its error is transient, else end it, or the run, in the error."""
        row = self._rows.get(key)
        if row is None:
            return
        if failure.fatal:
            self.stop(failure)
        elif failure.transient and row.tries < self._most:
            row.tries += 1
            self._queue(row)
        else:
            del self._rows[key]
            _fail_waiters(row, failure)

    def again(self, key: str) -> None:
        """Queue a request again that was not sent, without counting an attempt."""
        row = self._rows.get(key)
        if row is not None:
            self._queue(row)

    def stop(self, error: Exception) -> None:
        """End all requests, also later ones, in an error; the first error counts."""
        if self.stopped is None:
            self.stopped = error
        rows, self._rows, self._queued = self._rows, {}, {}
        for row in rows.values():
            _fail_waiters(row, self.stopped)

    def handed(self) -> list[str]:
        """Return the keys of responses passed on since the last call."""
        keys, self._handed = self._handed, []
        return keys

    def _queue(self, row: QueuedRequest) -> None:
        self.came += 1
        self._queued.setdefault(row.request.model, {})[row.key] = row
        self.on_queued()


def _fail_waiters(row: QueuedRequest, error: Exception) -> None:
    for waiter in row.waiters:
        if not waiter.done():
            waiter.set_exception(_copy_error(error))


def _copy_error(error: Exception) -> Exception:
    return error.copy() if isinstance(error, RequestError) else error
