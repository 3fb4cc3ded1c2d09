"""``pairwright retrieve``: search an index with queries."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from pairwright.cli.console import columns, emit
from pairwright.cli.reading import JsonOption


def retrieve(
    *,
    index: Annotated[Path, typer.Option("--index", help="Folder that `pairwright index build` made.")],
    queries: Annotated[
        Path, typer.Option("--queries", help=".txt of one query a line, or .json of classes and templates.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Hits: .parquet, .jsonl or .csv.")],
    k: Annotated[int, typer.Option("--k", min=1, help="Hits a query.")] = 50,
    mode: Annotated[Literal["t2t"], typer.Option(help="t2t: query text against captions.")] = "t2t",
    min_score: Annotated[
        float, typer.Option("--min-score", min=-1, max=1, help="Cosine below which a hit is left out.")
    ] = -1.0,
    as_json: JsonOption = False,
) -> None:
    """Find the K pairs nearest to each query, and say which concepts the pool does not cover.

    \b
    Example:
      pairwright retrieve --index index --queries classes.txt --k 50 --out hits.parquet
    """
    import polars as pl

    from pairwright.cli.tables import write_table
    from pairwright.indexes.building import open_index_folder
    from pairwright.indexes.queries import read_queries
    from pairwright.indexes.retrieval import retrieve as search

    opened = open_index_folder(index)
    found = search(opened.index, opened.encoder, read_queries(queries), k)
    hits = found.hits.filter(pl.col("score") >= min_score)
    write_table(hits, out)
    result = {
        **found.summary(),
        "hits": hits.height,
        "unique_pairs": hits["key"].n_unique(),
        "mode": mode,
        "out": str(out),
    }
    shown = [[name, value] for name, value in result.items() if name != "uncovered"]
    lines = columns(shown, indent="")
    if found.uncovered:
        lines += [
            "",
            f"Not covered by the pool ({len(found.uncovered)}), worst first: {', '.join(found.uncovered[:20])}",
        ]
    emit(result, lines, as_json=as_json)
