"""``pairwright build``: build a dataset from a config."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import PARTS_LEFT, exit_below_target
from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.options.declarations import advanced_option, limit_option, output_option
from pairwright.cli.options.input import DetailsOption, JsonOption
from pairwright.cli.options.model_runs import cancelled_lines
from pairwright.cli.output.build_summary import (
    build_lines,
    build_result,
    missed_target,
    nothing_kept_in_build,
    stage_counts,
    unchanged_lines,
)
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.stage_bars import StageBars
from pairwright.cli.plan import BuildOutOption, ConfigArgument, plan
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.stage_selection import Share

NoPrefectOption = Annotated[bool, advanced_option("--no-prefect", help="Run without Prefect, which starts faster.")]


@with_progress
def build(
    config: ConfigArgument,
    *,
    out: BuildOutOption = None,
    publish: Annotated[
        str | None,
        output_option(
            metavar="URL", help="Upload the finished dataset, such as to s3://bucket/birds or hf://owner/birds."
        ),
    ] = None,
    incremental: Annotated[
        bool | None,
        typer.Option("--incremental/--full", help="Append new pairs, or build everything; else as CONFIG says."),
    ] = None,
    only: Annotated[str, typer.Option(metavar="STAGE", help="Run this stage only; earlier ones have to be done.")] = "",
    begin: Annotated[str, typer.Option("--from", metavar="STAGE", help="Rerun this stage and all later ones.")] = "",
    part: Annotated[
        str,
        typer.Option(
            metavar="I/N", help="Run the I-th of N shares of the jobs; start the others as processes of their own."
        ),
    ] = "",
    wait: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="With --part: wait so long for what other parts make (0 = end at once)."
        ),
    ] = 0.0,
    finish: Annotated[bool, typer.Option("--finish", help="Wait for running parts, then build what is left.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the build and the cost of models; make nothing.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Retry the rows in failed/ (billed again).")
    ] = False,
    batch_cancel: Annotated[bool, typer.Option("--batch-cancel", help="Cancel running batches and exit.")] = False,
    max_cost: Annotated[float | None, limit_option(help="Stop at this cost in USD; finished work is kept.")] = None,
    max_requests: Annotated[
        int | None, limit_option(min=1, help="Stop at this number of answers; finished work is kept.")
    ] = None,
    workers: Annotated[int | None, advanced_option(min=1, help="Processes; the output is the same.")] = None,
    runner: Annotated[
        Literal["processes", "ray", "slurm"] | None,
        advanced_option(help="This machine, a Ray or a Slurm cluster; the same output."),
    ] = None,
    address: Annotated[
        str | None, advanced_option(metavar="HOST:PORT", help="Head of the Ray cluster; else this machine's.")
    ] = None,
    no_prefect: NoPrefectOption = False,
    details: DetailsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Build a dataset from a config, or resume a stopped build.

    \b
    Examples:
      pairwright build build.yaml
      pairwright build build.yaml --out /data/birds --workers 8
      pairwright build build.yaml --incremental
      pairwright build build.yaml --out /shared/birds --runner ray --address 10.0.0.1:6379
      pairwright build build.yaml --out /shared/birds --runner slurm
      pairwright build build.yaml --out /shared/birds --part 3/16
    """
    from pairwright.datasets.remote.hub import dataset_of, is_hub
    from pairwright.datasets.remote.object_store import split_url
    from pairwright.flows.config.build import load_config
    from pairwright.flows.runners.worker_start import start_early
    from pairwright.flows.stage_selection import Share, StageSelection
    from pairwright.flows.state.build_versions import newest_manifest, refuse_unfinished_increment

    _refuse_exclusive(part=part, wait=wait, finish=finish, retry_failed=retry_failed, dry_run=dry_run)
    share = Share.parse(part, wait) if part else None
    if dry_run:
        from pairwright.flows.graph import stage_names

        StageSelection(only, begin).check(stage_names(load_config(config)))
        plan(config, out=out, as_json=as_json)
        return
    loaded = load_config(config)
    folder = out or Path("build") / loaded.name
    if batch_cancel:
        _cancel_batches(loaded, folder, as_json=as_json)
        return
    loaded = _with_limits(loaded, max_cost, max_requests)
    values = {"workers": workers, "incremental": incremental, "runner": runner, "address": address, "publish": publish}
    if publish is not None:
        (dataset_of if is_hub(publish) else split_url)(publish)
    loaded = loaded.model_copy(update={name: value for name, value in values.items() if value is not None})
    if incremental is None and not loaded.incremental:
        refuse_unfinished_increment(folder)
    progress = StageBars()
    no_prefect = no_prefect or finish or share is not None
    progress.note(f"Building {loaded.name} in {folder}{start_message(no_prefect)} ...")
    start_early(loaded, folder)
    from pairwright.flows.build import build as run_build

    before = newest_manifest(folder).get("build") if loaded.incremental else None
    resumable_on_interrupt()
    selection = StageSelection(only, begin, share)
    manifest = run_build(
        *(loaded, folder, progress),
        prefect=not no_prefect,
        retry_failed=retry_failed,
        selection=selection,
        wait=finish,
    )
    if share:
        _end_part(share, manifest, as_json=as_json)
    elif only:
        place = manifest["place"]
        lines = ["", f"Finished {only} in {place}. Without --only the build resumes after it."]
        emit({"out": place, "stages": stage_counts(manifest)}, lines, as_json=as_json)
    else:
        is_new = not before or manifest["build"] != before
        lines = build_lines(folder, manifest, details=details) if is_new else unchanged_lines(folder, manifest)
        emit(build_result(folder, manifest), lines, as_json=as_json)
    if reasons := nothing_kept_in_build(manifest["stages"]) or ([] if only else missed_target(manifest)):
        exit_below_target(*reasons)


def _refuse_exclusive(*, part: str, wait: float, finish: bool, retry_failed: bool, dry_run: bool) -> None:
    """Refuse options that exclude each other."""
    if part and (finish or retry_failed):
        raise UsageError(f"--part and {'--finish' if finish else '--retry-failed'} are mutually exclusive.")
    if dry_run and retry_failed:
        raise UsageError("--dry-run does not count the rows that --retry-failed bills again. Omit one of them.")
    if wait and not part:
        raise UsageError("--wait requires --part; --finish waits for running parts by itself. Omit --wait.")


def _end_part(share: "Share", done: dict[str, Any], *, as_json: bool) -> None:
    """Print what is left after a part; exit with `PARTS_LEFT` unless all parts are done."""
    left = done["left"]
    result = {"out": done["place"], "part": str(share), "stages": stage_counts(done)}
    if left is None:
        lines = ["", "All parts are done. Next: the same command with --finish instead of --part."]
        emit({**result, "left": None}, lines, as_json=as_json)
        return
    result["left"] = {"stage": left.stage, "jobs": left.jobs, "part": str(left.first)}
    jobs = count_phrase(left.jobs, "job")
    wait = "" if share.wait else "; or add --wait, if all parts run at the same time"
    next_command = f"the same command with --part {left.first}{wait}"
    lines = ["", f"Part {share} is done so far: {left.stage} has {jobs} of other parts left. Next: {next_command}."]
    emit(result, lines, as_json=as_json)
    raise typer.Exit(PARTS_LEFT)


def _cancel_batches(config: "BuildConfig", folder: Path, *, as_json: bool) -> None:
    """Cancel the running batches of a build."""
    from pairwright.flows.llm.model_access import model_access_for_build
    from pairwright.generators.llm.budget import SpendingTotals

    ids = model_access_for_build(config.llm, folder, SpendingTotals()).cancel_batches(note)
    emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)


def _with_limits(config: "BuildConfig", max_cost: float | None, max_requests: int | None) -> "BuildConfig":
    """Return a config with the limits of the command line."""
    values = {"max_cost": max_cost, "max_requests": max_requests}
    limits = {name: value for name, value in values.items() if value is not None}
    if not limits:
        return config
    if config.llm is None:
        raise UsageError(f"--{next(iter(limits)).replace('_', '-')} requires a model: the config has no section `llm`.")
    if max_cost is not None and not 0 < max_cost < float("inf"):
        raise UsageError(f"--max-cost is {max_cost}. Give a number of USD above 0.")
    return config.model_copy(update={"llm": config.llm.model_copy(update=limits)})


def start_message(no_prefect: bool) -> str:  # noqa: FBT001 - the command's flag
    """Return the remark about Prefect in the first line of a build."""
    return "" if no_prefect else ", with Prefect"
