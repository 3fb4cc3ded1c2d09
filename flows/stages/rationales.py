"""Stage ``rationales``: a model explains why hard negatives do not match their image and why true captions do.

The task is image-text matching. Its rows carry the key of their pair, so that kept ones enter its sample. It is one job
over all parts, after balancing and refinement: rejected negatives cost nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from pairwright.datasets.record_tables import EXAMPLES
from pairwright.datasets.shards.sample_source import source_from_records
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.rationales.generation import RationaleSteps, rationale_generator, requests_identity
from pairwright.flows.rationales.importing import RationaleCounts
from pairwright.flows.stages.generate_with_model import build_model_access
from pairwright.flows.stages.generating import generating_stages, selection_of
from pairwright.flows.state.layout import failed_path, kept_annotations, rationales_path, rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from pairwright.flows.state.selection import PairSelection, selected_pairs
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.rationales.generator import NAME, VERSION, RationaleSettings
from pairwright.generators.rationales.image_text_matching import rows_from_sample
from pairwright.generators.rationales.task_files import open_task
from pairwright.generators.rationales.tasks import TaskDefinition, TaskRow

if TYPE_CHECKING:
    from pairwright.flows.progress import BuildProgress
    from pairwright.flows.stages.definition import StageRun

STAGE, TASK = "rationales", "itm"


def rationales_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``rationales``."""
    config, selection, section = run.config, selection_of(run.config), run.config.rationales
    assert section is not None
    access = build_model_access(run)
    made = tuple(stage.name for stage in generating_stages(config))
    options = RationaleSettings(seed=config.seed, **section.model_dump())
    stage = RationaleStage(made, options, selection, access, run.engine.progress, run.engine.stop)
    settings = [repr(options), made, selection, access.shape(), run.parts]
    return [run.job(stage, run.parts, settings=settings, in_build_process=True)]


@dataclass(frozen=True)
class RationaleStage:
    """The stage with its model.

    Attributes:
        made: stages whose kept hard negatives are explained.
        settings: how rationales are generated and judged.
        selection: the pairs that get rationales.
        asking: the model.
        progress: receives the progress.
        stop: set to end the stage early; finished answers are kept.
    """

    made: tuple[str, ...]
    settings: RationaleSettings
    selection: PairSelection
    asking: ModelAccess
    progress: "BuildProgress"
    stop: Event

    def __call__(self, root: Path, parts: list[str]) -> JobResult:
        """Generate the rationales of all parts; the unit is a row.

        Raises:
            PairwrightError: when the model cannot be used or a limit is reached.
        """
        task, asking, work = open_task(TASK), self.asking, RationaleCounts()
        before = replace(asking.bill)
        maker = rationale_generator(task, self.settings, asking)
        rows = {part: sum(1 for _ in self._items(root, part, task)) for part in parts}
        outputs = [failed_path(root, STAGE)]
        with ExitStack() as stack:
            failed = stack.enter_context(
                FailedRows(outputs[0], run=requests_identity(maker, asking), retry=asking.retry_failed)
            )
            session = stack.enter_context(
                asking.session(watch=partial(self.progress.far, STAGE), say=self.progress.note, stop=self.stop)
            )
            items = (item for part in parts for item in self._items(root, part, task))
            held = RationaleSteps(maker, failed).hold(session, items, of=sum(rows.values()))
            for part in parts:
                judged = list(islice(held, rows[part]))
                for one in judged:
                    work.add(one, 0)
                examples = [one.example for one in judged]
                for path, status in (
                    (rationales_path(root, part), "kept"),
                    (rejected_path(root, STAGE, part), "rejected"),
                ):
                    EXAMPLES.write([example for example in examples if example.status == status], path)
                    outputs.append(path)
            told = {**asking.told(session.totals().spent, before), "failed": failed.counts.total()}
        reasons = dict(sorted(work.rejected.items()))
        by_type = {TASK: {"made": work.judged, "kept": work.splits.total(), "rejected": reasons}}
        facts = {"generator": f"{NAME}/{VERSION}", "by_type": by_type, "llm": told, "label_accuracy": work.accuracy()}
        return JobResult(outputs, Counts("row", work.judged, work.splits.total(), reasons), facts)

    def _items(self, root: Path, part: str, task: TaskDefinition) -> Iterator[TaskRow]:
        pairs = selected_pairs(root, part, self.selection)
        for sample in source_from_records(pairs, kept_annotations(root, part, self.made)).samples():
            for row, key in rows_from_sample(sample):
                yield task.item(row, key)
