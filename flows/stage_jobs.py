"""How the stages of a build become jobs: what a full build (`build.py`) and an incremental one (`increment.py`) share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pairwright.flows.config.build import BuildConfig
from pairwright.flows.config.sections import IndexSection, RationalesSection, RetrieveSection, ShardsSection
from pairwright.flows.generating_stages import generating_stages, selection_of
from pairwright.flows.llm.model_access import model_access_for_build
from pairwright.flows.runners.engine import Engine
from pairwright.flows.stages.generate import GeneratingStage, generate_part
from pairwright.flows.stages.generate_with_model import ModelStage, has_failed_rows
from pairwright.flows.stages.index import IndexStage, retrieve_pairs
from pairwright.flows.stages.rationales import STAGE as RATIONALES
from pairwright.flows.stages.rationales import RationaleStage
from pairwright.flows.stages.shards import Packing, part_sizes, part_state, plan_shards, write_one_shard
from pairwright.flows.stages.tag import tag_part
from pairwright.flows.state.inputs import tagger_state, wordnet_state
from pairwright.flows.state.layout import part_name
from pairwright.flows.state.receipts import Job, JobResult, Receipt, fingerprint, receipt_path
from pairwright.generators.llm.budget import SpendingTotals
from pairwright.generators.rationales.generator import RationaleSettings
from pairwright.generators.registry import generator_fingerprint, needs_model


@dataclass(frozen=True)
class StageJobs:
    """The stages of one build: what each runs, and on whose output it depends.

    Attributes:
        config: what to build.
        engine: runs the jobs; its root is the folder that they write into.
        home: the build directory, where answers of models are kept.
        retry_failed: ask models anew about the rows that they failed at.
        bill: what models were paid.
    """

    config: BuildConfig
    engine: Engine
    home: Path
    retry_failed: bool = False
    bill: SpendingTotals = field(default_factory=SpendingTotals)

    async def tag(self, pairs: Receipt, parts: Sequence[str]) -> tuple[Receipt, ...]:
        """Tag the captions of each part."""
        config = self.config
        state = tagger_state(config.tagger)
        content = {output.path: output.sha256 for output in pairs.outputs}
        jobs = [
            # Each part by itself: what is appended to the input leaves the parts before it tagged.
            self.job(
                "tag",
                part,
                [],
                tag_part,
                part,
                config.tagger,
                config.input.explode,
                state=f"{state} {content[f'pairs/{part}.parquet']}",
            )
            for part in parts
        ]
        return await self.engine.stage(jobs)

    async def index(
        self,
        section: IndexSection,
        parts: Sequence[str],
        pairs: Receipt,
        like: Path | None = None,
        *,
        state: str,
    ) -> Receipt:
        """Index the pairs of all parts, with the encoder of the index in the folder ``like``, if that is given."""
        config, engine = self.config, self.engine
        args = (list(parts), section, config.input.path, config.seed, *([like] if like else []))
        stage = IndexStage(engine.side_by_side, engine.stop)
        job = self.job("index", "all", [pairs], stage, *args, state=state)
        (receipt,) = await engine.stage([replace(job, here=True)])
        return receipt

    async def retrieve(  # noqa: PLR0913 - what the stage depends on
        self,
        section: RetrieveSection,
        parts: Sequence[str],
        inputs: Sequence[Receipt],
        device: str,
        home: Path | None = None,
        *,
        state: str,
    ) -> Receipt:
        """Choose the pairs that queries find, beside those of the build directory ``home``, if that is given."""
        args = (list(parts), section, device, *([home] if home else []))
        job = self.job("retrieve", "all", inputs, retrieve_pairs, *args, state=state)
        (receipt,) = await self.engine.stage([replace(job, wide=True)])
        return receipt

    async def generate(
        self, this: GeneratingStage, parts: Sequence[str], inputs: Sequence[Receipt]
    ) -> tuple[Receipt, ...]:
        """Let a generator annotate the pairs of each part."""
        state = f"{generator_fingerprint(this.generator)} {wordnet_state()}"
        if not needs_model(this.generator):
            return await self.each(this.stage, parts, inputs, generate_part, this, state=state)
        retry = self.retry_failed and has_failed_rows(self.engine.root, this.stage)
        access = model_access_for_build(
            self.config.llm, self.home, self.bill, seed=self.config.seed, retry_failed=retry
        )
        stage = ModelStage(this, access, self.engine.progress, self.engine.stop)
        if access.retry_failed:
            receipt_path(self.engine.root, this.stage, "all").unlink(missing_ok=True)
        shown = Packing((), ShardsSection(images=bool(this.options.get("see_image"))), this.choice)
        images = [part_state(self.engine.root, part, shown) for part in parts]
        settings = [repr(this), access.stage_identity(), list(parts), state, images]
        job = Job(this.stage, "all", stage, (list(parts),), fingerprint(this.stage, "all", settings, inputs), here=True)
        return await self.engine.stage([job])

    async def rationales(
        self, section: RationalesSection, parts: Sequence[str], inputs: Sequence[Receipt]
    ) -> tuple[Receipt, ...]:
        """Ask why the negatives of ``parts`` do not fit their images."""
        config, root = self.config, self.engine.root
        retry = self.retry_failed and has_failed_rows(root, RATIONALES)
        access = model_access_for_build(config.llm, self.home, self.bill, seed=config.seed, retry_failed=retry)
        made = tuple(this.stage for this in generating_stages(config))
        settings = RationaleSettings(seed=config.seed, **section.model_dump())
        stage = RationaleStage(made, settings, selection_of(config), access, self.engine.progress, self.engine.stop)
        if access.retry_failed:
            receipt_path(root, RATIONALES, "all").unlink(missing_ok=True)
        told = [repr(settings), made, selection_of(config), access.stage_identity(), list(parts)]
        job = Job(RATIONALES, "all", stage, (list(parts),), fingerprint(RATIONALES, "all", told, inputs), here=True)
        return await self.engine.stage([job])

    async def shards(self, parts: Sequence[str], inputs: Sequence[Receipt], first: int = 0) -> tuple[Receipt, ...]:
        """Pack the pairs of ``parts`` into shards, numbered from ``first``."""
        config = self.config
        stages = tuple(this.stage for this in generating_stages(config))
        packing = Packing(stages, config.shards, selection_of(config), config.rationales is not None)
        states = {part: part_state(self.engine.root, part, packing) for part in parts}
        sizes = ((part, part_sizes(self.engine.root, part, packing)) for part in parts)
        plan = plan_shards(sizes, config.shards.samples, config.shards.megabytes * 2**20)
        jobs = [
            self.job(
                "shards",
                part_name(number),
                inputs,
                write_one_shard,
                number,
                slices,
                packing,
                state=" ".join(states[piece.part] for piece in slices),
            )
            for number, slices in enumerate(plan, first)
        ]
        return await self.engine.stage(jobs)

    async def whole(
        self, stage: str, inputs: Sequence[Receipt], run: Callable[..., JobResult], *args: object, state: str = ""
    ) -> Receipt:
        """Run a stage of one job."""
        (receipt,) = await self.engine.stage([self.job(stage, "all", inputs, run, *args, state=state)])
        return receipt

    async def each(
        self,
        stage: str,
        parts: Sequence[str],
        inputs: Sequence[Receipt],
        run: Callable[..., JobResult],
        *args: object,
        state: str = "",
    ) -> tuple[Receipt, ...]:
        """Run a stage of one job a part."""
        jobs = [self.job(stage, part, inputs, run, part, *args, state=state) for part in parts]
        return await self.engine.stage(jobs)

    def job(
        self,
        stage: str,
        part: str,
        inputs: Sequence[Receipt],
        run: Callable[..., JobResult],
        *args: object,
        state: str = "",
    ) -> Job:
        """Return a job, with its fingerprint."""
        # The arguments are frozen sections of the config and names, whose repr says all of them.
        return Job(stage, part, run, args, fingerprint(stage, part, [repr(args), state], inputs))
