"""``pairwright verify``: checks of builds, shards and conversation files."""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.errors.exit_codes import FAILED
from pairwright.cli.options.declarations import input_option
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.progress import with_progress


@with_progress
def verify(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A build directory, a folder of shards, a .tar, or LLaVA's .json.")
    ],
    *,
    images: Annotated[Path | None, input_option(help="Folder of the images of a .json, which have to exist.")] = None,
    readers: Annotated[
        int,
        typer.Option(min=0, help="Workers x ranks of a loader, each of which needs a shard.", show_default="no check"),
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Verify the files of a build, shards, or a LLaVA file.

    Checked are checksums, tars, members, JSON and images of shards, and the turns of a LLaVA file; problems exit with 1.

    \b
    Examples:
      pairwright verify demo
      pairwright verify build/birds
      pairwright verify birds.json --images photos
      pairwright verify s3://datasets/birds
    """
    from pairwright.datasets.build_manifest import CONFIG_FILE
    from pairwright.datasets.remote.object_store import is_remote
    from pairwright.datasets.remote.store_folder import open_dataset
    from pairwright.datasets.remote.store_path import to_path
    from pairwright.datasets.verification.checks import check_shard_count
    from pairwright.datasets.verification.checks import verify as problems_of
    from pairwright.datasets.verification.dataset_kinds import identify_dataset

    given = str(to_path(path))
    path = open_dataset(given)
    place = identify_dataset(path)
    if place.kind != "unfinished build":  # its one problem says everything
        note(f"{given}: {place.description}.")
    problems = [problem.replace(str(path), given) for problem in problems_of(path, images)]
    repairable = place.kind == "build" and not is_remote(given) and (path / CONFIG_FILE).is_file()
    if problems and repairable:
        note(
            f"To repair it, delete the named files and run `pairwright build {path / CONFIG_FILE} --out {path}`."
            " If images do not decode, set `verify_images: full` under `input` before."
        )
    if readers and (few := check_shard_count(path, readers)):
        problems.append(few)
    result = {"ok": not problems, "problems": problems, "kind": place.kind}
    emit(result, problems or [f"{given}: no problems."], as_json=as_json)
    if problems:
        raise typer.Exit(FAILED)
