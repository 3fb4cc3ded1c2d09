"""Rationales from a model, over any input: ``pairwright generate rationales --model``.

The input is read once before the first request, so that a broken row stops the run before it costs anything. Rows are
written to ``OUT.partial``, which is renamed to OUT when it is complete and kept when the run is stopped. Answers are in
the cache: the same command continues the run. Memory: the rows in flight; all rows for a Parquet file.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import remove_stale_temporaries
from pairwright.flows.llm.context import ModelRow
from pairwright.flows.llm.estimate import estimate_all
from pairwright.flows.llm.failed_rows import failed_rows_path, read_attempts
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.row_run import run_rows
from pairwright.flows.rationales.files import open_example_writer, output_files
from pairwright.flows.rationales.importing import RationaleCounts, RationaleRequest, load_request_task, number_repeats
from pairwright.flows.rationales.task_rows import read_items
from pairwright.flows.state.receipts import json_hash
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.runner import RowResult
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.rationales.generator import (
    NAME,
    VERSION,
    JudgedExample,
    RationaleGenerator,
    RationaleSettings,
    row_key,
)
from pairwright.generators.rationales.tasks import TaskDefinition, TaskRow

NumberedItem = tuple[TaskRow, int]  # a row, and how many with the same content come before it


@dataclass(frozen=True)
class RationaleTask:
    """The task of explaining rows (`flows.llm.row_run.RowTask`).

    Attributes:
        generator: yields the requests about a row.
        access: the model.
    """

    generator: RationaleGenerator
    access: ModelAccess
    checks = None

    @classmethod
    def open(cls, definition: TaskDefinition, settings: RationaleSettings, access: ModelAccess) -> "RationaleTask":
        """Return the task that a definition and its prompt describe."""
        prompt = definition.build_prompt(
            access.prompts(), label_given=settings.label_given, see_image=settings.see_image
        )
        return cls(RationaleGenerator(definition, settings, prompt, access.model, access.images), access)

    @cached_property
    def identity(self) -> str:
        """Hash over everything that shapes the requests, except the rows."""
        access, section, settings = self.access, self.access.section, self.generator.settings
        prompt = self.generator.prompt
        own = [NAME, VERSION, prompt.id if prompt else "", settings.label_given, settings.samples]
        context = [access.context.captions.fingerprint] if access.context is not None else []
        server = [access.model, access.settings().cache_endpoint, section.structured, dict(section.parameters)]
        return json_hash([*own, *server, *context])

    def row(self, item: NumberedItem) -> ModelRow[NumberedItem, JudgedExample]:
        """Return the row of an item."""
        row, ordinal = item
        name = f"{row_key(row)}-{ordinal}" if ordinal else row_key(row)
        return ModelRow((name,), (item,), partial(self._step, row, ordinal, name), row.input, row.key)

    def _step(self, row: TaskRow, ordinal: int, name: str, attempts: Sequence[int]) -> LLMStep[Sequence[JudgedExample]]:
        [attempt] = attempts
        return [(yield from self.generator.ask(row, ordinal=ordinal, row=name, attempt=attempt))]

    def finish(self, item: NumberedItem, done: RowResult[JudgedExample]) -> tuple[JudgedExample, str]:
        """Return the example of an item, and the reason if it is rejected."""
        row, ordinal = item
        judged = done.result or self.generator.failed_example(row, done.error_code, ordinal)
        return judged, judged.example.reason


def generate_rationales(
    request: RationaleRequest, access: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> dict[str, Any]:
    """Ask a model to explain every row, and write the rows.

    Args:
        request: task, rows and output.
        access: the model.
        note: receives messages about the run.
        watch: receives progress snapshots.

    Returns:
        As `RationaleCounts.result`, with ``llm`` and ``failed`` as in `generate_with_model.run_llm_generator`.

    Raises:
        PairwrightError: what stopped the run; finished rows are in ``OUT.partial``.
    """
    definition, counts = load_request_task(request), RationaleCounts()
    total = sum(1 for _ in read_items(definition, request.read, Counter()))
    task = RationaleTask.open(definition, request.settings, access)
    partial_out = _partial_path(request.out)
    remove_stale_temporaries(*output_files(partial_out), failed_rows_path(request.out))

    @contextmanager
    def writer() -> Iterator[Callable[[NumberedItem, JudgedExample], None]]:
        with open_example_writer(partial_out, request.rows) as write:
            yield lambda _, judged: counts.add(judged, write(judged.example))

    rows = map(task.row, number_repeats(read_items(definition, request.read, counts.broken)))
    try:
        run = run_rows(
            access, task, rows, total, writer(), out=request.out, note=note, watch=watch, partial=partial_out
        )
    except BaseException:
        if not counts.judged:  # no row is in them
            _remove_files(partial_out)
        raise
    _rename_files(partial_out, request.out)
    return {
        **counts.result(request.out),
        "llm": {**run.bill(), "rows_per_second": run.rows_per_second},
        "failed": run.failures(),
    }


def plan_rationales(request: RationaleRequest, access: ModelAccess) -> StagePlan:
    """Return an estimate of `generate_rationales`.

    Raises:
        PairwrightError: the run could not start.
    """
    definition = load_request_task(request)
    task = RationaleTask.open(definition, request.settings, access)
    rows = map(task.row, number_repeats(read_items(definition, request.read, Counter())))
    attempt = read_attempts(request.out, run=task.identity, retry=access.retry_failed)
    return estimate_all(NAME, rows, access, attempt=attempt, seed=request.settings.seed)


def _partial_path(out: Path) -> Path:
    """Return the path of the incomplete output: a file with the same extension, or a folder."""
    return out.with_suffix(f".partial{out.suffix}") if out.suffix else out.with_name(f"{out.name}-partial")


def _remove_files(partial_out: Path) -> None:
    for path in output_files(partial_out):
        path.unlink(missing_ok=True)
    if partial_out.is_dir():
        partial_out.rmdir()


def _rename_files(partial_out: Path, out: Path) -> None:
    for source, target in zip(output_files(partial_out), output_files(out), strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
    if not out.suffix:
        partial_out.rmdir()
