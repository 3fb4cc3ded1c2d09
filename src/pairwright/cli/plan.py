"""``pairwright plan``: the stages of a build, and the requests, cost and time of those that ask a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairwright.cli.options.declarations import output_option
from pairwright.cli.options.input import JsonOption
from pairwright.cli.options.model_runs import plan_lines
from pairwright.cli.output.console import columns, emit, note
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.count_phrases import count_phrase, format_size
from pairwright.datasets.rejects import list_reasons

if TYPE_CHECKING:
    from pairwright.flows.commands.plan import BuildPlan
    from pairwright.flows.config.build import BuildConfig

ConfigArgument = Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file, as `pairwright init` writes it.")]
BuildOutOption = Annotated[Path | None, output_option("--out", help="Build directory.", show_default="build/NAME")]


@with_progress
def plan(config: ConfigArgument, *, out: BuildOutOption = None, as_json: JsonOption = False) -> None:
    """Estimate the size, requests, cost and time of a build.

    Nothing is made and no request is sent. Requests are estimated from a sample of the input; answers in the cache of
    the build directory are free.

    \b
    Example:
      pairwright plan build.yaml
    """
    from pairwright.flows.commands.plan import estimate_build
    from pairwright.flows.commands.plan_requests import plan_build_requests
    from pairwright.flows.config.build import load_config
    from pairwright.flows.llm.model_access import model_access_for_build
    from pairwright.generators.llm.budget import SpendingTotals
    from pairwright.generators.llm.cost_estimate import sum_plans

    loaded = load_config(config)
    folder = out or Path("build") / loaded.name
    plans = plan_build_requests(loaded, folder)
    if plans and (unused := model_access_for_build(loaded.llm, folder, SpendingTotals()).describe_unused_cache()):
        note(unused)
    work = estimate_build(loaded, folder)
    result = {
        "work": work.described(),
        "stages": [each.described() for each in plans],
        "total": sum_plans(plans).described(),
    }
    requests = plan_lines(plans) if plans else ["No stage of this config asks a model."]
    if loaded.rationales:
        requests.append(
            "Rationales: of each caption, and of its negatives (72% of those by a model are kept; all of those by rules"
            " may be, fewer are). Which negatives these are is not known before, so answers in the cache are not counted."
        )
    emit(result, [*_work_lines(work, loaded), "", *requests], as_json=as_json)


def _work_lines(work: "BuildPlan", config: "BuildConfig") -> list[str]:
    at_most = "at most " if config.retrieve or config.fetch else ""
    reasons = f", {count_phrase(sum(work.rejected.values()), 'row')} rejected: {list_reasons(work.rejected)}"
    rejected = reasons if work.rejected else ""
    images = ", without images" if config.fetch and config.shards.images else ""
    rows = [
        ("stages", ", ".join(work.stages)),
        ("input", f"{count_phrase(work.pairs, 'pair')}{rejected}"),
        ("parts", f"{work.parts:,}, of at most {count_phrase(work.part_size, 'pair')}"),
        ("shards", f"{at_most}{work.shards:,}, about {format_size(work.bytes)}{images}"),
    ]
    return columns(rows, indent="")
