"""``pairwright evaluate scores`` and ``embeddings``: metrics of scores and embeddings computed elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.options.declarations import input_option
from pairwright.cli.options.input import JsonOption, parse_columns
from pairwright.cli.output.console import columns, emit, note
from pairwright.datasets.count_phrases import count_phrase

if TYPE_CHECKING:
    from pairwright.filters.metrics.hard_negative_accuracy import AccuracyResult, Evaluation, ShareWithInterval
    from pairwright.filters.metrics.retrieval_precision import RetrievalPrecision


def scores(
    file: Annotated[Path, typer.Argument(metavar="SCORES", help=".jsonl, .csv, .tsv or .parquet.")],
    *,
    mapping: Annotated[str, input_option("--columns", help="Column names, such as s_caption=pos,s_negative=neg.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Compute accuracy and brittleness from image-text scores.

    Columns: s_caption and s_negative; s_positive for a hard positive; type (or form and target). A row is right when
    its caption scores strictly higher.

    \b
    Examples:
      pairwright evaluate scores.jsonl
      pairwright evaluate scores scores.csv --columns s_caption=pos,s_negative=neg
    """
    from pairwright.filters.metrics.hard_negative_accuracy import evaluate_scores
    from pairwright.filters.metrics.score_files import read_scores

    found = evaluate_scores(read_scores(file, parse_columns(mapping)))
    emit(found.as_json(), _lines(found), as_json=as_json)
    if found.unscored:
        note(f"{count_phrase(found.unscored, 'row')} skipped: s_caption or s_negative is empty or not a number.")
    if not found.together.rows:
        exit_below_target()


def embeddings(
    file: Annotated[Path, typer.Argument(metavar="EMBEDDINGS", help=".npy with a row per image.")],
    *,
    labels: Annotated[Path, input_option("--labels", help="File with a row per embedding, in the same order.")],
    by: Annotated[
        list[str], typer.Option("--by", metavar="COLUMN", help="Column that has to match, A+B for both. Repeatable.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Compute mean average precision of image-image retrieval from embeddings.

    \b
    Example:
      pairwright evaluate embeddings by-colour.npy --labels labels.jsonl --by colour --by shape
    """
    import numpy as np

    from pairwright.datasets.errors import InputError
    from pairwright.filters.metrics.retrieval_precision import mean_average_precision, unit_rows
    from pairwright.filters.metrics.score_files import read_table

    try:
        loaded = np.load(file, allow_pickle=False)
    except FileNotFoundError:
        raise InputError("no such file", where=str(file), fix="Check the path.") from None
    except (ValueError, OSError, EOFError) as error:
        # NumPy takes any other file for a pickle, and advises to trust it.
        reason = "it holds objects, or is no .npy file" if "pickle" in str(error) else str(error)
        raise InputError(f"cannot be read ({reason})", where=str(file), fix="Save it with numpy.save.") from None
    if not isinstance(loaded, np.ndarray):
        raise InputError("several arrays in one file", where=str(file), fix="Save one array with numpy.save.")
    rows = unit_rows(loaded, str(file))
    table = read_table(labels)
    if len(table) != len(rows):
        what = f"{count_phrase(len(table), 'row')} for {count_phrase(len(rows), 'embedding')}"
        raise InputError(what, where=str(labels), fix="Write one row per embedding, in the same order.")
    found = {name: mean_average_precision(rows, _labels(table, name, labels)) for name in dict.fromkeys(by)}
    mean = sum(one.map for one in found.values()) / len(found)
    result: dict[str, Any] = {
        "rows": len(rows),
        "map": mean,
        "by": {name: one.as_json() for name, one in found.items()},
    }
    emit(result, _retrieval_lines(found, mean), as_json=as_json)


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


def _row(name: str, one: "AccuracyResult", *, triples: bool) -> list[object]:
    row: list[object] = [name, one.rows, _percent(one.accuracy), _interval(one.accuracy), one.ties]
    if triples:
        row += [one.triples, *map(_percent, (one.original, one.augmented, one.brittleness))]
    return row


def _percent(share: "ShareWithInterval | None") -> str:
    return f"{share.value:6.1%}" if share else "-"


def _interval(share: "ShareWithInterval | None") -> str:
    return f"{100 * share.low:.1f}-{100 * share.high:.1f}" if share else "-"


def _labels(table: Any, name: str, where: Path) -> list[str]:
    from pairwright.datasets.errors import InputError

    parts = name.split("+")
    for part in parts:
        if part not in table.columns:
            fix = f"Columns: {', '.join(table.columns)}."
            raise InputError(f"no column {part}", where=str(where), fix=fix)
        if missing := table[part].null_count():
            fix = "Give every image a label."
            raise InputError(f"{count_phrase(missing, 'row')} without {part}", where=str(where), fix=fix)
    labels = ["\x1f".join(map(str, row)) for row in table.select(parts).iter_rows()]
    if len(set(labels)) == len(labels):
        raise InputError(f"no two rows have the same {name}", where=str(where), fix="Choose another --by.")
    return labels


def _retrieval_lines(found: "dict[str, RetrievalPrecision]", mean: float) -> list[str]:
    table: list[list[object]] = [["by", "queries", "mAP", "random order", "scaled", "alone"]]
    for name, one in found.items():
        shares = (f"{share:.1%}" for share in (one.map, one.random, one.scaled))
        table.append([name, one.queries, *shares, one.without_match])
    if len(found) > 1:
        table.append(["mean", "", f"{mean:.1%}", "", "", ""])
    return columns(table, indent="")
