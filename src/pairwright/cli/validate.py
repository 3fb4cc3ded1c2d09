"""``pairwright validate``: find hard negatives that are true of their image."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.declarations import advanced_option, input_option, output_option
from pairwright.cli.options.input import (
    DetailsOption,
    JsonOption,
    LayoutOption,
    OnErrorOption,
    RowsArgument,
    SeedOption,
    parse_columns,
)
from pairwright.cli.options.model import ModelOptions, with_model_options
from pairwright.cli.options.model_runs import bill_lines, cancel_plan_or_run
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import (
    headline,
    main_reasons,
    next_step,
    share,
    skipped_lines,
    table,
)
from pairwright.cli.refine import OnlyKeptOption
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import UsageError
from pairwright.datasets.rejects import list_reasons


@with_progress
@with_model_options
def validate(
    input_: RowsArgument,
    *,
    out: Annotated[Path, output_option(help="File for all rows with status and reason; format by extension.")],
    by: Annotated[str, typer.Option(help="Validators: context, clip, llm, separated by commas.")] = "context",
    captions: Annotated[str, input_option(help="Pairs of the same images, with other captions and boxes.")] = "",
    columns: Annotated[str, input_option(help="Columns of --captions, such as key=image_id; else detected.")] = "",
    instances: Annotated[str, input_option(help="COCO instances JSON: boxes for --captions.")] = "",
    image_root: Annotated[
        Path | None, input_option(help="Folder of the images; rows with an image outside it are rejected.")
    ] = None,
    clip_model: Annotated[str, typer.Option(help="Model of --by clip: folder, hub name or ARCH::pretrained.")] = "",
    margin: Annotated[
        float | None,
        typer.Option(min=0.0, max=2.0, help="Cosine by which clip may prefer the negative.", show_default="0.05"),
    ] = None,
    keep_undecided: Annotated[
        bool, typer.Option("--keep-undecided", help="Keep rows on which the two answers of --by llm differ.")
    ] = False,
    device: Annotated[str, advanced_option(help="Device of --by clip: cpu, cuda; else detected.")] = "",
    only_kept: OnlyKeptOption = False,
    layout: LayoutOption = "",
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    model_options: ModelOptions,
) -> None:
    """Find false negatives: hard negatives that are true of their image.

    context: other captions and boxes of the image. clip: a CLIP-like model that clearly prefers the negative. llm: a
    model that sees the image, asked twice with the texts in both orders.

    \b
    Examples:
      pairwright validate negatives.jsonl --captions captions.jsonl --out validated.jsonl
      pairwright validate swap_att.json --by llm --model gpt-4o-mini --image-root val2017 --dry-run --out v.json
      pairwright validate negatives.jsonl --by context,clip --clip-model ./clip-b32 --out validated.jsonl
    """
    from pairwright.datasets.readers.pairs import ReadOptions
    from pairwright.flows.commands.validate import ValidationRequest, parse_validators, plan_validation
    from pairwright.flows.commands.validate import validate as run

    nothing_written_on_interrupt()
    validators = parse_validators(by)
    _refuse_unused(
        validators,
        model_options,
        clip=bool(clip_model or device or margin is not None),
        undecided=keep_undecided,
        image_root=image_root is not None,
    )
    if not captions and (columns or instances):
        raise UsageError("--columns and --instances require --captions.")
    read = ReadOptions(captions, columns=parse_columns(columns), instances=instances)
    request = ValidationRequest(
        Path(input_),
        out,
        validators,
        read if captions else None,
        image_root,
        clip_model,
        device,
        ValidationRequest.margin if margin is None else margin,
        keep_undecided,
        only_kept,
        seed,
        on_error,
        layout,
    )
    access = model_options.access(out, seed) if "llm" in validators else None
    if not model_options.sends_nothing:
        check_outputs(out, reads=(input_, captions))
    if access is None:
        result = run(request, None, note, lambda _: None)
    else:
        judged = cancel_plan_or_run(
            model_options,
            access,
            "rows",
            plan=lambda: plan_validation(request, access, note),
            run=lambda bar: run(request, access, note, bar),
            as_json=as_json,
        )
        if judged is None:
            return
        result = judged
    emit(result, validation_lines(result, ["audit", result["out"]], details=details), as_json=as_json)
    exit_if_none_kept(result)


def exit_if_none_kept(result: Mapping[str, Any]) -> None:
    """Exit with 3 if no row was kept."""
    if result["in"] and not result["kept"]:
        rejected = sum((Counter(one["rejected"]) for one in result["by_type"].values()), Counter())
        exit_below_target(f"No row was kept of {result['in']:,}: {list_reasons(rejected)}.")


def _refuse_unused(
    validators: Sequence[str], model_options: ModelOptions, *, clip: bool, undecided: bool, image_root: bool
) -> None:
    """Refuse options of validators that ``--by`` does not name."""
    if "clip" not in validators and clip:
        raise UsageError("--clip-model, --device and --margin require --by clip.")
    if "llm" not in validators:
        model_options.refuse("without --by llm")
        if undecided:
            raise UsageError("--keep-undecided requires --by llm.")
    elif not model_options.model:
        raise UsageError("--by llm requires --model.")
    if image_root and tuple(validators) == ("context",):
        raise UsageError("--image-root requires --by clip or llm: context reads no image.")


def validation_lines(
    result: Mapping[str, Any], next_command: Sequence[object], *, details: bool, facts: Sequence[str] = ()
) -> list[str]:
    """Return the summary of a validation.

    Args:
        result: of `flows.commands.validate.Validation.finish`.
        next_command: words of the command for the next step.
        details: print all reasons, and the counts of each validator.
        facts: further lines.
    """
    reasons = list_reasons if details else main_reasons
    types: list[list[object]] = [["type", "rows", "kept", "rejected"]]
    types += [[name, one["in"], one["kept"], reasons(one["rejected"])] for name, one in result["by_type"].items()]
    validators: list[list[object]] = [["validator", "rows", "kept", "rejected"]]
    validators += [[name, one["rows"], one["kept"], reasons(one["rejected"])] for name, one in result["by"].items()]
    bill = [line for one in result["by"].values() if "requests" in one for line in bill_lines({"llm": one})]
    kept = f"{result['kept']:,} of {count_phrase(result['in'], 'row')} kept ({share(result['kept'], result['in'])})"
    before = result["rejected_in_input"]
    return [
        headline(f"{kept}, {result['seconds']} s"),
        *([f"Rejected in INPUT before: {before:,} of them."] if before else []),
        *table(types),
        *(["", *table(validators)] if details else []),
        *facts,
        *bill,
        *skipped_lines(result),
        "",
        f"Written to {result['out']}",
        *(next_step(*next_command) if result["kept"] else []),
    ]
