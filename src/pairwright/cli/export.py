"""``pairwright export``: write a build or shards in another tool's layout."""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.console import columns, emit
from pairwright.cli.reading import JsonOption


def export(
    input_: Annotated[Path, typer.Argument(metavar="INPUT", help="A build directory, a folder of shards, or a .tar.")],
    *,
    to: Annotated[
        str,
        typer.Option("--to", help="llava, sugarcrepe, negclip, openai, triplets, rationales, parquet, hf, webdataset."),
    ],
    out: Annotated[Path, typer.Option("--out", help="File or folder to write.")],
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Of what is random in a layout, such as <image> first or last.")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Write the kept rows of INPUT in the layout that another tool reads.

    \b
    Examples:
      pairwright export build/birds --to llava --out birds.json
      pairwright export build/birds --to hf --out birds-hub
    """
    from dataclasses import replace

    from pairwright.datasets.exports.table import NO_OPTIONS
    from pairwright.datasets.exports.table import export as write

    written = write(input_, to, out, replace(NO_OPTIONS, seed=seed))
    files = [str(path) for path in written.files]
    lines = columns([["rows", written.rows], *(["file", path] for path in files)], indent="")
    emit({"rows": written.rows, "files": files}, lines, as_json=as_json)
