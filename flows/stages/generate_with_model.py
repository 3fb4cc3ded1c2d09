"""Generating stages whose generator asks a model (`asking.py`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairwright.flows.llm.answer_checks import CHECKED_AT_ONCE, completed
from pairwright.flows.llm.check_workers import CheckWorkers
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.quotas import QuotaPasses
from pairwright.flows.llm.row_run import RowRun, write_by_part
from pairwright.flows.stages.asking import SET_UP, Asker, Inputs, asking_jobs, asks_by_part
from pairwright.flows.stages.generate import PartOutputs, generator_state, materials_of, stage_of_run
from pairwright.flows.stages.generator_stages import GeneratingStage
from pairwright.flows.stages.image_states import image_states
from pairwright.flows.state.receipts import JobResult
from pairwright.flows.state.selected_pairs import selected_frame, selected_pairs
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.registry import LLMMaterials, build_llm_generator

if TYPE_CHECKING:
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun


async def model_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of a generating stage whose generator asks a model."""
    stage = stage_of_run(run)
    return asking_jobs(
        run,
        AskedGenerator(stage),
        dict.fromkeys(run.parts),
        await image_states(run, stage.selection, seen=bool(stage.options.get("see_image"))),
        stated=[repr(stage), generator_state(stage.generator)],
        by_part=asks_by_part(run.config, stage.options),
        rows=run.selected_pairs,
    )


@dataclass(frozen=True)
class AskedGenerator:
    """The generator of a stage, as an `asking.AskedStage`."""

    stage: GeneratingStage

    def open(self, root: Path, inputs: Inputs, asker: Asker) -> "GeneratorRows":
        """Return the selected pairs of some parts."""
        selection = self.stage.selection
        sizes = {part: selected_frame(root, part, selection).height for part in inputs}
        materials = asker.access.materials(materials_of(root, self.stage.seed), load_tagger())
        return GeneratorRows(root, self.stage, sizes, asker, materials)

    def complete(self, root: Path, parts: Sequence[str], result: JobResult) -> JobResult:  # noqa: ARG002 - as of `AskedStage`
        """Return the result as it is."""
        return result


class GeneratorRows:
    """The selected pairs of some parts, as `asking.AskedRows`; rows are written as by `generate.generate_part`.

    Args:
        root: the build directory.
        stage: the generating stage.
        sizes: selected pairs of each part.
        asker: with the model.
        materials: of the generator.
    """

    def __init__(
        self, root: Path, stage: GeneratingStage, sizes: Mapping[str, int], asker: Asker, materials: LLMMaterials
    ) -> None:
        self._root, self._stage, self._sizes = root, stage, sizes
        self._asker, self._materials = asker, materials
        self._passes = QuotaPasses(stage.options, self._keys, self.count, stage.seed)  # one without ``counts``

    def _keys(self) -> Iterator[str]:
        for part in self._sizes:
            yield from selected_frame(self._root, part, self._stage.selection)["key"]

    @property
    def count(self) -> int:
        """Number of pairs."""
        return sum(self._sizes.values())

    def ask(self, run: RowRun) -> None:
        """Ask about all pairs, as often as the quotas want."""
        stage, root, asker = self._stage, self._root, self._asker
        pool = asker.pool if self.count > CHECKED_AT_ONCE else None
        with CheckWorkers(pool, asker.workers) as checking:
            for options in self._passes:
                with SET_UP:
                    self._generator = build_llm_generator(stage.generator, self._materials, options)
                checks = checking.checks(stage.generator, options, completed(self._materials)) if pool else None
                task = PairTask(self._generator, asker.access, stage.seed, stage.options, checks)
                self._outputs = PartOutputs(root, stage)
                pairs = (pair for part in self._sizes for pair in selected_pairs(root, part, stage.selection))
                run.run(task, task.rows(pairs), self.count, write_by_part(self._sizes, self._outputs.write))
                self._passes.counts = self._outputs.counts

    def result(self, outputs: Sequence[Path], bill: Mapping[str, Any]) -> JobResult:
        """Return counts and facts, and tell which ``counts`` were not reached; the unit is an attempt."""
        if missing := self._passes.missing_message():
            self._asker.note(missing)
        self._outputs.files = [*outputs, *self._outputs.files]
        limits = {"limits": verdict.as_json()} if (verdict := self._passes.verdict()) else {}
        return self._outputs.result(self._generator, llm=bill, **limits)
