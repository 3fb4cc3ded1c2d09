"""Generating stages whose generator asks a model: one job over all parts, in the build's process, in one session.

A killed stage restarts from the first row; the answers received so far are in the cache and are not billed again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from pairwright.datasets.record_tables import PAIRS
from pairwright.flows.config.sections import ShardsSection
from pairwright.flows.llm.model_access import ModelAccess, model_access_for_build
from pairwright.flows.llm.quotas import QuotaPasses, missing_message, quota_verdict
from pairwright.flows.llm.steps import PairSteps, TaggedPair
from pairwright.flows.stages.generate import (
    generator_state,
    materials_of,
    reject_positives_among_negatives,
    stage_of_run,
)
from pairwright.flows.stages.generating import GeneratingStage
from pairwright.flows.stages.shards import Packing, part_state
from pairwright.flows.state.layout import failed_path, pairs_path, tokens_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, receipt_path
from pairwright.flows.state.selection import selected_frame, selected_pairs, selection_mask
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.token_table import read_tokens
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.runner import RequestTotals
from pairwright.generators.llm.session import Session
from pairwright.generators.protocols import LLMGenerator
from pairwright.generators.registry import build_llm_generator

if TYPE_CHECKING:
    from pairwright.flows.progress import BuildProgress
    from pairwright.flows.stages.definition import StageRun


def model_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of a generating stage whose generator asks a model."""
    stage, parts = stage_of_run(run), run.parts
    access = build_model_access(run)
    packing = Packing((), ShardsSection(images=bool(stage.options.get("see_image"))), stage.selection)
    images = [part_state(run.root, part, packing) for part in parts]
    settings = [repr(stage), access.shape(), parts, generator_state(stage.generator), images]
    job = ModelStage(stage, access, run.engine.progress, run.engine.stop)
    return [run.job(job, parts, settings=settings, in_build_process=True)]


def build_model_access(run: "StageRun") -> ModelAccess:
    """Return the model of a stage; if its failed rows are to be retried, its receipt is removed."""
    retry = run.retry_failed and has_failed_rows(run.root, run.name)
    access = model_access_for_build(run.config.llm, run.home, run.bill, seed=run.config.seed, retry_failed=retry)
    if retry:
        receipt_path(run.root, run.name, "all").unlink(missing_ok=True)
    return access


@dataclass(frozen=True)
class ModelStage:
    """A generating stage with its model.

    Attributes:
        stage: the generating stage.
        asking: the model.
        progress: receives the progress.
        stop: set to end the stage early; finished answers are kept.
    """

    stage: GeneratingStage
    asking: ModelAccess
    progress: "BuildProgress"
    stop: Event

    def __call__(self, root: Path, parts: list[str]) -> JobResult:
        """Annotate the selected pairs of all parts; the unit is an attempt.

        Rows are written to the same files as by `stages.generate.generate_part`; failed rows are listed in ``failed/``.

        Raises:
            PairwrightError: when the model cannot be used or a limit is reached.
        """
        this, asking = self.stage, self.asking
        before = replace(asking.bill)  # of the stages before this one
        tagger = load_tagger()
        filling = QuotaPasses(
            this.options,
            lambda: (key for part in parts for key in selected_frame(root, part, this.selection)["key"]),
            this.seed,
        )
        materials = asking.materials(materials_of(root, this.seed), tagger)
        chosen = {part: sum(selection_mask(root, PAIRS.read(pairs_path(root, part)), this.selection)) for part in parts}
        with asking.session(
            watch=partial(self.progress.far, this.name), say=self.progress.note, stop=self.stop
        ) as session:
            maker = build_llm_generator(this.generator, materials, filling.now())
            passed = RequestTotals()
            outputs, tally, failed = self._pass(root, chosen, session, maker, retry=asking.retry_failed)
            while filling.goes_on(tally, sum(chosen.values())):
                passed = session.totals().spent
                maker = build_llm_generator(this.generator, materials, filling.now())
                outputs, tally, failed = self._pass(root, chosen, session, maker, retry=False)
            told = {**asking.told(session.totals().spent.since(passed), before), "failed": failed}
        if short := missing_message(filling.missing(tally)):
            self.progress.note(short)
        made = tally.by_type()
        counts = Counts(
            "attempt",
            sum(each["made"] for each in made.values()),
            sum(each["kept"] for each in made.values()),
            tally.reasons(),
        )
        facts = {"generator": f"{maker.name}/{maker.version}", "by_type": made, "llm": told}
        if this.options.get("counts"):
            facts["limits"] = quota_verdict(this.options, tally).as_json()
        return JobResult(outputs, counts, facts)

    def _pass(
        self, root: Path, chosen: Mapping[str, int], session: Session, maker: LLMGenerator, *, retry: bool
    ) -> tuple[list[Path], AnnotationCounts, int]:
        """Make the rows of all parts; return their files, what they are, and how many rows failed."""
        this, tally = self.stage, AnnotationCounts()
        outputs, run = [failed_path(root, this.name)], self.asking.identity(maker, this.options, this.seed)
        with FailedRows(outputs[0], run=run, retry=retry) as failed:
            pairs = (tagged for part in chosen for tagged in _tagged_pairs(root, part, this))
            held = PairSteps(maker, this.seed, failed).hold(session, pairs, of=sum(chosen.values()))
            for part, count in chosen.items():
                rows = [row for _, made in islice(held, count) for row in made]
                rows = reject_positives_among_negatives(root, part, this, rows)
                outputs += this.write_rows(root, part, rows)
                tally.add(rows)
        return outputs, tally, failed.counts.total()


def has_failed_rows(root: Path, stage: str) -> bool:
    """Return whether an earlier run of ``stage`` left failed rows."""
    path = failed_path(root, stage)
    return path.exists() and path.stat().st_size > 0


def _tagged_pairs(root: Path, part: str, this: GeneratingStage) -> Iterator[TaggedPair]:
    """Yield the selected pairs of a part, with local copies of fetched images, and the tokens of their captions."""
    pairs = PAIRS.read(pairs_path(root, part))
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    selected = selection_mask(root, pairs, this.selection)
    words = (each for each, keep in zip(tokens, selected, strict=True) if keep)
    yield from zip(selected_pairs(root, part, this.selection), words, strict=True)
