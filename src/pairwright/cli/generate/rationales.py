"""``pairwright generate rationales``: why a row has its label, asked of a model or read from its outputs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.input import (
    ColumnsOption,
    FormatOption,
    JsonOption,
    OnErrorOption,
    SeedOption,
    parse_columns,
)
from pairwright.cli.options.model import (
    CONTEXT_PARAMETERS,
    CalibrateOption,
    CalibrateTemperatureOption,
    ContextOption,
    ContextOptions,
    IndexOption,
    ModelOptions,
    ModelRunBar,
    add_context,
    bill_lines,
    cancelled_lines,
    plan_lines,
    with_model_options,
)
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import DetailsOption, all_reasons, headline, main_reasons, share, table
from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.flows.rationales.importing import RationaleRequest

_IMPORT = "--import"


class MultipleImports(TyperCommand):
    """Takes ``--import A.json B.json`` for ``--import A.json --import B.json``: INPUT stands before the options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the option before each of its values."""
        spread: list[str] = []
        inside = False
        for at, word in enumerate(args):
            if word.startswith("-"):
                inside = word.partition("=")[0] == _IMPORT
            elif inside and args[at - 1] != _IMPORT:
                spread.append(_IMPORT)
            spread.append(word)
        return super().parse_args(ctx, spread)


@with_progress
@with_model_options
def rationales(
    input_: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="Rows of the task; for itm also a build, shards, or hard negatives."),
    ],
    *,
    task: Annotated[str, typer.Option(help="nli, mcqa, math, itm, or a task FILE (.yaml).")],
    out: Annotated[Path, typer.Option("--out", help="A .jsonl, a .parquet, or a folder.")],
    outputs: Annotated[
        list[Path] | None,
        typer.Option(_IMPORT, metavar="OUTPUTS.json ...", help="A model's outputs, in the order of the rows."),
    ] = None,
    label_given: Annotated[
        bool, typer.Option("--label-given", help="Tell the model the right label, to be explained.")
    ] = False,
    samples: Annotated[int, typer.Option(min=1, max=100, help="Answers a row, whose labels vote.")] = 1,
    wrong_labels: Annotated[
        Literal["apart", "keep"],
        typer.Option(help="Rows whose label is wrong: keep them apart, or keep them with the right label."),
    ] = "apart",
    validation: Annotated[float, typer.Option(min=0, max=1, help="Share of the rows for validation.")] = 0.1,
    rows: Annotated[
        Literal["multi-task", "single-task"],
        typer.Option(help="Label and rationale as two rows with prefixes, or as one."),
    ] = "multi-task",
    label_prefix: Annotated[str, typer.Option(help="Before the input of a label.")] = "[label] ",
    rationale_prefix: Annotated[str, typer.Option(help="Before the input of a rationale.")] = "[rationale] ",
    format_: FormatOption = "",
    columns_: ColumnsOption = "",
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    context: ContextOption = 0,
    index: IndexOption = None,
    calibrate: CalibrateOption = False,
    calibrate_temperature: CalibrateTemperatureOption = None,
    asked: ModelOptions,
) -> None:
    """Make rationales: why a row has its label, for a student to learn with it (Distilling step-by-step).

    OUT: .jsonl and folders hold what a student trains on, and apart from it what was rejected; .parquet holds all.

    \b
    Examples:
      pairwright generate rationales rows.jsonl --task nli --import outputs.json --out nli.jsonl
      pairwright generate rationales negatives.jsonl --task itm --model gpt-4o-mini --out itm.parquet
      pairwright generate rationales rows.jsonl --task math --model small --samples 5 --dry-run --out math.jsonl
    """
    from pairwright.datasets.exports.rationales import StudentRows
    from pairwright.flows.rationales.importing import RationaleRequest, import_rationales
    from pairwright.flows.rationales.task_rows import TaskInput
    from pairwright.generators.rationales.generator import RationaleSettings

    read = TaskInput(input_, format_, parse_columns(columns_), on_error)
    settings = RationaleSettings(label_given, samples, wrong_labels, validation, seed)
    student = StudentRows(rows, label_prefix, rationale_prefix)
    if out.suffix.lower() == ".parquet" and student != StudentRows():
        raise UsageError(f"{out}: a .parquet holds examples without prefixes. Leave --rows and the prefixes out.")
    request = RationaleRequest(task, read, out, settings, student)
    reading = ContextOptions(context, index, calibrate, calibrate_temperature)
    if not outputs:
        _generate_with_model(request, asked, reading, as_json=as_json, details=details)
        return
    asked.refuse(f"with {_IMPORT}")
    if label_given or samples > 1 or reading.given:
        raise UsageError(f"--label-given, --samples, {CONTEXT_PARAMETERS} do nothing with {_IMPORT}. Leave them out.")
    check_outputs(out)
    nothing_written_on_interrupt()
    result = import_rationales(request, outputs)
    emit(result, _lines(result, details=details), as_json=as_json)
    _exit_if_none_kept(result)


def _generate_with_model(
    request: "RationaleRequest", asked: ModelOptions, reading: ContextOptions, *, as_json: bool, details: bool
) -> None:
    if not asked.model:
        raise UsageError(f"Name a model with --model, or give its outputs with {_IMPORT}.")
    from pairwright.flows.rationales.generation import generate_rationales, plan_rationales

    # --seed is that of the split: another one asks nothing anew.
    asking = add_context(asked.asking(request.out), reading, request.out)
    watching = ModelRunBar("rows", asked.max_cost)
    if asked.batch_cancel:
        ids = asking.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)
    elif asked.dry_run:
        plan = plan_rationales(request, asking)
        emit({"plan": [plan.described()]}, plan_lines([plan]), as_json=as_json)
    else:
        check_outputs(request.out)
        result = generate_rationales(request, asking, note, watching)
        watching.end()
        emit(result, _lines(result, details=details, bill=bill_lines(result)), as_json=as_json)
        _exit_if_none_kept(result)


def _exit_if_none_kept(result: Mapping[str, Any]) -> None:
    """End in exit code 3 where no rationale was kept."""
    if not result["kept"]:
        why = ", ".join(f"{reason} {count:,}" for reason, count in result["rejected"].items())
        exit_below_target(f"No rationale was kept of {result['rows']:,} rows{f': {why}' if why else ''}.")


def _lines(result: Mapping[str, Any], *, details: bool, bill: Sequence[str] = ()) -> list[str]:
    rows: list[Sequence[object]] = [["", "rows", "parsed", "label accuracy"]]
    rows += [
        [name, one["rows"], one["parsed"], _percent(one["label_accuracy"])] for name, one in result["outputs"].items()
    ]
    rows.append(["all", result["rows"], result["parsed"], _percent(result["label_accuracy"])])
    told = result["rationales"]
    why = (all_reasons if details else main_reasons)(result["rejected"])
    split = f"train {result['splits']['train']:,}, validation {result['splits']['validation']:,}"
    return [
        headline(
            f"{result['kept']:,} of {result['rows']:,} rows kept ({share(result['kept'], result['rows'])}), {result['seconds']} s"
        ),
        *table(rows),
        f"rationales: {told['agrees']:,} say their label, {told['silent']:,} do not, {told['contradicts']:,} contradict it",
        *([f"rejected: {why}"] if why else []),
        *bill,
        "",
        f"Written to {', '.join(result['files'])}: {result['student_rows']:,} student rows; {split}",
    ]


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.1%}"
