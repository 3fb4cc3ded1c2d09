"""An audit as a page: HTML with figures, or Markdown with tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pairwright.datasets.reports.figures import draw_histogram
from pairwright.datasets.reports.html_page import render_page, render_section, render_tiles
from pairwright.filters.attacks.registry import describe_attack
from pairwright.filters.audit.charts import accuracy_bar, bar_chart, gap_heatmap
from pairwright.filters.audit.hackability import ALL, Audit
from pairwright.generators.language.vocabulary import FloatArray

_STYLE = Path(__file__).with_name("audit.css")
_VERDICT_SENTENCES = {
    "hackable": "A model that never sees the image can tell positive from negative.",
    "unclear": "Whether a model that never sees the image can tell the two apart is not known:",
    "sound": "No attack tells positive from negative better than allowed.",
}


@dataclass(frozen=True, eq=False)
class AuditGaps:
    """Scores of positives minus scores of negatives, by scorer: over all rows of the file, and which of them are audited.

    Attributes:
        gaps: name to float64 (n,).
        audited: bool (n,); the others were rejected before.
    """

    gaps: Mapping[str, FloatArray]
    audited: npt.NDArray[np.bool_]


def render_html(audit: Audit, name: str, gaps: AuditGaps) -> str:
    """Return a whole page; ``name`` is that of the file."""
    worst, measured = audit.worst
    numbers = [
        ("rows", f"{audit.rows:,}"),
        ("verdict", audit.verdict),
        (f"best attack: {worst}", f"{measured.accuracy:.1%}"),
        ("rows that differ in format", f"{audit.tells.format_rows:,}"),
    ]
    bodies = [
        render_tiles(numbers),
        render_section("Attacks", _attacks_note(audit), _attacks(audit)),
        render_section(
            "By type", "Accuracy of each attack within each type; bold where it breaks the type.", _by_type(audit)
        ),
        render_section(
            "Words that tell",
            "In rows where only one of the two texts has them; z is in standard deviations.",
            _words(audit),
        ),
        render_section(
            "Format",
            "Traits in which the two texts of a row differ, and how often it is the negative that has them.",
            _format(audit),
        ),
        render_section("Where the texts begin to differ", "From the start of the positive to its end.", _places(audit)),
        render_section(
            "Two scorers at once",
            "Grammar gap to the right, plausibility gap upwards. Symmetric about the middle: both are blind.",
            _heatmaps(gaps),
        ),
        render_section("Gaps", "Score of the positive minus score of the negative.", _histograms(gaps)),
    ]
    about = (
        verdict_sentence(audit),
        f"allowed: {audit.most:.0%}",
        "50% is a coin's toss",
        "classifiers judge held-out rows only",
    )
    return render_page(name, "audit", about, bodies, _STYLE.read_text(encoding="utf-8"))


def verdict_sentence(audit: Audit) -> str:
    """Return the verdict as a sentence."""
    return (
        f"{_VERDICT_SENTENCES[audit.verdict]} {audit.doubt}."
        if audit.verdict == "unclear"
        else _VERDICT_SENTENCES[audit.verdict]
    )


def _attacks_note(audit: Audit) -> str:
    return f"Share of rows in which the attack picks the positive, folded about 50%; the tick is {audit.most:.0%}."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; cells are HTML."""
    shown = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{"".join(f"<th>{escape(cell)}</th>" for cell in head)}</tr>{shown}</table></div>'


def _attacks(audit: Audit) -> str:
    rows = [
        (
            escape(name),
            f'<span class="note">{escape(describe_attack(name))}</span>',
            f"{one.accuracy:.1%}",
            f"{one.low:.1%} to {one.high:.1%}",
            accuracy_bar(one, audit.most),
        )
        for name, one in audit.attacks.items()
    ]
    return _table(["attack", "", "accuracy", "95%", "50% to 100%"], rows)


def _by_type(audit: Audit) -> str:
    kinds = sorted({kind for one in audit.attacks.values() for kind in one.by_type})
    broken = {(each.attack, each.of) for each in audit.breaks}
    if len(kinds) < 2:  # the table above says it
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
    for title, leaning in (("Leaning to the negative", 1), ("Leaning to the positive", -1)):
        told = [tell for tell in audit.tells.words if tell.weight * leaning > 0][:12]
        rows = [
            (escape(tell.words), f"{tell.positive:,}", f"{tell.negative:,}", f"{tell.weight:+.1f}") for tell in told
        ]
        if rows:
            table = _table(["words", "only the positive", "only the negative", "z"], rows)
            sides.append(f"<div><h4>{title}</h4>{table}</div>")
    return f'<div class="told">{"".join(sides)}</div>' if sides else ""


def _format(audit: Audit) -> str:
    rows = [
        (escape(name), f"{leak.rows:,}", f"{leak.rows / audit.rows:.1%}", f"{leak.negative / leak.rows:.1%}")
        for name, leak in sorted(audit.tells.leaks.items(), key=lambda item: -item[1].rows)
    ]
    return _table(["trait", "rows that differ", "of all", "of these the negative has it"], rows) if rows else ""


def _places(audit: Audit) -> str:
    return bar_chart(audit.tells.places, ("start", "end")) if any(audit.tells.places) else ""


def _heatmaps(gaps: AuditGaps) -> str:
    if not {"grammar", "plausibility"} <= gaps.gaps.keys():
        return ""
    both = gaps.gaps["grammar"], gaps.gaps["plausibility"]
    if not np.isfinite(both[0] + both[1]).any():  # rows of one image: there is nothing to train a scorer on
        return ""
    reach = tuple(_axis_limit(gap) for gap in both)
    shown = [("Audited", gaps.audited)]
    if not gaps.audited.all():
        shown.insert(0, ("All rows of the file", np.ones_like(gaps.audited)))
    figures = [gap_heatmap(title, both[0][rows], both[1][rows], (reach[0], reach[1])) for title, rows in shown]
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
    """Return the audit as Markdown; ``name`` is that of the file."""
    worst, measured = audit.worst
    kinds = sorted({kind for one in audit.attacks.values() for kind in one.by_type})
    lines = [
        f"# Audit of {name}",
        "",
        f"**{audit.verdict}**: {verdict_sentence(audit)}",
        "",
        f"{audit.rows:,} rows; best attack {worst} at {measured.accuracy:.1%}; allowed {audit.most:.0%}.",
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
                [tell.words, f"{tell.positive:,}", f"{tell.negative:,}", f"{tell.weight:+.1f}"]
                for tell in audit.tells.words[:20]
            ],
        ),
        "",
        *_markdown(
            ["format", "rows that differ", "of these the negative has it"],
            [
                [trait, f"{leak.rows:,}", f"{leak.negative / leak.rows:.1%}"]
                for trait, leak in audit.tells.leaks.items()
            ],
        ),
        "",
        *(f"- {said}" for said in summary_lines(audit)),
    ]
    return "\n".join(lines) + "\n"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in escaped]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def summary_lines(audit: Audit) -> list[str]:
    """Return what was counted beside the attacks, a line each."""
    tells = audit.tells
    told = [
        (tells.identical, "rows whose two texts are the same but for format"),
        (tells.repeated, "rows that repeat an earlier one"),
        (tells.shared, "rows whose negative is the positive of another row"),
        (tells.format_rows, "rows whose texts differ in format"),
        (tells.longer, "rows whose negative has more words"),
        (tells.shorter, "rows whose negative has fewer words"),
    ]
    return [_count_line(count, what, audit.rows) for count, what in told if count]


def _count_line(count: int, what: str, of: int) -> str:
    said = what if count != 1 else what.replace("rows", "row", 1).replace("that repeat", "that repeats")
    return f"{count:,} {said} ({count / of:.1%})"


def describe_exceeded_limits(audit: Audit, most: int = 8) -> list[str]:
    """Return the attacks that break the set, a line each, the worst first."""
    found = audit.breaks
    lines = [
        f"{'all rows' if each.of == ALL else each.of}: {each.attack} {each.measured.accuracy:.1%}"
        for each in found[:most]
    ]
    return lines + ([f"and {len(found) - most} more"] if len(found) > most else [])
