"""Stage ``rationales``: a model explains why each kept hard negative does not fit its image, and why its rival does.

The task is image-text matching, whose rows have the key of their pair, so that kept ones become part of its sample. It is
one job over all parts, after balance and refinement: no request is spent on a rejected negative.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from pairwright.datasets.record_tables import EXAMPLES
from pairwright.datasets.shards.sample_source import source_from_records
from pairwright.flows.config.sections import ShardsSection
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.row_run import RowRun, write_by_part
from pairwright.flows.rationales.generation import RationaleTask
from pairwright.flows.rationales.importing import RationaleCounts, number_repeats
from pairwright.flows.stages.generate_with_model import build_model_access
from pairwright.flows.stages.generating import generating_stages, selection_of
from pairwright.flows.stages.shards import Packing, part_state
from pairwright.flows.state.layout import failed_path, kept_annotations, rationales_path, rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from pairwright.flows.state.selection import PairSelection, selected_pairs
from pairwright.generators.rationales.generator import NAME, VERSION, JudgedExample, RationaleSettings
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
    packing = Packing((), ShardsSection(images=section.see_image), selection)
    images = [part_state(run.root, part, packing) for part in run.parts]
    settings = [repr(options), made, selection, access.stage_identity(), run.parts, images]
    return [run.job(stage, run.parts, settings=settings, in_build_process=True)]


@dataclass(frozen=True)
class RationaleStage:
    """The job of the stage.

    Attributes:
        made: stages whose kept hard negatives are explained.
        settings: how rationales are requested and judged.
        selection: the pairs that get rationales.
        access: the model.
        progress: receives messages and progress.
        stop: ends the stage when it is set; finished rows are in the cache.
    """

    made: tuple[str, ...]
    settings: RationaleSettings
    selection: PairSelection
    access: ModelAccess
    progress: "BuildProgress"
    stop: Event

    def __call__(self, root: Path, parts: list[str]) -> JobResult:
        """Ask about the rows of all parts; the unit is a row.

        Raises:
            PairwrightError: what stopped the stage.
        """
        definition, counts = open_task(TASK), RationaleCounts()
        task = RationaleTask.open(definition, self.settings, self.access)
        sizes = {part: sum(1 for _ in self._items(root, part, definition)) for part in parts}
        outputs = [failed_path(root, STAGE)]

        def write(part: str, judged: list[JudgedExample]) -> None:
            for row in judged:
                counts.add(row, 0)
            files = {rationales_path(root, part): "kept", rejected_path(root, STAGE, part): "rejected"}
            for path, status in files.items():
                EXAMPLES.write([row.example for row in judged if row.example.status == status], path)
            outputs.extend(files)

        watch = partial(self.progress.far, STAGE)
        with RowRun(self.access, outputs[0], self.progress.note, watch, self.stop) as run:
            items = (item for part in parts for item in self._items(root, part, definition))
            rows = map(task.row, number_repeats(items))
            run.run(task, rows, sum(sizes.values()), write_by_part(sizes, write))
            bill = {**run.bill(), "failed": run.failed.counts.total()}
        reasons = dict(sorted(counts.rejected.items()))
        by_type = {TASK: {"made": counts.judged, "kept": counts.splits.total(), "rejected": reasons}}
        facts = {"generator": f"{NAME}/{VERSION}", "by_type": by_type, "llm": bill, "label_accuracy": counts.accuracy()}
        return JobResult(outputs, Counts("row", counts.judged, counts.splits.total(), reasons), facts)

    def _items(self, root: Path, part: str, definition: TaskDefinition) -> Iterator[TaskRow]:
        pairs = selected_pairs(root, part, self.selection)
        for sample in source_from_records(pairs, kept_annotations(root, part, self.made)).samples():
            for row, key in rows_from_sample(sample):
                yield definition.item(row, key)
