"""``pairwright plan``: what a build would ask of models, what that would cost and take; nothing is sent."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairwright.cli.options.input import JsonOption
from pairwright.cli.options.model import plan_lines
from pairwright.cli.output.console import columns, emit
from pairwright.cli.output.progress import with_progress

if TYPE_CHECKING:
    from pairwright.flows.commands.plan import BuildPlan
    from pairwright.flows.config.build import BuildConfig


@with_progress
def plan(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file, as `pairwright init` writes it.")],
    *,
    out: Annotated[Path | None, typer.Option("--out", help="Build directory; build/NAME when left out.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what a build would make, and requests, tokens, cost and time of the stages that ask a model.

    Nothing is made and nothing sent. Requests are reckoned from a sample of the input; what the build directory's cache
    holds costs nothing.

    \b
    Example:
      pairwright plan build.yaml
    """
    from pairwright.flows.commands.plan import estimate_build
    from pairwright.flows.commands.plan_requests import plan_build_requests
    from pairwright.flows.config.build import load_config
    from pairwright.generators.llm.cost_estimate import sum_plans

    loaded = load_config(config)
    folder = out or Path("build") / loaded.name
    plans = plan_build_requests(loaded, folder)
    work = estimate_build(loaded, folder)
    told = {"stages": [each.described() for each in plans], "total": sum_plans(plans).described()}
    asked = plan_lines(plans) if plans else ["No stage of this config asks a model."]
    emit({"work": work.described(), **told}, [*_work_lines(work, loaded), "", *asked], as_json=as_json)


def _work_lines(work: "BuildPlan", config: "BuildConfig") -> list[str]:
    """Return what a person reads of the work of a build."""
    less = "at most " if config.retrieve or config.fetch else ""
    refused = f", {work.refused:,} rows refused" if work.refused else ""
    pictures = ", without the pictures" if config.fetch and config.shards.images else ""
    rows = [
        ("stages", ", ".join(work.stages)),
        ("input", f"{work.pairs:,} pairs{refused}"),
        ("parts", f"{work.parts:,}, of {config.part_size:,} pairs at most"),
        ("shards", f"{less}{work.shards:,}, about {work.bytes / 1e6:,.1f} MB{pictures}"),
    ]
    return columns(rows, indent="")
