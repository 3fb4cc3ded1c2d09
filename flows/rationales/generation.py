"""Rationales asked of a model, over any input: what ``pairwright generate rationales --model`` runs.

The input is read through first, so that a broken row stops the run before money is spent. What is written while it
runs, or when it is stopped, stands in ``OUT.partial``; OUT itself appears when it is whole. Answers are kept either way:
the same command goes on. Memory: the rows under way; all of them where a Parquet file is to be written.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import remove_stale_temporaries
from pairwright.datasets.errors import PairwrightError
from pairwright.flows.llm.context import ContextProvider
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.rationales.files import open_example_writer, output_files
from pairwright.flows.rationales.importing import RationaleCounts, RationaleRequest, load_request_task, number_repeats
from pairwright.flows.rationales.task_rows import read_items
from pairwright.flows.state.receipts import json_hash
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.cost_estimate import StagePlan, sample_rows
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.runner import LLMRow, RowResult
from pairwright.generators.llm.session import Session, Snapshot
from pairwright.generators.prompts.book import PromptBook
from pairwright.generators.rationales.generator import (
    NAME,
    VERSION,
    JudgedExample,
    RationaleGenerator,
    RationaleSettings,
    row_key,
)
from pairwright.generators.rationales.tasks import TaskDefinition, TaskRow


def generate_rationales(
    request: RationaleRequest, asking: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
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
    task, work = load_request_task(request), RationaleCounts()
    total = sum(1 for _ in read_items(task, request.read, Counter()))
    maker = rationale_generator(task, request.settings, asking)
    partial_out = _partial_path(request.out)
    failed_rows = request.out.with_suffix(".failed.jsonl")
    remove_stale_temporaries(*output_files(partial_out), failed_rows)
    stopped: BaseException | None = None
    with (
        FailedRows(failed_rows, run=requests_identity(maker, asking), retry=asking.retry_failed) as failed,
        ContextProvider(asking.context) as given,
    ):
        talks = RationaleSteps(maker, failed, given)
        with asking.session(watch=watch, say=note) as session, open_example_writer(partial_out, request.rows) as write:
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
        "llm": {**asking.told(session.totals().spent), "rows_per_second": round(session.totals().rate, 1)},
        "failed": {"rows": sum(reasons.values()), "reasons": reasons, "file": str(failed.path)},
    }


def plan_rationales(request: RationaleRequest, asking: ModelAccess) -> StagePlan:
    """Return what `generate_rationales` would ask and cost; nothing is sent.

    Raises:
        PairwrightError: when it could not begin.
    """
    from pairwright.flows.llm.planning import plan_rows

    task = load_request_task(request)
    maker = rationale_generator(task, request.settings, asking)
    sample = sample_rows(number_repeats(read_items(task, request.read, Counter())), seed=request.settings.seed)
    rows = ((session_row(maker, item, ordinal), item.input, item.key) for item, ordinal in sample.items)
    return plan_rows(NAME, list(ContextProvider(asking.context).rows(rows)), sample.total, asking)


def rationale_generator(task: TaskDefinition, settings: RationaleSettings, asking: ModelAccess) -> RationaleGenerator:
    """Return what makes the rows of a task by a model."""
    section = asking.section
    book = PromptBook(Path(section.prompts) if section.prompts else None)
    prompt = task.build_prompt(book, label_given=settings.label_given)
    return RationaleGenerator(task, settings, prompt, asking.model)


def requests_identity(maker: RationaleGenerator, asking: ModelAccess) -> str:
    """Return a hash over all that shapes the requests, the rows excepted."""
    section, settings = asking.section, maker.settings
    own = [NAME, VERSION, maker.prompt.id if maker.prompt else "", settings.label_given, settings.samples]
    context = [asking.context.captions.fingerprint] if asking.context is not None else []
    server = [asking.model, asking.settings().cache_endpoint, section.structured, dict(section.parameters)]
    return json_hash([*own, *server, *context])


def _partial_path(out: Path) -> Path:
    """Return where OUT is written until it is whole: a file of the same ending, or a folder without one."""
    return out.with_suffix(f".partial{out.suffix}") if out.suffix else out.with_name(f"{out.name}-partial")


def _put_in_place(partial_out: Path, out: Path) -> None:
    for made, wanted in zip(output_files(partial_out), output_files(out), strict=True):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        made.replace(wanted)
    if not out.suffix:
        partial_out.rmdir()


def session_row(maker: RationaleGenerator, item: TaskRow, ordinal: int, attempt: int = 0) -> LLMRow[JudgedExample]:
    """Return a row that a session runs."""
    name = _name(item, ordinal)
    return LLMRow(name, lambda attempt: maker.ask(item, ordinal=ordinal, row=name, attempt=attempt), attempt)


def _name(item: TaskRow, ordinal: int) -> str:
    return f"{row_key(item)}-{ordinal}" if ordinal else row_key(item)


@dataclass
class RationaleSteps:
    """The talks of a run, and the rows that are under way, in order."""

    maker: RationaleGenerator
    failed: FailedRows
    given: ContextProvider = field(default_factory=lambda: ContextProvider(None))
    under_way: deque[tuple[TaskRow, int]] = field(default_factory=deque)

    def hold(self, session: Session, items: Iterator[TaskRow], *, of: int) -> Iterator[JudgedExample]:
        """Give each row as it was judged, in order; errors as `flows.talking.Talks.hold`."""
        for done in session.run(self._rows(items), of=of):
            item, ordinal = self.under_way.popleft()
            while _name(item, ordinal) != done.row:  # a row that was given up when the run ended
                item, ordinal = self.under_way.popleft()
            yield self._ended(item, ordinal, done)

    def _rows(self, items: Iterator[TaskRow]) -> Iterator[LLMRow[JudgedExample]]:
        return self.given.rows(self._plain(items))

    def _plain(self, items: Iterator[TaskRow]) -> Iterator[tuple[LLMRow[JudgedExample], str, str]]:
        for item, ordinal in number_repeats(items):
            self.under_way.append((item, ordinal))
            row = session_row(self.maker, item, ordinal, self.failed.attempt(_name(item, ordinal)))
            yield row, item.input, item.key

    def _ended(self, item: TaskRow, ordinal: int, done: RowResult[JudgedExample]) -> JudgedExample:
        if done.result is None:
            self.failed.note(done)
            reason = done.error.word if isinstance(done.error, RequestError) else "bad_row"
            return self.maker.failed_example(item, reason, ordinal)
        self.failed.note(done, done.result.example.reason)
        return done.result
