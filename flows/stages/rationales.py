"""Stage ``rationales``: a model explains why each kept hard negative does not fit its image, and why its rival does.

The task is image-text matching, whose rows have the key of their pair, so that kept ones become part of its sample. It
runs after balance and refinement: no request is spent on a rejected negative.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pairwright.datasets.record_tables import EXAMPLES
from pairwright.datasets.shards.sample_source import source_from_records
from pairwright.flows.llm.row_run import RowRun, write_by_part
from pairwright.flows.rationales.generation import RationaleTask
from pairwright.flows.rationales.importing import RationaleCounts, number_repeats
from pairwright.flows.stages.asking import Asker, Inputs, asking_jobs, asks_by_part
from pairwright.flows.stages.generator_stages import generating_stages, selection_of
from pairwright.flows.stages.image_states import image_states
from pairwright.flows.state.layout import kept_annotations, rationales_path, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.flows.state.selected_pairs import PairSelection, selected_pairs
from pairwright.generators.rationales.generator import NAME, VERSION, JudgedExample, RationaleSettings
from pairwright.generators.rationales.image_text_matching import rows_from_sample
from pairwright.generators.rationales.task_files import open_task
from pairwright.generators.rationales.tasks import TaskRow

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

STAGE, TASK = "rationales", "itm"


async def rationales_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``rationales``."""
    questions = Questions.of(run.config)
    return asking_jobs(
        run,
        questions,
        dict.fromkeys(run.parts),
        await image_states(run, questions.selection, seen=questions.settings.see_image),
        stated=[repr(questions)],
        by_part=asks_by_part(run.config, {}),
    )


@dataclass(frozen=True)
class Questions:
    """What is asked, an `asking.AskedStage`.

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

    def open(self, root: Path, inputs: Inputs, asker: Asker) -> "RationaleRows":
        """Return the rows of some parts."""
        task = RationaleTask.open(open_task(TASK), self.settings, asker.access)
        return RationaleRows(root, self, list(inputs), task)

    def complete(self, root: Path, parts: Sequence[str], result: JobResult) -> JobResult:  # noqa: ARG002 - as of `AskedStage`
        """State the share of correct labels in place of their numbers."""
        facts = dict(result.facts)
        labels = facts.pop("labels")
        accuracy = round(labels["correct"] / labels["known"], 4) if labels["known"] else None
        return replace(result, facts={**facts, "label_accuracy": accuracy})

    def items(self, root: Path, part: str) -> Iterator[TaskRow]:
        """Yield the rows of a part."""
        definition, pairs = open_task(TASK), selected_pairs(root, part, self.selection)
        for sample in source_from_records(pairs, kept_annotations(root, part, self.made)).samples():
            for row, key in rows_from_sample(sample):
                yield definition.item(row, key)


class RationaleRows:
    """The rows of some parts, as `asking.AskedRows`.

    Args:
        root: the build directory.
        questions: what is asked.
        parts: names of the parts.
        task: asks about a row.
    """

    def __init__(self, root: Path, questions: Questions, parts: Sequence[str], task: RationaleTask) -> None:
        self._root, self._questions, self._task = root, questions, task
        self._sizes = {part: sum(1 for _ in questions.items(root, part)) for part in parts}
        self._counts, self._files = RationaleCounts(), list[Path]()

    @property
    def count(self) -> int:
        """Number of rows."""
        return sum(self._sizes.values())

    def ask(self, run: RowRun) -> None:
        """Ask about all rows; equal ones are of one pair."""
        items = (item for part in self._sizes for item in self._questions.items(self._root, part))
        rows = map(self._task.row, number_repeats(items))
        run.run(self._task, rows, self.count, write_by_part(self._sizes, self._write))

    def _write(self, part: str, judged: Sequence[JudgedExample]) -> None:
        """Write the kept and the rejected rows of a part."""
        files = {rationales_path(self._root, part): "kept", rejected_path(self._root, STAGE, part): "rejected"}
        for path, status in files.items():
            EXAMPLES.write([row.example for row in judged if row.example.status == status], path)
        self._files += files
        for row in judged:
            self._counts.add(row, 0)

    def result(self, outputs: Sequence[Path], bill: Mapping[str, Any]) -> JobResult:
        """Return counts and facts; the unit is a row."""
        counts = self._counts
        kept, reasons = counts.splits.total(), dict(sorted(counts.rejected.items()))
        by_type = {TASK: {"made": counts.judged, "kept": kept, "rejected": reasons}}
        labels = {"known": counts.known, "correct": counts.correct}
        facts = {"generator": f"{NAME}/{VERSION}", "by_type": by_type, "llm": bill, "labels": labels}
        return JobResult([*outputs, *self._files], Counts("row", counts.judged, kept, reasons), facts)
