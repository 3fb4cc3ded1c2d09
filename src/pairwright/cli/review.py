"""``pairwright review``: judge negatives by eye in a local page; then report on the decisions, or apply them."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.datasets.errors import InputError, UsageError

if TYPE_CHECKING:
    from pairwright.filters.review.rows import ReviewRows
    from pairwright.filters.review.session import ReviewSession

_NOBODY = "reviewer"


def review(
    input_: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="A build, shards, or candidate rows: .jsonl, SugarCrepe .json, NegCLIP .tsv, .parquet.",
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="File that decisions are added to (beside INPUT when left out); of --apply: the rows."
        ),
    ] = None,
    reviewer: Annotated[
        str, typer.Option("--reviewer", help="Who decides. Of --report and --apply: whose decisions count; else all.")
    ] = "",
    sample: Annotated[
        int, typer.Option("--sample", min=0, help="Review so many rows, drawn by chance from each type; 0: all.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the order; two reviewers need the same.")] = 0,
    image_root: Annotated[str, typer.Option("--image-root", help="Folder that relative image paths start from.")] = "",
    report: Annotated[
        Path | None, typer.Option("--report", metavar="DECISIONS", help="Tell what decisions say, and stop.")
    ] = None,
    apply_: Annotated[
        Path | None, typer.Option("--apply", metavar="DECISIONS", help="Write all rows of INPUT to --out as decided.")
    ] = None,
    only_reviewed: Annotated[
        bool, typer.Option("--only-reviewed", help="With --apply: reject rows that nobody decided on.")
    ] = False,
    only_kept: Annotated[
        bool,
        typer.Option(
            "--only-kept", help="With --apply: leave rejected rows out of --out; .json and .tsv never hold them."
        ),
    ] = False,
    positives: Annotated[
        bool, typer.Option("--positives", help="Judge the rows' hard positives, which are to be true; files only.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="To listen at; 0: a free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, open nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Judge negatives by eye, one by one, in a page that this machine serves to itself.

    Decisions are on the disk as they are made; start again to go on. Ctrl-C ends it.

    \b
    Examples:
      pairwright review build/birds --sample 200 --reviewer ann
      pairwright review build/birds --report build/birds/review/decisions.jsonl
      pairwright review negatives.jsonl --apply negatives.jsonl.decisions.jsonl --out reviewed.jsonl
      pairwright review positives.jsonl --positives --reviewer ann
    """
    from pairwright.filters.review.positives import read_positives
    from pairwright.filters.review.rows import read_rows
    from pairwright.flows.state.overwrite_checks import refuse_overwriting

    _check(out, report, apply_, sample=sample, narrowed=only_reviewed or only_kept)
    if (report or apply_) and (seed or port or no_browser or image_root):
        raise UsageError(
            "--seed, --port, --no-browser and --image-root are of the review itself, not of its decisions."
        )
    rows = read_positives(input_, image_root) if positives else read_rows(input_, image_root)
    if report is not None:
        _report(rows, report, reviewer, as_json=as_json)
    elif apply_ is not None and out is not None:
        refuse_overwriting(out, str(input_), str(apply_))
        if rows.frame.is_empty():
            raise InputError("there are no rows", where=str(input_), fix="Give captions with negatives.")
        check_outputs(out)
        result = _apply(rows, apply_, out, reviewer, only_reviewed=only_reviewed, only_kept=only_kept)
        emit(result, _applied_lines(result), as_json=as_json)
    else:
        from pairwright.filters.review.decisions import DecisionLog
        from pairwright.filters.review.session import ReviewSession

        log = DecisionLog(out or rows.decisions)
        session = ReviewSession(rows, log, reviewer or _NOBODY, sample=sample, seed=seed)
        _serve(session, log.path, port, browser=not no_browser, as_json=as_json)


def _check(out: Path | None, report: Path | None, apply_: Path | None, *, sample: int, narrowed: bool) -> None:
    if report is not None and apply_ is not None:
        raise UsageError("--report and --apply are two calls.")
    if report is not None and out is not None:
        raise UsageError("--report prints; it takes no --out. Use --json for a machine.")
    if apply_ is not None and out is None:
        raise UsageError("--apply writes rows: name the file by --out.")
    if sample and (report is not None or apply_ is not None):
        raise UsageError("--sample is of the review itself; a report counts what was decided.")
    if narrowed and apply_ is None:
        raise UsageError("--only-reviewed and --only-kept go with --apply.")


def _serve(session: "ReviewSession", path: Path, port: int, *, browser: bool, as_json: bool) -> None:
    from pairwright.filters.review.server import serve_until_signal

    before = session.progress()

    def announce(url: str) -> None:
        told = {"url": url, "pid": os.getpid(), "rows": len(session), "decided": before["decided"], "out": str(path)}
        lines = [
            f"Review {len(session):,} of {session.of:,} rows as {session.reviewer!r}: {before['decided']:,} decided.",
            f"Open  {url}",
            f"Decisions go to {path}. Ctrl-C ends the review.",
        ]
        print(json.dumps(told) if as_json else "\n".join(lines), flush=True)  # noqa: T201 - stdout is where results go
        if browser:
            _open_browser(url)

    serve_until_signal(session, port, announce)
    now = session.progress()
    note(f"{now['decided']:,} of {len(session):,} rows are decided: {_listed(now['counts'])}.")


def _open_browser(url: str) -> None:
    import threading
    import webbrowser

    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return  # a browser in the terminal would take it over
    # A thread: some browsers hold the caller until they end.
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def _report(rows: "ReviewRows", path: Path, reviewer: str, *, as_json: bool) -> None:
    from pairwright.filters.review.decisions import combine_decisions, read_decisions
    from pairwright.filters.review.report import build_review_report, format_report_tables

    judged = combine_decisions(rows.frame, read_decisions(path), [reviewer] if reviewer else None)
    told = build_review_report(rows.entering(), judged)
    lines: list[str] = []
    for title, table in format_report_tables(told):
        lines += [title.replace("negatives", "positives") if rows.positives else title, *columns(table), ""]
    bad = told["bad"]
    if bad["seen"] or bad["unsure"]:
        lines.append(
            f"Of the {bad['rest']:,} rows that nobody saw, at most {bad['rest_at_most']:,} are bad "
            f"({bad['high_with_unsure']:.1%}; 95% interval, unsure ones counted as bad)."
        )
    else:
        lines.append("No decision counts for these rows.")
    note_uncounted(told["uncounted"])
    emit(told, lines, as_json=as_json)


def _apply(
    rows: "ReviewRows", path: Path, out: Path, reviewer: str, *, only_reviewed: bool, only_kept: bool
) -> dict[str, Any]:
    from pairwright.filters.candidates.files import check_extension, write_candidates
    from pairwright.filters.review.decision_application import apply_to_rows, count_outcomes, decide_outcomes
    from pairwright.filters.review.decisions import combine_decisions, read_decisions
    from pairwright.filters.review.positives import check_positive_fixes, write_positives

    check_extension(out)
    judged = combine_decisions(rows.frame, read_decisions(path), [reviewer] if reviewer else None)
    note_uncounted(judged.uncounted)
    check, write = (check_positive_fixes, write_positives) if rows.positives else (None, write_candidates)
    found = decide_outcomes(rows, judged, only_reviewed=only_reviewed, check=check)
    write(apply_to_rows(rows.frame, found), out, only_kept=only_kept)
    return {**count_outcomes(rows.frame, found), "uncounted": judged.uncounted, "out": str(out)}


def _applied_lines(result: dict[str, Any]) -> list[str]:
    lines = columns([[name, result[name]] for name in ("rows", "reviewed", "kept", "fixed")], indent="")
    if result["rejected"]:
        lines.append(f"rejected: {_listed(result['rejected'])}")
    return [*lines, f"-> {result['out']}"]


def note_uncounted(uncounted: dict[str, int]) -> None:
    """Say on stderr which decisions do not count, and why."""
    if uncounted:
        means = {
            "stale": "about a text that has changed",
            "unknown": "about rows that are not here",
            "torn": "torn lines",
        }
        note(f"Not counted: {', '.join(f'{count:,} {means[why]}' for why, count in uncounted.items())}.")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
