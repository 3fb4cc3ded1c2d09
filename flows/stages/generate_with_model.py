"""Generating stages that use a model: a job per part, whose requests the build's `AnswerService` sends.

A killed job starts again from its first row; earlier answers come from the cache and are not billed again.

Three kinds of stages are one job over all parts, in the build's process: conversations with ``counts``, whose passes need
the counts of all parts; the Batch API, whose batches should be few and large; and local models.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from pairwright.datasets.records import Annotation
from pairwright.datasets.worker_processes import WorkerProcesses
from pairwright.flows.config.sections import ShardsSection
from pairwright.flows.llm.answer_checks import CHECKED_AT_ONCE, completed
from pairwright.flows.llm.answer_client import AnswerSource, ServiceModel
from pairwright.flows.llm.check_workers import CheckWorkers
from pairwright.flows.llm.model_access import ModelAccess, model_access_for_build
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.quotas import QuotaPasses
from pairwright.flows.llm.row_run import RowRun, write_by_part
from pairwright.flows.stages.generate import PartOutputs, generator_state, materials_of, stage_of_run
from pairwright.flows.stages.generating import GeneratingStage
from pairwright.flows.stages.shards import Packing, part_state
from pairwright.flows.state.layout import failed_files, failed_path
from pairwright.flows.state.receipts import Job, JobResult, receipt_path
from pairwright.flows.state.selection import selected_frame, selected_pairs
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.llm.local.folder import is_local
from pairwright.generators.llm.runner import MostlyFailingError
from pairwright.generators.registry import build_llm_generator

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.progress import BuildProgress
    from pairwright.flows.stages.definition import StageRun

_FAILING_PARTS = 3  # parts without any answer that end a build


def model_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of a generating stage whose generator asks a model, over all parts."""
    stage, parts = stage_of_run(run), run.parts
    access = build_model_access(run)
    settings = [repr(stage), access.stage_identity(), parts, generator_state(stage.generator), _images(run, stage)]
    engine = run.engine
    pool = engine.pool if isinstance(engine.pool, WorkerProcesses) else None
    job = ModelStage(stage, access, engine.progress, engine.stop, pool, engine.workers)
    return [run.job(job, parts, settings=settings, in_build_process=True)]


def model_part_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the jobs of a generating stage whose generator asks a model, one per part."""
    stage = stage_of_run(run)
    access = model_access_for_build(run.config.llm, run.home, run.bill, seed=run.config.seed)
    identity = [repr(stage), access.stage_identity(), generator_state(stage.generator)]
    images = dict(zip(run.parts, _images(run, stage), strict=True))
    served = access.without_address()
    rows = run.selected_pairs
    jobs = []
    for part in run.parts:
        failed = failed_path(run.root, stage.name, part)
        retry = run.retry_failed and failed.is_file()
        if retry:
            receipt_path(run.root, run.name, part).unlink(missing_ok=True)
        job = ModelPart(stage, replace(served, retry_failed=retry), rows, len(run.parts))
        jobs.append(run.job(job, part, part=part, settings=[*identity, images[part]], asks=access))
    return jobs


def asks_by_part(config: "BuildConfig", options: object) -> bool:
    """Return whether a generating stage that uses a model has a job per part."""
    limited = isinstance(options, dict) and options.get("counts")
    return config.llm is not None and not (limited or config.llm.batch or is_local(config.llm.model))


def _images(run: "StageRun", stage: GeneratingStage) -> list[str]:
    """Return the states of the images of each part that the model sees."""
    packing = Packing((), ShardsSection(images=bool(stage.options.get("see_image"))), stage.selection)
    return [part_state(run.root, part, packing) for part in run.parts]


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
        access = replace(self.access, service=service)
        pairs = list(selected_pairs(root, part, stage.selection))
        generator = build_llm_generator(
            stage.generator, access.materials(materials_of(root, stage.seed), load_tagger()), stage.options
        )
        task = PairTask(generator, access, stage.seed, stage.options)
        made: list[list[Annotation]] = []
        with RowRun(access, failed, _ignore, service.report) as run:
            try:
                run.run(task, task.rows(pairs), len(pairs), nullcontext(lambda _, rows: made.append(rows)))
            except MostlyFailingError:
                # A part of few rows may fail as a whole; that the server answers nobody shows in more of them.
                answered, failing_parts = service.counts
                if run.done < len(pairs) or (not answered and failing_parts >= min(_FAILING_PARTS, self.parts)):
                    raise
            bill = {**run.bill(), "failed": run.failed.counts.total()}
        if not failed.stat().st_size:
            failed.unlink()
        outputs = PartOutputs(root, stage, [failed] if failed.exists() else [])
        outputs.write(part, made)
        return outputs.result(generator, llm=bill)


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
        watch = partial(self.progress.far, stage.name)
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


def _ignore(_: str) -> None:
    """Ignore a message: the service passes on those that matter."""
