"""``pairwright review``: review of negatives in a local page, reports on decisions, and their application."""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.options.declarations import advanced_option, input_option, output_option
from pairwright.cli.options.input import JsonOption, LayoutOption
from pairwright.cli.output.console import columns, emit, list_counts, note
from pairwright.cli.output.files import check_outputs
from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.errors import InputError, UsageError

if TYPE_CHECKING:
    from pairwright.filters.review.rows import ReviewRows
    from pairwright.filters.review.session import ReviewSession

_DEFAULT_REVIEWER = "reviewer"


def review(
    input_: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="A build, shards, or candidate rows, as of refine.",
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        output_option(help="File for decisions, or rows with --apply.", show_default="INPUT.decisions.jsonl"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="DECISIONS", help="Print a report on decisions and exit.")
    ] = None,
    apply_: Annotated[
        Path | None, typer.Option("--apply", metavar="DECISIONS", help="Write the rows as decided to --out and exit.")
    ] = None,
    to_label_studio: Annotated[
        Path | None,
        typer.Option(metavar="TASKS", help="Write tasks for Label Studio (.json; its export is DECISIONS) and exit."),
    ] = None,
    reviewer: Annotated[str, typer.Option(help="Name of the reviewer; for a report, whose decisions count.")] = "",
    sample: Annotated[int, typer.Option(min=0, help="Rows to review, sampled from each type (0 = all).")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order; the same for all reviewers.")] = 0,
    positives: Annotated[
        bool, typer.Option("--positives", help="Review hard positives, which have to be true; files only.")
    ] = False,
    only_reviewed: Annotated[
        bool, typer.Option("--only-reviewed", help="With --apply: reject rows without a decision.")
    ] = False,
    only_kept: Annotated[
        bool, output_option("--only-kept", help="With --apply: write kept rows only; .json and .tsv always do.")
    ] = False,
    image_root: Annotated[str, input_option(help="Folder of relative image paths.")] = "",
    layout: LayoutOption = "",
    port: Annotated[int, advanced_option(min=0, max=65_535, help="Port of the page (0 = any free one).")] = 0,
    no_browser: Annotated[
        bool, advanced_option("--no-browser", help="Print the address without opening a browser.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Review negatives one by one in a page on localhost.

    Decisions are saved immediately; the same command resumes a review. Ctrl-C ends it.

    \b
    Examples:
      pairwright review demo --sample 20
      pairwright review build/birds --sample 200 --reviewer ann
      pairwright review build/birds --report build/birds/review/decisions.jsonl
      pairwright review negatives.jsonl --apply negatives.jsonl.decisions.jsonl --out reviewed.jsonl
      pairwright review positives.jsonl --positives --reviewer ann
      pairwright review negatives.jsonl --to-label-studio tasks.json
    """
    from pairwright.filters.review.positives import read_positives
    from pairwright.filters.review.rows import read_rows
    from pairwright.flows.state.overwrite_checks import refuse_overwriting

    _check(out, report, apply_, sample=sample, filters=only_reviewed or only_kept)
    if (report or apply_) and (seed or port or no_browser or image_root):
        raise UsageError(
            "--seed, --port, --no-browser and --image-root do nothing with --report or --apply. Omit them."
        )
    if to_label_studio and (report or apply_ or out or reviewer or port or no_browser):
        raise UsageError(
            "--to-label-studio takes only --sample, --seed, --positives and --image-root. Omit the others."
        )
    rows = read_positives(input_, image_root) if positives else read_rows(input_, image_root, layout=layout)
    if to_label_studio is not None:
        _write_tasks(rows, to_label_studio, sample=sample, seed=seed, as_json=as_json)
    elif report is not None:
        _report(rows, report, reviewer, as_json=as_json)
    elif apply_ is not None and out is not None:
        refuse_overwriting(out, str(input_), str(apply_))
        if rows.frame.is_empty():
            raise InputError("no rows", where=str(input_), fix="Give captions with negatives.")
        check_outputs(out)
        result = _apply(rows, apply_, out, reviewer, only_reviewed=only_reviewed, only_kept=only_kept)
        emit(result, _applied_lines(result), as_json=as_json)
    else:
        from pairwright.filters.review.decisions import DecisionLog
        from pairwright.filters.review.session import ReviewSession

        log = DecisionLog(out or rows.decisions)
        session = ReviewSession(rows, log, reviewer or _DEFAULT_REVIEWER, sample=sample, seed=seed)
        _serve(session, log.path, port, browser=not no_browser, as_json=as_json)


def _check(out: Path | None, report: Path | None, apply_: Path | None, *, sample: int, filters: bool) -> None:
    if report is not None and apply_ is not None:
        raise UsageError("--report and --apply are mutually exclusive. Run two commands.")
    if report is not None and out is not None:
        raise UsageError("--report takes no --out: it prints. Use --json for a machine.")
    if apply_ is not None and out is None:
        raise UsageError("--apply requires --out: the file of the rows.")
    if sample and (report is not None or apply_ is not None):
        raise UsageError("--sample does nothing with --report or --apply. Omit it.")
    if filters and apply_ is None:
        raise UsageError("--only-reviewed and --only-kept require --apply.")


def _write_tasks(rows: "ReviewRows", out: Path, *, sample: int, seed: int, as_json: bool) -> None:
    from pairwright.filters.review.label_studio import write_tasks

    if out.suffix != ".json":
        raise UsageError(f"{out}: tasks of Label Studio are a .json file.")
    check_outputs(out)
    count = write_tasks(rows, out, sample=sample, seed=seed)
    config = out.with_suffix(".xml")
    lines = [f"{count_phrase(count, 'task')} in {out}; labeling configuration in {config}"]
    emit({"tasks": count, "out": str(out), "config": str(config)}, lines, as_json=as_json)


def _serve(session: "ReviewSession", path: Path, port: int, *, browser: bool, as_json: bool) -> None:
    from pairwright.filters.review.server import serve_until_signal

    before = session.progress()

    def announce(url: str) -> None:
        facts = {"url": url, "pid": os.getpid(), "rows": len(session), "decided": before["decided"], "out": str(path)}
        lines = [
            f"Review {len(session):,} of {count_phrase(session.of, 'row')} as {session.reviewer!r}: {before['decided']:,} decided.",
            f"Open  {url}",
            f"Decisions go to {path}. Ctrl-C ends the review.",
        ]
        print(json.dumps(facts) if as_json else "\n".join(lines), flush=True)  # noqa: T201 - results go to stdout
        if browser:
            _open_browser(url)

    serve_until_signal(session, port, announce)
    now = session.progress()
    note(f"Decided {now['decided']:,} of {count_phrase(len(session), 'row')}: {list_counts(now['counts'])}.")


def _open_browser(url: str) -> None:
    import threading
    import webbrowser

    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return  # a text browser would occupy the terminal
    # A thread: some browsers block the caller until they exit.
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def _report(rows: "ReviewRows", path: Path, reviewer: str, *, as_json: bool) -> None:
    from pairwright.filters.review.decisions import combine_decisions, read_decisions
    from pairwright.filters.review.report import build_review_report, format_report_tables

    judged = combine_decisions(rows.frame, read_decisions(path), [reviewer] if reviewer else None)
    result = build_review_report(rows.entering(), judged)
    lines: list[str] = []
    for title, table in format_report_tables(result):
        lines += [title.replace("negatives", "positives") if rows.positives else title, *columns(table), ""]
    bad = result["bad"]
    if bad["seen"] or bad["unsure"]:
        lines.append(
            f"Of the {count_phrase(bad['rest'], 'row')} without a decision, at most {bad['rest_at_most']:,} {verb_form(bad['rest_at_most'], 'are')} bad "
            f"({bad['high_with_unsure']:.1%}; 95% interval; unsure counts as bad)."
        )
    else:
        lines.append("No decision applies to these rows.")
    note_uncounted(result["uncounted"])
    emit(result, lines, as_json=as_json)


def _apply(
    rows: "ReviewRows", path: Path, out: Path, reviewer: str, *, only_reviewed: bool, only_kept: bool
) -> dict[str, Any]:
    from pairwright.filters.candidates.files import check_extension, write_candidates
    from pairwright.filters.review.decision_application import apply_to_rows, count_outcomes, decide_outcomes
    from pairwright.filters.review.decisions import combine_decisions, read_decisions
    from pairwright.filters.review.positives import check_positive_fixes, write_positives

    check_extension(out, rows.layout)
    judged = combine_decisions(rows.frame, read_decisions(path), [reviewer] if reviewer else None)
    note_uncounted(judged.uncounted)
    check, write = (
        (check_positive_fixes, write_positives)
        if rows.positives
        else (None, partial(write_candidates, like=rows.layout, note=note))
    )
    found = decide_outcomes(rows, judged, only_reviewed=only_reviewed, check=check)
    write(apply_to_rows(rows.frame, found), out, only_kept=only_kept)
    return {**count_outcomes(rows.frame, found), "uncounted": judged.uncounted, "out": str(out)}


def _applied_lines(result: dict[str, Any]) -> list[str]:
    lines = columns([[name, result[name]] for name in ("rows", "reviewed", "kept", "fixed")], indent="")
    if result["rejected"]:
        lines.append(f"rejected: {list_counts(result['rejected'])}")
    return [*lines, f"-> {result['out']}"]


def note_uncounted(uncounted: dict[str, int]) -> None:
    """Print the number of ignored decisions on stderr, by reason."""
    if uncounted:
        reasons = {"stale": "for a changed text", "unknown": "for unknown rows", "torn": "incomplete lines"}
        note(f"Ignored decisions: {', '.join(f'{count:,} {reasons[name]}' for name, count in uncounted.items())}.")
