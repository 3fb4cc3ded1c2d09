"""Rationales from existing outputs of a model: ``pairwright generate rationales --import``; request and counts of a run.

`rationales.generation` asks a model instead. Memory: all rows.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.datasets.exports.rationales import DEFAULT_STUDENT_ROWS, StudentRows
from pairwright.flows.rationales.files import check_output_ending, open_example_writer, output_files
from pairwright.flows.rationales.task_rows import TaskInput, read_aligned_items
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.rationales.generator import JudgedExample, RationaleGenerator, RationaleSettings, row_key
from pairwright.generators.rationales.imported_outputs import RowOutputs, read_row_outputs
from pairwright.generators.rationales.task_files import open_task
from pairwright.generators.rationales.tasks import TaskDefinition, TaskRow

SETTINGS = RationaleSettings()


@dataclass(frozen=True)
class RationaleRequest:
    """Task, rows and output of a run.

    Attributes:
        task: name of a built-in task, or path of a task file.
        read: the rows.
        out: see `rationales.files`.
        settings: how rationales are requested and judged.
        rows: format of the student rows.
    """

    task: str
    read: TaskInput
    out: Path
    settings: RationaleSettings = SETTINGS
    rows: StudentRows = DEFAULT_STUDENT_ROWS


@dataclass
class RationaleCounts:
    """Counts of a run."""

    judged: int = 0
    parsed: int = 0
    known: int = 0
    correct: int = 0
    says: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    splits: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    by_file: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    agreeing: int = 0
    agreement: float = 0.0
    written: int = 0
    started: float = field(default_factory=time.perf_counter)

    def add(self, done: JudgedExample, written: int, file: str = "") -> None:
        """Count a row, and the student rows made from it."""
        example = done.example
        self.judged += 1
        self.written += written
        self.parsed += done.parsed
        self.known += done.correct is not None
        self.correct += done.correct is True
        if done.parsed:
            self.says[done.consistency] += 1
        if done.agreement:
            self.agreeing += 1
            self.agreement += done.agreement
        if example.status == "rejected":
            self.rejected[example.reason] += 1
        else:
            self.splits[example.split] += 1
        if file:
            self.by_file[file].update(
                rows=1, parsed=done.parsed, known=done.correct is not None, correct=done.correct or 0
            )

    def accuracy(self) -> float | None:
        """Return the share of correct labels among rows with a known label; None if there are none."""
        return _share(self.correct, self.known)

    def result(self, out: Path) -> dict[str, Any]:
        """Return rows, parsed, label_accuracy, consistent, rejected and so on; see docs/verbs/generate.md."""
        return {
            "rows": self.judged,
            "parsed": self.parsed,
            "label_accuracy": self.accuracy(),
            "consistent": self.parsed - self.says["contradicts"],
            "rejected": dict(sorted(self.rejected.items())),
            "kept": self.splits.total(),
            "splits": {name: self.splits[name] for name in ("train", "validation")},
            "rationales": {name: self.says[name] for name in ("agrees", "silent", "contradicts")},
            "agreement": round(self.agreement / self.agreeing, 4) if self.agreeing else None,
            "student_rows": self.written,
            "broken": dict(sorted(self.broken.items())),
            "outputs": {
                name: {"rows": n["rows"], "parsed": n["parsed"], "label_accuracy": _share(n["correct"], n["known"])}
                for name, n in self.by_file.items()
            },
            "seconds": round(time.perf_counter() - self.started, 2),
            "out": str(out),
            "files": [str(path) for path in output_files(out)],
        }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def import_rationales(request: RationaleRequest, outputs: Sequence[Path]) -> dict[str, Any]:
    """Judge existing outputs, and write the rows.

    Args:
        request: task, rows and output; ``settings.label_given`` and ``samples`` are ignored.
        outputs: files of `rationales.imported_outputs`, in the order of all rows, or of those that are not skipped as
            broken.

    Returns:
        As `RationaleCounts.result`.

    Raises:
        PairwrightError: the input or the outputs are invalid, or do not match.
    """
    task, work = load_request_task(request, *map(str, outputs)), RationaleCounts()
    places = list(read_aligned_items(task, request.read, work.broken))
    items = [item for item in places if item is not None]
    maker = RationaleGenerator(task, request.settings)
    with open_example_writer(request.out, request.rows) as write:
        for (item, ordinal), said in zip(number_repeats(items), _outputs(places, outputs), strict=True):
            judged = maker.judge(item, said.texts, ordinal=ordinal, request=said.file)
            work.add(judged, write(judged.example), said.file)
    return work.result(request.out)


def _outputs(places: Sequence[TaskRow | None], paths: Sequence[Path]) -> list[RowOutputs]:
    """Return the outputs for each row that is not skipped."""
    there = sum(item is not None for item in places)
    try:
        said = read_row_outputs(len(places), paths)
    except UsageError:
        if there == len(places):
            raise
        return read_row_outputs(there, paths)
    return [each for item, each in zip(places, said, strict=True) if item is not None]


def load_request_task(request: RationaleRequest, *outputs: str) -> TaskDefinition:
    """Return the task of a request.

    Raises:
        UsageError: there is no such task, OUT is an input, or its extension is unknown.
        ConfigError: the task file is invalid.
    """
    check_output_ending(request.out)
    refuse_overwriting(request.out, request.read.path, outputs)
    return open_task(request.task)


def number_repeats(items: Iterable[TaskRow]) -> Iterator[tuple[TaskRow, int]]:
    """Yield each item with the number of earlier items with the same content."""
    seen: Counter[str] = Counter()
    for item in items:
        key = row_key(item)
        yield item, seen[key]
        seen[key] += 1
