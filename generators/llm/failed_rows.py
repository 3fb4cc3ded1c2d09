"""Rows that ended rejected: which, why, and how to ask for them anew.

    with FailedRows(Path("out.failed.jsonl"), run=fingerprint, retry=True) as failed:
        rows = (Row(name, talk, failed.attempt(name)) for name, talk in all_of_them)
        for done in session.run(rows):
            failed.note(done, reason_if_rejected, detail)

One line a row, in the order of the rows: ``row``, ``reason``, ``detail``, ``attempt``, ``keys`` (of its answers, in
the cache), ``said`` (the beginning of the last answer), ``unanswered`` (requests without an answer), ``run``.

*Asked anew* means: with an attempt one higher, which makes new requests of it (`messages.Request.sample`), where
its answers were no good; at temperature 0 at another one (`anew`). Where requests got no answer at all, the attempt stays: there is nothing in the cache to get
around, and the answers that it did get are not paid for again. A plain run asks for those, and for no others.

Which attempt a row has come to is kept beside, in ``out.failed.attempts.json``, so that a later plain run finds the
same answers as the last one. The attempts are a run's own: ``run`` stands for everything that shapes its requests.

The files are replaced when the block ends. Where it ends in an error, rows that were not reached keep their old lines.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import orjson

from pairwright.datasets.atomic_files import replace_atomically, write_bytes
from pairwright.datasets.errors import PairwrightError, StorageError, UsageError
from pairwright.generators.llm.client.request_errors import MAX_DETAIL_CHARS, RequestError
from pairwright.generators.llm.failure_summary import FailureSummary
from pairwright.generators.llm.runner import RowResult


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A line of the file; see the module."""

    row: str
    reason: str
    detail: str
    attempt: int
    keys: tuple[str, ...]
    said: str
    unanswered: int
    run: str

    @property
    def next_attempt(self) -> int:
        """The attempt that asks for it anew."""
        return self.attempt + bool(self.keys and not self.unanswered)


class FailedRows:
    """The rows of one run that end rejected. Use it in a ``with``."""

    def __init__(self, path: Path, *, run: str, retry: bool = False) -> None:
        """Read what the last run left.

        Args:
            path: of the file, ``.jsonl``.
            run: stands for all that shapes the requests of this run (maker, prompts, model, parameters, seed), and not
                for its rows.
            retry: whether the rows of the file are to be asked for anew.

        Raises:
            UsageError: they are, and there is no file, or it is of a run with other settings.
            StorageError: a file cannot be read.
        """
        self.path, self._run = path, run
        self._attempts_path = path.with_suffix(".attempts.json")
        self._all_attempts = _read_attempts(self._attempts_path)
        self._attempts = self._all_attempts.get(run, {})
        if retry and not path.exists():
            raise UsageError(f"{path}: there is no such file, so nothing to ask anew. Leave --retry-failed out.")
        found = list(read_failed(path)) if path.exists() else []
        if retry and any(each.run != run for each in found):
            raise UsageError(
                f"{path}: of a run with other settings; with these, every row would be asked for, not only those."
                " Leave --retry-failed out to do that, or set the old settings."
            )
        self._before = {each.row: each for each in found if each.run == run}
        self._retry = retry
        self._stack = ExitStack()
        self.counts: Counter[str] = Counter()  # rows of this run that ended rejected, by reason
        self._tally = FailureSummary()

    def attempt(self, row: str) -> int:
        """Return the attempt at which a row is asked."""
        before = self._before.get(row) if self._retry else None
        return before.next_attempt if before is not None else self._attempts.get(row, 0)

    def note(self, done: RowResult[Any], reason: str = "", detail: str = "") -> None:
        """Take note of a row that has ended; of every one, in order.

        Args:
            done: the row.
            reason: a word, when it ended rejected; what its talk raised has words of its own.
            detail: more, for a reader; else what the last failure of the row said, or how much of its tokens was reasoning.
        """
        self._before.pop(done.row, None)
        if done.attempt:
            self._attempts[done.row] = done.attempt
        if done.error is not None:
            reason, detail = _error_reason(done.error)
        if reason:
            self.counts[reason] += 1
            detail = detail or done.failure or done.reasoning
            detail = detail if len(detail) <= MAX_DETAIL_CHARS else detail[:MAX_DETAIL_CHARS] + "…"
            self._tally.add(reason, detail, answered=bool(done.keys), unanswered=done.unanswered)
            line = FailedRow(done.row, reason, detail, done.attempt, done.keys, done.said, done.unanswered, self._run)
            self._file.write(_line(line))

    def summary(self, rows: int) -> str:
        """Return what to tell of those of ``rows`` that ended rejected, and what to do about it; empty: none did.

        A line on those that failed, one on those that were answered and of which nothing passed (`failed_tally`).
        """
        return "\n".join(self._tally.lines(str(self.path), of=f" of {rows:,}", plain_asks=True))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._file: BinaryIO = stack.enter_context(stack.enter_context(replace_atomically(self.path)).open("wb"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None and not self.counts and not self._attempts:
            self._stack.__exit__(kind, error, at)  # nothing was done: the file stays as it was, or absent
            return
        with self._stack:
            if error is not None:
                for each in self._before.values():
                    self._file.write(_line(each))
            # First the attempts: with them alone a run finds the same answers; with the lines alone it would not.
            if self._attempts:
                self._all_attempts[self._run] = self._attempts
                write_bytes(self._attempts_path, orjson.dumps(self._all_attempts, option=orjson.OPT_APPEND_NEWLINE))


def read_failed(path: Path) -> Iterator[FailedRow]:
    """Give the lines of a file of failed rows.

    Raises:
        StorageError: it cannot be read, or is none.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield _failed_row(line, f"{path}:{number}")
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None


def count_failed_rows(path: Path) -> FailureSummary:
    """Return what a file of failed rows names, counted.

    Raises:
        StorageError: it cannot be read, or is none.
    """
    tally = FailureSummary()
    for each in read_failed(path):
        tally.add(each.reason, each.detail, answered=bool(each.keys), unanswered=each.unanswered)
    return tally


def _failed_row(line: bytes, where: str) -> FailedRow:
    try:
        found = orjson.loads(line)
        return FailedRow(**{**found, "keys": tuple(found["keys"])})
    except (ValueError, TypeError, KeyError):
        raise StorageError(f"{where}: no line of a file of failed rows. Remove the file and run again.") from None


def _read_attempts(path: Path) -> dict[str, dict[str, int]]:
    if not path.exists():
        return {}
    try:
        found: dict[str, dict[str, int]] = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        raise StorageError(
            f"{path}: cannot be read. Remove it to begin with first attempts again; answers are kept."
        ) from None
    return found


def _line(failed: FailedRow) -> bytes:
    try:
        return orjson.dumps(asdict(failed), option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half a character, which no file can hold
        detail = failed.detail.encode("utf-8", "replace").decode()
        return orjson.dumps(asdict(replace(failed, detail=detail)), option=orjson.OPT_APPEND_NEWLINE)


def _error_reason(error: PairwrightError) -> tuple[str, str]:
    if isinstance(error, RequestError):
        return error.code, error.detail or str(error)
    return "bad_row", str(error)
