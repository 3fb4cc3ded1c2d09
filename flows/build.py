"""The build: which stages there are, in which order, and what each reads. This page is the table of contents.

    pairs -> index -> retrieve -> fetch -> tag -> words -> negatives, positives, conversations, others -> balance -> refine -> rationales -> shards

Each stage is a set of jobs (`receipts.py`) that the engine (`engine.py`) runs as Prefect tasks, one a part. The
manifest is the commit: it is written last, and a build directory without one is unfinished.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic import write_text
from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.flows.chosen import Choice
from pairwright.flows.config import BuildConfig, dump_config, parse_config
from pairwright.flows.engine import Engine, engine
from pairwright.flows.generations import choice_of, generations, limited_section
from pairwright.flows.inputs import input_state, named_state, read_options, tagger_state, wordnet_state
from pairwright.flows.layout import part_name
from pairwright.flows.llm import asking_of
from pairwright.flows.lock import exclusive
from pairwright.flows.prefect_api import TerminationSignal, flow, own_server
from pairwright.flows.preflight import refuse_broken_prefect
from pairwright.flows.progress import Progress, Silence
from pairwright.flows.receipts import Job, Outcome, Receipt, fingerprint, receipt_path
from pairwright.flows.scope import EndedAsAsked, Scope, stage_names
from pairwright.flows.sections import RationalesSection, ShardsSection
from pairwright.flows.stages.ask import AskingStage, has_failed_rows
from pairwright.flows.stages.balance import balance_made, balance_stage, limits_of
from pairwright.flows.stages.fetch import fetch_chosen
from pairwright.flows.stages.generate import Generation, generate_part
from pairwright.flows.stages.index import build_index, index_state, retrieve_pairs, retrieve_state
from pairwright.flows.stages.pairs import read_input
from pairwright.flows.stages.rationales import STAGE as RATIONALES
from pairwright.flows.stages.rationales import RationaleStage
from pairwright.flows.stages.refine import refine_negatives
from pairwright.flows.stages.shards import Packing, finish, part_state, plan_shards, write_one_shard
from pairwright.flows.stages.tag import merge_statistics, tag_part
from pairwright.flows.story import Story
from pairwright.flows.summary import Truth, finish_build, stages_told, sweep, sweep_receipts
from pairwright.flows.vocabularies import config_with_vocabulary
from pairwright.flows.watchdog import ends_with_us
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.budget import Bill
from pairwright.generators.rationales import Settings
from pairwright.generators.registry import asks_model, generator_identity


@dataclass(frozen=True)
class _Run:
    """What belongs to one run of a build and not to its config."""

    progress: Progress = field(default_factory=Silence)
    truth: Truth | None = None
    retry_failed: bool = False
    scope: Scope = field(default_factory=Scope)


_RUN: ContextVar[_Run] = ContextVar("_RUN")
_Flow = Callable[[dict[str, Any], str], Coroutine[Any, Any, dict[str, Any]]]


def build(  # noqa: PLR0913 - keywords, each told of below
    config: BuildConfig,
    out: Path,
    progress: Progress | None = None,
    truth: Truth | None = None,
    *,
    prefect: bool = True,
    retry_failed: bool = False,
    scope: Scope | None = None,
) -> dict[str, Any]:
    """Build a dataset, or go on with one.

    Args:
        config: what to build.
        out: the build directory; what stands there and still fits is not made again.
        progress: who is told.
        truth: judges the finished texts where the truth is known (the demo); its table enters card and report.
        prefect: run as a Prefect flow; without, the same work starts at once and no server hears of it.
        retry_failed: ask models anew about the rows that they failed at the last time.
        scope: which stages to make; those that need it when left out.

    Returns:
        The manifest; of a run that makes one stage only, its ``stages`` so far, and no file is written for it.

    Raises:
        PairwrightError: with one line that says what to mend.
    """
    if prefect:
        refuse_broken_prefect()
    this = _RUN.set(_Run(progress or Silence(), truth, retry_failed, scope or Scope()))
    run = build_flow if prefect else _heeding_sigterm(build_flow.fn)
    try:
        return asyncio.run(run(config.model_dump(mode="json"), str(out.resolve())))
    except (TerminationSignal, asyncio.CancelledError):
        raise PairwrightError("ended by a signal. What is done is kept: start the same build again to go on.") from None
    finally:
        _RUN.reset(this)


async def build_in_flow(config: BuildConfig, out: Path, progress: Progress) -> dict[str, Any]:
    """Build into ``out``, an absolute path, inside a flow that runs already; its tasks are the parts."""
    _RUN.set(_Run(progress))
    return await build_flow.fn(config.model_dump(mode="json"), str(out))


def _heeding_sigterm(run: _Flow) -> _Flow:
    """Return a run that SIGTERM ends in order, as Ctrl-C does; Prefect has a way of its own."""

    async def heeding(config: dict[str, Any], out: str) -> dict[str, Any]:
        task = asyncio.current_task()
        ours = threading.current_thread() is threading.main_thread()
        if task and ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await run(config, out)

    return heeding


@flow(name="pairwright-build", flow_run_name="{out}", persist_result=False)
async def build_flow(config: dict[str, Any], out: str) -> dict[str, Any]:
    """Build a dataset as a Prefect flow; what a deployment runs.

    Args:
        config: the content of a build config, paths absolute.
        out: the build directory.

    Returns:
        The manifest.
    """
    checked, folder = parse_config(config, where="the flow's config"), Path(out)
    this = _RUN.get(_Run())
    this.scope.check(checked)
    if generations(checked):
        load_wordnet()  # what is missing shall be said before an hour of work, not after
    checked, told = config_with_vocabulary(checked)
    if told:
        this.progress.note(told)
    with exclusive(folder), ends_with_us(own_server()):
        (folder / "manifest.json").unlink(missing_ok=True)
        write_text(folder / "build.yaml", dump_config(checked))
        story = Story(checked.name, stage_names(checked))
        async with engine(folder, checked.workers, this.progress, this.scope, story) as running:
            try:
                await _Stages(checked, running, this.retry_failed).run()
            except EndedAsAsked:
                return {"stages": stages_told(running.done)}
        sweep(folder, running.done)
        sweep_receipts(folder, running.done)
        manifest = finish_build(checked, folder, running.done, this.truth)
    await story.end(manifest, folder)
    return manifest


@dataclass(frozen=True)
class _Stages:
    """The stages of one build: what each runs, and on whose output it depends."""

    config: BuildConfig
    engine: Engine
    retry_failed: bool
    bill: Bill = field(default_factory=Bill)

    async def run(self) -> None:
        config = self.config
        may_fail = [*(this.stage for this in generations(config)), RATIONALES]
        if self.retry_failed and not any(has_failed_rows(self.engine.root, stage) for stage in may_fail):
            raise UsageError("no rows of this build have failed, so nothing to ask anew. Leave --retry-failed out.")
        source = read_options(config.input)
        pairs = await self._whole("pairs", [], read_input, source, config.part_size, state=input_state(config.input))
        parts = [part_name(number) for number in range(pairs.facts["parts"])]
        sweep(self.engine.root, self.engine.done, "pairs/*", "rejected/pairs-*")
        index = await self._whole(
            "index",
            [pairs],
            build_index,
            parts,
            config.index,
            config.input.path,
            config.seed,
            state=index_state(config),
        )
        chosen = [pairs]
        if config.retrieve:
            state = retrieve_state(config.retrieve)
            asked = (parts, config.retrieve, config.index.device)
            chosen.append(await self._whole("retrieve", [pairs, index], retrieve_pairs, *asked, state=state))
        if config.fetch:
            before: Choice = "retrieved" if config.retrieve else "all"
            exclude = config.retrieve.exclude if config.retrieve else ()
            how = (parts, config.fetch, before, exclude)
            chosen.append(await self._whole("fetch", chosen, fetch_chosen, *how, state=named_state(exclude)))
        tagged = await self._tag(pairs, parts)
        words = await self._whole("words", tagged, merge_statistics, parts)
        made: list[Receipt] = []
        for this in generations(config):
            inputs = [*chosen, *tagged, words, *(each for each in made if each.stage in this.unlike)]
            made += await self._generate(this, parts, inputs)
        for this in generations(config):
            if section := limited_section(config, this.stage):
                limits, name = limits_of(section), balance_stage(this.stage)
                made.append(await self._whole(name, made, balance_made, parts, this, limits))
        if config.refine:
            stages = [this.stage for this in generations(config) if this.to_refine]
            made.append(
                await self._whole("refine", [pairs, *made], refine_negatives, stages, parts, config.refine, config.seed)
            )
        if config.rationales:
            made += await self._rationales(config.rationales, parts, [*chosen, *made])
        await self._shards(parts, [*chosen, *made])

    async def _tag(self, pairs: Receipt, parts: Sequence[str]) -> tuple[Receipt, ...]:
        config = self.config
        state = tagger_state(config.tagger)
        content = {output.path: output.sha256 for output in pairs.outputs}
        jobs = [
            # Each part by itself: what is appended to the input leaves the parts before it tagged.
            self._job(
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

    async def _generate(self, this: Generation, parts: Sequence[str], inputs: Sequence[Receipt]) -> tuple[Receipt, ...]:
        state = f"{generator_identity(this.generator)} {wordnet_state()}"
        if not asks_model(this.generator):
            return await self._each(this.stage, parts, inputs, generate_part, this, state=state)
        retry = self.retry_failed and has_failed_rows(self.engine.root, this.stage)
        asking = asking_of(self.config.llm, self.engine.root, self.bill, seed=self.config.seed, retry_failed=retry)
        stage = AskingStage(this, asking, self.engine.progress, self.engine.stop)
        if asking.retry_failed:
            receipt_path(self.engine.root, this.stage, "all").unlink(missing_ok=True)
        shown = Packing((), ShardsSection(images=bool(this.options.get("see_image"))), this.choice)
        images = [part_state(self.engine.root, part, shown)[1] for part in parts]
        settings = [repr(this), asking.shape(), list(parts), state, images]
        job = Job(this.stage, "all", stage, (list(parts),), fingerprint(this.stage, "all", settings, inputs), here=True)
        return await self.engine.stage([job])

    async def _rationales(
        self, section: RationalesSection, parts: Sequence[str], inputs: Sequence[Receipt]
    ) -> tuple[Receipt, ...]:
        config, root = self.config, self.engine.root
        retry = self.retry_failed and has_failed_rows(root, RATIONALES)
        asking = asking_of(config.llm, root, self.bill, seed=config.seed, retry_failed=retry)
        made = tuple(this.stage for this in generations(config))
        settings = Settings(seed=config.seed, **section.model_dump())
        stage = RationaleStage(made, settings, choice_of(config), asking, self.engine.progress, self.engine.stop)
        if asking.retry_failed:
            receipt_path(root, RATIONALES, "all").unlink(missing_ok=True)
        told = [repr(settings), made, choice_of(config), asking.shape(), list(parts)]
        job = Job(RATIONALES, "all", stage, (list(parts),), fingerprint(RATIONALES, "all", told, inputs), here=True)
        return await self.engine.stage([job])

    async def _shards(self, parts: Sequence[str], inputs: Sequence[Receipt]) -> None:
        config = self.config
        stages = tuple(this.stage for this in generations(config))
        packing = Packing(stages, config.shards, choice_of(config), config.rationales is not None)
        states = {part: part_state(self.engine.root, part, packing) for part in parts}
        plan = plan_shards([(part, states[part][0]) for part in parts], config.shards.samples)
        jobs = [
            self._job(
                "shards",
                part_name(number),
                inputs,
                write_one_shard,
                number,
                slices,
                packing,
                state=" ".join(states[piece.part][1] for piece in slices),
            )
            for number, slices in enumerate(plan)
        ]
        shards = await self.engine.stage(jobs)
        sweep(self.engine.root, self.engine.done, "shards/*.tar")
        await self._whole("sizes", shards, finish)

    async def _whole(
        self, stage: str, inputs: Sequence[Receipt], run: Callable[..., Outcome], *args: object, state: str = ""
    ) -> Receipt:
        (receipt,) = await self.engine.stage([self._job(stage, "all", inputs, run, *args, state=state)])
        return receipt

    async def _each(
        self,
        stage: str,
        parts: Sequence[str],
        inputs: Sequence[Receipt],
        run: Callable[..., Outcome],
        *args: object,
        state: str = "",
    ) -> tuple[Receipt, ...]:
        jobs = [self._job(stage, part, inputs, run, part, *args, state=state) for part in parts]
        return await self.engine.stage(jobs)

    def _job(
        self,
        stage: str,
        part: str,
        inputs: Sequence[Receipt],
        run: Callable[..., Outcome],
        *args: object,
        state: str = "",
    ) -> Job:
        # The arguments are frozen sections of the config and names, whose repr says all of them.
        return Job(stage, part, run, args, fingerprint(stage, part, [repr(args), state], inputs))
