"""Tests of checks in batches while further answers come."""

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, PairwrightError
from pairwright.datasets.worker_processes import WorkerProcesses
from pairwright.flows.llm import answer_checks
from pairwright.flows.llm.answer_checks import AnswerCheck, AnswerChecks, FinishedItem, completed
from pairwright.generators.llm.runner import RowRequests, RowResult

FAILED = InputError("no", where="a row", fix="None.")


def finished(numbers: Sequence[int], failed: frozenset[int] = frozenset()) -> list[FinishedItem[str]]:
    """Return items that ended in their number, or in an error."""
    return [
        FinishedItem(
            f"item {n}",
            RowResult(str(n), None if n in failed else n, FAILED if n in failed else None, RowRequests()),
        )
        for n in numbers
    ]


def squares(batch: Sequence[tuple[Any, Any]]) -> list[tuple[str, int]]:
    """Check answers: return the item and the square of its number."""
    return [(item, number * number) for item, number in batch]


def kill_own_process(_: Sequence[tuple[Any, Any]]) -> list[Any]:
    """End like a worker that the system has killed."""
    os.kill(os.getpid(), signal.SIGKILL)
    return []


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_checks, "CHECKED_AT_ONCE", 3)


@given(st.integers(0, 20), st.frozensets(st.integers(0, 20)), st.integers(0, 3))
def test_items_come_in_order_with_checked_results_for_any_number_of_workers(
    count: int, failed: frozenset[int], workers: int
) -> None:
    given_items = finished(range(count), failed)
    with ThreadPoolExecutor(max(workers, 1)) as pool:
        checks = AnswerChecks(completed(squares), pool if workers else None, max(workers, 1))
        found = list(checks.results(given_items))
    assert [each.done.row for each in found] == [str(n) for n in range(count)]
    assert [each.done.result for each in found] == [None if n in failed else (f"item {n}", n * n) for n in range(count)]
    assert [each.done.error for each in found] == [FAILED if n in failed else None for n in range(count)]


def stopping(items: Sequence[FinishedItem[str]]) -> Iterator[FinishedItem[str]]:
    """Yield items, and stop like a run at Ctrl-C."""
    yield from items
    raise KeyboardInterrupt


def test_a_stopped_run_checks_what_has_finished() -> None:
    found: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(
            each.done.result for each in AnswerChecks(completed(squares)).results(stopping(finished(range(5))))
        )
    assert found == [(f"item {n}", n * n) for n in range(5)]


def test_a_run_that_stops_before_the_check_is_known_does_not_wait_for_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        list(AnswerChecks(Future[AnswerCheck]()).results(stopping(finished(range(5)))))


def test_batches_wait_for_the_check_up_to_a_limit() -> None:
    check = Future[AnswerCheck]()
    checks = AnswerChecks(check)
    full = []

    def rows() -> Iterator[FinishedItem[str]]:
        for each in finished(range(12)):
            full.append(checks.is_full())
            if each.done.row == "9":
                check.set_result(squares)  # known now
            yield each

    assert [each.done.row for each in checks.results(rows())] == [str(n) for n in range(12)]
    assert full == [False] * 6 + [True] * 4 + [False] * 2


def test_a_killed_worker_ends_the_run_with_a_message() -> None:
    with WorkerProcesses(1) as pool, pytest.raises(PairwrightError, match="worker process died"):
        list(AnswerChecks(completed(kill_own_process), pool).results(finished(range(3))))


def test_an_error_of_the_check_ends_the_run() -> None:
    def broken(_: Sequence[tuple[Any, Any]]) -> list[Any]:
        raise InputError("broken", where="here", fix="None.")

    with pytest.raises(InputError, match="broken"):
        list(AnswerChecks(completed(broken)).results(finished(range(5))))
