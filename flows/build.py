"""The build: which stages there are, in which order, and what each reads. This page is the table of contents.

    pairs -> index -> retrieve -> fetch -> tag -> words -> negatives, positives, conversations, others -> balance -> refine -> rationales -> shards

Each stage is a set of jobs (`receipts.py`) that the engine (`engine.py`) runs as Prefect tasks, one a part. The
manifest is the commit: it is written last, and a build directory without one is unfinished. A version that is finished
stays until the next one is complete (`versions.py`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.progress import use_listener
from pairwright.datasets.remote.object_store import is_remote, open_store
from pairwright.datasets.version_switch import discard_staged_version, finish_switch
from pairwright.flows.config.build import BuildConfig, dump_config, parse_config
from pairwright.flows.config.vocabulary import config_with_vocabulary
from pairwright.flows.generating_stages import generating_stages, quota_section
from pairwright.flows.incremental import (
    Increment,
    IncrementBase,
    discard_empty_increment,
    finish_increment,
    increment_stages,
    increment_summary,
    refuse_changed_settings,
)
from pairwright.flows.llm.model_access import model_access_for_build
from pairwright.flows.manifest import Truth, finish_build, remove_leftovers, stage_facts
from pairwright.flows.prefect.artifacts import FlowArtifacts
from pairwright.flows.prefect.preflight import refuse_broken_prefect
from pairwright.flows.prefect.server import build_server
from pairwright.flows.prefect.task_runs import ReportedRuns
from pairwright.flows.progress import BuildProgress, SilentProgress
from pairwright.flows.runners.engine import open_engine
from pairwright.flows.signals import BuildTerminated, SigtermHandler
from pairwright.flows.stage_jobs import StageJobs
from pairwright.flows.stage_selection import RequestedStageDone, StageSelection, stage_names
from pairwright.flows.stages.balance import balance_annotations, balance_stage, quota_limits
from pairwright.flows.stages.fetch import fetch_chosen
from pairwright.flows.stages.generate_with_model import has_failed_rows
from pairwright.flows.stages.index import index_state, retrieve_state
from pairwright.flows.stages.pairs import Intake, read_input
from pairwright.flows.stages.rationales import STAGE as RATIONALES
from pairwright.flows.stages.refine import refine_negatives, scorers_state
from pairwright.flows.stages.shards import write_shard_sizes
from pairwright.flows.stages.tag import merge_statistics
from pairwright.flows.state.inputs import input_state, named_state, read_options, with_local_inputs
from pairwright.flows.state.layout import COPIES, part_name
from pairwright.flows.state.locks import build_lock
from pairwright.flows.state.publishing import publish
from pairwright.flows.state.receipts import Receipt, json_hash
from pairwright.flows.state.selection import PairSelection
from pairwright.flows.state.versions import finished_manifest, full_build_folder, increment_folder, newest_manifest
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.budget import SpendingTotals
from pairwright.indexes.retrieval.queries import read_queries


@dataclass(frozen=True)
class _Run:
    """What belongs to one run of a build and not to its config."""

    progress: BuildProgress = field(default_factory=SilentProgress)
    truth: Truth | None = None
    retry_failed: bool = False
    scope: StageSelection = field(default_factory=StageSelection)
    reported: ReportedRuns = field(default_factory=ReportedRuns)


_RUN: ContextVar[_Run] = ContextVar("_RUN")
_Flow = Callable[[dict[str, Any], str], Coroutine[Any, Any, dict[str, Any]]]


def build(  # noqa: PLR0913 - keywords, each told of below
    config: BuildConfig,
    out: Path,
    progress: BuildProgress | None = None,
    truth: Truth | None = None,
    *,
    prefect: bool = True,
    retry_failed: bool = False,
    scope: StageSelection | None = None,
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
    this = _Run(progress or SilentProgress(), truth, retry_failed, scope or StageSelection())
    token = _RUN.set(this)
    try:
        with SigtermHandler() as sigterm, use_listener(_RUN.get().progress.inside):
            run = _with_sigterm_handler(_as_flow(_with_sigterm_in_flow(sigterm)) if prefect else run_build, sigterm)
            with build_server(this.reported, this.progress.note) if prefect else nullcontext():
                return asyncio.run(run(config.model_dump(mode="json"), str(out.resolve())))
    except _signal_exception(prefect=prefect):
        raise PairwrightError("ended by a signal. What is done is kept: start the same build again to go on.") from None
    finally:
        _RUN.reset(token)


async def build_in_flow(config: BuildConfig, out: Path, progress: BuildProgress) -> dict[str, Any]:
    """Build into ``out``, an absolute path, inside a flow that runs already; its tasks are the parts."""
    _RUN.set(_Run(progress))
    return await run_build(config.model_dump(mode="json"), str(out))


def _as_flow(run: _Flow) -> _Flow:
    from pairwright.flows.prefect.api import flow  # takes seconds: not for a build without it

    return flow(name="pairwright-build", flow_run_name="{out}", persist_result=False)(run)


def _signal_exception(*, prefect: bool) -> tuple[type[BaseException], ...]:
    """Return what a signal raises in a build."""
    if not prefect:
        return BuildTerminated, asyncio.CancelledError
    from pairwright.flows.prefect.api import TerminationSignal

    return BuildTerminated, asyncio.CancelledError, TerminationSignal


def _with_sigterm_handler(run: _Flow, sigterm: SigtermHandler) -> _Flow:
    """Return a run that SIGTERM ends in order."""

    async def in_order(config: dict[str, Any], out: str) -> dict[str, Any]:
        with sigterm.cancel_on_sigterm():
            return await run(config, out)

    return in_order


def _with_sigterm_in_flow(sigterm: SigtermHandler) -> _Flow:
    """Return the build as a flow runs it, which puts a handler of its own around it."""

    async def heard(config: dict[str, Any], out: str) -> dict[str, Any]:
        sigterm.again()
        return await run_build(config, out)

    return heard


async def run_build(config: dict[str, Any], out: str) -> dict[str, Any]:
    """Build a dataset; the function that the flow runs.

    Args:
        config: the content of a build config, paths absolute.
        out: the build directory.

    Returns:
        The manifest.
    """
    checked, folder = parse_config(config, where="the flow's config"), Path(out)
    this = _RUN.get(_Run())
    this.scope.check(checked)
    _check_requirements(checked, folder)
    checked, told = config_with_vocabulary(checked)
    if told:
        this.progress.note(told)
    with build_lock(folder):
        finish_switch(folder)
        base = _increment_base(checked, folder, this) if checked.incremental else None
        manifest = await (_build_increment(checked, base, this) if base else _build_full(checked, folder, this))
        if checked.publish and not this.scope.only:
            laid = await asyncio.to_thread(publish, folder, manifest, checked.publish, checked.publish_keep)
            this.progress.note(laid.summary)
        return manifest


def _check_requirements(config: BuildConfig, folder: Path) -> None:
    """Say what a later stage would miss before an hour of work, not after."""
    if generating_stages(config):
        load_wordnet()
    if config.publish:
        open_store(config.publish)
    if config.retrieve and not is_remote(config.retrieve.queries):
        read_queries(Path(config.retrieve.queries))
    if config.model_stages and not (folder / "receipts").exists():  # else there may be nothing left to ask
        model_access_for_build(config.llm, folder, SpendingTotals(), seed=config.seed).check()


async def _build_full(config: BuildConfig, folder: Path, this: _Run) -> dict[str, Any]:
    story = FlowArtifacts(config.name, stage_names(config))
    near = with_local_inputs(config, folder / COPIES)
    state = json_hash([input_state(near.input)])
    place = full_build_folder(folder)
    if place != folder:
        number = finished_manifest(folder).get("build", {}).get("number", "")
        this.progress.note(f"Version {number} stays in place until this build is complete.")
    write_text(place / "build.yaml", dump_config(config))
    async with open_engine(place, config, this.progress, this.scope, story, this.reported) as running:
        try:
            await _FullBuild(near, running, folder, this.retry_failed).run()
        except RequestedStageDone:
            return {"stages": stage_facts(running.done), "place": str(place)}
    manifest = finish_build(config, folder, place, running.done, this.truth, state)
    await story.end(manifest, folder)
    return manifest


def _increment_base(config: BuildConfig, folder: Path, this: _Run) -> IncrementBase | None:
    """Return what an incremental build adds to; None where a full one has to be made, or finished, first."""
    manifest = newest_manifest(folder)
    if not manifest or not (folder / "manifest.json").is_file():
        this.progress.note("No finished build to add to: all pairs are built.")
        return None
    if this.scope != StageSelection() or this.retry_failed:
        raise UsageError("--only, --from and --retry-failed are for full builds. Give --full, or leave them out.")
    refuse_changed_settings(config, manifest)
    return IncrementBase(folder, manifest)


async def _build_increment(config: BuildConfig, base: IncrementBase, this: _Run) -> dict[str, Any]:
    near = with_local_inputs(config, base.root / COPIES)
    before, state = base.manifest["build"], json_hash([input_state(near.input)])
    if before["input"] == state:
        discard_staged_version(base.root)
        this.progress.note(f"The input is as it was at version {before['number']}, so there is no new version.")
        return dict(base.manifest)
    story = FlowArtifacts(config.name, increment_stages(config))
    async with open_engine(
        increment_folder(base.root), config, this.progress, StageSelection(), story, this.reported
    ) as running:
        anything = await Increment(near, running, base.root).run(base)
    if not anything:
        this.progress.note(discard_empty_increment(base, running.done))
        return dict(base.manifest)
    manifest = finish_increment(config, base, running, state)
    this.progress.note(increment_summary(manifest))
    await story.end(manifest, base.root)
    return manifest


class _FullBuild(StageJobs):
    """The stages of a full build."""

    async def run(self) -> None:
        """Run them all."""
        config = self.config
        may_fail = [*(this.stage for this in generating_stages(config)), RATIONALES]
        if self.retry_failed and not any(has_failed_rows(self.engine.root, stage) for stage in may_fail):
            raise UsageError("no rows of this build have failed, so nothing to ask anew. Leave --retry-failed out.")
        intake = Intake(
            read_options(config.input), config.part_size, config.all_have_images, config.single_image_format
        )
        pairs = await self.whole("pairs", [], read_input, intake, state=input_state(config.input))
        parts = [part_name(number) for number in range(pairs.facts["parts"])]
        remove_leftovers(self.engine.root, self.engine.done, "pairs/*", "rejected/pairs-*")
        chosen = [pairs]
        if indexed := config.index_section:
            index = await self.index(indexed, parts, pairs, state=index_state(indexed, config.input.path))
            if config.retrieve:
                asked, state = (parts, [pairs, index], indexed.device), retrieve_state(config.retrieve)
                chosen.append(await self.retrieve(config.retrieve, *asked, state=state))
        if config.fetch:
            before: PairSelection = "retrieved" if config.retrieve else "all"
            exclude = config.retrieve.exclude if config.retrieve else ()
            how = (parts, config.fetch, before, exclude)
            chosen.append(await self.whole("fetch", chosen, fetch_chosen, *how, state=named_state(exclude)))
        tagged = await self.tag(pairs, parts)
        words = await self.whole("words", tagged, merge_statistics, parts)
        made: list[Receipt] = []
        for this in generating_stages(config):
            inputs = [*chosen, *tagged, words, *(each for each in made if each.stage in this.unlike)]
            made += await self.generate(this, parts, inputs)
        for this in generating_stages(config):
            if section := quota_section(config, this.stage):
                limits, name = quota_limits(section), balance_stage(this.stage)
                made.append(await self.whole(name, made, balance_annotations, parts, this, limits))
        if config.refine:
            stages = [this.stage for this in generating_stages(config) if this.to_refine]
            arguments = (stages, parts, config.refine, config.seed)
            state = scorers_state(config.refine)
            made.append(await self.whole("refine", [pairs, *made], refine_negatives, *arguments, state=state))
        if config.rationales:
            made += await self.rationales(config.rationales, parts, [*chosen, *made])
        shards = await self.shards(parts, [*chosen, *made])
        remove_leftovers(self.engine.root, self.engine.done, "shards/*.tar")
        await self.whole("sizes", shards, write_shard_sizes)
