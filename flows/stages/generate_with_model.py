"""Generating stages that use a model: a job per part, whose requests the build's `AnswerService` sends.

A killed job starts again from its first row; earlier answers come from the cache and are not billed again.

Three kinds of stages are one job over all parts, in the build's process: conversations with ``counts``, whose passes need
the counts of all parts; the Batch API, whose batches should be few and large; and local models.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.records import Annotation
from pairwright.datasets.worker_processes import WorkerProcesses
from pairwright.flows.llm.answer_checks import CHECKED_AT_ONCE, completed
from pairwright.flows.llm.answer_client import AnswerSource, ServiceModel
from pairwright.flows.llm.check_workers import CheckWorkers
from pairwright.flows.llm.model_access import ModelAccess, model_access_for_build
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.quotas import QuotaPasses, restrict_to_counts
from pairwright.flows.llm.row_run import RowRun, write_by_part
from pairwright.flows.stages.generate import PartOutputs, generator_state, materials_of, stage_of_run
from pairwright.flows.stages.generator_stages import GeneratingStage
from pairwright.flows.stages.image_states import survey_images
from pairwright.flows.state.layout import answers_path, failed_files, failed_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, merged_facts, receipt_path, total_counts
from pairwright.flows.state.selection import PairSelection, selected_frame, selected_pairs
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.llm.client.messages import Usage
from pairwright.generators.llm.local.folder import is_local
from pairwright.generators.llm.runner import MostlyFailingError
from pairwright.generators.registry import build_llm_generator

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.progress import BuildProgress
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

_FAILING_PARTS = 5  # parts without any answer that end a build; some wait while others fail
SET_UP = Lock()
"""Held while a part is set up: two parts may begin at a time in one process, and threads that import the same packages of
circular imports (spaCy) see them half initialised."""


async def model_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of a generating stage whose generator asks a model, over all parts."""
    stage, parts = stage_of_run(run), run.parts
    access = build_model_access(run)
    settings = [repr(stage), access.stage_identity(), parts, generator_state(stage.generator)]
    settings.append(await _images(run, stage))
    engine = run.engine
    pool = engine.pool if isinstance(engine.pool, WorkerProcesses) else None
    job = ModelStage(stage, access, engine.progress, engine.stop, pool, engine.workers)
    return [run.job(job, parts, settings=settings, in_build_process=True)]


async def model_part_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of a generating stage whose generator asks a model: one per part, then one that adds up their bills."""
    stage, rows, parts = stage_of_run(run), run.selected_pairs, len(run.parts)
    access = model_access_for_build(run.config.llm, run.home, run.bill, seed=run.config.seed)
    identity = [repr(stage), access.stage_identity(), generator_state(stage.generator)]
    images = await _images(run, stage)
    states = {part: [*identity, state] for part, state in zip(run.parts, images, strict=True)}
    return jobs_that_ask(run, access, states, lambda served, _: ModelPart(stage, served, rows, parts), ModelTotals)


def jobs_that_ask(
    run: "StageRun",
    access: ModelAccess,
    states: Mapping[str, object],
    job_of: Callable[[ModelAccess, str], Callable[..., JobResult]],
    totals_of: "type[ModelTotals]",
) -> "StageJobs":
    """Return one job per part that asks the build's `AnswerService`, then one that adds up counts and bills.

    Args:
        run: of the stage.
        access: the model.
        states: for the fingerprint of the job of each part.
        job_of: returns the job of a part, called with the model without its address and the part.
        totals_of: makes the last job.
    """
    served, jobs = access.without_address(), list[Job]()
    for part, state in states.items():
        retry = run.retry_failed and failed_path(run.root, run.name, part).is_file()
        if retry:
            receipt_path(run.root, run.name, part).unlink(missing_ok=True)
        job = job_of(replace(served, retry_failed=retry), part)
        jobs.append(run.job(job, part, part=part, settings=state, asks=access))
    done = yield jobs
    facts = {receipt.part: receipt.facts for receipt in done}
    return [run.job(totals_of(run.name, facts, total_counts(done), served), settings=[facts], after=done)]


def asks_by_part(config: "BuildConfig", options: object) -> bool:
    """Return whether a generating stage that uses a model has a job per part."""
    limited = isinstance(options, dict) and options.get("counts")
    return config.llm is not None and not (limited or config.llm.batch or is_local(config.llm.model))


async def _images(run: "StageRun", stage: GeneratingStage) -> list[str]:
    return await image_states_for_model(run, stage.selection, seen=bool(stage.options.get("see_image")))


async def image_states_for_model(run: "StageRun", selection: PairSelection, *, seen: bool) -> list[str]:
    """Return the state of the images of each part, by which a changed one is noticed; empty where the model sees none."""
    if not seen:
        return [""] * len(run.parts)
    return [images.state for images in await survey_images(run, selection)]


def build_model_access(run: "StageRun") -> ModelAccess:
    """Return the model of a stage that is one job; if its failed rows are to be retried, its receipt is removed."""
    retry = run.retry_failed and has_failed_rows(run.root, run.name)
    access = model_access_for_build(run.config.llm, run.home, run.bill, seed=run.config.seed, retry_failed=retry)
    if retry:
        receipt_path(run.root, run.name, "all").unlink(missing_ok=True)
    return access


@dataclass(frozen=True)
class ModelPart:
    """The job of a part.

    Attributes:
        stage: the generating stage.
        access: the model, without its address.
        rows_in_stage: selected pairs of all parts, for progress.
        parts: number of parts.
    """

    stage: GeneratingStage
    access: ModelAccess
    rows_in_stage: int
    parts: int

    def __call__(self, root: Path, part: str) -> JobResult:
        """Run the generator over the selected pairs of a part; the unit is an attempt.

        Rows are written as by `stages.generate.generate_part`; ``failed/`` names the failed rows, if there are any.

        Raises:
            PairwrightError: what stopped the job.
        """
        stage, failed = self.stage, failed_path(root, self.stage.name, part)
        service = ServiceModel(AnswerSource(root, stage.name, part, self.rows_in_stage))
        access = self.access.for_job(service)
        pairs = list(selected_pairs(root, part, stage.selection))
        options = restrict_to_counts(stage.options, (), stage.seed)  # without `counts`, which are empty
        with SET_UP:
            materials = access.materials(materials_of(root, stage.seed), load_tagger())
            generator = build_llm_generator(stage.generator, materials, options)
        task = PairTask(generator, access, stage.seed, stage.options)
        made: list[list[Annotation]] = []
        with RowRun(access, failed, ignore_message, service.report) as run:
            take = nullcontext(lambda _, rows: made.append(rows))
            bill = run_part(
                run, service, self.parts, len(pairs), lambda: run.run(task, task.rows(pairs), len(pairs), take)
            )
        outputs = PartOutputs(root, stage, write_answers(root, stage.name, part, service))
        outputs.write(part, made)
        return outputs.result(generator, llm=bill)


def run_part(run: RowRun, service: ServiceModel, parts: int, rows: int, start: Callable[[], None]) -> dict[str, Any]:
    """Run the rows of a part and return their bill; a part whose rows fail may be one of few rows.

    Args:
        run: of the part.
        service: answers its requests.
        parts: number of parts of the stage.
        rows: number of rows of the part.
        start: runs them.

    Raises:
        PairwrightError: what stopped the run.
    """
    try:
        start()
    except MostlyFailingError:
        # A part of few rows may fail as a whole; that the server answers no request shows in more of them.
        answered, failing_parts = service.counts
        if run.done < rows or (not answered and failing_parts >= min(_FAILING_PARTS, parts)):
            raise
    return {**run.bill(), "failed": run.failed.counts.total()}


def write_answers(root: Path, stage: str, part: str, service: ServiceModel) -> list[Path]:
    """Write which answers the rows of a part use; return that file, and the one of failed rows if there are any."""
    used, failed = answers_path(root, stage, part), failed_path(root, stage, part)
    _write_used(used, service.used)
    if not failed.stat().st_size:
        failed.unlink()
    return [used, *([failed] if failed.exists() else [])]


def _write_used(path: Path, used: Mapping[str, tuple[int, int]]) -> None:
    """Write keys and tokens of answers, in the order of the keys."""
    rows = sorted((bytes.fromhex(key), *tokens) for key, tokens in used.items())
    frame = pl.DataFrame(rows, {"key": pl.Binary, "prompt": pl.Int64, "completion": pl.Int64}, orient="row")
    with replace_atomically(path) as temporary:
        frame.write_parquet(temporary)


@dataclass(frozen=True)
class ModelTotals:
    """The last job of a stage: the counts of its parts, and their bills.

    Attributes:
        stage: name of the stage.
        facts: of each part.
        counts: of all parts.
        access: the model, for prices.
    """

    stage: str
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
        return JobResult([], self.counts, {**merged, "llm": {**bill, "in_all": in_all}})


@dataclass(frozen=True)
class ModelStage:
    """The job of a generating stage that uses a model.

    Attributes:
        stage: the generating stage.
        access: the model.
        progress: receives messages and progress.
        stop: ends the stage when it is set; finished rows are in the cache.
        pool: checks answers; None: they are checked in this process.
        workers: of the pool.
    """

    stage: GeneratingStage
    access: ModelAccess
    progress: "BuildProgress"
    stop: Event
    pool: WorkerProcesses | None
    workers: int

    def __call__(self, root: Path, parts: list[str]) -> JobResult:
        """Run the generator over the selected pairs of all parts; the unit is an attempt.

        Rows are written as by `stages.generate.generate_part`; ``failed/`` names the failed rows.

        Raises:
            PairwrightError: what stopped the stage.
        """
        stage, failed = self.stage, failed_path(root, self.stage.name)
        tagger = load_tagger()
        sizes = {part: selected_frame(root, part, stage.selection).height for part in parts}
        total = sum(sizes.values())
        passes = QuotaPasses(
            stage.options,
            lambda: (key for part in parts for key in selected_frame(root, part, stage.selection)["key"]),
            total,
            stage.seed,
        )
        materials = self.access.materials(materials_of(root, stage.seed), tagger)
        outputs = PartOutputs(root, stage, [failed])
        watch = partial(self.progress.report_model, stage.name)
        pool = self.pool if total > CHECKED_AT_ONCE else None
        with (
            CheckWorkers(pool, self.workers) as checking,
            RowRun(self.access, failed, self.progress.note, watch, self.stop) as run,
        ):
            for options in passes:
                generator = build_llm_generator(stage.generator, materials, options)
                checks = checking.checks(stage.generator, options, completed(materials))
                task = PairTask(generator, self.access, stage.seed, stage.options, checks)
                outputs = PartOutputs(root, stage, [failed])
                sink = write_by_part(sizes, outputs.write)
                pairs = (pair for part in parts for pair in selected_pairs(root, part, stage.selection))
                run.run(task, task.rows(pairs), total, sink)
                passes.counts = outputs.counts
            bill = {**run.bill(), "failed": run.failed.counts.total()}
        if missing := passes.missing_message():
            self.progress.note(missing)
        limits = {"limits": verdict.as_json()} if (verdict := passes.verdict()) else {}
        return outputs.result(generator, llm=bill, **limits)


def has_failed_rows(root: Path, stage: str) -> bool:
    """Return whether an earlier run of ``stage`` left failed rows."""
    return any(path.stat().st_size for path in failed_files(root, stage))


def ignore_message(_: str) -> None:
    """Ignore a message: the service passes on those that matter."""
