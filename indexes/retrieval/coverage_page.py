"""HTML page of the coverage of a retrieval.

REACT's worst result was a domain missing from the pool (PatchCamelyon, microscope images): retrieval always finds
something, and training on it teaches noise. The page lists uncovered concepts first, with the captions found instead,
then all concepts: hits, distinct pairs, score distribution, samples. Sets of concepts are folded; `coverage_page_data`
selects the rows. Captions are truncated to `MAX_CAPTION_LENGTH` characters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.reports.charts import draw_stacked_bar
from pairwright.datasets.reports.html_page import render_page, render_section, render_tiles
from pairwright.indexes.retrieval.coverage_page_data import (
    CaptionLookup,
    ConceptRow,
    CoveragePageData,
    make_coverage_page_data,
)
from pairwright.indexes.retrieval.results import Retrieval

MAX_CAPTION_LENGTH = 140

_STYLE_PATH = Path(__file__).with_name("coverage.css")
_MAX_UNFOLDED_ROWS = 12  # sets with more rows are folded

_UNCOVERED_TEXT = (
    "Too few of the pairs returned for these concepts are near their bare names (column near); the other pairs show "
    "something else: read the captions. Training on them teaches noise. Worst first."
)
_ALL_CONCEPTS_TEXT = (
    "Worst covered first. Scores are cosines of a query and a found caption or image; a pair is one hit for each query that "
    "finds it. Captions of uncovered concepts are listed above."
)


def write_coverage_page(path: Path, found: Retrieval, lookup: CaptionLookup, name: str = "Coverage") -> None:
    """Write the page of a retrieval to ``path`` atomically.

    Args:
        path: path of the page.
        found: a retrieval.
        lookup: lookup of captions, such as `IndexWithEncoder.pairs`.
        name: heading of the page.
    """
    write_text(path, render_coverage_page(make_coverage_page_data(found, lookup, name)))


def render_coverage_page(view: CoveragePageData) -> str:
    """Return the page as HTML."""
    drawing = _RowRenderer.of(view)
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in view.facts)
    bodies = [
        render_tiles([(name, f"{count:,}") for name, count in view.numbers]),
        f'<dl class="facts">{facts}</dl>',
        render_section("Not covered", _UNCOVERED_TEXT, _render_uncovered(view, drawing)),
        render_section("All concepts", _ALL_CONCEPTS_TEXT, _render_all(view, drawing)),
    ]
    return render_page(view.name, "coverage", (), bodies, _STYLE_PATH.read_text(encoding="utf-8"))


def _render_uncovered(view: CoveragePageData, drawing: "_RowRenderer") -> str:
    groups = [group for group in view.groups if group.uncovered]
    if not groups:
        return '<p class="none">None: enough pairs of every concept are near its bare name.</p>'
    groups.sort(key=lambda group: -group.uncovered / group.concepts)
    bodies = []
    for group in groups:
        title = f"<b>{escape(group.name)}</b> {group.uncovered:,} of {group.concepts:,} not covered"
        first = list(dict.fromkeys(row.label for row in group.lost))[:5]
        examples = ", ".join(map(escape, first)) + (", …" if group.uncovered > len(first) else "")
        bar = draw_stacked_bar(
            (("kept", group.concepts - group.uncovered), ("rejected", group.uncovered)), group.concepts
        )
        summary = f"{title} <span>{examples}</span>{bar}" if len(groups) > 1 else title
        head = ("concept", "name", "near", "pairs", "best", "hits")
        table = _render_table(head, "nearest captions", group.lost, drawing.missing)
        bodies.append(
            _render_details(
                summary, table, group.omitted[0], opened=len(groups) == 1 or len(group.lost) <= _MAX_UNFOLDED_ROWS
            )
        )
    return drawing.legend(("kept", "covered"), ("rejected", "not covered, and the score of a bare name")) + "".join(
        bodies
    )


def _render_all(view: CoveragePageData, drawing: "_RowRenderer") -> str:
    bodies = []
    for group in view.groups:
        said = f"{group.concepts:,} concepts, {group.hits:,} hits, {group.pairs:,} distinct pairs"
        table = _render_table(
            ("concept", "hits", "pairs", "near", "best"), "scores of its hits, and samples", group.rows, drawing.found
        )
        opened = len(view.groups) == 1 or len(group.rows) <= _MAX_UNFOLDED_ROWS
        title = f"<b>{escape(group.name)}</b> <span>{said}</span>"
        bodies.append(_render_details(title, table, group.omitted[1], opened=opened))
    legend = drawing.legend(("band", "p10 to p90, the middle 80% of a concept's hits"), ("mid", "p50, the median"))
    return legend + "".join(bodies)


@dataclass(frozen=True)
class _RowRenderer:
    """Renders rows; all bars of a mode have the same scale.

    Attributes:
        scales: lowest and highest score of the bars, and floor, by mode.
        show_mode: whether rows show their mode.
    """

    scales: dict[str, tuple[float, float, float]]
    show_mode: bool

    @classmethod
    def of(cls, view: CoveragePageData) -> "_RowRenderer":
        """Return a renderer whose scales, in whole tenths, include the floor and all scores in bars."""
        scales = {}
        for mode in view.modes:
            rows = [row for group in view.groups for row in (*group.rows, *group.lost) if row.mode == mode]
            drawn = [score for row in rows for score in (row.name_score, row.floor, *(row.spread or ()))]
            low, high = min(drawn, default=0.0), max(drawn, default=1.0)
            scales[mode] = low * 10 // 1 / 10, -(-high * 10 // 1) / 10, rows[0].floor if rows else low
        return cls(scales, len(view.modes) > 1)

    def missing(self, row: ConceptRow) -> str:
        """Return the row of an uncovered concept with the nearest captions."""
        bar = self._bar(row, f'<rect class="rejected" width="{self._at(row, row.name_score)}" height="100%"/>')
        near = f"{_render_number(f'{row.near:,}')}{_render_number(f'{row.pairs:,}')}"
        cells = f"{_render_number(f'{row.name_score:.2f}')}{near}{_render_best(row)}{_render_number(f'{row.hits:,}')}"
        return _render_row(self._name(row), cells, bar + _render_captions(row))

    def found(self, row: ConceptRow) -> str:
        """Return the row of any concept with its score distribution."""
        said = ""
        if row.spread:
            left, middle, right = (self._at(row, score) for score in row.spread)
            width = f"{float(right[:-1]) - float(left[:-1]):.1f}%"
            said = self._bar(
                row,
                f'<rect class="band" x="{left}" width="{width}" height="100%"/>'
                f'<rect class="mid" x="{middle}" width="2" height="100%"/>',
            )
            numbers = zip(("p10", "p50", "p90"), row.spread, strict=True)
            said += '<p class="said">' + " · ".join(f"{name} {score:.2f}" for name, score in numbers) + "</p>"
        mark = "not covered" if row.lost else f"not covered in {row.mode}" if not row.covered else ""
        name = self._name(row) + (f'<br><span class="mark">{mark}</span>' if mark else "")
        cells = f"{_render_number(f'{row.hits:,}')}{_render_number(f'{row.pairs:,}')}{_render_number(f'{row.near:,}')}{_render_best(row)}"
        return _render_row(name, cells, said + ("" if row.lost else _render_captions(row)))

    def legend(self, *keys: tuple[str, str]) -> str:
        """Return the legend of colours and bar ranges."""
        shown = [*keys, ("floor", "floor of bare names")]
        swatches = "".join(f'<span><i class="swatch-{css}"></i>{escape(said)}</span>' for css, said in shown)
        for mode, (low, high, floor) in self.scales.items():
            of = f"{mode} bars" if self.show_mode else "bars"
            swatches += f"<span>{of} run from {low:.1f} to {high:.1f}, floor {floor:.2g}</span>"
        return f'<p class="key-list">{swatches}</p>'

    def _name(self, row: ConceptRow) -> str:
        return escape(row.label) + (f' <span class="note">{row.mode}</span>' if self.show_mode else "")

    def _at(self, row: ConceptRow, score: float) -> str:
        low, high, _ = self.scales[row.mode]
        share = (score - low) / (high - low) if high > low else 0.0
        return f"{100 * min(1.0, max(0.0, share)):.1f}%"

    def _bar(self, row: ConceptRow, inner: str) -> str:
        floor = f'<rect class="floor" x="{self._at(row, row.floor)}" width="2" height="100%"/>'
        ground = '<rect class="ground" width="100%" height="100%"/>'
        return f'<svg class="bar" aria-hidden="true">{ground}{inner}{floor}</svg>'


def _render_row(name: str, cells: str, wide: str) -> str:
    return f'<tr><td>{name}</td>{cells}<td class="wide">{wide}</td></tr>\n'


def _render_number(written: str) -> str:
    return f'<td class="number">{written}</td>'


def _render_best(row: ConceptRow) -> str:
    return _render_number("" if row.best is None else f"{row.best:.2f}")


def _render_captions(row: ConceptRow) -> str:
    found = "".join(f"<li><b>{score:.2f}</b>{escape(_shorten(caption))}</li>" for score, caption in row.samples)
    return f'<ul class="captions">{found}</ul>' if found else ""


def _shorten(caption: str) -> str:
    words = " ".join(caption.split())
    return words if len(words) <= MAX_CAPTION_LENGTH else words[: MAX_CAPTION_LENGTH - 1].rstrip() + "…"


def _render_table(head: Sequence[str], last: str, rows: Sequence[ConceptRow], draw: Callable[[ConceptRow], str]) -> str:
    first, *numbers = head
    cells = f"<th>{first}</th>" + "".join(f'<th class="number">{name}</th>' for name in numbers)
    body = "".join(map(draw, rows))
    return f'<table class="concepts"><thead><tr>{cells}<th class="wide">{last}</th></tr></thead><tbody>{body}</tbody></table>'


def _render_details(title: str, table: str, omitted: int, *, opened: bool) -> str:
    more = f'<p class="note">{omitted:,} more rows, better covered than these, are not shown.</p>' if omitted else ""
    return f"<details{' open' if opened else ''}><summary>{title}</summary>{table}{more}</details>"
