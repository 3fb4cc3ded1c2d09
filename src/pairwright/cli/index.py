"""``pairwright index``: build a FAISS index over captions, and check it."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from pairwright.cli.console import columns, emit, note
from pairwright.cli.reading import (
    ColumnsOption,
    ExplodeOption,
    FormatOption,
    InputArgument,
    JsonOption,
    OnErrorOption,
    SeedOption,
    text_options,
)

app = typer.Typer(help="Build and check an index over captions.", no_args_is_help=True, rich_markup_mode=None)


@app.command("build")
def build(
    input_: InputArgument,
    *,
    out: Annotated[Path, typer.Option("--out", help="Folder of the index.")],
    encoder: Annotated[Literal["lexical"], typer.Option(help="lexical: hashed TF-IDF, needs no download.")] = "lexical",
    m: Annotated[int, typer.Option("--m", min=2, max=128, help="Links a vector.")] = 32,
    ef_construction: Annotated[int, typer.Option("--ef-construction", min=8, help="Candidates while building.")] = 200,
    recall: Annotated[float, typer.Option(min=0.01, max=1.0, help="Recall@10 that efSearch is raised for.")] = 0.95,
    format_: FormatOption = "",
    columns_: ColumnsOption = "",
    explode: ExplodeOption = False,
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Encode the captions of INPUT and build their FAISS HNSW index.

    \b
    Example:
      pairwright index build captions.jsonl --out index
    """
    from pairwright.cli.reading import batches
    from pairwright.indexes.building import EncoderOptions, index_pairs
    from pairwright.indexes.sidecar import IndexOptions

    options = text_options(input_, columns_, format_, explode=explode, on_error=on_error)
    note(f"Indexing {input_} (two passes) ...")
    info = index_pairs(
        lambda: (batch.pairs for batch in batches(options)),
        out,
        encoder=EncoderOptions(name=encoder, seed=seed),
        options=IndexOptions(m=m, ef_construction=ef_construction, recall=recall),
    )
    result = {**info.summary(), "out": str(out)}
    emit(result, columns([[name, value] for name, value in result.items()], indent=""), as_json=as_json)


@app.command("check")
def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the index.")],
    *,
    k: Annotated[int, typer.Option("--k", min=1, help="Neighbours that recall is measured at.")] = 10,
    recall: Annotated[float, typer.Option(min=0.01, max=1.0, help="Below it, the command exits 3.")] = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Measure an index against exact search, and check its files' sums.

    \b
    Example:
      pairwright index check index --k 10
    """
    from pairwright.indexes.checking import check_index

    found = check_index(folder, k, wanted=recall)
    summary = found.summary()
    emit(summary, columns([[name, value] for name, value in summary.items()], indent=""), as_json=as_json)
    if not found.checksum_ok:
        raise typer.Exit(1)
    if found.recall < recall:
        raise typer.Exit(3)
