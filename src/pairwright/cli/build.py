"""``pairwright build``: run a build config through the Prefect flow."""

from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.generate.summary import count_phrase, nothing_kept_in_build, quota_lines
from pairwright.cli.options.input import JsonOption
from pairwright.cli.options.model import cancelled_lines
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.progress import StageBars, with_progress
from pairwright.cli.output.summary import (
    DetailsOption,
    all_reasons,
    headline,
    next_step,
    share_of,
    type_table,
    warning,
    wrapped_table,
)
from pairwright.cli.plan import plan
from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig

_TEXT_KINDS = {  # kind of text: the stage that makes it, and the name of one
    "hard_negatives": ("negatives", "hard negative"),
    "hard_positives": ("positives", "hard positive"),
    "conversations": ("conversations", "conversation"),
    "rationales": ("rationales", "rationale"),
}


@with_progress
def build(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file, as `pairwright init` writes it.")],
    *,
    out: Annotated[Path | None, typer.Option("--out", help="Build directory; build/NAME when left out.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; the output is the same.")] = None,
    runner: Annotated[
        Literal["processes", "ray"] | None,
        typer.Option("--runner", help="Work on this machine, or on a Ray cluster; the output is the same."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="HOST:PORT",
            help="Of the Ray cluster's head; the one this machine is in when left out.",
        ),
    ] = None,
    publish: Annotated[
        str | None,
        typer.Option("--publish", metavar="URL", help="Lay the finished dataset there, such as s3://bucket/birds."),
    ] = None,
    no_prefect: Annotated[
        bool, typer.Option("--no-prefect", help="Do the same work without Prefect: starts at once.")
    ] = False,
    incremental: Annotated[
        bool | None,
        typer.Option(
            "--incremental/--full", help="Append what is new since the last version, or build all; else as CONFIG says."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would be made, and what models would cost; make nothing.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask models anew, and pay, about all rows that failed/ names.")
    ] = False,
    only: Annotated[
        str, typer.Option("--only", metavar="STAGE", help="Make this stage and end; those before it have to be there.")
    ] = "",
    begin: Annotated[
        str, typer.Option("--from", metavar="STAGE", help="Make this stage and all that follow again.")
    ] = "",
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", help="Stop at so many USD; what is done is kept.")
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option("--max-requests", min=1, help="Stop at so many answers; what is done is kept.")
    ] = None,
    batch_cancel: Annotated[
        bool, typer.Option("--batch-cancel", help="Cancel the batches that still run, and do nothing else.")
    ] = False,
    details: DetailsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Build a dataset as CONFIG says; started again after a stop, it goes on where it stood.

    \b
    Examples:
      pairwright build build.yaml
      pairwright build build.yaml --out /data/birds --workers 8
      pairwright build build.yaml --incremental
      pairwright build build.yaml --out /shared/birds --runner ray --address 10.0.0.1:6379
    """
    from pairwright.datasets.remote.object_store import split_url
    from pairwright.flows.config.build import load_config
    from pairwright.flows.stage_selection import StageSelection

    if dry_run:
        from pairwright.flows.graph import stage_names

        StageSelection(only, begin).check(stage_names(load_config(config)))
        plan(config, out=out, as_json=as_json)
        return
    if batch_cancel:
        _cancel_batches(load_config(config), out, as_json=as_json)
        return
    loaded = _with_limits(load_config(config), max_cost, max_requests)
    given = {"workers": workers, "incremental": incremental, "runner": runner, "address": address}
    loaded = loaded.model_copy(update={name: value for name, value in given.items() if value is not None})
    if publish is not None:
        split_url(publish)
        loaded = loaded.model_copy(update={"publish": publish})
    folder = out or Path("build") / loaded.name
    progress = StageBars()
    progress.note(f"Building {loaded.name} in {folder}{start_message(no_prefect)} ...")
    from pairwright.flows.build import build as run_build

    resumable_on_interrupt()
    selection = StageSelection(only, begin)
    manifest = run_build(
        loaded, folder, progress, prefect=not no_prefect, retry_failed=retry_failed, selection=selection
    )
    if only:
        place = manifest["place"]
        told = {"out": place, "stages": _stages(manifest)}
        emit(told, ["", f"Made {only} in {place}. Without --only the build goes on from there."], as_json=as_json)
    else:
        emit(build_result(folder, manifest), build_lines(folder, manifest, details=details), as_json=as_json)
    if (why := nothing_kept_in_build(manifest["stages"])) or (not only and misses_target(manifest)):
        exit_below_target(*why)


def misses_target(manifest: dict[str, Any]) -> bool:
    """Say whether a finished build gave less than was asked: refinement kept nothing, or misses its target."""
    facts = manifest["stages"].get("refine", {}).get("facts", {})
    return bool(facts.get("in")) and (not facts["kept"] or not facts.get("holds", True))


def _cancel_batches(config: "BuildConfig", out: Path | None, *, as_json: bool) -> None:
    """Cancel what the build's batches still ask."""
    from pairwright.flows.llm.model_access import model_access_for_build
    from pairwright.generators.llm.budget import SpendingTotals

    asking = model_access_for_build(config.llm, out or Path("build") / config.name, SpendingTotals())
    ids = asking.cancel_batches(note)
    emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)


def _with_limits(config: "BuildConfig", max_cost: float | None, max_requests: int | None) -> "BuildConfig":
    """Return a config with the limits of the command line in place of its own."""
    given = {
        name: value for name, value in (("max_cost", max_cost), ("max_requests", max_requests)) if value is not None
    }
    if not given:
        return config
    if config.llm is None:
        raise UsageError(f"--{next(iter(given)).replace('_', '-')} limits a model, and the config names none.")
    if max_cost is not None and not 0 < max_cost < float("inf"):
        raise UsageError(f"--max-cost is {max_cost}. Give USD, more than 0.")
    return config.model_copy(update={"llm": config.llm.model_copy(update=given)})


def start_message(no_prefect: bool) -> str:  # noqa: FBT001 - the command's flag
    """Return what the first line of a build says of Prefect."""
    return "" if no_prefect else ". Starting Prefect takes 5 to 20 seconds"


def build_result(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what ``--json`` prints of a finished build."""
    return {
        "out": str(folder),
        "stages": _stages(manifest),
        "shards": [str(path) for path in sorted((folder / "shards").glob("*.tar"))],
        "card": str(folder / "README.md"),
        "report": str(folder / "report.html"),
        "manifest": str(folder / "manifest.json"),
        "samples": manifest["contents"]["samples"],
        "samples_with": manifest["contents"].get("samples_with", {}),
        "types": manifest["types"],
    }


def _stages(manifest: dict[str, Any]) -> dict[str, Any]:
    names = ("unit", "candidates", "kept", "rejected", "seconds")
    return {stage: {name: counts[name] for name in names} for stage, counts in manifest["stages"].items()}


def _asked_lines(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Return what was paid for texts by models, and which rows they failed at; nothing where none was asked."""
    bills = {name: told["facts"]["llm"] for name, told in manifest["stages"].items() if "llm" in told["facts"]}
    if not bills:
        return []
    from pairwright.generators.llm.budget import format_usd
    from pairwright.generators.llm.failed_rows import count_failed_rows

    cost = manifest["cost"]
    price = "price unknown" if cost["usd"] is None else format_usd(cost["usd"])
    lines = [f"Texts by models: {cost['requests']:,} answers, {cost['tokens']:,} tokens, {price}"]
    for name, bill in bills.items():
        where = folder / "failed" / f"{name}.jsonl"
        if bill["failed"] and where.exists():
            lines += [f"{name}: {line}" for line in count_failed_rows(where).lines(str(where))]
    return lines


def _limit_lines(manifest: dict[str, Any]) -> list[str]:
    """Return which quotas were not met, and which types a cap made smaller."""
    return [
        line
        for stage in manifest["stages"].values()
        for line in quota_lines(stage["facts"].get("limits", {}), f"{stage['unit']}s: ")
    ]


def _refine_lines(manifest: dict[str, Any]) -> list[str]:
    """Return why refinement left few negatives, or a set that does not hold, and what keeps more."""
    facts = manifest["stages"].get("refine", {}).get("facts", {})
    if not facts.get("in"):
        return []
    stayed = f"refine: {facts['kept']:,} of {facts['in']:,} negatives stayed"
    if facts.get("advice"):
        return [f"{stayed}. {facts['advice']}"]
    if 2 * facts["kept"] >= facts["in"]:
        return []
    if "bound" in facts:
        most = f"upper bound for any balanced subset: {facts['bound']:,}"
        return [f"{stayed}; {most}. A larger `target` under refine, or `both_sides` under negatives, keeps more."]
    if "unbalanced_cell" in facts["rejected"]:
        why = "of a small set few rows find one that leans as much the other way"
        return [f"{stayed}: {why}. More captions keep more, and so do fewer `cells` under refine."]
    return []


def build_lines(folder: Path, manifest: dict[str, Any], *, details: bool = False) -> list[str]:
    """Return the summary of a finished build: what it holds, of which types, what fell short, where it is."""
    contents, shards = manifest["contents"], manifest["shards"]
    samples = contents["samples"]
    return [
        "",
        headline(f"{count_phrase(samples, 'sample')}{'' if contents['with_image'] else ', text only'}"),
        *_sample_share_lines(contents.get("samples_with", {}), manifest["stages"], samples),
        *_type_lines(manifest, samples, details=details),
        *map(warning, _limit_lines(manifest)),
        *map(warning, _refine_lines(manifest)),
        *_asked_lines(folder, manifest),
        "",
        f"Written to {folder}: shards/{shards['pattern']}, report.html, README.md (dataset card), manifest.json",
        *([] if nothing_kept_in_build(manifest["stages"]) else next_step(f"pairwright inspect {folder}")),
    ]


def _sample_share_lines(having: dict[str, int], stages: Container[str], samples: int) -> list[str]:
    """Return how many samples have at least one text of each kind that the build has or was to make."""
    shares = [
        f"{share_of(having[kind], samples)} {name}"
        for kind, (stage, name) in _TEXT_KINDS.items()
        if having.get(kind) or (kind in having and stage in stages)
    ]
    return [f"with at least one: {', '.join(shares)}"] if shares else []


def _type_lines(manifest: dict[str, Any], samples: int, *, details: bool) -> list[str]:
    types = [(name, told["kept"], told["rejected"]) for name, told in manifest["types"].items()]
    if not types:
        return []
    if details:
        rows: list[list[object]] = [["type", "tried", "kept"]]
        rows += [[name, told["made"], told["kept"]] for name, told in manifest["types"].items()]
        reasons = [all_reasons(rejected) for _, _, rejected in types]
        return ["", *wrapped_table(rows, ["rejected", *reasons])]
    return ["", *type_table(types, samples, "samples")]
