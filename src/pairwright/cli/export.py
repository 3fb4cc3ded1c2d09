"""``pairwright export``: write a build or shards in another tool's layout."""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.console import columns, emit, note
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
    rationales: Annotated[
        Path | None,
        typer.Option("--rationales", help="A .parquet of `generate rationales`, to go with the samples of its keys."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the kept rows of INPUT in the layout that another tool reads.

    \b
    Examples:
      pairwright export build/birds --to llava --out birds.json
      pairwright export build/birds --to hf --out birds-hub
      pairwright export build/birds --to webdataset --rationales itm.parquet --out shards
    """
    from dataclasses import replace

    from pairwright.datasets.exports.source import open_source, with_examples
    from pairwright.datasets.exports.table import NO_OPTIONS
    from pairwright.datasets.exports.table import export as write
    from pairwright.datasets.tables import EXAMPLES

    options = replace(NO_OPTIONS, seed=seed)
    if rationales is None:
        written, left = write(input_, to, out, options), 0
    else:
        examples, matched = EXAMPLES.read(rationales), set[str]()
        written = write(with_examples(open_source(input_), examples, matched), to, out, options)
        left = sum(1 for each in examples if each.status == "kept" and each.key not in matched)
    files = [str(path) for path in written.files]
    lines = columns([["rows", written.rows], *(["file", path] for path in files)], indent="")
    if left:
        note(f"{left:,} rationales belong to no sample of {input_}.")
    emit({"rows": written.rows, "files": files, "rationales_left": left}, lines, as_json=as_json)
