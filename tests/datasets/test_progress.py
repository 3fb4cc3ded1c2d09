"""Progress steps, also of jobs in worker processes."""

from collections.abc import Iterator

import pytest

from pairwright.datasets import progress
from pairwright.datasets.progress import (
    ProgressReport,
    attribute_steps_to,
    open_step,
    report_named_steps,
    track,
    use_listener,
)
from pairwright.datasets.worker_processes import WorkerProcesses


@pytest.fixture
def reports() -> Iterator[list[ProgressReport]]:
    """What is reported during a test."""
    heard: list[ProgressReport] = []
    with use_listener(heard.append):
        yield heard


def test_a_step_reports_its_start_and_its_end_with_the_units_done(reports: list[ProgressReport]) -> None:
    assert list(track([1, 2, 3], "counting", unit="words")) == [1, 2, 3]
    first, *_, last = reports
    assert (first.done, first.total, first.ended) == (0, 3, False)
    assert (last.name, last.done, last.unit, last.ended) == ("counting", 3, "words", True)


def test_a_step_reports_at_most_once_an_interval(
    reports: list[ProgressReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 3600.0)
    list(track(range(1000), "counting"))
    assert len(reports) == 3  # the start, the first unit, the end


def test_a_step_that_fails_ends_its_bar(reports: list[ProgressReport]) -> None:
    with pytest.raises(ValueError, match="torn"), open_step("reading"):
        raise ValueError("torn")
    assert reports[-1].ended


def test_consecutive_names_are_separate_steps(reports: list[ProgressReport]) -> None:
    with report_named_steps("images") as follow:
        follow("looking", 1, 2)
        follow("fetching", 1, 0)
    ended = [(report.name, report.total) for report in reports if report.ended]
    assert ended == [("looking", 2), ("fetching", None)]


def test_without_a_listener_nothing_is_kept() -> None:
    assert not progress.has_listener()
    assert list(track([1], "counting")) == [1]


def _count(part: str) -> int:
    with attribute_steps_to("tag", part):
        return sum(1 for _ in track(range(3), "tagging", unit="captions"))


def _count_alone() -> int:
    return sum(1 for _ in track(range(3), "tagging"))


def test_jobs_in_worker_processes_report_to_their_parent(reports: list[ProgressReport]) -> None:
    with WorkerProcesses(1) as pool:
        assert pool.submit(_count, "00000").result() == 3
        assert pool.submit(_count_alone).result() == 3
    ended = [(report.owner, report.name, report.done) for report in reports if report.ended]
    assert ended == [(("tag", "00000"), "tagging", 3)], "steps outside of a job are their parent's to report"
