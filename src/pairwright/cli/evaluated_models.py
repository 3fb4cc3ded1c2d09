"""The part of ``pairwright evaluate`` that opens models: checks of its options, the run, table and page."""

import importlib.util
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairwright.cli.asking import Asked, Watching, bill_lines, cancelled_lines, plan_lines
from pairwright.cli.console import columns, emit, note
from pairwright.datasets.errors import MissingResource, UsageError

if TYPE_CHECKING:
    from pairwright.training.evaluation.figures import Evaluated, Figure
    from pairwright.training.evaluation.subjects import Mixing

TASKS = ("negatives", "retrieval", "zero-shot", "conditions", "rationales", "answers", "multi-document")
_NEEDED = ("torch", "transformers", "safetensors")
_SPELT = {"temperature": "temperature-of-shares"}
_FOR = {  # options that only some tasks look at
    "labels": ("zero-shot", "conditions"),
    "by": ("zero-shot", "conditions"),
    "ask": ("conditions",),
    "classes": ("zero-shot",),
    "split": ("rationales",),
    "single_task": ("rationales",),
    "images": ("negatives", "retrieval", "zero-shot", "conditions", "answers"),
    "wise_ft": ("negatives", "retrieval", "zero-shot", "conditions", "rationales"),
    "base": ("negatives", "retrieval", "zero-shot", "conditions", "rationales"),
    "documents": ("multi-document",),
    "gold": ("multi-document",),
    "ways": ("multi-document",),
    "form": ("multi-document",),
    "temperature": ("multi-document",),
    "questions": ("multi-document",),
}


@dataclass(frozen=True)
class ModelOptions:
    """The options of ``evaluate`` that are about models, as they were given."""

    task: str = ""
    data: tuple[str, ...] = ()
    images: str = ""
    labels: Path | None = None
    by: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    classes: Path | None = None
    split: str = ""
    single_task: bool = False
    wise_ft: str = ""
    base: str = ""
    html: Path | None = None
    device: str = ""
    batch_size: int = 0
    documents: tuple[int, ...] = ()
    gold: str = ""
    ways: str = ""
    form: str = ""
    temperature: float = 0.0
    questions: int = 0

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Refuse options that would do nothing.

        Raises:
            UsageError: when one was given.
        """
        for name in names:
            if getattr(self, name) != getattr(ModelOptions(), name):
                raise UsageError(f"--{_SPELT.get(name, name.replace('_', '-'))} does nothing {why}.")


def evaluate_models(models: Sequence[str], options: ModelOptions, asked: Asked, *, as_json: bool) -> None:
    """Measure models and print what is found."""
    if options.task not in TASKS:
        raise UsageError(f"--task {options.task}: no such task. There are {', '.join(TASKS)}.")
    if not options.data:
        raise UsageError(f"--task {options.task} needs --data: what is it to be measured on?")
    if twice := sorted({name for name in models if list(models).count(name) > 1}):
        raise UsageError(f"{twice[0]} is named twice.")
    options.refuse([name for name, tasks in _FOR.items() if options.task not in tasks], f"with --task {options.task}")
    started = time.perf_counter()
    if options.task == "answers":
        found, more = _judged(models, options, asked, as_json=as_json)
        if found is None:
            return
    else:
        asked.refuse("without --task answers")
        documents = options.task == "multi-document"
        found, more = _over_documents(models, options) if documents else _measured(models, options), {}
    result = {
        "task": options.task,
        "data": list(options.data),
        "models": [one.as_json() for one in found],
        **more,
        "seconds": round(time.perf_counter() - started, 2),
    }
    from pairwright.training.evaluation.figures import told_counts

    for told in told_counts(found):
        note(told)
    lines = document_lines(found) if options.task == "multi-document" else table_lines(found)
    if more:
        lines += ["", *bill_lines(more)]
    if options.html is not None:
        from pairwright.datasets.atomic import write_text
        from pairwright.training.evaluation.page import evaluation_page

        write_text(options.html, evaluation_page(options.task, options.data, found))
        result["html"] = str(options.html)
        lines += ["", f"Page: {options.html}"]
    emit(result, lines, as_json=as_json)


def _measured(models: Sequence[str], options: ModelOptions) -> "list[Evaluated]":
    _needs_torch()
    from pairwright.training.evaluation.tasks import Request
    from pairwright.training.evaluation.tasks import evaluate_models as run

    request = Request(
        options.task,
        tuple(models),
        options.data,
        options.images,
        options.labels,
        options.by,
        _instructions(options.ask),
        options.classes,
        options.split or "validation",
        options.single_task,
        _mixing(options),
        options.device,
        options.batch_size or 64,
    )
    return list(run(request, note))


def _over_documents(models: Sequence[str], options: ModelOptions) -> "list[Evaluated]":
    """Measure decoders on questions over several documents."""
    _needs_torch()
    from pairwright.training.attention.calibration import Calibration
    from pairwright.training.attention.questions import read_questions
    from pairwright.training.attention.ranking import open_reader
    from pairwright.training.evaluation.figures import Evaluated, Findings
    from pairwright.training.evaluation.multi_document import USUAL, WAYS, Plan, read_documents

    if len(options.data) != 1:
        raise UsageError("--task multi-document takes one file of questions: one --data.")
    wanted = tuple(one.strip() for one in options.ways.split(",")) if options.ways not in ("", "all") else ()
    if unknown := [one for one in wanted if one not in WAYS]:
        raise UsageError(f"--ways {unknown[0]}: there are {', '.join(WAYS)}; or all.")
    ways = WAYS if options.ways == "all" else tuple(way for way in WAYS if way in wanted) or USUAL
    how = Calibration("log-linear" if options.form == "log-linear" else "linear", options.temperature or None)
    counts = tuple(dict.fromkeys(options.documents)) or (10,)
    plans = [Plan(count, _places(options.gold, count), ways, calibration=how) for count in counts]
    asked = [read_questions(Path(options.data[0]), count, limit=options.questions) for count in counts]
    found = []
    for name in models:
        reader = open_reader(name, options.device, options.batch_size or 8)
        note(f"{name}: {options.task}")
        parts = [read_documents(reader, questions, plan) for (questions, _), plan in zip(asked, plans, strict=True)]
        together = Findings(
            tuple(figure for part in parts for figure in part.figures),
            {
                f"questions have fewer than {count} documents": short
                for count, (_, short) in zip(counts, asked, strict=True)
                if short
            },
            {key: value for part in parts for key, value in part.detail.items()},
        )
        found.append(Evaluated(name, reader.model.config.model_type, None, together))
    return found


def _places(written: str, documents: int) -> tuple[int, ...]:
    """Return the gold document's places, from 0: first, middle and last when none are written."""
    if written == "all":
        return tuple(range(documents))
    try:
        places = tuple(dict.fromkeys(int(one) - 1 for one in written.split(","))) if written else ()
    except ValueError:
        places = (-1,)
    if not all(0 <= place < documents for place in places):
        raise UsageError(
            f"--gold {written}: give places from 1 to {documents}, as 1,{(documents + 1) // 2},{documents}, or all."
        )
    return tuple(sorted(places)) or (0, (documents - 1) // 2, documents - 1)


def document_lines(models: "Sequence[Evaluated]") -> list[str]:
    """Return what was read of several documents in the shape of tables B.2, 3.3, and 3.2 with B.1."""
    from pairwright.training.evaluation.multi_document import tables

    lines: list[str] = []
    for model in models:
        lines += [model.label] if len(models) > 1 else []
        for table in tables(model.found):
            lines += [*columns(table, indent=""), ""]
    return lines[:-1]


def _judged(
    models: Sequence[str], options: ModelOptions, asked: Asked, *, as_json: bool
) -> "tuple[list[Evaluated] | None, Mapping[str, Any]]":
    """Have answers judged; None when only a plan was asked for, and told."""
    from pairwright.flows.answer_judging import JudgingRequest, judge_models, plan_judging

    if not asked.model:
        raise UsageError("--task answers needs a judge: name a language model by --model.")
    if len(options.data) != 1:
        raise UsageError("--task answers takes one file of questions: one --data.")
    if not all(name.endswith(".jsonl") for name in models) and not asked.dry_run:
        _needs_torch()
    out = options.html or Path("answers.html")
    request = JudgingRequest(
        tuple(models), Path(options.data[0]), options.images, out, options.device, options.batch_size or 8
    )
    asking = asked.asking(out)
    if asked.batch_cancel:
        ids = asking.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)
        return None, {}
    if asked.dry_run:
        plan = plan_judging(request, asking)
        emit({"plan": [plan.described()]}, plan_lines([plan]), as_json=as_json)
        return None, {}
    watching = Watching("answers", asked.max_cost)
    found, bill = judge_models(request, asking, watching.progress.note, watching)
    watching.progress.end()
    return found, {"llm": bill}


def _needs_torch() -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingResource(f"measuring a model needs {', '.join(missing)}: pip install 'pairwright[train]'")
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # of loading weights, which takes a moment


def _mixing(options: ModelOptions) -> "Mixing | None":
    if not options.wise_ft:
        if options.base:
            raise UsageError("--base is for --wise-ft. Give the shares: --wise-ft 0,0.5,1.")
        return None
    if not options.base:
        raise UsageError("--wise-ft needs --base: the model that training started from.")
    from pairwright.training.evaluation.subjects import Mixing

    try:
        shares = tuple(dict.fromkeys(float(share) for share in options.wise_ft.split(",")))
    except ValueError:
        shares = ()
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise UsageError(f"--wise-ft {options.wise_ft}: give shares from 0 to 1, as 0,0.25,0.5,0.75,1.")
    return Mixing(options.base, shares)


def _instructions(written: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in written:
        name, sign, instruction = one.partition("=")
        if not (sign and name.strip() and instruction.strip()):
            raise UsageError(f"--ask {one!r}: write CONDITION=INSTRUCTION, as 'colour=What color is it?'.")
        found[name.strip()] = instruction.strip()
    return found


def table_lines(models: "Sequence[Evaluated]") -> list[str]:
    """Return all figures as one table: models side by side, or below each other where there are many."""
    from pairwright.training.evaluation.figures import SIDE_BY_SIDE, figure_of, rows_of

    many = len(models) > SIDE_BY_SIDE
    table: list[list[object]] = [_head(models, many=many)]
    for row in rows_of(models):
        figures = [figure_of(model, row) for model in models]
        if many:
            table += [
                [*(row if not place else ("", "")), model.label, *_cells(figure), *_ground([figure])]
                for place, (model, figure) in enumerate(zip(models, figures, strict=True))
            ]
        else:
            table.append([*row, *(cell for figure in figures for cell in _cells(figure)), *_ground(figures)])
    return columns(table, indent="")


def _head(models: "Sequence[Evaluated]", *, many: bool) -> list[object]:
    if many:
        return ["of", "measure", "model", "value", "95%", "n", "chance"]
    names = ["value"] if len(models) == 1 else [model.label for model in models]
    return ["of", "measure", *(cell for name in names for cell in (name, "95%")), "n", "chance"]


def _cells(figure: "Figure | None") -> list[object]:
    return ["-", ""] if figure is None else [figure.written, figure.written_interval]


def _ground(figures: "Sequence[Figure | None]") -> list[object]:
    known = [figure for figure in figures if figure is not None]
    return [known[0].n, known[0].written_chance] if known else ["", ""]
