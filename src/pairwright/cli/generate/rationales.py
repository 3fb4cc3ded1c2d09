"""``pairwright generate rationales``: why a row has its label, from a model or from imported outputs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.context import CONTEXT_PARAMETERS, ContextOptions, add_context, with_context_options
from pairwright.cli.options.declarations import GroupedCommand, advanced_option, input_option, output_option
from pairwright.cli.options.input import (
    DetailsOption,
    InputOptions,
    JsonOption,
    SeedOption,
    parse_columns,
    with_input_options,
)
from pairwright.cli.options.model import ModelOptions, SeeImageOption, with_model_options
from pairwright.cli.options.model_runs import bill_lines, cancel_plan_or_run
from pairwright.cli.output.console import emit, list_counts, note
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, rejected_line, share, skipped_lines, table
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import UsageError

_IMPORT = "--import"


class MultipleImports(GroupedCommand):
    """Takes ``--import A.json B.json`` for ``--import A.json --import B.json``; INPUT comes before the options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the option before each of its values."""
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
@with_context_options
@with_input_options("image_root")
def rationales(
    input_: Annotated[
        str, typer.Argument(metavar="INPUT", help="Rows of the task; for itm also a build, shards, or hard negatives.")
    ],
    *,
    task: Annotated[str, typer.Option(help="Task: nli, mcqa, math, itm, or a task file (.yaml).")],
    out: Annotated[Path, output_option(help="File (.jsonl, .parquet) or folder to write.")],
    outputs: Annotated[
        list[Path] | None,
        input_option(_IMPORT, metavar="OUTPUTS.json ...", help="Outputs of a model, in the order of the rows."),
    ] = None,
    label_given: Annotated[
        bool, typer.Option("--label-given", help="Send the right label to the model, to be explained.")
    ] = False,
    samples: Annotated[int, typer.Option(min=1, max=100, help="Answers per row; the majority label wins.")] = 1,
    see_image: SeeImageOption = False,
    wrong_labels: Annotated[
        Literal["apart", "keep"], typer.Option(help="Separate rows with a wrong label, or correct it.")
    ] = "apart",
    validation: Annotated[float, typer.Option(min=0, max=1, help="Share of the rows for validation.")] = 0.1,
    rows: Annotated[
        Literal["multi-task", "single-task"], output_option(help="Two student rows, or one.")
    ] = "multi-task",
    label_prefix: Annotated[str, advanced_option(help="Prefix of the input for a label.")] = "[label] ",
    rationale_prefix: Annotated[str, advanced_option(help="Prefix of the input for a rationale.")] = "[rationale] ",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    reading: InputOptions,
    context: ContextOptions,
    model_options: ModelOptions,
) -> None:
    """Generate rationales: why a row has its label (Distilling step-by-step).

    OUT: .jsonl and folders hold the rows of a student, and the rejected rows separately; .parquet holds all.

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

    root = Path(reading.image_root) if reading.image_root else None
    read = TaskInput(input_, reading.format, parse_columns(reading.columns), reading.on_error, root)
    settings = RationaleSettings(label_given, samples, wrong_labels, validation, seed, see_image)
    student = StudentRows(rows, label_prefix, rationale_prefix)
    if out.suffix.lower() == ".parquet" and student != StudentRows():
        raise UsageError(f"{out}: .parquet holds examples without prefixes. Omit --rows and the prefixes.")
    request = RationaleRequest(task, read, out, settings, student)
    if outputs:
        model_options.refuse(f"with {_IMPORT}")
        if label_given or samples > 1 or see_image or context.given:
            raise UsageError(
                f"--label-given, --samples, --see-image, {CONTEXT_PARAMETERS} do nothing with {_IMPORT}. Omit them."
            )
        check_outputs(out)
        nothing_written_on_interrupt()
        result = import_rationales(request, outputs)
    elif not model_options.model:
        raise UsageError(f"--model or {_IMPORT} is required: name a model, or give its outputs.")
    else:
        from pairwright.flows.rationales.generation import generate_rationales, plan_rationales

        access = add_context(
            model_options.access(out), context, out
        )  # --seed only splits the rows; it changes no request
        if not model_options.sends_nothing:
            check_outputs(out)
        generated = cancel_plan_or_run(
            model_options,
            access,
            "rows",
            plan=lambda: plan_rationales(request, access),
            run=lambda bar: generate_rationales(request, access, note, bar),
            as_json=as_json,
        )
        if generated is None:
            return
        result = generated
    emit(result, _lines(result, details=details), as_json=as_json)
    if not result["kept"]:
        reasons = list_counts(result["rejected"])
        exit_below_target(
            f"No rationale was kept of {count_phrase(result['rows'], 'row')}{f': {reasons}' if reasons else ''}."
        )


def _lines(result: Mapping[str, Any], *, details: bool) -> list[str]:
    named = {**result["outputs"], "all": result}
    rows: list[list[object]] = [["", "rows", "parsed", "label accuracy"]]
    rows += [[name, one["rows"], one["parsed"], _percent(one["label_accuracy"])] for name, one in named.items()]
    labels = result["rationales"]
    counts = (
        f"{labels['agrees']:,} state their label, {labels['silent']:,} do not, {labels['contradicts']:,} contradict it"
    )
    split = f"train {result['splits']['train']:,}, validation {result['splits']['validation']:,}"
    kept = f"{result['kept']:,} of {count_phrase(result['rows'], 'row')} kept ({share(result['kept'], result['rows'])})"
    return [
        headline(f"{kept}, {result['seconds']} s"),
        *table(rows),
        f"rationales: {counts}",
        *rejected_line(result["rejected"], details=details),
        *skipped_lines(result),
        *(bill_lines(result) if "llm" in result else []),
        "",
        f"Written to {', '.join(result['files'])}: {count_phrase(result['student_rows'], 'student row')}; {split}",
    ]


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.1%}"
