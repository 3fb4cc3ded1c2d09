"""``pairwright generate triples``: a hard positive for each hard negative, for evaluation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.generate.common import MethodOption
from pairwright.cli.options.declarations import output_option
from pairwright.cli.options.input import DetailsOption, JsonOption, OnErrorOption, RowsArgument, SeedOption
from pairwright.cli.options.model import ModelOptions, with_model_options
from pairwright.cli.options.model_runs import bill_lines, cancel_plan_or_run
from pairwright.cli.output.console import emit, list_counts, note
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
from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.rejects import list_reasons


@with_progress
@with_model_options
def triples(
    input_: RowsArgument,
    *,
    out: Annotated[Path, output_option("--out", help="File to write; its extension is the format.")],
    method: MethodOption = "rules",
    any_type: Annotated[
        bool, typer.Option("--any-type", help="Use a positive of another type where none of the negative's exists.")
    ] = False,
    keep_negatives: Annotated[
        bool,
        typer.Option("--keep-negatives", help="Keep negatives unchanged unless they may be true or repeat a text."),
    ] = False,
    pool: Annotated[str, typer.Option(help="Reference captions for word statistics; else INPUT's.")] = "",
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    model_options: ModelOptions,
) -> None:
    """Generate a hard positive for each hard negative (The Hard Positive Truth).

    OUT: .jsonl and .parquet hold every row with status and reason, SugarCrepe .json and NegCLIP .tsv the kept ones.

    \b
    Examples:
      pairwright generate triples swap_att.json --out triples.json
      pairwright generate triples negatives.jsonl --any-type --pool captions.jsonl --out triples.jsonl
      pairwright generate triples negatives.jsonl --method llm --model gpt-4o-mini --dry-run --out triples.jsonl
    """
    from pairwright.flows.commands.triples import TripleRequest, run_by_rules

    request = TripleRequest(Path(input_), out, pool, any_type, keep_negatives, seed, on_error)
    if method == "llm":
        from pairwright.flows.commands.triples_with_model import plan_with_model, run_with_model

        access = model_options.access(out, seed)
        if not model_options.sends_nothing:
            check_outputs(out, reads=(input_, pool))
        result = cancel_plan_or_run(
            model_options,
            access,
            "captions",
            plan=lambda: plan_with_model(request, access, note),
            run=lambda bar: run_with_model(request, access, note, bar),
            as_json=as_json,
        )
        if result is None:
            return
    else:
        model_options.refuse("without --method llm")
        nothing_written_on_interrupt()
        check_outputs(out, reads=(input_, pool))
        result = run_by_rules(request, note)
    emit({**result, "method": method}, _lines(result, details=details), as_json=as_json)
    if not result["kept"]:
        exit_below_target(
            "No row was kept. --any-type accepts positives of other types, --keep-negatives accepts more negatives."
        )


def _lines(result: Mapping[str, Any], *, details: bool) -> list[str]:
    reasons = list_reasons if details else main_reasons
    rows: list[list[object]] = [["type", "rows", "kept", "rejected"]]
    rows += [[name, one["rows"], one["kept"], reasons(one["rejected"])] for name, one in result["types"].items()]
    positives = list_counts(result["positives"]) or "none"
    facts = [
        f"Positives: {positives}; {result['same_place']:,} {verb_form(result['same_place'], 'edit')} the same words as the negative"
    ]
    if result["no_positive"]:
        facts.append(f"Without a positive: {list_counts(result['no_positive'])}")
    if result["reformatted"]:
        facts.append(
            f"{count_phrase(result['reformatted'], 'negative')} {verb_form(result['reformatted'], 'were')} normalized to the format of their captions"
        )
    kept = f"{result['kept']:,} of {count_phrase(result['rows'], 'row')} kept ({share(result['kept'], result['rows'])})"
    return [
        headline(f"{kept}, {result['seconds']} s"),
        *table(rows),
        *(["", *facts] if details else []),
        *skipped_lines(result),
        *(bill_lines(result) if "llm" in result else []),
        "",
        f"Written to {result['out']}",
        *(next_step("audit", result["out"]) if result["kept"] else []),
    ]
