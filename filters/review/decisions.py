"""Decisions of reviewers: a file that only ever grows, one JSON object a line.

    {"id": "...", "reviewer": "ann", "decision": "keep", "candidate": "...", "text": "", "at": "2030-01-01T10:00:00Z"}

A line is on the disk before the reviewer sees the next row, so a killed process or machine loses none that was
acknowledged. Of a reviewer's lines about a row the last one holds. ``undo`` is a line too: it takes back the reviewer's
last decision about the row, and what was decided before it holds again. Several reviewers may write into one file, also
at the same time.

``candidate`` is the text that was judged: a decision about another text than the row holds now is *stale* and counts
for nothing. A line that broke off in the middle (no file system promises a whole one after a power cut) is passed over
and counted.
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
    """What a reviewer said of a row.

    Attributes:
        id: of the row.
        reviewer: name of the person.
        decision: keep, reject, unsure, fix, or undo.
        candidate: the text that was judged.
        text: the text to take instead; of a fix only.
        at: when, as ISO 8601 in UTC.
    """

    id: str
    reviewer: str
    decision: str
    candidate: str = ""
    text: str = ""
    at: str = ""


@dataclass
class Decisions:
    """What holds after some lines.

    Attributes:
        torn: lines that are not whole JSON.
    """

    torn: int = 0
    _standing: dict[str, list[Decision]] = field(default_factory=dict)

    def add(self, line: Decision) -> None:
        """Take one more line into account."""
        mine = self._standing.setdefault(line.reviewer, [])
        if line.decision != UNDO:
            mine.append(line)
            return
        last = next((at for at in range(len(mine) - 1, -1, -1) if mine[at].id == line.id), None)
        if last is not None:
            del mine[last]

    @property
    def reviewers(self) -> list[str]:
        """Names of those of whom a decision holds, sorted."""
        return sorted(name for name, mine in self._standing.items() if mine)

    def of(self, reviewer: str) -> dict[str, Decision]:
        """Return a reviewer's decisions by the id of the row."""
        return {decision.id: decision for decision in self._standing.get(reviewer, ())}

    def stack(self, reviewer: str) -> Sequence[Decision]:
        """Return a reviewer's decisions that were not taken back, in the order in which they were made."""
        return self._standing.get(reviewer, ())

    def by_row(self, reviewers: Iterable[str] | None = None) -> dict[str, dict[str, Decision]]:
        """Return id of the row to reviewer to decision, for all reviewers or those that are named."""
        rows: defaultdict[str, dict[str, Decision]] = defaultdict(dict)
        for name in self.reviewers if reviewers is None else reviewers:
            for id_, decision in self.of(name).items():
                rows[id_][name] = decision
        return dict(rows)


def read_decisions(path: Path) -> Decisions:
    """Return what the lines of a file come to.

    Raises:
        InputError: there is no such file, or a whole line is no decision.
    """
    if not path.is_file():
        raise InputError("no such file", where=str(path), fix="Name a file that `pairwright review` wrote.")
    found = Decisions()
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            given = orjson.loads(line)
        except orjson.JSONDecodeError:
            found.torn += 1
            continue
        found.add(_decision(given, f"{path}:{number}"))
    return found


def _decision(given: Any, place: str) -> Decision:
    names = Decision.__dataclass_fields__
    texts = {name: value for name, value in given.items() if name in names} if isinstance(given, dict) else {}
    whole = all(isinstance(value, str) for value in texts.values())
    if (
        not whole
        or not texts.get("id")
        or not texts.get("reviewer")
        or texts.get("decision") not in {*DECISION_WORDS, UNDO}
    ):
        fix = "Name a file that `pairwright review` wrote, or take the line out."
        raise InputError("not a decision", where=place, fix=fix)
    return Decision(**texts)


class DecisionLog:
    """A file of decisions, open for appending.

    Args:
        path: of the file; it and its folder are made when missing.

    Raises:
        InputError: the file holds something else.
        StorageError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            _sync_folder(path.parent)
        except OSError as error:
            raise _write_error(path, error) from None
        self.decisions = read_decisions(path)

    def append(self, decision: Decision) -> Decision:
        """Write a decision to the disk, with the time; when this returns, it is there.

        Raises:
            StorageError: it could not be written. Nothing is decided then.
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
            raise _write_error(self.path, error) from None
        written = Decision(**dated)
        self.decisions.add(written)
        return written

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def _write(handle: int, line: bytes) -> None:
    # The caller holds the lock, so the end stays where it is.
    end = os.lseek(handle, 0, os.SEEK_END)
    if end and os.pread(handle, 1, end - 1) != b"\n":
        line = b"\n" + line  # an earlier line broke off: this one must not be glued to it
    try:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, end)  # half a line (disk full) must not stand there as a decision
        raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_error(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: cannot be written ({error.strerror or error}). Check the disk, or name another file.")


_STRONGEST_FIRST: Final[tuple[DecisionWord, ...]] = ("reject", "fix", "keep", "unsure")


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """What became of a row.

    Attributes:
        word: of `decisions.WORDS`.
        said: reviewer to decision.
        text: the text to take instead, of a fix: the latest where there are several.
    """

    word: DecisionWord
    said: Mapping[str, str]
    text: str = ""


@dataclass(frozen=True, slots=True)
class ReviewVerdicts:
    """The decisions that count for some rows, and those that do not.

    Attributes:
        verdicts: id of the row to verdict.
        decisions: id of the row to reviewer to the decision that counts.
        stale: decisions about another text than the row has now.
        unknown: decisions about rows that the input does not have, or that came in rejected.
        torn: lines of the file that broke off.
    """

    verdicts: Mapping[str, RowVerdict]
    decisions: Mapping[str, Mapping[str, Decision]]
    stale: int = 0
    unknown: int = 0
    torn: int = 0

    @property
    def uncounted(self) -> dict[str, int]:
        """What does not count and why, without zeros."""
        told = {"stale": self.stale, "unknown": self.unknown, "torn": self.torn}
        return {reason: count for reason, count in told.items() if count}


def combine_decisions(
    frame: pl.DataFrame, decisions: Decisions, reviewers: Iterable[str] | None = None
) -> ReviewVerdicts:
    """Return the verdicts on the rows of a candidate frame that are not rejected.

    Args:
        frame: with ``candidates.SCHEMA``.
        decisions: of any reviewers.
        reviewers: those who count; all when left out.
    """
    texts = dict(frame.filter(pl.col("status") == "kept").select("id", "negative").iter_rows())
    counting: dict[str, dict[str, Decision]] = {}
    stale = unknown = 0
    for id_, said in decisions.by_row(reviewers).items():
        if id_ not in texts:
            unknown += len(said)
            continue
        fresh = {name: each for name, each in said.items() if each.candidate == texts[id_]}
        stale += len(said) - len(fresh)
        if fresh:
            counting[id_] = fresh
    return ReviewVerdicts(
        {id_: _verdict(said) for id_, said in counting.items()}, counting, stale, unknown, decisions.torn
    )


def _verdict(said: Mapping[str, Decision]) -> RowVerdict:
    words = {name: each.decision for name, each in sorted(said.items())}
    word = next(word for word in _STRONGEST_FIRST if word in words.values())
    fixes = sorted((each.at, name, each.text) for name, each in said.items() if each.decision == "fix")
    return RowVerdict(word, words, fixes[-1][2] if word == "fix" else "")


def was_bad(verdict: RowVerdict) -> bool:
    """Say whether a row was no good as it stood: rejected, or in need of a fix."""
    return verdict.word in {"reject", "fix"}
