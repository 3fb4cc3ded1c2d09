"""Jobs of the stages that ask a model. What a stage asks is its `AskedStage`; how, is here.

Usually a stage is a job per part, whose requests the build's `AnswerService` sends, and one that adds up their bills. A
killed job starts again from its first row; earlier answers come from the cache and are not billed again.

Three kinds of stages are one job over all parts, in the build's process: conversations with ``counts``, whose passes need
the counts of all parts; the Batch API, whose batches should be few and large; and local models.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.worker_processes import WorkerProcesses
from pairwright.flows.llm.answer_client import AnswerSource, ServiceModel
from pairwright.flows.llm.model_access import ModelAccess, model_access_for_build
from pairwright.flows.llm.row_run import RowRun
from pairwright.flows.state.layout import answers_path, failed_files, failed_path
from pairwright.flows.state.receipts import Counts, JobResult, merged_facts, receipt_path, total_counts
from pairwright.generators.llm.client.messages import Usage
from pairwright.generators.llm.local.folder import is_local
from pairwright.generators.llm.runner import MostlyFailingError

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.runners.engine import Engine, StageJobs
    from pairwright.flows.stages.definition import StageRun

_FAILING_PARTS = 5  # parts without any answer that end a build; some wait while others fail
SET_UP = Lock()
"""Held while a job is set up: two may begin at a time in one process, and threads that import the same packages of
circular imports (spaCy) see them half initialised."""

Inputs = Mapping[str, Any]
"""The parts that a job asks about, each with what the job has to know of it besides its name."""


@dataclass(frozen=True)
class Asker:
    """What a job asks with.

    Attributes:
        access: the model.
        note: receives messages.
        pool: processes that check answers; None: they are checked in this process.
        workers: of the pool.
    """

    access: ModelAccess
    note: Callable[[str], None]
    pool: WorkerProcesses | None = None
    workers: int = 1


class AskedRows(Protocol):
    """The rows of a job."""

    @property
    def count(self) -> int:
        """Number of rows."""
        ...

    def ask(self, run: RowRun) -> None:
        """Ask about all rows, and write the results part by part."""
        ...

    def result(self, outputs: Sequence[Path], bill: Mapping[str, Any]) -> JobResult:
        """Return the result of the job, given its other outputs and its bill; the unit is that of the stage."""
        ...


class AskedStage(Protocol):
    """What a stage asks."""

    def open(self, root: Path, inputs: Inputs, asker: Asker) -> AskedRows:
        """Return the rows of some parts."""
        ...

    def complete(self, root: Path, parts: Sequence[str], result: JobResult) -> JobResult:
        """Return the result of the stage, given the sum of those of all its parts."""
        ...


def asks_by_part(config: "BuildConfig", options: Mapping[str, Any]) -> bool:
    """Return whether a stage that asks a model has a job per part, given the options of its generator."""
    return config.llm is not None and not (options.get("counts") or config.llm.batch or is_local(config.llm.model))


def asking_jobs(  # noqa: PLR0913 - keywords
    run: "StageRun",
    asked: AskedStage,
    inputs: Inputs,
    states: Mapping[str, object],
    *,
    stated: Sequence[object],
    by_part: bool,
    rows: int = 0,
) -> "StageJobs":
    """Return the jobs of a stage that asks a model.

    Args:
        run: of the stage.
        asked: what it asks.
        inputs: all parts.
        states: of what each part is read from, for the fingerprints.
        stated: what shapes the requests besides the model, for the fingerprints.
        by_part: whether there is a job per part (`asks_by_part`).
        rows: of all parts, for progress; 0: unknown.
    """
    access = model_access_for_build(run.config.llm, run.home, run.bill, seed=run.config.seed)
    identity = [*stated, access.stage_identity()]
    if by_part:
        return _jobs_by_part(run, asked, inputs, {part: [*identity, states[part]] for part in inputs}, access, rows)
    job = _SetJob(run.name, asked, replace(access, retry_failed=_retries(run, "")), run.engine)
    return [run.job(job, inputs, settings=[*identity, dict(states)], in_build_process=True)]


def _jobs_by_part(  # noqa: PLR0913, PLR0917 - as of `asking_jobs`
    run: "StageRun",
    asked: AskedStage,
    inputs: Inputs,
    settings: Mapping[str, object],
    access: ModelAccess,
    rows: int,
) -> "StageJobs":
    served = access.without_address()
    done = yield [
        run.job(
            _PartJob(run.name, asked, replace(served, retry_failed=_retries(run, part)), rows, len(inputs)),
            *(part, known),
            part=part,
            settings=settings[part],
            asks=access,
        )
        for part, known in inputs.items()
    ]
    facts = {receipt.part: receipt.facts for receipt in done}
    return [run.job(_Totals(run.name, asked, facts, total_counts(done), served), settings=[facts], after=done)]


def _retries(run: "StageRun", part: str) -> bool:
    """Return whether the failed rows of a part, or of the only job, are to be retried; then its receipt is removed."""
    failed = failed_path(run.root, run.name, part)
    retries = run.retry_failed and failed.is_file() and failed.stat().st_size > 0
    if retries:
        receipt_path(run.root, run.name, part or "all").unlink(missing_ok=True)
    return retries


def has_failed_rows(root: Path, stage: str) -> bool:
    """Return whether an earlier run of ``stage`` left failed rows."""
    return any(path.stat().st_size for path in failed_files(root, stage))


@dataclass(frozen=True)
class _PartJob:
    """The job of a part; the service answers its requests.

    Attributes:
        stage: name of the stage.
        asked: what it asks.
        access: the model, without its address.
        rows: of all parts, for progress; 0: unknown.
        parts: number of parts.
    """

    stage: str
    asked: AskedStage
    access: ModelAccess
    rows: int
    parts: int

    def __call__(self, root: Path, part: str, known: object) -> JobResult:
        """Ask about the rows of a part; ``failed/`` names the failed ones, if there are any.

        Raises:
            PairwrightError: what stopped the job.
        """
        service = ServiceModel(AnswerSource(root, self.stage, part, self.rows))
        access = self.access.for_job(service)
        with SET_UP:
            rows = self.asked.open(root, {part: known}, Asker(access, _ignore_message))
        with RowRun(access, failed_path(root, self.stage, part), _ignore_message, service.report) as run:
            try:
                rows.ask(run)
            except MostlyFailingError:
                # A part of few rows may fail as a whole; that the server answers no request shows in more of them.
                answered, failing_parts = service.counts
                if run.done < rows.count or (not answered and failing_parts >= min(_FAILING_PARTS, self.parts)):
                    raise
            bill = _bill(run)
        return rows.result(self._write_answers(root, part, service), bill)

    def _write_answers(self, root: Path, part: str, service: ServiceModel) -> list[Path]:
        """Write which answers the rows use; return that file, and the one of failed rows if there are any."""
        used, failed = answers_path(root, self.stage, part), failed_path(root, self.stage, part)
        answers = sorted((bytes.fromhex(key), *tokens) for key, tokens in service.used.items())
        frame = pl.DataFrame(answers, {"key": pl.Binary, "prompt": pl.Int64, "completion": pl.Int64}, orient="row")
        with replace_atomically(used) as temporary:
            frame.write_parquet(temporary)
        if not failed.stat().st_size:
            failed.unlink()
        return [used, *([failed] if failed.exists() else [])]


@dataclass(frozen=True)
class _Totals:
    """The last job of a stage with a job per part: their counts and bills.

    Attributes:
        stage: name of the stage.
        asked: what it asks.
        facts: of each part.
        counts: of all parts.
        access: the model, for prices.
    """

    stage: str
    asked: AskedStage
    facts: Mapping[str, Mapping[str, Any]]
    counts: Counts
    access: ModelAccess

    def __call__(self, root: Path) -> JobResult:
        """Return counts and facts of the stage; ``in_all`` counts an answer that several parts use (equal captions) once."""
        merged = merged_facts([*self.facts.values()])
        used = pl.scan_parquet([answers_path(root, self.stage, part) for part in self.facts]).unique("key")
        totals = (
            used.select(pl.len().alias("answers"), pl.col("prompt", "completion").sum()).collect().row(0, named=True)
        )
        bill, summed = merged["llm"], merged["llm"]["in_all"]
        price = self.access.prices().find(self.access.model)
        usage = Usage(totals["prompt"], totals["completion"], bill["cached_tokens"])
        in_all = {
            "answers": totals["answers"],
            "shared": summed["answers"] + summed["shared"] - totals["answers"],
            "alone": summed["alone"],
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost": price.cost(usage) if price is not None else None,
        }
        result = JobResult([], self.counts, {**merged, "llm": {**bill, "in_all": in_all}})
        return self.asked.complete(root, list(self.facts), result)


@dataclass(frozen=True)
class _SetJob:
    """The job over all parts, which sends its requests itself.

    Attributes:
        stage: name of the stage.
        asked: what it asks.
        access: the model.
        engine: of the build; its ``stop`` ends the job, whose finished rows are in the cache.
    """

    stage: str
    asked: AskedStage
    access: ModelAccess
    engine: "Engine"

    def __call__(self, root: Path, inputs: Inputs) -> JobResult:
        """Ask about the rows of all parts; ``failed/`` names the failed ones.

        Raises:
            PairwrightError: what stopped the job.
        """
        engine, failed = self.engine, failed_path(root, self.stage)
        pool = engine.pool if isinstance(engine.pool, WorkerProcesses) else None
        note = engine.progress.note
        rows = self.asked.open(root, inputs, Asker(self.access, note, pool, engine.workers))
        watch = partial(engine.progress.report_model, self.stage)
        with RowRun(self.access, failed, note, watch, engine.stop) as run:
            rows.ask(run)
            bill = _bill(run)
        return self.asked.complete(root, list(inputs), rows.result([failed], bill))


def _bill(run: RowRun) -> dict[str, Any]:
    return {**run.bill(), "failed": run.failed.counts.total()}


def _ignore_message(_: str) -> None:
    """Ignore a message: the service passes on those that matter."""
