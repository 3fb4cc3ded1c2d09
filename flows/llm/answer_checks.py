"""Checks of the answers of finished rows, in batches and in the order of the rows, while further answers come.

Batches have a fixed number of items, so their contents do not depend on when answers arrive or on the number of workers.
The caller never waits for a check before the last row: `AnswerChecks.is_full` says when it should bring no further rows.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from threading import Thread
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pairwright.datasets.errors import PairwrightError
from pairwright.generators.llm.runner import RowResult

CHECKED_AT_ONCE: Final = 256  # items
_AHEAD: Final = 2  # batches per worker that are started; as many may wait

Item = TypeVar("Item")
Value = TypeVar("Value")

AnswerCheck = Callable[[Sequence[tuple[Any, Any]]], Sequence[Any]]
"""Returns what to use in place of each result, from items with their results."""


class FinishedItem(NamedTuple, Generic[Item]):
    """An item of a finished row.

    Attributes:
        item: the item.
        done: its row, with the name and the result of this item; None after an error.
    """

    item: Item
    done: RowResult[Any]


class AnswerChecks:
    """Where the answers of one pass are checked.

    Args:
        check: the check, which may become known while the first answers come; pickled if there is an ``executor``.
        executor: runs checks; None: they run in this process.
        workers: of the executor.
    """

    def __init__(self, check: "Future[AnswerCheck]", executor: Executor | None = None, workers: int = 1) -> None:
        self._check, self._executor, self._ahead = check, executor, _AHEAD * workers
        self._waiting = deque[list[FinishedItem[Any]]]()
        self._running = deque[tuple[list[FinishedItem[Any]], Future[Sequence[Any]]]]()

    def is_full(self) -> bool:
        """Return whether as many batches wait as there may be, and none of them has ended."""
        if not self._check.done():
            return len(self._waiting) >= self._ahead
        return len(self._running) >= 2 * self._ahead and not self._running[0][1].done()

    def results(self, finished: Iterable[FinishedItem[Item]]) -> Iterator[FinishedItem[Item]]:
        """Yield items with checked results, in order.

        When the run is stopped, all finished items are checked; after Ctrl-C not if the check is not known yet.

        Raises:
            PairwrightError: of the check, or when a worker process was killed; and what ``finished`` raises.
        """
        batch: list[FinishedItem[Item]] = []
        try:
            for each in finished:
                batch.append(each)
                if len(batch) == CHECKED_AT_ONCE:
                    self._waiting.append(batch)
                    batch = []
                yield from self._advance()
        except (PairwrightError, KeyboardInterrupt) as stop:
            if isinstance(stop, PairwrightError) or self._check.done():
                yield from self._drain(batch)
            raise
        yield from self._drain(batch)

    def _advance(self) -> Iterator[FinishedItem[Any]]:
        """Start what can be started; yield the items whose checks have ended."""
        if self._check.done():
            self._start()
        while self._running and self._running[0][1].done():
            yield from self._oldest()

    def _drain(self, last: list[FinishedItem[Any]]) -> Iterator[FinishedItem[Any]]:
        """Yield all remaining items, once they are checked."""
        if last:
            self._waiting.append(last)
        self._start()
        while self._running:
            yield from self._oldest()

    def _start(self) -> None:
        """Start the checks of all waiting batches."""
        while self._waiting:
            batch = self._waiting.popleft()
            answered = [(each.item, each.done.result) for each in batch if each.done.error is None]
            self._running.append((batch, self._submit(answered)))

    def _submit(self, answered: Sequence[tuple[Any, Any]]) -> "Future[Sequence[Any]]":
        check = self._check.result()
        if self._executor is not None and answered:
            return self._executor.submit(check, answered)
        return completed(check(answered) if answered else ())

    def _oldest(self) -> Iterator[FinishedItem[Any]]:
        batch, future = self._running.popleft()
        try:
            results = iter(future.result())
        except BrokenProcessPool:
            raise PairwrightError(
                "a worker process died (killed, or out of memory). Start again, with fewer --workers if memory is short."
            ) from None
        for each in batch:
            item, done = each
            if done.error is None:
                done = done.with_result(next(results), row=done.row, attempt=done.attempt)
            yield FinishedItem(item, done)


def completed(value: Value) -> "Future[Value]":
    """Return a future that has ended."""
    future = Future[Value]()
    future.set_result(value)
    return future


def in_background(work: Callable[[], Value]) -> "Future[Value]":
    """Start work in a thread, which does not keep the process alive; return its future result."""
    future = Future[Value]()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is needed
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
