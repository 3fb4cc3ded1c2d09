"""``pairwright evaluate``: accuracies from scores, or retrieval precision from embeddings, computed elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.console import columns, emit, note
from pairwright.cli.reading import JsonOption, columns_option

if TYPE_CHECKING:
    from pairwright.filters.evaluation import Evaluation, Result, Share
    from pairwright.filters.retrieval_precision import Precision


def evaluate(
    input_: Annotated[
        Path, typer.Argument(metavar="SCORES", help="Scores: .jsonl, .csv, .tsv, .parquet. Embeddings: .npy.")
    ],
    *,
    mapping: Annotated[
        str, typer.Option("--columns", help="With scores: your columns, such as s_caption=pos,s_negative=neg.")
    ] = "",
    labels: Annotated[
        Path | None, typer.Option("--labels", help="With .npy: a file with one row an embedding, in its order.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", metavar="COLUMN", help="With .npy: what makes two images alike; repeatable, A+B for both."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell how a model fares, from what it computed elsewhere.

    Scores: s_caption and s_negative of each row, s_positive where there is a hard positive, and its type (or form and
    target). A row is right when its caption scores strictly higher. Embeddings: image-image retrieval, mean average
    precision by each --by.

    \b
    Examples:
      pairwright evaluate scores.jsonl
      pairwright evaluate scores.csv --columns s_caption=pos,s_negative=neg
      pairwright evaluate by-colour.npy --labels labels.jsonl --by colour --by shape
    """
    from pairwright.datasets.errors import UsageError

    if input_.suffix.lower() == ".npy":
        if mapping:
            raise UsageError("--columns is for scores; embeddings have none. Leave it out.")
        if labels is None or not by:
            raise UsageError(f"{input_}: embeddings need --labels FILE and --by COLUMN.")
        _retrieval(input_, labels, by, as_json=as_json)
    else:
        if labels is not None or by:
            raise UsageError("--labels and --by are for embeddings (.npy); scores have their types in the rows.")
        _accuracies(input_, mapping, as_json=as_json)


def _accuracies(path: Path, mapping: str, *, as_json: bool) -> None:
    from pairwright.filters.evaluation import evaluated
    from pairwright.filters.score_files import read_scores

    found = evaluated(read_scores(path, columns_option(mapping)))
    emit(found.as_json(), _lines(found), as_json=as_json)
    if found.unscored:
        note(f"{found.unscored:,} rows lack s_caption or s_negative (empty or not a number); they are not counted.")
    if not found.together.rows:
        raise typer.Exit(1)


def _lines(found: "Evaluation") -> list[str]:
    every = found.together
    triples = bool(every.triples)
    head: list[object] = ["type", "rows", "accuracy", "95%", "ties"]
    chance: list[object] = ["chance", "", " 50.0%", "", ""]
    if triples:
        head += ["triples", "original", "augmented", "brittle"]
        chance += ["", "50.0%", "33.3%", "33.3%"]
    sets = found.by_type if len(found.by_type) > 1 else {}
    table = [head, *(_row(name, one, triples=triples) for name, one in sets.items())]
    table.append(_row("all rows", every, triples=triples))
    if sets and found.macro is not None:
        table.append(["mean of types", "", f"{found.macro:6.1%}", *[""] * (len(head) - 3)])
    return columns([*table, chance], indent="")


def _row(name: str, one: "Result", *, triples: bool) -> list[object]:
    row: list[object] = [name, one.rows, _percent(one.accuracy), _interval(one.accuracy), one.ties]
    if triples:
        row += [one.triples, *map(_percent, (one.original, one.augmented, one.brittleness))]
    return row


def _percent(share: "Share | None") -> str:
    return f"{share.value:6.1%}" if share else "-"


def _interval(share: "Share | None") -> str:
    return f"{100 * share.low:.1f}-{100 * share.high:.1f}" if share else "-"


def _retrieval(path: Path, labels: Path, by: list[str], *, as_json: bool) -> None:
    import numpy as np

    from pairwright.datasets.errors import InputError
    from pairwright.filters.retrieval_precision import mean_average_precision, unit_rows
    from pairwright.filters.score_files import read_table

    try:
        embeddings = unit_rows(np.load(path, allow_pickle=False), str(path))
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), mend="Save it with numpy.save.") from None
    table = read_table(labels)
    if len(table) != len(embeddings):
        what = f"{len(table):,} rows for {len(embeddings):,} embeddings"
        raise InputError(what, where=str(labels), mend="Write one row an embedding, in the same order.")
    found = {name: mean_average_precision(embeddings, _labels(table, name, labels)) for name in dict.fromkeys(by)}
    mean = sum(one.map for one in found.values()) / len(found)
    result: dict[str, Any] = {
        "rows": len(embeddings),
        "map": mean,
        "by": {name: one.as_json() for name, one in found.items()},
    }
    emit(result, _retrieval_lines(found, mean), as_json=as_json)


def _labels(table: Any, name: str, where: Path) -> list[str]:
    from pairwright.datasets.errors import InputError

    parts = name.split("+")
    for part in parts:
        if part not in table.columns:
            mend = f"There are {', '.join(table.columns)}."
            raise InputError(f"no column {part}", where=str(where), mend=mend)
        if missing := table[part].null_count():
            mend = "Give every image a label."
            raise InputError(f"{missing:,} rows have no {part}", where=str(where), mend=mend)
    return ["\x1f".join(map(str, row)) for row in table.select(parts).iter_rows()]


def _retrieval_lines(found: "dict[str, Precision]", mean: float) -> list[str]:
    table: list[list[object]] = [["by", "queries", "mAP", "random order", "scaled", "alone"]]
    for name, one in found.items():
        shares = (f"{share:.1%}" for share in (one.map, one.random, one.scaled))
        table.append([name, one.queries, *shares, one.alone])
    if len(found) > 1:
        table.append(["mean", "", f"{mean:.1%}", "", "", ""])
    return columns(table, indent="")
