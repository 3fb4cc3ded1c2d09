"""Stage ``rationales``: a model explains why each kept hard negative does not fit its image, and why its rival does.

The task is image-text matching, whose rows have the key of their pair, so that kept ones become part of its sample. It
runs after balance and refinement: no request is spent on a rejected negative. As other stages that ask a model it is a
job per part, or one job over all parts with the Batch API and with local models.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Self

from pairwright.datasets.record_tables import EXAMPLES
from pairwright.datasets.shards.sample_source import source_from_records
from pairwright.flows.llm.answer_client import AnswerSource, ServiceModel
from pairwright.flows.llm.model_access import ModelAccess, model_access_for_build
from pairwright.flows.llm.row_run import RowRun, write_by_part
from pairwright.flows.rationales.generation import RationaleTask
from pairwright.flows.rationales.importing import RationaleCounts, number_repeats
from pairwright.flows.stages.generate_with_model import (
    SET_UP,
    ModelTotals,
    build_model_access,
    ignore_message,
    image_states_for_model,
    jobs_that_ask,
    run_part,
    write_answers,
)
from pairwright.flows.stages.generator_stages import generating_stages, selection_of
from pairwright.flows.state.layout import failed_path, kept_annotations, rationales_path, rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from pairwright.flows.state.selection import PairSelection, selected_pairs
from pairwright.generators.rationales.generator import NAME, VERSION, JudgedExample, RationaleSettings
from pairwright.generators.rationales.image_text_matching import rows_from_sample
from pairwright.generators.rationales.task_files import open_task
from pairwright.generators.rationales.tasks import TaskDefinition, TaskRow

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.progress import BuildProgress
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

STAGE, TASK = "rationales", "itm"


async def rationales_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``rationales`` over all parts."""
    access, questions = build_model_access(run), _Questions.of(run.config)
    stage = RationaleStage(questions, access, run.engine.progress, run.engine.stop)
    settings = [repr(questions), access.stage_identity(), run.parts, await _images(run, questions)]
    return [run.job(stage, run.parts, settings=settings, in_build_process=True)]


async def rationales_part_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``rationales``: one per part, then one that adds up their counts and bills."""
    access = model_access_for_build(run.config.llm, run.home, run.bill, seed=run.config.seed)
    questions, parts = _Questions.of(run.config), len(run.parts)
    identity = [repr(questions), access.stage_identity()]
    images = await _images(run, questions)
    states = {part: [*identity, state] for part, state in zip(run.parts, images, strict=True)}
    return jobs_that_ask(
        run, access, states, lambda served, _: RationalePart(questions, served, parts), RationaleTotals
    )


async def _images(run: "StageRun", questions: "_Questions") -> list[str]:
    return await image_states_for_model(run, questions.selection, seen=questions.settings.see_image)


@dataclass(frozen=True)
class _Questions:
    """What is asked.

    Attributes:
        made: stages whose kept hard negatives are explained.
        settings: how rationales are requested and judged.
        selection: the pairs that get rationales.
    """

    made: tuple[str, ...]
    settings: RationaleSettings
    selection: PairSelection

    @classmethod
    def of(cls, config: "BuildConfig") -> Self:
        """Return what a build asks."""
        assert config.rationales is not None
        made = tuple(stage.name for stage in generating_stages(config))
        options = RationaleSettings(seed=config.seed, **config.rationales.model_dump())
        return cls(made, options, selection_of(config))

    def items(self, root: Path, part: str, definition: TaskDefinition) -> Iterator[TaskRow]:
        """Yield the rows of a part."""
        pairs = selected_pairs(root, part, self.selection)
        for sample in source_from_records(pairs, kept_annotations(root, part, self.made)).samples():
            for row, key in rows_from_sample(sample):
                yield definition.item(row, key)


def _write_judged(root: Path, part: str, judged: Sequence[JudgedExample]) -> list[Path]:
    """Write the kept and the rejected rows of a part; return the files."""
    files = {rationales_path(root, part): "kept", rejected_path(root, STAGE, part): "rejected"}
    for path, status in files.items():
        EXAMPLES.write([row.example for row in judged if row.example.status == status], path)
    return list(files)


def _result(
    outputs: Sequence[Path], counts: RationaleCounts, bill: Mapping[str, Any], facts: Mapping[str, Any]
) -> JobResult:
    reasons = dict(sorted(counts.rejected.items()))
    by_type = {TASK: {"made": counts.judged, "kept": counts.splits.total(), "rejected": reasons}}
    stated = {"generator": f"{NAME}/{VERSION}", "by_type": by_type, "llm": bill, **facts}
    return JobResult(outputs, Counts("row", counts.judged, counts.splits.total(), reasons), stated)


@dataclass(frozen=True)
class RationalePart:
    """The job of a part.

    Attributes:
        questions: what is asked.
        access: the model, without its address.
        parts: number of parts.
    """

    questions: _Questions
    access: ModelAccess
    parts: int

    def __call__(self, root: Path, part: str) -> JobResult:
        """Ask about the rows of a part; the unit is a row.

        Raises:
            PairwrightError: what stopped the job.
        """
        service = ServiceModel(AnswerSource(root, STAGE, part))
        access = self.access.for_job(service)
        counts, judged = RationaleCounts(), list[JudgedExample]()
        with SET_UP:
            definition = open_task(TASK)
            task = RationaleTask.open(definition, self.questions.settings, access)
            items = list(number_repeats(self.questions.items(root, part, definition)))  # equal rows are of one pair
        with RowRun(access, failed_path(root, STAGE, part), ignore_message, service.report) as run:
            rows, take = map(task.row, items), nullcontext(lambda _, row: judged.append(row))
            bill = run_part(run, service, self.parts, len(items), lambda: run.run(task, rows, len(items), take))
        for row in judged:
            counts.add(row, 0)
        outputs = [*write_answers(root, STAGE, part, service), *_write_judged(root, part, judged)]
        return _result(outputs, counts, bill, {"labels": {"known": counts.known, "correct": counts.correct}})


@dataclass(frozen=True)
class RationaleTotals(ModelTotals):
    """The last job of the stage."""

    def __call__(self, root: Path) -> JobResult:
        """Return counts and facts of the stage, with the share of correct labels."""
        result = super().__call__(root)
        facts = dict(result.facts)
        labels = facts.pop("labels")
        accuracy = round(labels["correct"] / labels["known"], 4) if labels["known"] else None
        return replace(result, facts={**facts, "label_accuracy": accuracy})


@dataclass(frozen=True)
class RationaleStage:
    """The job over all parts.

    Attributes:
        questions: what is asked.
        access: the model.
        progress: receives messages and progress.
        stop: ends the stage when it is set; finished rows are in the cache.
    """

    questions: _Questions
    access: ModelAccess
    progress: "BuildProgress"
    stop: Event

    def __call__(self, root: Path, parts: list[str]) -> JobResult:
        """Ask about the rows of all parts; the unit is a row.

        Raises:
            PairwrightError: what stopped the stage.
        """
        definition, counts = open_task(TASK), RationaleCounts()
        task = RationaleTask.open(definition, self.questions.settings, self.access)
        sizes = {part: sum(1 for _ in self.questions.items(root, part, definition)) for part in parts}
        outputs = [failed_path(root, STAGE)]

        def write(part: str, judged: list[JudgedExample]) -> None:
            for row in judged:
                counts.add(row, 0)
            outputs.extend(_write_judged(root, part, judged))

        watch = partial(self.progress.report_model, STAGE)
        with RowRun(self.access, outputs[0], self.progress.note, watch, self.stop) as run:
            items = (item for part in parts for item in self.questions.items(root, part, definition))
            rows = map(task.row, number_repeats(items))
            run.run(task, rows, sum(sizes.values()), write_by_part(sizes, write))
            bill = {**run.bill(), "failed": run.failed.counts.total()}
        return _result(outputs, counts, bill, {"label_accuracy": counts.accuracy()})
