"""``pairwright audit``: the accuracy of text-only attacks on a set of captions and negatives."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.attacks import AddAttacksOption, ExtraAttacks
from pairwright.cli.options.declarations import input_option, limit_option, output_option
from pairwright.cli.options.input import DetailsOption, JsonOption, LayoutOption, OnErrorOption, SeedOption
from pairwright.cli.options.model import ModelOptions, with_model_options
from pairwright.cli.options.model_runs import bill_lines
from pairwright.cli.options.standard_input import copy_standard_input
from pairwright.cli.output.console import StyledLine, emit, note
from pairwright.cli.output.files import check_extension, check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import next_step, shown_reasons, skipped_lines, table
from pairwright.datasets.count_phrases import count_phrase

if TYPE_CHECKING:
    import polars as pl

    from pairwright.filters.audit.verdict import Audit

_SHOWN = 4  # attacks of a summary
_TONES = {"hackable": "red", "sound": "green"}


@with_progress
@with_model_options
def audit(
    input_: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            callback=copy_standard_input,
            help="Rows as of refine, a folder of a benchmark's files, a build, shards, or - for JSON Lines from stdin.",
        ),
    ],
    *,
    corpus: Annotated[str, input_option(help="Captions that train the language models; else INPUT's.")] = "",
    add_attacks: AddAttacksOption = "",
    most: Annotated[
        float, limit_option("--max", min=0.5, max=1.0, help="Accuracy of an attack, at most; else exit with 3.")
    ] = 0.55,
    report: Annotated[Path | None, output_option(help="Report to write: .html with figures, or .md.")] = None,
    layout: LayoutOption = "",
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    model_options: ModelOptions,
) -> None:
    """Attack captions and negatives without their images.

    Each attack picks the positive of a row by its text alone. 50% is chance level; a set on which an attack is well
    above it can be solved without images. Classifiers are evaluated on images that they were not trained on.

    \b
    Examples:
      pairwright audit demo
      pairwright audit replace_obj.json
      pairwright audit negatives.jsonl --corpus captions.jsonl --report audit.html
      pairwright audit build/mine --max 0.52 --json
      pairwright audit swap_att.json --add-attacks meaning,llm --model gpt-4o-mini --dry-run
    """
    from pairwright.datasets.atomic_files import write_text
    from pairwright.filters.audit.report import render_html, render_markdown
    from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
    from pairwright.flows.commands.audit import AuditRequest, audit_rows, rows_to_audit

    check_extension(report, ".html", ".md")
    nothing_written_on_interrupt()
    added = ExtraAttacks.parse(add_attacks, model_options)
    policy = InvalidRowPolicy(on_error)
    frame, rejected = rows_to_audit(input_, policy, layout)
    if rejected:
        reasons = shown_reasons(rejected, details=details)
        note(f"{count_phrase(sum(rejected.values()), 'rejected row')} of INPUT skipped ({reasons}).")
    check_outputs(None if model_options.sends_nothing else report)
    answers = report or Path(f"{input_.name}.audit.html")  # without a report, answers are kept in the working folder
    scorers, bill = added.scorers(model_options, frame, answers, seed, as_json=as_json)
    request = AuditRequest(corpus, most, seed, report is not None, added.meaning)
    found, gaps = audit_rows(frame, request, scorers, note)
    if report is not None:
        markdown = report.suffix.lower() == ".md"
        write_text(report, render_markdown(found, input_.name) if markdown else render_html(found, input_.name, gaps))
    given = {name: value for name, value in (("report", str(report or "")), ("llm", bill)) if value}
    left_out = {"left_out": sum(rejected.values()), "rejected": rejected}
    result: dict[str, Any] = {**found.as_json(), **left_out, **policy.skipped.as_json(), **given}
    lines = [*_lines(found, report, details=details), *skipped_lines(result), *(bill_lines(result) if bill else [])]
    if found.verdict == "hackable":
        error_option = "" if on_error == "stop" else on_error
        options = {"--corpus": corpus, "--add-attacks": added.without_model, "--format": layout}
        lines += _next_lines(input_, frame, {**options, "--on-error": error_option})
    emit(result, lines, as_json=as_json)
    if found.verdict == "hackable":
        exit_below_target()


def _next_lines(input_: Path, frame: "pl.DataFrame", options: Mapping[str, str]) -> list[str]:
    """Return how the rows of INPUT can be refined: a build's by its config, those of a file by `refine`, with the same options."""
    from pairwright.datasets.build_manifest import is_build, read_manifest
    from pairwright.datasets.directories import is_standard_input
    from pairwright.filters.refinement.one_per_caption import offers_choice

    if is_build(input_):
        refine = (read_manifest(input_).get("config") or {}).get("refine") or {}
        if refine.get("method") == "general":
            return []
        return [StyledLine("Next: set `refine: {method: general}` in the config and build again.", "cyan")]
    if not input_.is_file() or input_.suffix == ".tar" or is_standard_input(input_):
        return []
    given = [word for option in options.items() if option[1] for word in option]
    choose = ["--fix", "choose"] if offers_choice(frame) else []
    return next_step("refine", input_, *given, *choose, "--out", input_.with_name(f"{input_.stem}-refined.jsonl"))


def _lines(found: "Audit", report: Path | None, *, details: bool) -> list[str]:
    from pairwright.filters.attacks.registry import describe_attack
    from pairwright.filters.audit.report import describe_exceeded_limits, format_summary

    rows: list[list[object]] = [["attack", "accuracy", "95%", "goes by"]]
    for name, one in sorted(found.attacks.items(), key=lambda attack: -attack[1].accuracy):
        interval = f"{100 * one.low:.1f}-{100 * one.high:.1f}"
        rows.append([name, f"{one.accuracy:6.1%}", interval, describe_attack(name)])
    words = [f"{tell.words} ({tell.positive:,}:{tell.negative:,})" for tell in found.text_leaks.words[:8]]
    more = ["", *format_summary(found)]
    more += [f"leaking words (positive:negative): {', '.join(words)}"] if words else []
    weaker = len(rows) - 1 - _SHOWN
    return [
        StyledLine(f"{found.verdict}: {_reason(found)}", _TONES.get(found.verdict, "yellow")),
        *(f"  {line}" for line in describe_exceeded_limits(found)),
        "",
        count_phrase(found.rows, "row"),
        *table(rows if details else rows[: _SHOWN + 1]),
        *(more if details else [f"{weaker} weaker attacks: --details"] if weaker > 0 else []),
        *(["", f"Written to {report}"] if report else []),
    ]


def _reason(found: "Audit") -> str:
    if found.verdict == "hackable":
        return f"attacks above {found.limit:.0%}"
    if found.doubt:
        return found.doubt
    highest = max(one.high for one in found.attacks.values())
    return f"no attack is reliably above {found.limit:.0%}; the highest end of an interval is {highest:.1%}"
