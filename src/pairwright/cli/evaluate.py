"""``pairwright evaluate``: models by a task, or accuracies and retrieval precision from what was computed elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.asking import Asked, may_ask_a_model
from pairwright.cli.console import columns, emit, note
from pairwright.cli.evaluated_models import TASKS, ModelOptions, evaluate_models
from pairwright.cli.reading import JsonOption, columns_option

if TYPE_CHECKING:
    from pairwright.filters.evaluation import Evaluation, Result, Share
    from pairwright.filters.retrieval_precision import Precision

_OF_MODELS = (
    "data",
    "images",
    "ask",
    "classes",
    "split",
    "single_task",
    "wise_ft",
    "base",
    "html",
    "device",
    "batch_size",
    "documents",
    "gold",
    "ways",
    "form",
    "temperature",
    "questions",
)


@may_ask_a_model
def evaluate(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="SCORES|MODEL...",
            help="Scores: .jsonl, .csv, .tsv, .parquet. Embeddings: .npy. With --task, models: folders or hub names.",
        ),
    ],
    *,
    task: Annotated[
        str,
        typer.Option(
            "--task",
            help="Measure models by: negatives, retrieval, zero-shot, conditions, rationales, answers, multi-document.",
        ),
    ] = "",
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="With --task: shards, or a file; what it holds depends on the task. Repeatable."),
    ] = None,
    images: Annotated[
        str, typer.Option("--images", help="Folder that images named in --data start from; else that of the file.")
    ] = "",
    mapping: Annotated[
        str, typer.Option("--columns", help="With scores: your columns, such as s_caption=pos,s_negative=neg.")
    ] = "",
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="With .npy: a file with one row an embedding, in its order. With shards: one with a column key.",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="What makes two images alike; repeatable, A+B for both. zero-shot: the class.",
        ),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option("--ask", metavar="COLUMN=TEXT", help="conditions: the instruction for a --by. Repeatable."),
    ] = None,
    classes: Annotated[
        Path | None,
        typer.Option("--classes", help="zero-shot: JSON of classes and templates, as for `pairwright retrieve`."),
    ] = None,
    split: Annotated[
        Literal["validation", "train"] | None,
        typer.Option("--split", help="rationales: which examples; validation when left out."),
    ] = None,
    single_task: Annotated[
        bool, typer.Option("--single-task", help="rationales: the student writes rationale and label as one text.")
    ] = False,
    wise_ft: Annotated[
        str, typer.Option("--wise-ft", metavar="SHARES", help="Mix each model with --base: 0,0.25,0.5,0.75,1.")
    ] = "",
    base: Annotated[str, typer.Option("--base", help="With --wise-ft: what the training started from.")] = "",
    html: Annotated[
        Path | None, typer.Option("--html", help="With --task: write table and plots to this page.")
    ] = None,
    documents: Annotated[
        list[int] | None,
        typer.Option("--documents", min=2, help="multi-document: documents in a prompt; 10 when left out. Repeatable."),
    ] = None,
    gold: Annotated[
        str,
        typer.Option("--gold", metavar="PLACES", help="multi-document: where the gold one stands: 1,5,10, or all."),
    ] = "",
    ways: Annotated[
        str,
        typer.Option("--ways", metavar="WAYS", help="multi-document: plain,calibrated, or all; see the documentation."),
    ] = "",
    form: Annotated[
        Literal["linear", "log-linear"] | None,
        typer.Option("--form", help="multi-document: of the model of attention; linear when left out."),
    ] = None,
    temperature: Annotated[
        float,
        typer.Option("--temperature-of-shares", min=0.0, help="multi-document: t; 0: 5e-5, of log-linear 1."),
    ] = 0.0,
    questions: Annotated[
        int, typer.Option("--questions", min=0, help="multi-document: how many are drawn; 0: all.")
    ] = 0,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda; guessed when left out.")] = "",
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=0, help="Images or texts at once; 0: 64, of LLaVA 8.")
    ] = 0,
    as_json: JsonOption = False,
    asked: Asked,
) -> None:
    """Tell how models fare: by --task, or from what was computed elsewhere.

    Models (`pairwright train` writes them; CLIP and T5 checkpoints do too), several side by side. negatives: accuracy
    on hard negatives by type, brittleness to hard positives. retrieval: recall@k both ways. zero-shot: accuracy.
    conditions: retrieval by what is asked (FocalLens). rationales: labels and rationales of a student. answers: a
    LLaVA's, or those in a .jsonl, judged by a language model. multi-document: a decoder's answers from several documents
    by the gold one's place, attention as it is and calibrated (found in the middle).

    Scores: s_caption and s_negative of each row, s_positive where there is a hard positive, and its type (or form and
    target). A row is right when its caption scores strictly higher. Embeddings: image-image retrieval, mean average
    precision by each --by.

    \b
    Examples:
      pairwright evaluate scores.jsonl
      pairwright evaluate scores.csv --columns s_caption=pos,s_negative=neg
      pairwright evaluate by-colour.npy --labels labels.jsonl --by colour --by shape
      pairwright evaluate run openai/clip-vit-base-patch32 --task negatives --data swap_att.json --images val2017
      pairwright evaluate run --base clip --wise-ft 0,0.5,1 --task retrieval --data 'shards/{00000..00004}.tar'
      pairwright evaluate lens --task conditions --data colorshape --html lens.html
      pairwright evaluate llama --task multi-document --data nq-open.jsonl.gz --documents 10 --documents 20 --html u.html
      pairwright evaluate llava --task answers --data questions.jsonl --images coco --model gpt-4o --dry-run
    """
    from pairwright.datasets.errors import UsageError

    options = ModelOptions(
        task=task,
        data=tuple(data or ()),
        images=images,
        labels=labels,
        by=tuple(by or ()),
        ask=tuple(ask or ()),
        classes=classes,
        split=split or "",
        single_task=single_task,
        wise_ft=wise_ft,
        base=base,
        html=html,
        device=device,
        batch_size=batch_size,
        documents=tuple(documents or ()),
        gold=gold,
        ways=ways,
        form=form or "",
        temperature=temperature,
        questions=questions,
    )
    if task:
        if mapping:
            raise UsageError("--columns is for scores. Leave it out.")
        evaluate_models(inputs, options, asked, as_json=as_json)
        return
    options.refuse(_OF_MODELS, "without --task")
    asked.refuse("without --task answers")
    if len(inputs) > 1:
        raise UsageError(f"{len(inputs)} inputs without --task: one file of scores, or say how to measure the models.")
    if "." not in Path(inputs[0]).name or Path(inputs[0]).is_dir():
        raise UsageError(f"{inputs[0]}: no file of scores. A model is measured by --task {', '.join(TASKS)}.")
    _given(Path(inputs[0]), mapping, labels, by, as_json=as_json)


def _given(input_: Path, mapping: str, labels: Path | None, by: list[str] | None, *, as_json: bool) -> None:
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
