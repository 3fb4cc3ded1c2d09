"""Work is shared out to processes, and what comes back is in order."""

import os
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from operator import neg

import pytest

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.processes import ALONE, Crew

MANY = range(10 * ALONE)
ASK_PROCESS = "__import__('os').getpid()"  # a test's own functions are not there in another process


def test_results_come_in_the_order_of_the_jobs() -> None:
    with Crew(2) as crew:
        assert list(crew.paired(neg, iter(MANY))) == [(number, -number) for number in MANY]


def test_few_jobs_are_done_here_and_many_elsewhere() -> None:
    with Crew(2) as crew:
        assert {found for _, found in crew.paired(eval, [ASK_PROCESS] * ALONE)} == {os.getpid()}
        assert os.getpid() not in {found for _, found in crew.paired(eval, [ASK_PROCESS] * len(MANY))}


def test_one_worker_is_this_process() -> None:
    with Crew(1) as crew:
        assert {found for _, found in crew.paired(eval, [ASK_PROCESS] * len(MANY))} == {os.getpid()}


def told(read: list[int]) -> Iterator[int]:
    for number in range(1000):
        read.append(number)
        yield number


def test_few_jobs_are_read_ahead() -> None:
    read: list[int] = []
    with Crew(2) as crew:
        results = crew.paired(neg, told(read))
        next(results)
        assert len(read) < 50


def test_an_error_of_a_job_is_raised_here() -> None:
    with Crew(2) as crew, pytest.raises(ValueError, match="no number"):
        list(crew.paired(int, ["no number"] * len(MANY)))


def test_a_process_that_dies_is_told() -> None:
    with Crew(2) as crew, pytest.raises(PairwrightError, match="fewer --workers") as told:
        list(crew.paired(os._exit, MANY))
    assert not isinstance(told.value, BrokenProcessPool)
