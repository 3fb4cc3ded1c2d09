"""A JSONL of student rows (`pairwright generate rationales`, `pairwright export --to rationales`) as samples.

A sample is an example: the rows with the same ``id``, which say label and rationale. Where they stand is read once;
the rows are read when a batch wants them.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.errors import InputError
from pairwright.training.loading.samples import SampleCheck, StoredSample
from pairwright.training.loading.span_reader import read_span

ROWS = "student_rows"
_MEMBERS = ("id", "objective", "input", "output", "split")

_Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RationaleIndex:
    """The examples of a file, numbered through.

    Attributes:
        path: of the file.
        spans: for each example its lines: first byte, and the byte behind.
        left_out: examples that have no place, by reason.
    """

    path: Path
    spans: tuple[_Spans, ...]
    left_out: Mapping[str, int]

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of examples, of the one file."""
        return (len(self.spans),)

    def places(self) -> str:
        """Return a digest of where the examples lie: the same for the same file in another folder."""
        return hashlib.sha256(repr(self.spans).encode()).hexdigest()[:16]

    def find(self, number: int) -> StoredSample:
        """Return the example of a number.

        Raises:
            InputError: a line that changed since.
        """
        rows = [_row(read_span(self.path, *span), str(self.path)) for span in self.spans[number]]
        return StoredSample(rows[0]["id"], f"{self.path}, example {rows[0]['id']}", "", {ROWS: rows}, b"")


def index_rationales(path: Path, judge: SampleCheck | None = None) -> RationaleIndex:
    """Return where the examples of a file lie; ``judge`` as in `index_shards`.

    Raises:
        InputError: no such file, no row in it, or a line that is no student row.
    """
    if not path.is_file():
        raise missing_file_message(path)
    spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    rows: defaultdict[str, list[Any]] = defaultdict(list)
    for start, end, row in _lines(path):
        spans[row["id"]].append((start, end))
        rows[row["id"]].append(row)
    if not spans:
        raise InputError("no row in it", where=str(path), fix="Make rows by pairwright generate rationales.")
    reasons = {name: judge({ROWS: found}) if judge else "" for name, found in rows.items()}
    kept = tuple(tuple(found) for name, found in spans.items() if not reasons[name])
    return RationaleIndex(path, kept, Counter(reason for reason in reasons.values() if reason))


def _lines(path: Path) -> Iterator[tuple[int, int, Any]]:
    at = 0
    with path.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            if line.strip():
                yield at, at + len(line), _row(line, f"{path}, line {number}")
            at += len(line)


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"no JSON ({error})", where=where, fix="Write the rows again.") from None
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in _MEMBERS):
        raise InputError(
            f"no student row: it needs {', '.join(_MEMBERS)}, all of them texts",
            where=where,
            fix="pairwright export --to rationales writes such rows.",
        )
    return row


def missing_file_message(path: Path) -> InputError:
    """Return what to say of a file that is not there."""
    return InputError("no such file", where=str(path), fix="Give the .jsonl that holds the rows.")
