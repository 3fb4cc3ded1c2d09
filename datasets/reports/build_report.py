"""Build report: a self-contained HTML file.

It shows numbers of pairs and texts, kept and rejected rows of each stage with reasons, types of negatives, the effect of
refinement on score gaps, times, agreement with the known truth (if any), and samples with their images. It has no script
and no external reference; its content security policy forbids both.

Input is the manifest, as described in `dataset_card.py`, and what a manifest cannot store: samples and gaps. Members used
in addition: ``types`` (type to made, kept, rejected by reason). Sections without data are omitted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.count_phrases import format_size
from pairwright.datasets.readers.skip_counts import describe_rejected_parts
from pairwright.datasets.rejects import rank_reasons
from pairwright.datasets.reports.charts import FloatSequence, draw_bars, draw_histogram, draw_stacked_bar
from pairwright.datasets.reports.html_page import render_page, render_section, render_tiles
from pairwright.datasets.reports.model_costs import COST_COLUMNS, list_cost_rows
from pairwright.datasets.reports.sample_gallery import render_gallery
from pairwright.datasets.shards.samples import Sample


@dataclass(frozen=True, slots=True)
class ScorerGaps:
    """The gaps of one scorer, score of the true text minus score of the negative, each in [-1, 1].

    Attributes:
        name: of the scorer.
        before: of all rows that entered refinement.
        after: of the rows it kept.
    """

    name: str
    before: FloatSequence
    after: FloatSequence


def write_report(
    path: Path, manifest: Mapping[str, Any], samples: Sequence[Sample] = (), gaps: Sequence[ScorerGaps] = ()
) -> None:
    """Write the report of a build to ``path``; see `render_report`."""
    write_text(path, render_report(manifest, samples, gaps))


def render_report(manifest: Mapping[str, Any], samples: Sequence[Sample] = (), gaps: Sequence[ScorerGaps] = ()) -> str:
    """Return the report as HTML.

    Args:
        manifest: of the build.
        samples: to show, with image bytes (`sample_gallery.choose_samples` draws them).
        gaps: one per scorer.
    """
    sections = [
        _headline(manifest),
        render_section("Stages", "Candidates are kept, or rejected with a reason.", _stages(manifest)),
        render_section("Texts by type", _types_note(manifest), _types(manifest)),
        render_section("Before and after refinement", _GAPS_NOTE, _gaps(gaps)),
        render_section("Versions", _VERSIONS_NOTE, _versions(manifest)),
        render_section("Audit of all versions", _audit_note(manifest), _audit(manifest)),
        render_section("Checked against the truth", _ORACLE_NOTE, _oracle(manifest)),
        render_section("Cost", _COST_NOTE, _costs(manifest)),
        render_section("Time", "Wall clock by stage.", _times(manifest)),
        render_section("Samples", f"{len(samples)} drawn by seed and key.", render_gallery(samples) if samples else ""),
    ]
    name = str(manifest.get("name", "dataset"))
    version = f"pairwright {manifest['version']}" if manifest.get("version") else ""
    return render_page(name, "build report", (version, str(manifest.get("created", ""))), sections)


_GAPS_NOTE = (
    "The gap is a scorer's value of the true text minus that of the negative. "
    "A text-only scorer that picks the true text in more than half of the cases has found a cue."
)
_ORACLE_NOTE = (
    "Each kept text was judged against the scene that its image was drawn from: negatives must be false, "
    "positives and turns true. A text outside the grammar counts as wrong."
)


_COST_NOTE = "Model answers used by the texts; answers from the cache were billed once."
_VERSIONS_NOTE = (
    "New pairs use the word statistics and scorers of the last full build. "
    "Changed and removed pairs stay unchanged until the next full build."
)


def _versions(manifest: Mapping[str, Any]) -> str:
    names = ("new", "known", "changed", "removed")
    rows = [
        f"<tr><td>{each['number']}</td>{''.join(_number(each['pairs'][name]) for name in names)}"
        f'{_number(len(each["shards"]))}<td class="wide">{escape(each["created"])}</td></tr>'
        for each in manifest.get("increments", [])
    ]
    return _table(("version", *names, "shards", "made"), rows) if rows else ""


def _audit_note(manifest: Mapping[str, Any]) -> str:
    audit = manifest.get("audit") or {}
    return (
        f"Accuracy of text-only attacks on the true text, over all {audit['rows']:,} kept negatives, held out. "
        f"Verdict: {audit['verdict']}; {audit['max']:.0%} is allowed in total and in each type."
        if audit
        else ""
    )


def _audit(manifest: Mapping[str, Any]) -> str:
    attacks = (manifest.get("audit") or {}).get("attacks", {})
    rows = [
        f'<tr><td>{escape(name)}</td><td class="number">{each["accuracy"]:.1%}</td>'
        f'<td class="wide">{each["low"]:.1%} to {each["high"]:.1%}</td></tr>'
        for name, each in attacks.items()
    ]
    return _table(("attack", "accuracy", "95% interval"), rows) if rows else ""


def _headline(manifest: Mapping[str, Any]) -> str:
    contents, shards = manifest.get("contents", {}), manifest.get("shards", {})
    texts = contents.get("texts", {})
    counts = [("pairs" if contents.get("with_image") else "captions", contents.get("samples", shards.get("samples")))]
    counts += [(name.replace("_", " "), count) for name, count in texts.items() if count]
    counts.append(("shards", shards.get("files")))
    seconds = sum(stage.get("seconds", 0.0) for stage in manifest.get("stages", {}).values())
    shown = [(name, f"{count:,}") for name, count in counts if count is not None]
    shown += [("size on disk", format_size(shards["bytes"]))] if "bytes" in shards else []
    shown += [("in all stages", format_duration(seconds))] if seconds else []
    return render_tiles(shown)


def _legend(*names: str) -> str:
    return '<p class="key-list">' + "".join(f'<span><i class="swatch-{n}"></i>{n}</span>' for n in names) + "</p>"


def _number(value: float) -> str:
    return f'<td class="number">{value:,}</td>'


def _table(head: Sequence[str], rows: Sequence[str]) -> str:
    numbers = {
        "candidates",
        "made",
        "kept",
        "rejected",
        "right",
        "outside",
        "accuracy",
        "new",
        "known",
        "changed",
        "removed",
        "shards",
        *COST_COLUMNS[1:4],
    }
    # "made" is a count for types, and a date for versions
    classes = [
        "number" if name in numbers and name != head[-1] else "wide" if name == head[-1] else "name" for name in head
    ]
    cells = "".join(f'<th class="{css}">{escape(name)}</th>' for css, name in zip(classes, head, strict=True))
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _stage_row(name: str, unit: str, counts: tuple[int, int], reasons: Mapping[str, int], parts: str = "") -> str:
    all_, kept = counts
    why = " · ".join(f"{escape(reason)} {count:,}" for reason, count in rank_reasons(reasons))
    bar = draw_stacked_bar((("kept", kept), ("rejected", all_ - kept)), all_)
    said = f'<p class="reasons">{why}</p>' if why else ""
    said += f'<p class="reasons">of kept rows: {escape(parts)}</p>' if parts else ""
    first = f"<td>{escape(name)}" + (f'<br><span class="note">{escape(unit)}</span>' if unit else "") + "</td>"
    return f'<tr>{first}{_number(all_)}{_number(kept)}{_number(all_ - kept)}<td class="wide">{bar}{said}</td></tr>'


def _stages(manifest: Mapping[str, Any]) -> str:
    stages = manifest.get("stages", {})
    rows = [
        _stage_row(
            name,
            f"unit: {s['unit']}",
            (s["candidates"], s["kept"]),
            s.get("rejected", {}),
            describe_rejected_parts(s.get("facts", {})),
        )
        for name, s in stages.items()
    ]
    head = ("stage", "candidates", "kept", "rejected", "share kept, and reasons of rejection")
    return _legend("kept", "rejected") + _table(head, rows) if rows else ""


def _types_note(manifest: Mapping[str, Any]) -> str:
    return "What each type made and kept." if manifest.get("types") else "What the shards hold."


def _types(manifest: Mapping[str, Any]) -> str:
    types = manifest.get("types") or {}
    if types:
        rows = [_stage_row(name, "", (t["made"], t["kept"]), t.get("rejected", {})) for name, t in types.items()]
        return _table(("type", "made", "kept", "rejected", "share kept, and reasons of rejection"), rows)
    groups = manifest.get("contents", {}).get("types", {})
    return "".join(
        f"<h4>{escape(group.replace('_', ' ').capitalize())}</h4>"
        + draw_bars([(name, count, f"{count:,}") for name, count in counts.items()])
        for group, counts in groups.items()
        if counts
    )


def _gaps(gaps: Sequence[ScorerGaps]) -> str:
    drawn = [draw_histogram(gap.name, gap.before, gap.after) for gap in gaps if len(gap.before)]
    return (
        _legend("before", "kept").replace("</i>kept", "</i>after") + f'<div class="pair">{"".join(drawn)}</div>'
        if drawn
        else ""
    )


def _oracle(manifest: Mapping[str, Any]) -> str:
    rows = [
        f'<tr><td>{escape(name)}</td>{_number(row["kept"])}<td class="number">{row["true_share"]:.2%}</td>{_number(row["outside"])}'
        f'<td class="wide">{draw_stacked_bar((("kept", round(row["true_share"] * row["kept"])),), row["kept"])}</td></tr>'
        for name, row in (manifest.get("oracle") or {}).items()
    ]
    return _table(("texts", "kept", "right", "outside", ""), rows) if rows else ""


def _costs(manifest: Mapping[str, Any]) -> str:
    rows = []
    for name, *counts, cost in list_cost_rows(manifest):
        numbers = "".join(f'<td class="number">{each}</td>' for each in counts)
        rows.append(f'<tr><td>{escape(name)}</td>{numbers}<td class="wide">{escape(cost)}</td></tr>')
    return _table(COST_COLUMNS, rows) if rows else ""


def _times(manifest: Mapping[str, Any]) -> str:
    stages: Mapping[str, Mapping[str, Any]] = manifest.get("stages", {})
    rows = [(n, s["seconds"], _throughput(s)) for n, s in stages.items() if "seconds" in s]
    return draw_bars(rows) if rows else ""


def _throughput(stage: Mapping[str, Any]) -> str:
    seconds = stage["seconds"]
    rate = f", {stage['candidates'] / seconds:,.0f}/s" if seconds >= 0.1 else ""
    return format_duration(seconds) + rate


def format_duration(seconds: float) -> str:
    """Return a duration for people: 0.42 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
