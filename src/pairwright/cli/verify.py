"""``pairwright verify``: are these shards what they claim to be?"""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.errors.exit_codes import FAILED
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.progress import with_progress


@with_progress
def verify(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A build directory, a folder of shards, a .tar, or LLaVA's .json.")
    ],
    *,
    images: Annotated[
        Path | None, typer.Option("--images", help="Of a .json: folder of its images, to look for.")
    ] = None,
    readers: Annotated[
        int,
        typer.Option(
            "--readers",
            min=0,
            help="Workers x ranks of a loader that shares out whole shards: enough of them?",
            show_default="not asked",
        ),
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Check the files of a build, and sums, tars, members, JSON and images of its shards, or the turns of a LLaVA file; exit 1 when something is wrong.

    \b
    Examples:
      pairwright verify build/birds
      pairwright verify birds.json --images photos
      pairwright verify s3://datasets/birds
    """
    from pairwright.datasets.build_manifest import CONFIG_FILE
    from pairwright.datasets.remote.local_copies import fetch_local_copy
    from pairwright.datasets.verification.checks import check_shard_count
    from pairwright.datasets.verification.checks import verify as problems_of
    from pairwright.datasets.verification.dataset_kinds import identify_dataset

    path = Path(fetch_local_copy(str(path)))
    place = identify_dataset(path)
    if place.kind != "unfinished build":  # of which the one problem tells all
        note(f"{path}: {place.description}.")
    problems = problems_of(path, images)
    if problems and place.kind == "build" and (path / CONFIG_FILE).is_file():
        note(
            f"To repair it, delete the files that are named and run `pairwright build {path / CONFIG_FILE} --out {path}`."
        )
    if readers and (few := check_shard_count(path, readers)):
        problems.append(few)
    result = {"ok": not problems, "problems": problems, "kind": place.kind}
    emit(result, problems or [f"{path}: all is well."], as_json=as_json)
    if problems:
        raise typer.Exit(FAILED)
