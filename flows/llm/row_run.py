"""The driver that asks a model about rows: session, context, failed rows, progress, bill.

    task = PairTask(generator, access, options, seed)
    run = run_rows(access, task, task.rows(pairs), total, nullcontext(sink), out=out, note=note, watch=watch)
    return {"llm": run.bill(), "failed": run.failures()}

A task says what is asked about items (`ModelRow.step`, a generator function that yields requests), how the answers of
many items are checked (`RowTask.checks`), and what the result of an item means (`RowTask.finish`). Items and outputs reach
the sink in the order of the rows. Answers are in the cache, so a run that was stopped continues with the same command.
Memory: the rows in flight, and those whose answers are being checked.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.llm.answer_checks import AnswerChecks, FinishedItem
from pairwright.flows.llm.context import ContextProvider, ModelRow
from pairwright.flows.llm.failed_rows import FailedRows, failed_rows_path
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.runner import LLMRow, RequestTotals, RowResult
from pairwright.generators.llm.session import Snapshot

Item = TypeVar("Item")
Output = TypeVar("Output")
T = TypeVar("T")
Item_contra = TypeVar("Item_contra", contravariant=True)
Output_co = TypeVar("Output_co", covariant=True)

Sink = AbstractContextManager[Callable[[Item, Output], object]]
"""Takes each item with its output; opened before the first row and left after the last one."""


class RowTask(Protocol[Item_contra, Output_co]):
    """What the results of rows mean."""

    @property
    def identity(self) -> str:
        """Hash over everything that shapes the requests, except the rows."""
        ...

    @property
    def checks(self) -> AnswerChecks | None:
        """Where results are checked, before `finish`; None if there is no check."""
        ...

    def finish(self, item: Item_contra, done: RowResult[Any]) -> tuple[Output_co, str]:
        """Return the output of an item, and the reason code if it failed (else "").

        Args:
            item: the item.
            done: its row, with the name and the checked result of this item.
        """
        ...


class RowRun:
    """One session and its passes over rows; use it in a ``with``.

    Args:
        access: the model.
        failed_rows: file of failed rows, replaced by each pass.
        note: receives messages about the run.
        watch: receives progress snapshots.
        stop: ends the run like Ctrl-C when it is set.

    Attributes:
        done: items of the latest pass that have ended.
        failed: failed items of the latest pass.

    Raises:
        PairwrightError: settings, prices or limits cannot work.
    """

    failed: FailedRows

    def __init__(
        self,
        access: ModelAccess,
        failed_rows: Path,
        note: Callable[[str], None],
        watch: Callable[[Snapshot], None],
        stop: Event | None = None,
    ) -> None:
        self._access, self._failed_rows, self._note = access, failed_rows, note
        self._session = access.session(watch=watch, say=note, stop=stop)
        self._bill_before = replace(access.bill)
        self._spent_before: RequestTotals | None = None  # at the start of the latest pass
        self._stack = ExitStack()
        self.done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the session.

        Raises:
            StorageError: answers could not be written.
        """
        self._stack.__exit__(kind, error, at)

    def run(  # noqa: PLR0913 - two of them are keywords
        self,
        task: RowTask[Item, Output],
        rows: Iterable[ModelRow[Item, Any]],
        total: int,
        sink: Sink[Item, Output],
        *,
        unit: str = "",
        partial: Path | None = None,
    ) -> None:
        """Run rows and pass each item with its output to the sink.

        Args:
            task: what the results mean.
            rows: read lazily, as there is room in flight.
            total: number of items, for progress.
            sink: takes the outputs.
            unit: noun for the rows in the message about a stopped run; empty: no message.
            partial: file that the sink writes, kept when the run is stopped after some rows.

        Raises:
            PairwrightError: what stopped the run.
            KeyboardInterrupt: after Ctrl-C.
        """
        retry = self._access.retry_failed and self._spent_before is None  # failed rows are retried by the first pass
        self.failed, self.done = FailedRows(self._failed_rows, run=task.identity, retry=retry), 0
        with self.failed, ContextProvider(self._access.context) as context:
            if self._spent_before is None:
                self._stack.enter_context(self._session)
            self._spent_before = self._session.totals().spent
            try:
                with sink if partial is None else _kept_on_stop(sink) as write:
                    for item, output in self._outputs(task, context.rows(rows), total):
                        write(item, output)
                        self.done += 1
            except (PairwrightError, KeyboardInterrupt):
                if unit:
                    self._note(self._stop_message(total, unit, partial))
                raise

    def _outputs(
        self, task: RowTask[Item, Output], rows: Iterable[ModelRow[Item, Any]], total: int
    ) -> Iterator[tuple[Item, Output]]:
        checks = task.checks
        finished = self._finished(rows, total, checks.is_full if checks is not None else None)
        for item, done in finished if checks is None else checks.results(finished):
            output, reason = task.finish(item, done)
            self.failed.note(done, reason)
            yield item, output

    def _finished(
        self, rows: Iterable[ModelRow[Item, Any]], total: int, busy: Callable[[], bool] | None
    ) -> Iterator[FinishedItem[Item]]:
        """Run rows; yield their items, in order."""
        pending = deque[tuple[ModelRow[Item, Any], list[int]]]()
        attempt = self.failed.attempt

        def started() -> Iterator[LLMRow[Sequence[Any]]]:
            for row in rows:
                attempts = [*map(attempt, row.names)]
                pending.append((row, attempts))
                # Several items are retried one by one, by their step.
                own = attempts[0] if len(attempts) == 1 else 0
                yield LLMRow(row.name, partial(_start, row.step, attempts), own, len(row.items))

        for done in self._session.run(started(), of=total, busy=busy):
            row, attempts = pending.popleft()
            while row.name != done.row:  # a row that was cancelled when the run stopped
                row, attempts = pending.popleft()
            results = [None] * len(row.items) if done.error is not None else done.result or ()
            for name, item, result, own in zip(row.names, row.items, results, attempts, strict=True):
                if isinstance(result, RowResult):
                    yield FinishedItem(item, result.with_result(result.result, row=name, attempt=own))
                else:
                    yield FinishedItem(item, done.with_result(result, row=name, attempt=own))

    def _stop_message(self, total: int, unit: str, partial: Path | None) -> str:
        done = self.done if self.failed.counts.total() < self.done else 0
        if not done:
            if partial is not None and partial.is_file():
                partial.unlink()
            return f"No {unit} are done."
        where = f": {partial}" if partial is not None else ""
        return f"{done:,} of {total:,} {unit} are done{where}. Run the same command again to continue."

    @property
    def rows_per_second(self) -> float:
        """Rows per second over all passes."""
        return round(self._session.totals().rate, 1)

    def bill(self) -> dict[str, Any]:
        """Return the bill of the run; ``in_all`` is that of the latest pass, which includes the answers of all passes."""
        spent = self._session.totals().spent
        return self._access.bill_facts(spent.since(self._spent_before or RequestTotals()), self._bill_before)

    def failures(self) -> dict[str, Any]:
        """Return how many rows failed in the latest pass, by reason, and the file that names them."""
        reasons = dict(sorted(self.failed.counts.items()))
        return {"rows": sum(reasons.values()), "reasons": reasons, "file": str(self.failed.path)}

    def note_failures(self) -> None:
        """Pass on how many rows failed and what to do about them, if any did."""
        if summary := self.failed.summary(self.done):
            self._note(summary)


def _start(step: Callable[[Sequence[int]], LLMStep[T]], attempts: Sequence[int], _: int) -> LLMStep[T]:
    """Start the step of a row with the attempts of its items."""
    return step(attempts)


def run_rows(  # noqa: PLR0913 - keywords
    access: ModelAccess,
    task: RowTask[Item, Output],
    rows: Iterable[ModelRow[Item, Any]],
    total: int,
    sink: Sink[Item, Output],
    *,
    out: Path,
    note: Callable[[str], None],
    watch: Callable[[Snapshot], None],
    unit: str = "rows",
    partial: Path | None = None,
) -> RowRun:
    """Run rows in one pass, with failed rows in a file next to ``out``; arguments and errors as in `RowRun.run`."""
    with RowRun(access, failed_rows_path(out), note, watch) as run:
        run.run(task, rows, total, sink, unit=unit, partial=partial)
    run.note_failures()
    return run


def collect_rows(  # noqa: PLR0913 - keywords
    access: ModelAccess,
    task: RowTask[Item, Output],
    rows: Iterable[ModelRow[Item, Any]],
    total: int,
    *,
    out: Path,
    note: Callable[[str], None],
    watch: Callable[[Snapshot], None],
) -> tuple[list[tuple[Item, Output]], RowRun]:
    """Run rows as `run_rows` does; return the items with their outputs, and the run."""
    found: list[tuple[Item, Output]] = []
    sink = nullcontext(lambda item, output: found.append((item, output)))
    return found, run_rows(access, task, rows, total, sink, out=out, note=note, watch=watch)


@contextmanager
def _kept_on_stop(sink: Sink[Item, Output]) -> Iterator[Callable[[Item, Output], object]]:
    """Leave a sink without an error when the run is stopped, so that what is done is written."""
    stopped: BaseException | None = None
    with sink as write:
        try:
            yield write
        except (PairwrightError, KeyboardInterrupt) as error:
            stopped = error
    if stopped is not None:
        raise stopped


@contextmanager
def write_by_part(
    sizes: Mapping[str, int], write: Callable[[str, list[Output]], None]
) -> Iterator[Callable[[object, Output], None]]:
    """Give a sink that passes the outputs of each part on when its last one has come.

    Args:
        sizes: rows of each part, in the order of the rows.
        write: takes a part and its outputs.
    """
    parts, outputs = deque(sizes.items()), list[Output]()

    def flush() -> None:
        while parts and len(outputs) == parts[0][1]:
            write(parts.popleft()[0], outputs.copy())
            outputs.clear()

    def add(_: object, output: Output) -> None:
        outputs.append(output)
        flush()

    flush()
    yield add
