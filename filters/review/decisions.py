"""Decisions of reviewers: an append-only file with one JSON object per line, and the verdicts of several reviewers.

    {"id": "...", "reviewer": "ann", "decision": "keep", "candidate": "...", "text": "", "at": "2030-01-01T10:00:00Z"}

A line is on the disk before the reviewer sees the next row, so a killed process or machine loses no acknowledged
decision. Of a reviewer's lines about a row the last one holds. ``undo`` is a line too: it withdraws the reviewer's last
decision about the row, and the one before holds again. Several reviewers may write into one file at the same time.

``candidate`` is the reviewed text: a decision about a text that the row no longer has is *stale* and not counted. A
truncated line (after a power cut) is skipped and counted.

Verdict of several reviewers: one *reject* rejects, as a reviewer who sees that a negative is true is not outvoted;
*fix* wins over *keep*, as it has a better text; *keep* wins over *unsure*.
"""

import fcntl
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, get_args

import orjson
import polars as pl

from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.records import compact_json

DecisionWord = Literal["keep", "reject", "unsure", "fix"]
DECISION_WORDS: Final[tuple[DecisionWord, ...]] = get_args(DecisionWord)
UNDO: Final = "undo"


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision of a reviewer about a row.

    Attributes:
        id: of the row.
        reviewer: name of the person.
        decision: keep, reject, unsure, fix, or undo.
        candidate: the reviewed text.
        text: the replacement; of a fix only.
        at: time, as ISO 8601 in UTC.
    """

    id: str
    reviewer: str
    decision: str
    candidate: str = ""
    text: str = ""
    at: str = ""


@dataclass
class Decisions:
    """Decisions that hold after some lines.

    Attributes:
        truncated: lines that are not valid JSON.
    """

    truncated: int = 0
    _by_reviewer: dict[str, list[Decision]] = field(default_factory=dict)

    def add(self, line: Decision) -> None:
        """Add a line."""
        own = self._by_reviewer.setdefault(line.reviewer, [])
        if line.decision != UNDO:
            own.append(line)
            return
        last = next((at for at in range(len(own) - 1, -1, -1) if own[at].id == line.id), None)
        if last is not None:
            del own[last]

    @property
    def reviewers(self) -> list[str]:
        """Names of the reviewers with decisions, sorted."""
        return sorted(name for name, own in self._by_reviewer.items() if own)

    def of(self, reviewer: str) -> dict[str, Decision]:
        """Return the decisions of a reviewer by the id of the row."""
        return {decision.id: decision for decision in self._by_reviewer.get(reviewer, ())}

    def stack(self, reviewer: str) -> Sequence[Decision]:
        """Return the decisions of a reviewer that were not withdrawn, in order."""
        return self._by_reviewer.get(reviewer, ())

    def by_row(self, reviewers: Iterable[str] | None = None) -> dict[str, dict[str, Decision]]:
        """Return id of the row to reviewer to decision, for all reviewers or the named ones."""
        rows: defaultdict[str, dict[str, Decision]] = defaultdict(dict)
        for name in self.reviewers if reviewers is None else reviewers:
            for id_, decision in self.of(name).items():
                rows[id_][name] = decision
        return dict(rows)


def read_decisions(path: Path) -> Decisions:
    """Return the decisions in a file: lines of `review`, or the export of Label Studio (``.json``, `label_studio.py`).

    Raises:
        InputError: the file is missing, or a valid line is no decision.
    """
    if not path.is_file():
        raise InputError("no such file", where=str(path), fix="Give a file that `pairwright review` wrote.")
    found = Decisions()
    if path.suffix == ".json":
        for decision in _read_export(path):
            found.add(decision)
        return found
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            given = orjson.loads(line)
        except orjson.JSONDecodeError:
            found.truncated += 1
            continue
        found.add(_parse_decision(given, f"{path}:{number}"))
    return found


def _read_export(path: Path) -> Iterable[Decision]:
    from pairwright.filters.review.label_studio import parse_export

    try:
        tasks = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        tasks = None
    if not isinstance(tasks, list):
        raise InputError("not a JSON list", where=str(path), fix="Give the JSON export of a Label Studio project.")
    return parse_export(tasks, str(path))


def _parse_decision(given: Any, place: str) -> Decision:
    names = Decision.__dataclass_fields__
    texts = {name: value for name, value in given.items() if name in names} if isinstance(given, dict) else {}
    whole = all(isinstance(value, str) for value in texts.values())
    if (
        not whole
        or not texts.get("id")
        or not texts.get("reviewer")
        or texts.get("decision") not in {*DECISION_WORDS, UNDO}
    ):
        fix = "Give a file that `pairwright review` wrote, or remove the line."
        raise InputError("not a decision", where=place, fix=fix)
    return Decision(**texts)


class DecisionLog:
    """A file of decisions, open for appending.

    Args:
        path: of the file; it and its folder are created if missing.

    Raises:
        InputError: the file has other content.
        StorageError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            _sync_folder(path.parent)
        except OSError as error:
            raise _make_write_error(path, error) from None
        self.decisions = read_decisions(path)

    def append(self, decision: Decision) -> Decision:
        """Write a decision with the time to the disk; it is synced when this returns.

        Raises:
            StorageError: it could not be written. Then nothing is decided.
        """
        dated = {name: getattr(decision, name) for name in Decision.__dataclass_fields__}
        dated["at"] = decision.at or datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        line = compact_json(dated).encode("utf-8", "surrogatepass") + b"\n"
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            try:
                _write(self._handle, line)
            finally:
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        except OSError as error:
            raise _make_write_error(self.path, error) from None
        written = Decision(**dated)
        self.decisions.add(written)
        return written

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def _write(handle: int, line: bytes) -> None:
    # The caller holds the lock, so the end does not move.
    end = os.lseek(handle, 0, os.SEEK_END)
    if end and os.pread(handle, 1, end - 1) != b"\n":
        line = b"\n" + line  # an earlier line was truncated: start a new one
    try:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, end)  # a partial line (disk full) must not remain
        raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_write_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path}: cannot be written ({error.strerror or error}). Check the disk, or choose another file."
    )


_STRONGEST_FIRST: Final[tuple[DecisionWord, ...]] = ("reject", "fix", "keep", "unsure")


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """Verdict on a row.

    Attributes:
        word: of `DECISION_WORDS`.
        by_reviewer: reviewer to decision.
        text: the replacement of a fix: the latest where there are several.
    """

    word: DecisionWord
    by_reviewer: Mapping[str, str]
    text: str = ""


@dataclass(frozen=True, slots=True)
class ReviewVerdicts:
    """Decisions that count for some rows, and numbers of those that do not.

    Attributes:
        verdicts: id of the row to verdict.
        decisions: id of the row to reviewer to the decision that counts.
        stale: decisions about a text that the row no longer has.
        unknown: decisions about rows that are not in the input, or were already rejected.
        truncated: truncated lines of the file.
    """

    verdicts: Mapping[str, RowVerdict]
    decisions: Mapping[str, Mapping[str, Decision]]
    stale: int = 0
    unknown: int = 0
    truncated: int = 0

    @property
    def uncounted(self) -> dict[str, int]:
        """Reason to number of decisions that do not count, without zeros."""
        counts = {"stale": self.stale, "unknown": self.unknown, "torn": self.truncated}
        return {reason: count for reason, count in counts.items() if count}


def combine_decisions(
    frame: pl.DataFrame, decisions: Decisions, reviewers: Iterable[str] | None = None
) -> ReviewVerdicts:
    """Return the verdicts on the rows of a candidate frame that are not rejected.

    Args:
        frame: with ``candidates.rows.SCHEMA``.
        decisions: of any reviewers.
        reviewers: those who count; default: all.
    """
    texts = dict(frame.filter(pl.col("status") == "kept").select("id", "negative").iter_rows())
    counting: dict[str, dict[str, Decision]] = {}
    stale = unknown = 0
    for id_, by_reviewer in decisions.by_row(reviewers).items():
        if id_ not in texts:
            unknown += len(by_reviewer)
            continue
        fresh = {name: each for name, each in by_reviewer.items() if each.candidate == texts[id_]}
        stale += len(by_reviewer) - len(fresh)
        if fresh:
            counting[id_] = fresh
    return ReviewVerdicts(
        {id_: _combine(by_reviewer) for id_, by_reviewer in counting.items()},
        counting,
        stale,
        unknown,
        decisions.truncated,
    )


def _combine(by_reviewer: Mapping[str, Decision]) -> RowVerdict:
    words = {name: each.decision for name, each in sorted(by_reviewer.items())}
    word = next(word for word in _STRONGEST_FIRST if word in words.values())
    fixes = sorted((each.at, name, each.text) for name, each in by_reviewer.items() if each.decision == "fix")
    return RowVerdict(word, words, fixes[-1][2] if word == "fix" else "")


def was_bad(verdict: RowVerdict) -> bool:
    """Return whether a row was rejected or fixed."""
    return verdict.word in {"reject", "fix"}
