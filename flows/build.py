"""Full and incremental builds: run the stages of `graph.py`, then finish the version.

The engine runs the jobs of each stage, and receipts decide which of them are done already. The manifest is written last: a
build directory without one is unfinished. A finished version stays in place until the next one is complete
(`state/build_versions.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import StorageError, TerminatedError, UsageError
from pairwright.datasets.progress import use_listener
from pairwright.datasets.remote.hub import check_hub, is_hub
from pairwright.datasets.remote.object_store import is_remote, open_store
from pairwright.datasets.version_switch import (
    JOURNAL_FILE,
    STAGING_FOLDER,
    discard_staged_version,
    finish_switch,
)
from pairwright.flows.build_completion import Truth, finish_build
from pairwright.flows.config.build import BuildConfig, dump_config, parse_config
from pairwright.flows.config.vocabulary import config_with_vocabulary
from pairwright.flows.graph import run_stages, stage_names, stages_of
from pairwright.flows.increments import (
    discard_empty_increment,
    finish_increment,
    increment_summary,
    prepare_increment,
)
from pairwright.flows.llm.model_access import model_access_for_build
from pairwright.flows.manifest import stage_facts
from pairwright.flows.prefect.artifacts import FlowArtifacts
from pairwright.flows.prefect.flow_reports import FlowReports, run_beside_flow
from pairwright.flows.prefect.preflight import refuse_broken_prefect
from pairwright.flows.prefect.server import build_server
from pairwright.flows.prefect.task_runs import runs_per_pass
from pairwright.flows.progress import BuildProgress
from pairwright.flows.runners.engine import Engine, open_engine
from pairwright.flows.runners.slurm_pool import check_slurm_commands
from pairwright.flows.signals import BuildTerminated, SigtermHandler
from pairwright.flows.stage_selection import OtherPartsLeft, RequestedStageDone, Share, StageSelection
from pairwright.flows.stages.asking import has_failed_rows
from pairwright.flows.stages.definition import Stage, StageRun
from pairwright.flows.stages.generator_stages import generating_stages
from pairwright.flows.state.build_settings import refuse_changed_settings, shaping_settings
from pairwright.flows.state.build_versions import (
    IncrementBase,
    finished_manifest,
    full_build_folder,
    increment_folder,
    newest_manifest,
)
from pairwright.flows.state.hub_publishing import publish_to_hub
from pairwright.flows.state.inputs import input_state, with_local_inputs
from pairwright.flows.state.layout import COPIES
from pairwright.flows.state.locks import (
    build_lock,
    enter_when_free,
    part_lock,
    parts_lock,
    remove_lock_files,
    setup_lock,
)
from pairwright.flows.state.part_setup import compare_parts
from pairwright.flows.state.publishing import PublishResult, publish
from pairwright.flows.state.receipts import json_hash
from pairwright.flows.state.shard_store import claim_shard_store
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.budget import SpendingTotals
from pairwright.indexes.retrieval.queries import read_queries


@dataclass(frozen=True)
class _RunSettings:
    """Settings of one run of a build that are not part of its config."""

    progress: BuildProgress = field(default_factory=BuildProgress)
    truth: Truth | None = None
    retry_failed: bool = False
    selection: StageSelection = field(default_factory=StageSelection)
    wait: bool = False
    reports: FlowReports = field(default_factory=FlowReports)


_SETTINGS: ContextVar[_RunSettings] = ContextVar("_SETTINGS")
_Flow = Callable[[dict[str, Any], str], Coroutine[Any, Any, dict[str, Any]]]


def build(  # noqa: PLR0913 - keywords
    config: BuildConfig,
    out: Path,
    progress: BuildProgress | None = None,
    truth: Truth | None = None,
    *,
    prefect: bool = True,
    retry_failed: bool = False,
    selection: StageSelection | None = None,
    wait: bool = False,
) -> dict[str, Any]:
    """Build a dataset, or resume a build.

    Args:
        config: of the build.
        out: the build directory; finished jobs in it that are still valid are not repeated.
        progress: receives the progress.
        truth: judges the finished texts where the truth is known (the demo); its table is shown in card and report.
        prefect: run as a Prefect flow; otherwise no server is started or told.
        retry_failed: retry the rows that a model failed on.
        selection: the stages to run; by default those that are not done.
        wait: wait for processes that build in this folder.

    Returns:
        The manifest. With ``selection.only`` or ``selection.share``: ``stages`` so far and ``place``, the folder with their
        files; with the latter also ``left``, an `OtherPartsLeft`, or None if all jobs of all shares are done.

    Raises:
        TerminatedError: after SIGTERM.
        PairwrightError: for an error of the user, the data or the machine.
    """
    if prefect:
        refuse_broken_prefect()
    reports = FlowReports(expected=prefect)
    settings = _RunSettings(
        progress or BuildProgress(), truth, retry_failed, selection or StageSelection(), wait, reports
    )
    settings.selection.check(stage_names(config))  # before Prefect starts
    token = _SETTINGS.set(settings)
    try:
        with SigtermHandler() as sigterm, use_listener(settings.progress.report_step):
            given = config.model_dump(mode="json"), str(out.resolve())
            if not prefect:
                return asyncio.run(_with_sigterm_handler(run_build, sigterm)(*given))
            with build_server(settings.reports, settings.progress.note) as server:
                run = _with_sigterm_handler(partial(_run_with_flow, sigterm, settings.reports, server), sigterm)
                return asyncio.run(run(*given))
    except _signal_exception(prefect=prefect):
        raise TerminatedError("stopped by a signal. Start the same build again to resume it.") from None
    finally:
        _SETTINGS.reset(token)


async def build_in_flow(config: BuildConfig, out: Path, progress: BuildProgress) -> dict[str, Any]:
    """Build into ``out``, an absolute path, inside a running flow."""
    reports = FlowReports()
    reports.open()
    _SETTINGS.set(_RunSettings(progress, reports=reports))
    try:
        return await run_build(config.model_dump(mode="json"), str(out))
    finally:
        await reports.close()


def _as_flow(run: _Flow) -> _Flow:
    from pairwright.flows.prefect.api import flow  # slow to import

    return flow(name="pairwright-build", flow_run_name="{out}", persist_result=False)(run)


def _signal_exception(*, prefect: bool) -> tuple[type[BaseException], ...]:
    """Return the exceptions that a signal raises in a build."""
    if not prefect:
        return BuildTerminated, asyncio.CancelledError
    from pairwright.flows.prefect.api import TerminationSignal

    return BuildTerminated, asyncio.CancelledError, TerminationSignal


def _with_sigterm_handler(run: _Flow, sigterm: SigtermHandler) -> _Flow:
    """Return a run that SIGTERM cancels."""

    async def cancellable(config: dict[str, Any], out: str) -> dict[str, Any]:
        with sigterm.cancel_on_sigterm():
            return await run(config, out)

    return cancellable


async def _run_with_flow(
    sigterm: SigtermHandler,
    reports: FlowReports,
    server: Callable[[], Awaitable[None]],
    config: dict[str, Any],
    out: str,
) -> dict[str, Any]:
    """Build while a server starts, then in a flow, whose own handler of SIGTERM is replaced."""

    async def in_flow(build: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        async def run(config: dict[str, Any], out: str) -> dict[str, Any]:  # noqa: ARG001 - shown by Prefect
            sigterm.install_in_loop()
            return await build()

        return await _as_flow(run)(config, out)

    return await run_beside_flow(run_build(config, out), in_flow, server, reports)


async def run_build(config: dict[str, Any], out: str) -> dict[str, Any]:
    """Build a dataset; the function that the flow runs.

    Args:
        config: the content of a build config, paths absolute.
        out: the build directory.

    Returns:
        The manifest.
    """
    checked, root = parse_config(config, where="the flow's config"), Path(out)
    settings = _SETTINGS.get(_RunSettings())
    if settings.selection.share is not None:
        _refuse_own_runner(checked)
    _check_requirements(checked, root)
    checked, message = config_with_vocabulary(checked)
    if message:
        settings.progress.note(message)
    if settings.selection.share is not None:
        return await _build_share(checked, root, settings, settings.selection.share)
    with ExitStack() as lock:
        if settings.wait:
            waiting = partial(settings.progress.note, f"Waiting for the processes that build in {root} ...")
            await enter_when_free(lock, partial(build_lock, root), waiting)
        else:
            lock.enter_context(build_lock(root))
        finish_switch(root)
        claim_shard_store(checked, root)
        base = _increment_base(checked, root, settings) if checked.incremental else None
        manifest = await (_build_increment(checked, base, settings) if base else _build_full(checked, root, settings))
        if checked.publish and not settings.selection.only:
            published = await asyncio.to_thread(_publish, root, manifest, checked)
            settings.progress.note(published.summary)
        if not settings.selection.only:
            remove_lock_files(root)
        return manifest


def _publish(root: Path, manifest: dict[str, Any], config: BuildConfig) -> PublishResult:
    """Publish a finished build to the Hub or to a store."""
    if is_hub(config.publish):
        return publish_to_hub(root, manifest, config.publish)
    return publish(root, manifest, config.publish, config.publish_keep)


def _check_requirements(config: BuildConfig, root: Path) -> None:
    """Check what later stages need before any work."""
    if generating_stages(config):
        load_wordnet()
    if is_hub(config.publish):
        check_hub(config.publish)
    elif config.publish:
        open_store(config.publish)
    if config.runner == "slurm":
        check_slurm_commands()
    if config.retrieve and not is_remote(config.retrieve.queries):
        read_queries(Path(config.retrieve.queries))
    if config.model_stages and not (root / "receipts").exists():  # a resumed build may need no more requests
        model_access_for_build(config.llm, root, SpendingTotals(), seed=config.seed).check()


def _refuse_own_runner(config: BuildConfig) -> None:
    """Refuse a part whose jobs would run on a cluster, where another part would cancel or refuse them."""
    if config.runner != "processes":
        raise UsageError(
            f"--part is for processes that you start yourself, and `runner: {config.runner}` divides a build by itself. "
            "Omit --part, or add --runner processes."
        )


async def _build_share(config: BuildConfig, root: Path, settings: _RunSettings, share: Share) -> dict[str, Any]:
    """Run a share of the jobs, while other processes run others; the manifest is left to a build of all."""
    stages = stages_of(config)
    artifacts = FlowArtifacts(config.name, [], settings.reports)
    with parts_lock(root), ExitStack() as part:
        with ExitStack() as lock:
            waiting = partial(settings.progress.note, f"Waiting for another process that prepares {root} ...")
            await enter_when_free(lock, partial(setup_lock, root), waiting)
            part.enter_context(part_lock(root, str(share)))  # only now: a part that waits is not running
            if (root / STAGING_FOLDER / JOURNAL_FILE).exists():
                raise StorageError(f"{root}: a new version is being put in place. Complete it with --finish.")
            if config.incremental and finished_manifest(root):
                raise UsageError("--part requires a full build. Add --full, or build the increment without --part.")
            if differs := compare_parts(root, shaping_settings(config.model_dump(mode="json")), str(share)):
                settings.progress.note(f"Changed since the last part: {differs}. What depends on it is made again.")
            claim_shard_store(config, root)
            local = with_local_inputs(config, root / COPIES)
            folder = full_build_folder(root)
            write_text(folder / "build.yaml", dump_config(config))
        async with _engine(folder, config, stages, artifacts, settings) as engine:
            left: OtherPartsLeft | None = None
            try:
                await run_stages(stages, StageRun(local, engine, root))
            except OtherPartsLeft as others:
                left = others
        return {"stages": stage_facts(engine.done), "place": str(folder), "left": left}


async def _build_full(config: BuildConfig, root: Path, settings: _RunSettings) -> dict[str, Any]:
    stages = stages_of(config)
    artifacts = FlowArtifacts(config.name, [stage.name for stage in stages], settings.reports)
    local = with_local_inputs(config, root / COPIES)
    state = json_hash([input_state(local.input)])
    folder = full_build_folder(root)
    if folder != root:
        settings.progress.note(_old_version_note(finished_manifest(root), config.shards.to))
    write_text(folder / "build.yaml", dump_config(config))
    async with _engine(folder, config, stages, artifacts, settings) as engine:
        if settings.retry_failed and not any(has_failed_rows(folder, stage.name) for stage in stages):
            raise UsageError(
                "--retry-failed: no rows of this build have failed, so there is nothing to retry. Omit the option."
            )
        try:
            await run_stages(stages, StageRun(local, engine, root, retry_failed=settings.retry_failed))
        except RequestedStageDone:
            return {"stages": stage_facts(engine.done), "place": str(folder)}
    manifest = finish_build(config, root, folder, engine.done, settings.truth, state)
    await artifacts.end(manifest, root)
    return manifest


def _old_version_note(manifest: dict[str, Any], to: str) -> str:
    """Return what happens to the finished version while a new one is built."""
    number, full = (manifest.get("build", {}).get(name, "") for name in ("number", "full"))
    samples = count_phrase(manifest.get("contents", {}).get("samples", 0), "sample")
    lines = [f"Version {number} ({samples}) stays in place until this build is complete."]
    if url := manifest.get("shards", {}).get("url", ""):
        replaced = f"Its shards in {url} do not: changed ones are replaced one by one."
        lines.append(
            replaced if url == to else f"Its shards in {url} stay: remove them when they are no longer needed."
        )
    if number != full:
        what = "The new version has the pairs of this input alone"
        lines.append(f"{what}: increments are not kept (--incremental adds to them).")
    return " ".join(lines)


def _increment_base(config: BuildConfig, root: Path, settings: _RunSettings) -> IncrementBase | None:
    """Return the version to add to; None if a full build has to be made, or finished, first."""
    manifest = newest_manifest(root)
    if not manifest or not (root / "manifest.json").is_file():
        settings.progress.note("No finished build to add to: building all pairs.")
        return None
    if settings.selection != StageSelection() or settings.retry_failed:
        raise UsageError("--only, --from and --retry-failed require a full build. Add --full, or omit them.")
    refuse_changed_settings(config, manifest)
    return IncrementBase(root, manifest)


async def _build_increment(config: BuildConfig, base: IncrementBase, settings: _RunSettings) -> dict[str, Any]:
    local = with_local_inputs(config, base.root / COPIES)
    before, state = base.manifest["build"], json_hash([input_state(local.input)])
    if before["input"] == state:
        discard_staged_version(base.root)
        settings.progress.note(f"The input has not changed since version {before['number']}: no new version.")
        return dict(base.manifest)
    stages = stages_of(config, incremental=True)
    artifacts = FlowArtifacts(config.name, [stage.name for stage in stages], settings.reports)
    folder = increment_folder(base.root)
    prepare_increment(config, base, folder)
    async with _engine(folder, config, stages, artifacts, settings) as engine:
        has_new_pairs = await run_stages(stages, StageRun(local, engine, base.root, base))
    if not has_new_pairs:
        settings.progress.note(discard_empty_increment(base, engine.done))
        return dict(base.manifest)
    manifest = finish_increment(config, base, engine, state)
    settings.progress.note(increment_summary(manifest))
    await artifacts.end(manifest, base.root)
    return manifest


def _engine(
    folder: Path, config: BuildConfig, stages: tuple[Stage, ...], artifacts: FlowArtifacts, settings: _RunSettings
) -> AbstractAsyncContextManager[Engine]:
    max_runs = runs_per_pass(len(stages), sum(stage.passes for stage in stages if stage.scope != "set"))
    return open_engine(folder, config, settings.progress, settings.selection, artifacts, settings.reports, max_runs)
