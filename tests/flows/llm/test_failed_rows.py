"""What the file of failed rows promises: every one with its reason, asked anew when told to, and never forgotten."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.flows.llm.failed_rows import FailedRows, read_failed
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.runner import RequestTotals, RowRequests, RowResult

ROWS = ("a", "b", "c", "d")


class Model:
    """Refuses a row until an attempt, and answers nothing at all to some."""

    def __init__(self, good_from: Mapping[str, int], unanswered: tuple[str, ...] = ()) -> None:
        self.good_from, self.unanswered = good_from, unanswered

    def ask(self, row: str, attempt: int) -> tuple[RowResult[str], str]:
        """Return what became of a row, and why it is rejected."""
        if row in self.unanswered:
            return RowResult(row, None, None, RowRequests(unanswered=1), attempt), "timeout"
        good = attempt >= self.good_from.get(row, 0)
        text = f"{row}{attempt}" if good else "I cannot."
        requests = RowRequests(spent=RequestTotals(1), keys=[f"{row}{attempt}"], said=text)
        return RowResult(row, text, None, requests, attempt), "" if good else "refused"


def run(path: Path, model: Model, *, retry: bool = False, run: str = "r", stop_at: str = "") -> list[str | None]:
    """Return the results of all rows."""
    return list(_run(path, model, retry=retry, run=run, stop_at=stop_at))


def _run(path: Path, model: Model, *, retry: bool, run: str, stop_at: str) -> Iterator[str | None]:
    with FailedRows(path, run=run, retry=retry) as failed:
        for row in ROWS:
            if row == stop_at:
                raise KeyboardInterrupt
            done, reason = model.ask(row, failed.attempt(row))
            failed.note(done, reason, "the model declined" if reason else "")
            yield done.result


def names(path: Path) -> dict[str, int]:
    return {each.row: each.attempt for each in read_failed(path)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.failed.jsonl"


def test_each_failed_row_has_a_line_that_says_why(path: Path) -> None:
    run(path, Model({"b": 1}))
    [line] = path.read_text().splitlines()
    assert json.loads(line) == {
        "row": "b",
        "reason": "refused",
        "detail": "the model declined",
        "attempt": 0,
        "keys": ["b0"],
        "said": "I cannot.",
        "unanswered": 0,
        "run": "r",
    }


def test_a_run_without_failures_leaves_an_empty_file(path: Path) -> None:
    run(path, Model({"b": 1}))
    run(path, Model({}))
    assert path.read_text() == ""


def test_failed_rows_and_they_alone_are_asked_anew_when_told_to(path: Path) -> None:
    model = Model({"b": 1, "d": 2})
    assert run(path, model) == ["a0", "I cannot.", "c0", "I cannot."]
    assert run(path, model, retry=True) == ["a0", "b1", "c0", "I cannot."]
    assert names(path) == {"d": 1}
    assert run(path, model, retry=True) == ["a0", "b1", "c0", "d2"]
    assert names(path) == {}


def test_a_plain_run_after_a_retry_gives_what_the_retry_gave(path: Path) -> None:
    model = Model({"b": 1, "d": 2})
    run(path, model)
    last = run(path, model, retry=True)
    for _ in range(3):
        assert run(path, model) == last
        assert names(path) == {"d": 1}


def test_a_row_without_an_answer_is_asked_anew_at_the_same_attempt(path: Path) -> None:
    run(path, Model({}, unanswered=("b",)))
    assert run(path, Model({}), retry=True) == ["a0", "b0", "c0", "d0"]


def test_a_stopped_retry_forgets_nothing(path: Path) -> None:
    model = Model({"b": 1, "d": 1})
    run(path, model)
    with pytest.raises(KeyboardInterrupt):
        run(path, model, retry=True, stop_at="c")
    assert names(path) == {"d": 0}  # b has been mended, d was not reached
    assert run(path, model, retry=True) == ["a0", "b1", "c0", "d1"]


def test_a_retry_that_is_killed_can_be_done_again(path: Path) -> None:
    model = Model({"b": 1})
    run(path, model)
    before = path.read_bytes()
    killed = FailedRows(path, run="r", retry=True).__enter__()
    done, _ = model.ask("b", killed.attempt("b"))
    killed.note(done)
    assert path.read_bytes() == before
    assert run(path, model, retry=True)[1] == "b1"


def test_attempts_belong_to_the_settings_that_they_were_made_with(path: Path) -> None:
    model = Model({"b": 1})
    run(path, model)
    run(path, model, retry=True)
    assert run(path, Model({}), run="other") == ["a0", "b0", "c0", "d0"]
    assert run(path, model)[1] == "b1"


def test_a_retry_with_other_settings_is_refused(path: Path) -> None:
    run(path, Model({"b": 1}))
    with pytest.raises(UsageError, match="other settings"):
        FailedRows(path, run="other", retry=True)


def test_a_retry_without_a_file_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to retry"):
        FailedRows(path, run="r", retry=True)


def test_what_a_talk_raises_is_a_reason(path: Path) -> None:
    errors: list[Any] = [RequestError("bad_image", "no\ud800 such"), InputError("torn", where="row 2", fix="Mend it.")]
    with FailedRows(path, run="r") as failed:
        for row, error in zip(ROWS, errors, strict=False):
            failed.note(RowResult(row, None, error, RowRequests()))
        assert failed.summary(10).startswith(f"2 of 10 rows failed: 1 bad_image, 1 bad_row. See {path}; --retry-failed")
    assert [(each.reason, each.detail) for each in read_failed(path)] == [
        ("bad_image", "no? such"),
        ("bad_row", "row 2: torn. Mend it."),
    ]


def test_a_damaged_file_is_named_with_its_line(path: Path) -> None:
    run(path, Model({"b": 1}))
    with path.open("ab") as file:
        file.write(b'{"row": "c"}\n')
    with pytest.raises(StorageError, match=r"failed\.jsonl:2"):
        FailedRows(path, run="r")
