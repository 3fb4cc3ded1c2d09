"""``pairwright validate``: find hard negatives that are true of their image after all."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.input import JsonOption, OnErrorOption, SeedOption, parse_columns, skipped_lines
from pairwright.cli.options.model import (
    ModelOptions,
    ModelRunBar,
    bill_lines,
    cancelled_lines,
    plan_lines,
    with_model_options,
)
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import DetailsOption, all_reasons, headline, main_reasons, next_step, share, table


@with_progress
@with_model_options
def validate(
    input_: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Candidate rows: .jsonl, SugarCrepe .json, NegCLIP .tsv, .parquet.")
    ],
    *,
    out: Annotated[Path, typer.Option("--out", help="All rows, each with status and reason; format by its ending.")],
    by: Annotated[
        str, typer.Option("--by", help="Who is heard: context, clip, llm, or several with commas.")
    ] = "context",
    captions: Annotated[
        str, typer.Option("--captions", help="Pairs of the same images: their other captions and boxes.")
    ] = "",
    mapping: Annotated[
        str, typer.Option("--columns", help="Of --captions, such as key=image_id; usually guessed.")
    ] = "",
    instances: Annotated[str, typer.Option("--instances", help="COCO instances JSON: boxes for --captions.")] = "",
    image_root: Annotated[
        Path | None,
        typer.Option("--image-root", help="Folder of the images; rows whose image is outside it are rejected."),
    ] = None,
    clip_model: Annotated[
        str, typer.Option("--clip-model", help="With --by clip: folder, hub name or ARCH::pretrained.")
    ] = "",
    device: Annotated[str, typer.Option("--device", help="With --by clip: cpu, cuda; guessed when left out.")] = "",
    margin: Annotated[
        float | None,
        typer.Option("--margin", min=0.0, max=2.0, help="With --by clip: cosine by which a negative may win; 0.05."),
    ] = None,
    keep_undecided: Annotated[
        bool, typer.Option("--keep-undecided", help="With --by llm: keep rows whose two answers do not agree.")
    ] = False,
    only_kept: Annotated[
        bool, typer.Option("--only-kept", help="Leave rejected rows out of OUT; .json and .tsv never hold them.")
    ] = False,
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    asked: ModelOptions,
) -> None:
    """Find false negatives: hard negatives that are true of their image after all.

    context: the image's other captions and boxes, by words. clip: a CLIP-like model that likes the negative clearly
    better. llm: a model that sees the image, asked twice with the texts changing places.

    \b
    Examples:
      pairwright validate negatives.jsonl --captions captions.jsonl --out validated.jsonl
      pairwright validate swap_att.json --by llm --model gpt-4o-mini --image-root val2017 --dry-run --out v.json
      pairwright validate negatives.jsonl --by context,clip --clip-model ./clip-b32 --out validated.jsonl
    """
    from pairwright.datasets.errors import UsageError
    from pairwright.datasets.readers.pairs import ReadOptions
    from pairwright.flows.commands.validate import ValidationRequest, parse_validators, plan_validation
    from pairwright.flows.commands.validate import validate as run

    nothing_written_on_interrupt()
    witnesses = parse_validators(by)
    if "clip" not in witnesses and (clip_model or device or margin is not None):
        raise UsageError("--clip-model, --device and --margin do nothing without --by clip.")
    if "llm" not in witnesses:
        asked.refuse("without --by llm")
        if keep_undecided:
            raise UsageError("--keep-undecided does nothing without --by llm.")
    elif not asked.model:
        raise UsageError("--by llm needs a model. Name it with --model.")
    if image_root is not None and witnesses == ("context",):
        raise UsageError("--image-root does nothing without --by clip or llm: context looks at no image.")
    if not captions and (mapping or instances):
        raise UsageError("--columns and --instances are about --captions. Name that file.")
    read = ReadOptions(captions, columns=parse_columns(mapping), instances=instances)
    request = ValidationRequest(
        input_,
        out,
        witnesses,
        read if captions else None,
        image_root,
        clip_model,
        device,
        0.05 if margin is None else margin,
        keep_undecided,
        only_kept,
        seed,
        on_error,
    )
    asking = asked.asking(out, seed) if "llm" in witnesses else None
    if asking is not None and asked.batch_cancel:
        ids = asking.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)
    elif asking is not None and asked.dry_run:
        plan = plan_validation(request, asking, note)
        emit({"plan": [plan.described()]}, plan_lines([plan]), as_json=as_json)
    else:
        check_outputs(out, reads=(str(input_), captions))
        watching = ModelRunBar("rows", asked.max_cost)
        result = run(request, asking, note, watching)
        watching.end()
        emit(result, _lines(result, details=details), as_json=as_json)
        if result["in"] and not result["kept"]:
            rejected = sum((Counter(one["rejected"]) for one in result["by_type"].values()), Counter())
            exit_below_target(f"No row was kept of {result['in']:,}: {all_reasons(rejected)}.")


def _lines(result: Mapping[str, Any], *, details: bool) -> list[str]:
    told = all_reasons if details else main_reasons
    types: list[list[object]] = [["type", "rows", "kept", "rejected"]]
    types += [[name, one["in"], one["kept"], told(one["rejected"])] for name, one in result["by_type"].items()]
    witnesses: list[list[object]] = [["witness", "rows", "kept", "rejected"]]
    witnesses += [[name, one["rows"], one["kept"], told(one["rejected"])] for name, one in result["by"].items()]
    bill = bill_lines({"llm": result["by"]["llm"]}) if "llm" in result["by"] else []
    kept = f"{result['kept']:,} of {result['in']:,} rows kept ({share(result['kept'], result['in'])})"
    return [
        headline(f"{kept}, {result['seconds']} s"),
        *table(types),
        *(["", *table(witnesses)] if details else []),
        *bill,
        *skipped_lines(result),
        "",
        f"Written to {result['out']}",
        *(next_step(f"pairwright audit {result['out']}") if result["kept"] else []),
    ]
