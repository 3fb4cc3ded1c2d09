"""File of failed rows: which rows were rejected, why, and at which attempt.

    with FailedRows(Path("out.failed.jsonl"), run=fingerprint, retry=True) as failed:
        rows = (LLMRow(name, step, failed.attempt(name)) for name, step in steps)
        for done in session.run(rows):
            failed.note(done, reason_if_rejected, detail)

One line per row, in the order of the rows: ``row``, ``reason``, ``detail``, ``attempt``, ``keys`` (cache keys of its
answers), ``said`` (beginning of the last answer), ``unanswered`` (requests without an answer), ``run``.

A *retry* of a row whose answers were invalid has an attempt one higher, so that its requests are new
(`messages.Request.sample`; at temperature 0 at another temperature). Where requests got no answer, the attempt stays: no
cached answer is in the way, and the answers that came are not billed again. A run without ``retry`` sends only those.

The attempt of each row is stored in ``out.failed.attempts.json``, so that a later run finds the same answers as the last
one. Attempts belong to one identity: ``run`` is a hash over everything that shapes the requests.

The files are replaced when the block ends. If it ends in an error, rows that were not reached keep their old lines.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import orjson

from pairwright.datasets.atomic_files import replace_atomically, write_bytes
from pairwright.datasets.errors import StorageError, UsageError
from pairwright.flows.llm.failure_summary import FailureSummary
from pairwright.generators.llm.client.request_errors import MAX_DETAIL_CHARS, RequestError
from pairwright.generators.llm.runner import RowResult


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A line of the file; fields as in the module."""

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
        """The attempt of a retry."""
        return self.attempt + bool(self.keys and not self.unanswered)


class FailedRows:
    """Failed rows of one run; use it in a ``with``."""

    def __init__(self, path: Path, *, run: str, retry: bool = False) -> None:
        """Read the files of the previous run.

        Args:
            path: the file, ``.jsonl``.
            run: hash over everything that shapes the requests (generator, prompts, model, parameters, seed), except the
                rows.
            retry: whether to retry the rows in the file.

        Raises:
            UsageError: ``retry`` is set, but there is no file, or it belongs to a run with other settings.
            StorageError: a file cannot be read.
        """
        self.path, self._run = path, run
        self._attempts_path = path.with_suffix(".attempts.json")
        self._all_attempts = _read_attempts(self._attempts_path)
        self._attempts = self._all_attempts.get(run, {})
        if retry and not path.exists():
            raise UsageError(f"{path}: no such file, so there is nothing to retry. Remove --retry-failed.")
        found = list(read_failed(path)) if path.exists() else []
        if retry and any(row.run != run for row in found):
            raise UsageError(
                f"{path}: belongs to a run with other settings, so all rows would be requested, not only the failed ones."
                " Remove --retry-failed to do that, or use the old settings."
            )
        self._before = {row.row: row for row in found if row.run == run}
        self._retry = retry
        self._stack = ExitStack()
        self.counts: Counter[str] = Counter()  # failed rows of this run, by reason
        self._tally = FailureSummary()

    def attempt(self, row: str) -> int:
        """Return the attempt of a row."""
        before = self._before.get(row) if self._retry else None
        return before.next_attempt if before is not None else self._attempts.get(row, 0)

    def note(self, done: RowResult[Any], reason: str = "", detail: str = "") -> None:
        """Record a finished row; call it for every row, in order.

        Args:
            done: the row.
            reason: reason code if the row is rejected; that of an error is taken from ``done``.
            detail: detail for the user; default: the last failure of the row, or its share of reasoning tokens.
        """
        self._before.pop(done.row, None)
        if done.attempt:
            self._attempts[done.row] = done.attempt
        if done.error is not None:
            reason = done.error_code
            detail = (done.error.detail if isinstance(done.error, RequestError) else "") or str(done.error)
        if reason:
            self.counts[reason] += 1
            requests = done.requests
            detail = detail or requests.detail
            detail = detail if len(detail) <= MAX_DETAIL_CHARS else detail[:MAX_DETAIL_CHARS] + "…"
            self._tally.add(reason, detail, answered=bool(requests.keys), unanswered=requests.unanswered)
            line = FailedRow(
                done.row,
                reason,
                detail,
                done.attempt,
                tuple(requests.keys),
                requests.said,
                requests.unanswered,
                self._run,
            )
            self._file.write(_line(line))

    def summary(self, rows: int) -> str:
        """Return a message about the failed ones of ``rows`` rows and what to do about them; empty if none failed.

        One line for the failed rows, one for those whose answers were all rejected (`FailureSummary.lines`).
        """
        return "\n".join(self._tally.lines(str(self.path), of=f" of {rows:,}", plain_asks=True))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._file: BinaryIO = stack.enter_context(stack.enter_context(replace_atomically(self.path)).open("wb"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None and not self.counts and not self._attempts:
            self._stack.__exit__(kind, error, at)  # no row has ended: the file stays as it was, or absent
            return
        with self._stack:
            if error is not None:
                for each in self._before.values():
                    self._file.write(_line(each))
            # Attempts first: with them alone a run finds the same answers; with the lines alone it would not.
            if self._attempts:
                self._all_attempts[self._run] = self._attempts
                write_bytes(self._attempts_path, orjson.dumps(self._all_attempts, option=orjson.OPT_APPEND_NEWLINE))


def read_attempts(out: Path, *, run: str, retry: bool) -> Callable[[str], int]:
    """Return the attempt of each row in a run that writes ``out``; arguments and errors as of `FailedRows`."""
    return FailedRows(failed_rows_path(out), run=run, retry=retry).attempt


def failed_rows_path(out: Path) -> Path:
    """Return the path of the file that names the failed rows of ``out``."""
    return out.with_suffix(".failed.jsonl")


def read_failed(path: Path) -> Iterator[FailedRow]:
    """Yield the lines of a file of failed rows.

    Raises:
        StorageError: the file cannot be read, or is not such a file.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield _failed_row(line, f"{path}:{number}")
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None


def count_failed_rows(*paths: Path) -> FailureSummary:
    """Return counts of the rows in files of failed rows; errors as in `read_failed`."""
    tally = FailureSummary()
    for each in chain.from_iterable(map(read_failed, paths)):
        tally.add(each.reason, each.detail, answered=bool(each.keys), unanswered=each.unanswered)
    return tally


def _failed_row(line: bytes, where: str) -> FailedRow:
    try:
        found = orjson.loads(line)
        return FailedRow(**{**found, "keys": tuple(found["keys"])})
    except (ValueError, TypeError, KeyError):
        raise StorageError(f"{where}: not a line of a file of failed rows. Remove the file and run again.") from None


def _read_attempts(path: Path) -> dict[str, dict[str, int]]:
    if not path.exists():
        return {}
    try:
        found: dict[str, dict[str, int]] = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        raise StorageError(
            f"{path}: cannot be read. Remove it to start again with first attempts; answers stay in the cache."
        ) from None
    return found


def _line(failed: FailedRow) -> bytes:
    try:
        return orjson.dumps(asdict(failed), option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a lone surrogate
        detail = failed.detail.encode("utf-8", "replace").decode()
        return orjson.dumps(asdict(replace(failed, detail=detail)), option=orjson.OPT_APPEND_NEWLINE)
