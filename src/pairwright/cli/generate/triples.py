"""``pairwright generate triples``: a hard positive beside each hard negative, to evaluate with."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.input import JsonOption, OnErrorOption, SeedOption, skipped_lines
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

if TYPE_CHECKING:
    from pairwright.flows.commands.triples import TripleRequest


@with_progress
@with_model_options
def triples(
    input_: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Candidate rows: .jsonl, SugarCrepe .json, NegCLIP .tsv, .parquet.")
    ],
    *,
    out: Annotated[Path, typer.Option("--out", help="File to write; its ending names the format.")],
    method: Annotated[
        Literal["rules", "llm"], typer.Option(help="rules: no model, no network; llm: ask one.")
    ] = "rules",
    any_type: Annotated[
        bool, typer.Option("--any-type", help="Where no positive of the negative's type can be made, take another.")
    ] = False,
    as_given: Annotated[
        bool,
        typer.Option("--as-given", help="Take negatives as they are, unless they may be true or repeat another text."),
    ] = False,
    pool: Annotated[
        str, typer.Option("--pool", help="Captions that tell which words are used; INPUT's own when left out.")
    ] = "",
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    asked: ModelOptions,
) -> None:
    """Put a hard positive beside each hard negative: triples to evaluate with (The Hard Positive Truth).

    OUT: .jsonl and .parquet hold every row with status and reason; SugarCrepe .json and NegCLIP .tsv the kept ones.

    \b
    Examples:
      pairwright generate triples swap_att.json --out triples.json
      pairwright generate triples negatives.jsonl --any-type --pool captions.jsonl --out triples.jsonl
      pairwright generate triples negatives.jsonl --method llm --model gpt-4o-mini --dry-run --out triples.jsonl
    """
    from pairwright.flows.commands.triples import TripleRequest, run_by_rules

    request = TripleRequest(input_, out, pool, any_type, as_given, seed, on_error)
    if method == "llm":
        _generate_with_model(request, asked, as_json=as_json, details=details)
        return
    asked.refuse("with --method rules")
    nothing_written_on_interrupt()
    check_outputs(out, reads=(str(input_), pool))
    _print_result(run_by_rules(request, note), method, as_json=as_json, details=details)


def _generate_with_model(request: "TripleRequest", asked: ModelOptions, *, as_json: bool, details: bool) -> None:
    """Let a model write the positives, or tell what it would be asked."""
    from pairwright.flows.commands.triples_with_model import plan_with_model, run_with_model

    asking = asked.asking(request.out, request.seed)
    watching = ModelRunBar("captions", asked.max_cost)
    if asked.batch_cancel:
        ids = asking.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)
    elif asked.dry_run:
        plan = plan_with_model(request, asking, note)
        emit({"plan": [plan.described()]}, plan_lines([plan]), as_json=as_json)
    else:
        check_outputs(request.out, reads=(str(request.input), request.pool))
        result = run_with_model(request, asking, note, watching)
        watching.end()
        _print_result(result, "llm", as_json=as_json, details=details)


def _print_result(result: Mapping[str, Any], method: str, *, as_json: bool, details: bool) -> None:
    emit({**result, "method": method}, _lines(result, details=details), as_json=as_json)
    if not result["kept"]:
        exit_below_target("No row was kept. --any-type takes positives of other types, --as-given more negatives.")


def _lines(result: Mapping[str, Any], *, details: bool) -> list[str]:
    reasons = all_reasons if details else main_reasons
    rows: list[list[object]] = [["type", "rows", "kept", "rejected"]]
    rows += [[name, one["rows"], one["kept"], reasons(one["rejected"])] for name, one in result["types"].items()]
    told = [
        f"Positives: {_listed(result['positives'])}; {result['same_place']:,} edit the words that the negative edits"
    ]
    if result["no_positive"]:
        told.append(f"Without a positive: {_listed(result['no_positive'])}")
    if result["mended"]:
        told.append(f"{result['mended']:,} negatives were put into the format of their captions")
    kept = f"{result['kept']:,} of {result['rows']:,} rows kept ({share(result['kept'], result['rows'])})"
    return [
        headline(f"{kept}, {result['seconds']} s"),
        *table(rows),
        *(["", *told] if details else []),
        *skipped_lines(result),
        *(bill_lines(result) if "llm" in result else []),
        "",
        f"Written to {result['out']}",
        *(next_step(f"pairwright audit {result['out']}") if result["kept"] else []),
    ]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"
