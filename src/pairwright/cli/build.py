"""``pairwright build``: run a build config through the Prefect flow."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.console import BuildProgress, columns, emit
from pairwright.cli.reading import JsonOption


def build(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML file, as `pairwright init` writes it.")],
    *,
    out: Annotated[Path | None, typer.Option("--out", help="Build directory; build/NAME when left out.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; the output is the same.")] = None,
    no_prefect: Annotated[
        bool, typer.Option("--no-prefect", help="Do the same work without Prefect: starts at once.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Build a dataset as CONFIG says; started again after a stop, it goes on where it stood.

    \b
    Examples:
      pairwright build build.yaml
      pairwright build build.yaml --out /data/birds --workers 8
    """
    from pairwright.flows.config import load_config

    loaded = load_config(config)
    if workers:
        loaded = loaded.model_copy(update={"workers": workers})
    folder = out or Path("build") / loaded.name
    progress = BuildProgress()
    progress.note(f"Building {loaded.name} in {folder}{starting(no_prefect)} ...")
    from pairwright.flows.build import build as run_build

    manifest = run_build(loaded, folder, progress, prefect=not no_prefect)
    emit(build_result(folder, manifest), build_lines(folder, manifest), as_json=as_json)


def starting(no_prefect: bool) -> str:  # noqa: FBT001 - the command's flag
    """Return what the first line of a build says of Prefect."""
    return "" if no_prefect else ". Starting Prefect takes 5 to 20 seconds"


def build_result(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what ``--json`` prints of a finished build."""
    names = ("unit", "candidates", "kept", "rejected", "seconds")
    return {
        "out": str(folder),
        "stages": {stage: {name: counts[name] for name in names} for stage, counts in manifest["stages"].items()},
        "shards": [str(path) for path in sorted((folder / "shards").glob("*.tar"))],
        "card": str(folder / "README.md"),
        "report": str(folder / "report.html"),
        "manifest": str(folder / "manifest.json"),
    }


def build_lines(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Return what a person reads of a finished build: where the results are."""
    shards = folder / "shards" / str(manifest["shards"]["pattern"])
    places = [
        ("shards", str(shards)),
        ("card", str(folder / "README.md")),
        ("report", str(folder / "report.html")),
        ("manifest", str(folder / "manifest.json")),
    ]
    return ["", *columns(places), "", f"Look at a sample:  pairwright inspect {folder}"]
