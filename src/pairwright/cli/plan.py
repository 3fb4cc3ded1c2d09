"""``pairwright plan``: what a build would ask of models, what that would cost and take; nothing is sent."""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.asking import plan_lines
from pairwright.cli.console import emit
from pairwright.cli.reading import JsonOption


def plan(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file, as `pairwright init` writes it.")],
    *,
    out: Annotated[Path | None, typer.Option("--out", help="Build directory; build/NAME when left out.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the requests, tokens, cost and time of the stages that ask a model, before anything is sent.

    Reckoned from a sample of the input; what the build directory's cache holds costs nothing.

    \b
    Example:
      pairwright plan build.yaml
    """
    from pairwright.flows.config import load_config
    from pairwright.flows.llm_planning import plan_build
    from pairwright.generators.llm.plan import total_of

    loaded = load_config(config)
    plans = plan_build(loaded, out or Path("build") / loaded.name)
    result = {"stages": [each.described() for each in plans], "total": total_of(plans).described()}
    emit(result, plan_lines(plans) if plans else ["No stage of this config asks a model."], as_json=as_json)
