"""Audit report as HTML with charts, or as Markdown with tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.reports.charts import draw_histogram
from pairwright.datasets.reports.html_page import render_page, render_section, render_tiles
from pairwright.filters.attacks.registry import describe_attack
from pairwright.filters.audit.charts import draw_accuracy_bar, draw_bar_chart, draw_gap_heatmap
from pairwright.filters.audit.verdict import ALL, Audit
from pairwright.generators.language.vocabulary import FloatArray

_STYLE = Path(__file__).with_name("audit.css")
_MAX_EXCEEDED = 8  # attacks listed
_VERDICT_SENTENCES = {
    "hackable": "A text-only model can tell positives from negatives.",
    "unclear": "It is not known whether a text-only model can tell positives from negatives:",
    "sound": "No attack exceeds the allowed accuracy.",
}


@dataclass(frozen=True, eq=False)
class AuditGaps:
    """Gaps of each scorer over all rows of the file, and which rows are audited.

    Attributes:
        gaps: name to float64 (n,).
        audited: bool (n,); the others were rejected before.
    """

    gaps: Mapping[str, FloatArray]
    audited: npt.NDArray[np.bool_]


def render_html(audit: Audit, name: str, gaps: AuditGaps) -> str:
    """Return the HTML page; ``name`` is that of the file."""
    worst, measured = audit.worst
    numbers = [
        ("rows", f"{audit.rows:,}"),
        ("verdict", audit.verdict),
        (f"best attack: {worst}", f"{measured.accuracy:.1%}"),
        ("rows that differ in format", f"{audit.text_leaks.format_rows:,}"),
    ]
    bodies = [
        render_tiles(numbers),
        render_section("Attacks", _attacks_note(audit), _attacks(audit)),
        render_section(
            "By type", "Accuracy of each attack within each type; bold where it exceeds the limit.", _by_type(audit)
        ),
        render_section(
            "Words that differ",
            "Rows in which only one of the two texts has them; z is in standard deviations.",
            _words(audit),
        ),
        render_section(
            "Format",
            "Properties in which the two texts of a row differ, and how often the negative has them.",
            _format(audit),
        ),
        render_section("Where the texts begin to differ", "From the start of the positive to its end.", _places(audit)),
        render_section(
            "Two scorers at once",
            "Grammar gap to the right, plausibility gap upwards. Symmetric about the centre: neither detects the positive.",
            _heatmaps(gaps),
        ),
        render_section("Gaps", "Score of the positive minus score of the negative.", _histograms(gaps)),
    ]
    about = (
        describe_verdict(audit),
        f"allowed: {audit.limit:.0%}",
        "50% is chance level",
        "classifiers are tested on held-out rows only",
    )
    return render_page(name, "audit", about, bodies, _STYLE.read_text(encoding="utf-8"))


def describe_verdict(audit: Audit) -> str:
    """Return the verdict as a sentence."""
    return (
        f"{_VERDICT_SENTENCES[audit.verdict]} {audit.doubt}."
        if audit.verdict == "unclear"
        else _VERDICT_SENTENCES[audit.verdict]
    )


def _attacks_note(audit: Audit) -> str:
    return f"Share of rows in which the attack picks the positive, folded about 50%; the tick is {audit.limit:.0%}."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table; cells are HTML."""
    shown = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{"".join(f"<th>{escape(cell)}</th>" for cell in head)}</tr>{shown}</table></div>'


def _attacks(audit: Audit) -> str:
    exceeding = {each.attack for each in audit.exceeded if each.of == ALL}
    rows = [
        (
            escape(name),
            f'<span class="note">{escape(describe_attack(name))}</span>',
            f"{one.accuracy:.1%}",
            f"{one.low:.1%} to {one.high:.1%}",
            draw_accuracy_bar(one, audit.limit, exceeds=name in exceeding),
        )
        for name, one in audit.attacks.items()
    ]
    return _table(["attack", "", "accuracy", "95%", "50% to 100%"], rows)


def _by_type(audit: Audit) -> str:
    kinds = sorted({kind for one in audit.attacks.values() for kind in one.by_type})
    broken = {(each.attack, each.of) for each in audit.exceeded}
    if len(kinds) < 2:  # same numbers as in the table above
        return ""
    rows = []
    for kind in kinds:
        cells = [
            f"<b>{one.by_type[kind].accuracy:.1%}</b>"
            if (name, kind) in broken
            else f"{one.by_type[kind].accuracy:.1%}"
            for name, one in audit.attacks.items()
        ]
        count = next(iter(audit.attacks.values())).by_type[kind].rows
        rows.append([escape(kind), f"{count:,}", *cells])
    return _table(["type", "rows", *audit.attacks], rows)


def _words(audit: Audit) -> str:
    sides = []
    for title, direction in (("More often in the negative", 1), ("More often in the positive", -1)):
        leaks = [leak for leak in audit.text_leaks.words if leak.weight * direction > 0][:12]
        rows = [
            (escape(leak.words), f"{leak.positive:,}", f"{leak.negative:,}", f"{leak.weight:+.1f}") for leak in leaks
        ]
        if rows:
            table = _table(["words", "only the positive", "only the negative", "z"], rows)
            sides.append(f"<div><h4>{title}</h4>{table}</div>")
    return f'<div class="words">{"".join(sides)}</div>' if sides else ""


def _format(audit: Audit) -> str:
    rows = [
        (escape(name), f"{leak.rows:,}", f"{leak.rows / audit.rows:.1%}", f"{leak.negative / leak.rows:.1%}")
        for name, leak in sorted(audit.text_leaks.formats.items(), key=lambda item: -item[1].rows)
    ]
    return _table(["property", "rows that differ", "of all", "of these the negative has it"], rows) if rows else ""


def _places(audit: Audit) -> str:
    return draw_bar_chart(audit.text_leaks.positions, ("start", "end")) if any(audit.text_leaks.positions) else ""


def _heatmaps(gaps: AuditGaps) -> str:
    if not {"grammar", "plausibility"} <= gaps.gaps.keys():
        return ""
    both = gaps.gaps["grammar"], gaps.gaps["plausibility"]
    if not np.isfinite(both[0] + both[1]).any():  # rows of one image: no scorer could be trained
        return ""
    reach = tuple(_axis_limit(gap) for gap in both)
    shown = [("Audited", gaps.audited)]
    if not gaps.audited.all():
        shown.insert(0, ("All rows of the file", np.ones_like(gaps.audited)))
    figures = [draw_gap_heatmap(title, both[0][rows], both[1][rows], (reach[0], reach[1])) for title, rows in shown]
    return f'<div class="pair">{"".join(figures)}</div>'


def _axis_limit(gap: FloatArray) -> float:
    known = np.abs(gap[np.isfinite(gap)])
    return (float(np.quantile(known, 0.99)) if len(known) else 0.0) or 1.0


def _histograms(gaps: AuditGaps) -> str:
    figures = []
    for name, gap in gaps.gaps.items():
        whole = np.nan_to_num(gap)
        figures.append(draw_histogram(name, whole.tolist(), whole[gaps.audited].tolist()))
    return f'<div class="pair">{"".join(figures)}</div>'


def render_markdown(audit: Audit, name: str) -> str:
    """Return the Markdown page; ``name`` is that of the file."""
    worst, measured = audit.worst
    kinds = sorted({kind for one in audit.attacks.values() for kind in one.by_type})
    lines = [
        f"# Audit of {name}",
        "",
        f"**{audit.verdict}**: {describe_verdict(audit)}",
        "",
        f"{audit.rows:,} rows; best attack {worst} at {measured.accuracy:.1%}; allowed {audit.limit:.0%}.",
        "",
        *_markdown(
            ["attack", "what it goes by", "accuracy", "95%"],
            [
                [each, describe_attack(each), f"{one.accuracy:.1%}", f"{one.low:.1%} to {one.high:.1%}"]
                for each, one in audit.attacks.items()
            ],
        ),
        "",
        *_markdown(
            ["type", *audit.attacks],
            [[kind, *(f"{one.by_type[kind].accuracy:.1%}" for one in audit.attacks.values())] for kind in kinds],
        ),
        "",
        *_markdown(
            ["words", "only the positive", "only the negative", "z"],
            [
                [leak.words, f"{leak.positive:,}", f"{leak.negative:,}", f"{leak.weight:+.1f}"]
                for leak in audit.text_leaks.words[:20]
            ],
        ),
        "",
        *_markdown(
            ["format", "rows that differ", "of these the negative has it"],
            [
                [trait, f"{leak.rows:,}", f"{leak.negative / leak.rows:.1%}"]
                for trait, leak in audit.text_leaks.formats.items()
            ],
        ),
        "",
        *(f"- {line}" for line in format_summary(audit)),
    ]
    return "\n".join(lines) + "\n"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in escaped]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def format_summary(audit: Audit) -> list[str]:
    """Return the counts of `TextLeaks`, one line each."""
    leaks = audit.text_leaks
    counts = [
        (leaks.identical, "whose two texts are equal except for format"),
        (leaks.repeated, f"that {verb_form(leaks.repeated, 'repeat')} an earlier one"),
        (leaks.shared, "whose negative is the positive of another row"),
        (leaks.format_rows, "whose texts differ in format"),
        (leaks.longer, "whose negative has more words"),
        (leaks.shorter, "whose negative has fewer words"),
    ]
    return [f"{count_phrase(count, 'row')} {what} ({count / audit.rows:.1%})" for count, what in counts if count]


def describe_exceeded_limits(audit: Audit) -> list[str]:
    """Return the attacks that exceed the limit, one line each, the most accurate first."""
    found = audit.exceeded
    lines = [
        f"{'all rows' if each.of == ALL else each.of}: {each.attack} {each.measured.accuracy:.1%}"
        for each in found[:_MAX_EXCEEDED]
    ]
    return lines + ([f"and {len(found) - _MAX_EXCEEDED} more"] if len(found) > _MAX_EXCEEDED else [])
