"""``pairwright audit``: can a set of captions and negatives be told apart without the image?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.attacks import EXTRA_ATTACKS_HELP, ExtraAttacks, load_attack_scorers
from pairwright.cli.options.input import JsonOption, OnErrorOption, SeedOption, skipped_lines
from pairwright.cli.options.model import ModelOptions, bill_lines, with_model_options
from pairwright.cli.output.console import StyledLine, emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import DetailsOption, table

if TYPE_CHECKING:
    from pairwright.filters.audit.hackability import Audit

_SHOWN = 4  # attacks of a summary
_TONES = {"hackable": "red", "sound": "green"}


@with_progress
@with_model_options
def audit(
    input_: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT", help=".jsonl, SugarCrepe .json, NegCLIP .tsv, .parquet, a build, or a folder of shards."
        ),
    ],
    *,
    corpus: Annotated[
        str, typer.Option("--corpus", help="Captions to train the language models on; INPUT's own when left out.")
    ] = "",
    also: Annotated[str, typer.Option("--also", help=EXTRA_ATTACKS_HELP)] = "",
    most: Annotated[
        float, typer.Option("--max", min=0.5, max=1.0, help="Accuracy that an attack may have; above it: exit 3.")
    ] = 0.55,
    report: Annotated[Path | None, typer.Option("--report", help="Page to write: .html with figures, or .md.")] = None,
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    asked: ModelOptions,
) -> None:
    """Attack a benchmark or a training set with everything that never sees an image.

    Each attack picks the positive of a row by its text alone. 50% is a coin's toss; what is well above it can be hacked.
    Classifiers are trained on other images' rows and judge only rows that they never saw.

    \b
    Examples:
      pairwright audit replace_obj.json
      pairwright audit negatives.jsonl --corpus captions.jsonl --report audit.html
      pairwright audit build/mine --max 0.52 --json
      pairwright audit swap_att.json --also meaning,llm --model gpt-4o-mini --dry-run
    """
    from pairwright.datasets.atomic_files import write_text
    from pairwright.datasets.errors import UsageError
    from pairwright.filters.audit.report import render_html, render_markdown
    from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
    from pairwright.flows.commands.audit import AuditRequest, audit_rows, rows_to_audit

    if report is not None and report.suffix not in {".html", ".md"}:
        raise UsageError(f"{report}: the page ends in .html or .md.")
    nothing_written_on_interrupt()
    added = ExtraAttacks.of(also, asked)
    screening = InvalidRowPolicy(on_error)
    frame, left_out = rows_to_audit(input_, screening)
    if left_out:
        note(f"{left_out:,} {'row' if left_out == 1 else 'rows'} came in rejected; no attack is on those.")
    check_outputs(None if asked.sends_nothing else report)
    beside = report or Path(f"{input_.name}.audit.html")  # without a page, answers are kept in the working folder
    also_by = load_attack_scorers(added, asked, frame, beside, seed, as_json=as_json)
    request = AuditRequest(corpus, most, seed, report is not None, added.meaning)
    found, gaps = audit_rows(frame, request, also_by.scorers, note)
    if report is not None:
        write_text(
            report,
            render_markdown(found, input_.name) if report.suffix == ".md" else render_html(found, input_.name, gaps),
        )
    result: dict[str, Any] = {
        **found.as_json(),
        "left_out": left_out,
        **screening.skipped.as_json(),
        **({"report": str(report)} if report else {}),
    }
    if also_by.bill:
        result["llm"] = also_by.bill
    emit(
        result,
        [
            *_lines(found, report, details=details),
            *skipped_lines(result),
            *(bill_lines(result) if also_by.bill else []),
        ],
        as_json=as_json,
    )
    if found.verdict == "hackable":
        exit_below_target()


def _lines(found: "Audit", report: Path | None, *, details: bool) -> list[str]:
    from pairwright.filters.attacks.registry import describe_attack
    from pairwright.filters.audit.report import describe_exceeded_limits, format_summary

    rows: list[list[object]] = [["attack", "accuracy", "95%", "goes by"]]
    for name, one in sorted(found.attacks.items(), key=lambda attack: -attack[1].accuracy):
        rows.append(
            [
                name,
                f"{one.accuracy:6.1%}",
                f"{100 * one.low:.1f}-{100 * one.high:.1f}",
                describe_attack(name),
            ]
        )
    telling = [f"{tell.words} ({tell.positive:,}:{tell.negative:,})" for tell in found.text_leaks.words[:8]]
    more = [
        "",
        *format_summary(found),
        *([f"telling words (positive:negative): {', '.join(telling)}"] if telling else []),
    ]
    left = len(rows) - 1 - _SHOWN
    return [
        StyledLine(f"{found.verdict}: {_why(found)}", _TONES.get(found.verdict, "yellow")),
        *(f"  {line}" for line in describe_exceeded_limits(found)),
        "",
        f"{found.rows:,} {'row' if found.rows == 1 else 'rows'}",
        *table(rows if details else rows[: _SHOWN + 1]),
        *(more if details else [f"{left} weaker attacks: --details"] if left > 0 else []),
        *(["", f"Written to {report}"] if report else []),
    ]


def _why(found: "Audit") -> str:
    if found.verdict == "hackable":
        return f"attacks above {found.limit:.0%}"
    if found.doubt:
        return found.doubt
    highest = max(one.high for one in found.attacks.values())
    return f"no attack is above {found.limit:.0%}; the highest end of an interval is {highest:.1%}"
