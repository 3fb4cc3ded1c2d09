"""Rationales for the rows of an input: asked of a model, or read from outputs that are there already.

What ``pairwright generate rationales`` runs. With a model the input is read through first, so that a broken row stops
the run before money is spent. A run that is stopped leaves what is done in ``OUT.partial``; answers are kept either way,
and the same command goes on. Memory: the rows under way; with outputs, or a Parquet file to write, all rows.
"""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.exports.rationales import STUDENT_ROWS, StudentRows
from pairwright.flows.annotation_files import refuse_overwriting
from pairwright.flows.llm import Asking
from pairwright.flows.rationale_files import check_out, files_of, open_examples
from pairwright.flows.rationale_rows import TaskInput, read_items
from pairwright.flows.receipts import hash_of
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.failures import Failure
from pairwright.generators.llm.plan import StagePlan, sample_of
from pairwright.generators.llm.runner import Done, Row
from pairwright.generators.llm.session import Session, Snapshot
from pairwright.generators.prompt_files import PromptBook
from pairwright.generators.rationale_outputs import outputs_for
from pairwright.generators.rationale_task_files import open_task
from pairwright.generators.rationale_tasks import Item, Task
from pairwright.generators.rationales import NAME, VERSION, Judged, Rationales, Settings, row_key

SETTINGS = Settings()


@dataclass(frozen=True)
class RationaleRequest:
    """What to make.

    Attributes:
        task: a name of ours, or the path of a task file.
        read: the rows.
        out: see `rationale_files`.
        settings: how rationales are asked for and judged.
        rows: how a student's rows read.
    """

    task: str
    read: TaskInput
    out: Path
    settings: Settings = SETTINGS
    rows: StudentRows = STUDENT_ROWS


@dataclass
class Work:
    """What a run has done, counted."""

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

    def add(self, done: Judged, written: int, file: str = "") -> None:
        """Count a row, and the student rows that it made."""
        example = done.example
        self.judged += 1
        self.written += written
        self.parsed += done.parsed
        self.known += done.correct is not None
        self.correct += done.correct is True
        if done.parsed:
            self.says[done.says] += 1
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

    def result(self, out: Path) -> dict[str, Any]:
        """Return rows, parsed, label_accuracy, consistent, rejected and so on; see docs/verbs/generate.md."""
        return {
            "rows": self.judged,
            "parsed": self.parsed,
            "label_accuracy": _share(self.correct, self.known),
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
            "files": [str(path) for path in files_of(out)],
        }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def import_rationales(request: RationaleRequest, outputs: Sequence[Path]) -> dict[str, Any]:
    """Judge outputs that are there already, and write the rows.

    Args:
        request: task, rows and output; ``settings.label_given`` and ``samples`` have no part in it.
        outputs: files of `rationale_outputs`, in the order of the rows.

    Returns:
        As `Work.result`.

    Raises:
        PairwrightError: what is wrong with the input, the outputs, or how they fit.
    """
    task, work = _opened(request, *map(str, outputs)), Work()
    items = list(read_items(task, request.read, work.broken))
    maker = Rationales(task, request.settings)
    with open_examples(request.out, request.rows) as write:
        for (item, ordinal), said in zip(_numbered(items), outputs_for(len(items), outputs), strict=True):
            judged = maker.judge(item, said.texts, ordinal=ordinal, request=said.file)
            work.add(judged, write(judged.example), said.file)
    return work.result(request.out)


def ask_rationales(
    request: RationaleRequest, asking: Asking, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> dict[str, Any]:
    """Let a model explain every row, and write the rows.

    Args:
        request: task, rows and output.
        asking: of which model, and how.
        note: told in one line what concerns the whole run.
        watch: told how far it is.

    Returns:
        As `Work.result`, with ``llm`` and ``failed`` as in `llm_generating.run_llm_generator`.

    Raises:
        PairwrightError: what stopped the run, in one line; what is done stands in ``OUT.partial``.
    """
    task, work = _opened(request), Work()
    total = sum(1 for _ in read_items(task, request.read, Counter()))
    maker = _maker(task, request, asking)
    partial_out = request.out.with_suffix(f".partial{request.out.suffix}")
    stopped: BaseException | None = None
    with FailedRows(
        request.out.with_suffix(".failed.jsonl"), run=_identity(maker, asking), retry=asking.retry_failed
    ) as failed:
        talks = _Talks(maker, failed)
        with asking.session(watch=watch, say=note) as session, open_examples(partial_out, request.rows) as write:
            try:
                for judged in talks.hold(session, read_items(task, request.read, work.broken), of=total):
                    work.add(judged, write(judged.example))
            except (PairwrightError, KeyboardInterrupt) as error:
                stopped = error
        if stopped is not None:
            note(f"{work.judged:,} of {total:,} rows are done: {partial_out}. The same command goes on from there.")
            raise stopped
    _put_in_place(partial_out, request.out)
    if summary := failed.summary(work.judged):
        note(summary)
    reasons = dict(sorted(failed.counts.items()))
    return {
        **work.result(request.out),
        "llm": {**asking.told(), "rows_per_second": round(session.totals().rate, 1)},
        "failed": {"rows": sum(reasons.values()), "reasons": reasons, "file": str(failed.path)},
    }


def plan_rationales(request: RationaleRequest, asking: Asking) -> StagePlan:
    """Return what `ask_rationales` would ask and cost; nothing is sent.

    Raises:
        PairwrightError: when it could not begin.
    """
    from pairwright.flows.llm_planning import plan_rows

    task = _opened(request)
    maker = _maker(task, request, asking)
    sample = sample_of(_numbered(read_items(task, request.read, Counter())), seed=request.settings.seed)
    return plan_rows(NAME, [_row(maker, item, ordinal) for item, ordinal in sample.items], sample.total, asking)


def _opened(request: RationaleRequest, *outputs: str) -> Task:
    check_out(request.out)
    refuse_overwriting(request.out, request.read.path, outputs)
    return open_task(request.task)


def _maker(task: Task, request: RationaleRequest, asking: Asking) -> Rationales:
    section = asking.section
    book = PromptBook(Path(section.prompts) if section.prompts else None)
    prompt = task.prompt_of(book, label_given=request.settings.label_given)
    return Rationales(task, request.settings, prompt, section.model)


def _identity(maker: Rationales, asking: Asking) -> str:
    """Return a hash over all that shapes the requests, the rows excepted."""
    section, settings = asking.section, maker.settings
    own = [NAME, VERSION, maker.prompt.id if maker.prompt else "", settings.label_given, settings.samples]
    return hash_of(
        [*own, section.model, asking.settings().cache_endpoint, section.structured, dict(section.parameters)]
    )


def _put_in_place(partial_out: Path, out: Path) -> None:
    for made, wanted in zip(files_of(partial_out), files_of(out), strict=True):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        made.replace(wanted)
    if not out.suffix:
        partial_out.rmdir()


def _numbered(items: Iterator[Item] | Sequence[Item]) -> Iterator[tuple[Item, int]]:
    """Give each item with how many with the same content came before."""
    seen: Counter[str] = Counter()
    for item in items:
        key = row_key(item)
        yield item, seen[key]
        seen[key] += 1


def _row(maker: Rationales, item: Item, ordinal: int, attempt: int = 0) -> Row[Judged]:
    name = _name(item, ordinal)
    return Row(name, lambda attempt: maker.ask(item, ordinal=ordinal, row=name, attempt=attempt), attempt)


def _name(item: Item, ordinal: int) -> str:
    return f"{row_key(item)}-{ordinal}" if ordinal else row_key(item)


@dataclass
class _Talks:
    """The talks of a run, and the rows that are under way, in order."""

    maker: Rationales
    failed: FailedRows
    under_way: deque[tuple[Item, int]] = field(default_factory=deque)

    def hold(self, session: Session, items: Iterator[Item], *, of: int) -> Iterator[Judged]:
        for done in session.run(self._rows(items), of=of):
            item, ordinal = self.under_way.popleft()
            while _name(item, ordinal) != done.row:  # a row that was given up when the run ended
                item, ordinal = self.under_way.popleft()
            yield self._ended(item, ordinal, done)

    def _rows(self, items: Iterator[Item]) -> Iterator[Row[Judged]]:
        for item, ordinal in _numbered(items):
            self.under_way.append((item, ordinal))
            yield _row(self.maker, item, ordinal, self.failed.attempt(_name(item, ordinal)))

    def _ended(self, item: Item, ordinal: int, done: Done[Judged]) -> Judged:
        if done.result is None:
            self.failed.note(done)
            reason = done.error.word if isinstance(done.error, Failure) else "bad_row"
            return self.maker.broken_off(item, reason, ordinal)
        self.failed.note(done, done.result.example.reason)
        return done.result
